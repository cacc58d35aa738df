//! `trace why` of runs inside the kernel: where a cause is planted, it is the one that is named.

use std::path::Path;
use std::time::Duration;

use punctual_sys::clock::monotonic_ns as now;
use punctual_sys::sched;
use serde_json::Value;

use crate::machine::{until, Machine};
use crate::punctual::{misses_of, start, Running, Scratch};

/// How long the cause lasts: several periods.
const LENGTH: Duration = Duration::from_millis(110);

/// A run that is recorded until it is interrupted, and whose task waits for each release.
fn recorded(scratch: &Scratch, policy: &str) -> Running {
    let set = format!(
        "cpu = 0\npolicy = \"{policy}\"\n[[task]]\nname = \"servo\"\nperiod = \"20ms\"\n\
         deadline = \"10ms\"\nbudget = \"5ms\"\nwork = {{ spin = \"1ms\" }}\n"
    );
    let trace = scratch.path("trace");
    let run = start(&scratch.file("set.toml", &set), &["--trace", trace.to_str().expect("plain")]);
    until("its first records", || written(&trace) > 20_000);
    run
}

fn written(trace: &Path) -> u64 {
    std::fs::metadata(trace).map_or(0, |file| file.len())
}

/// Why deadlines were missed whose windows are within these times, ns.
fn causes_in(run: Running, scratch: &Scratch, (from, to): (u64, u64)) -> Vec<String> {
    let trace = scratch.path("trace");
    let before = written(&trace);
    until("the run continues", || written(&trace) > before + 8_000);
    run.send(libc::SIGINT);
    assert_eq!(run.output().status.code(), Some(130));
    let misses = misses_of(&trace);
    let at = |miss: &Value, key: &str| miss[key].as_u64().expect("a time");
    let within = |miss: &&Value| at(miss, "release_ns") >= from && at(miss, "deadline_ns") <= to;
    let causes = misses.iter().filter(within).filter_map(|miss| miss["cause"].as_str());
    let causes: Vec<String> = causes.map(str::to_owned).collect();
    assert!(causes.len() >= 3, "{from} to {to}: {misses:#?}");
    causes
}

#[test]
fn a_real_time_thread_above_the_scheduler_is_time_that_no_task_used() {
    let Some(_machine) = Machine::with_sched_ext() else { return };
    let scratch = Scratch::new();
    let run = recorded(&scratch, "edf");
    let spins = || {
        sched::pin(0, 0).and_then(|()| sched::set_fifo(0, 50)).expect("it is permitted");
        let from = now();
        while now() < from + LENGTH.as_nanos() as u64 {
            std::hint::spin_loop();
        }
        (from, now())
    };
    let span = std::thread::spawn(spins).join().expect("it ends");
    let causes = causes_in(run, &scratch, span);
    assert!(causes.iter().all(|cause| cause == "unaccounted"), "{causes:?}");
}

/// Its thread adds the jobs of a policy outside the dispatcher.
#[test]
fn a_stopped_loader_is_named_where_its_policy_adds_the_jobs() {
    let Some(_machine) = Machine::with_sched_ext() else { return };
    let scratch = Scratch::new();
    let run = recorded(&scratch, "imprecise");
    run.send(libc::SIGSTOP);
    let from = now();
    std::thread::sleep(LENGTH);
    let to = now();
    run.send(libc::SIGCONT);
    let causes = causes_in(run, &scratch, (from, to));
    assert!(causes.iter().all(|cause| cause == "dispatcher_stalled"), "{causes:?}");
}
