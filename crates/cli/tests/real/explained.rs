//! `trace why` of real runs: where a cause is planted, it is the one that is named.

use std::time::{Duration, Instant};

use punctual_sys::clock::monotonic_ns as now;
use punctual_sys::sched;
use punctual_test_support::{judge_timing, LIVENESS};
use serde_json::Value;

use crate::kills::NEEDS;
use crate::machine::{one_cpu, permitted, Cpu};
use crate::process::{kill, state_of, threads_of};
use crate::punctual::{Running, Scratch, PUNCTUAL};

/// How long the tasks are kept from the CPU: several periods.
const LENGTH: Duration = Duration::from_millis(110);

/// A run that is recorded until it is interrupted. Its task waits for each release.
struct Recorded {
    running: Running,
    trace: String,
    cpu: Cpu,
    _scratch: Scratch,
}

impl Recorded {
    fn start() -> Recorded {
        let (cpu, scratch) = (one_cpu(), Scratch::new());
        let set = format!(
            "cpu = {}\npolicy = \"fp\"\n[[task]]\nname = \"servo\"\nperiod = \"20ms\"\n\
             deadline = \"10ms\"\nbudget = \"5ms\"\npriority = 1\nwork = {{ spin = \"1ms\" }}\n",
            cpu.0
        );
        let (file, trace) = (scratch.file("set.toml", &set), scratch.path("trace"));
        let mut running = Running::start(&["run", "--quiet", "--trace", &trace, &file]);
        let written = || std::fs::metadata(&trace).map_or(0, |file| file.len());
        running.wait_for("its first records", |_| written() > 20_000);
        Recorded { running, trace, cpu, _scratch: scratch }
    }

    /// The misses whose windows are within these times, ns: why they were missed.
    fn causes_in(self, (from, to): (u64, u64)) -> Vec<String> {
        let written = || std::fs::metadata(&self.trace).map_or(0, |file| file.len());
        let (before, limit) = (written(), Instant::now() + LIVENESS);
        while written() < before + 8_000 {
            assert!(Instant::now() < limit, "the run writes no more");
            std::thread::sleep(Duration::from_millis(20));
        }
        kill(self.running.pid(), libc::SIGINT);
        let ended = self.running.end();
        assert_eq!(ended.code, Some(130), "{}{}", ended.out, ended.err);
        ended.assert_nothing_left(&[self.cpu.0]);
        let why = std::process::Command::new(&*PUNCTUAL)
            .args(["trace", "why", &self.trace, "--json"])
            .output()
            .expect("it starts");
        let document: Value = serde_json::from_slice(&why.stdout).expect("it is JSON");
        let misses = document["result"]["misses"].as_array().expect("misses");
        let within = |miss: &&Value| {
            let at = |key: &str| miss[key].as_u64().expect("a time");
            at("release_ns") >= from && at("deadline_ns") <= to
        };
        let causes = misses.iter().filter(within).map(|miss| miss["cause"].as_str());
        let causes: Vec<String> = causes.map(|cause| cause.expect("a name").to_owned()).collect();
        assert!(causes.len() >= 3, "{from} to {to}: {document:#}");
        causes
    }
}

/// From when to when a SCHED_FIFO thread of this priority had the CPU, ns.
fn spin(cpu: u32, priority: i32) -> (u64, u64) {
    let spins = move || {
        sched::pin(0, cpu).and_then(|()| sched::set_fifo(0, priority)).expect("it is permitted");
        let from = now();
        let mut to = from;
        while to < from + LENGTH.as_nanos() as u64 {
            std::hint::spin_loop();
            to = now();
        }
        (from, to)
    };
    std::thread::spawn(spins).join().expect("it ends")
}

#[test]
fn a_stopped_process_is_named() {
    if !permitted(&NEEDS) {
        return;
    }
    let recorded = Recorded::start();
    let pid = recorded.running.pid();
    kill(pid, libc::SIGSTOP);
    let limit = Instant::now() + LIVENESS;
    while !threads_of(pid).into_iter().all(|tid| state_of(tid) == Some('T')) {
        assert!(Instant::now() < limit, "it does not stop");
    }
    let from = now();
    std::thread::sleep(LENGTH);
    let to = now();
    kill(pid, libc::SIGCONT);
    let causes = recorded.causes_in((from, to));
    let named = |cause: &String| cause == "dispatcher_stalled" || cause == "released_late";
    assert!(causes.iter().all(named), "{causes:?}");
    assert!(causes.iter().any(|cause| cause == "dispatcher_stalled"), "{causes:?}");
}

#[test]
fn a_thread_above_the_dispatcher_is_named() {
    if !permitted(&NEEDS) {
        return;
    }
    let recorded = Recorded::start();
    let span = spin(recorded.cpu.0, 99);
    let causes = recorded.causes_in(span);
    let named = |cause: &String| cause == "dispatcher_stalled" || cause == "released_late";
    assert!(causes.iter().all(named), "{causes:?}");
    assert!(causes.iter().any(|cause| cause == "dispatcher_stalled"), "{causes:?}");
}

#[test]
fn a_thread_above_the_tasks_alone_is_time_that_no_task_used() {
    if !permitted(&NEEDS) {
        return;
    }
    let recorded = Recorded::start();
    let span = spin(recorded.cpu.0, 98);
    let causes = recorded.causes_in(span);
    // Where the machine keeps the dispatcher from executing, too, that is the cause.
    let named = |cause: &String| {
        ["unaccounted", "dispatcher_stalled", "released_late"].contains(&cause.as_str())
    };
    assert!(causes.iter().all(named), "{causes:?}");
    judge_timing(|| assert!(causes.iter().all(|cause| cause == "unaccounted"), "{causes:?}"));
}
