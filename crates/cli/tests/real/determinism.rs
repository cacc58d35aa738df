//! `punctual measure determinism`: each kind of task is released by the primitive that it names,
//! at its policy and priority; and what was measured is kept, however the run ends.

use std::collections::HashMap;
use std::io::Write;

use punctual_test_support::LIVENESS;
use serde_json::Value;

use crate::machine::{one_cpu, permitted, Cpu, Need};
use crate::process::{attributes, eventually, kill, threads_of};
use crate::punctual::{Ended, Running};

/// Slow, so that each thread is nearly always where it waits.
const RATE: &str = "50";

fn start(cpu: &Cpu, more: &[&str]) -> Running {
    let number = cpu.0.to_string();
    let words = ["measure", "determinism", "--json", "--cpu", &number, "--rate", RATE];
    Running::start(&[&words, more].concat())
}

/// Its document, which conforms to the schema.
fn document(ended: &Ended) -> Value {
    let document = ended.json();
    let schema = include_str!("../../../../docs/measure-determinism.schema.json");
    crate::behaviour::assert_conforms(&document, schema);
    document
}

/// The threads of the executive and its tasks, by their names, once all are there and real-time.
fn measuring_threads(run: &mut Running) -> HashMap<String, i32> {
    let mut threads = HashMap::new();
    run.wait_for("its 17 threads", |run| {
        let pid = run.pid();
        let name = |tid: i32| std::fs::read_to_string(format!("/proc/{pid}/task/{tid}/comm")).ok();
        let named =
            threads_of(pid).into_iter().filter_map(|tid| Some((name(tid)?.trim().to_owned(), tid)));
        threads =
            named.filter(|(_, tid)| attributes(*tid).is_some_and(|a| a.priority > 0)).collect();
        threads.len() == 17
    });
    threads
}

/// The system call that a thread waits in, with its arguments; `None` while it executes.
fn waits_in(tid: i32) -> Option<(i64, Vec<u64>)> {
    let text = std::fs::read_to_string(format!("/proc/{tid}/syscall")).ok()?;
    let mut words = text.split_whitespace();
    let call = words.next()?.parse().ok().filter(|call| *call >= 0)?;
    Some((
        call,
        words.map_while(|word| u64::from_str_radix(word.strip_prefix("0x")?, 16).ok()).collect(),
    ))
}

/// The address of the futex that a thread waits for by this operation, once it does.
fn futex_of(name: &str, tid: i32, operation: i32) -> u64 {
    let mut address = 0;
    eventually(
        &format!("{name} waits for a futex by {operation:#x}, and not {:?}", waits_in(tid)),
        || {
            let Some((libc::SYS_futex, args)) = waits_in(tid) else { return false };
            address = args[0];
            args[1] == operation as u64
        },
    );
    address
}

fn waits_for_signal(name: &str, tid: i32) {
    eventually(&format!("{name} waits for a signal"), || {
        waits_in(tid).is_some_and(|(call, _)| call == libc::SYS_rt_sigtimedwait)
    });
}

fn sleeps_by(name: &str, tid: i32, clock: i32) {
    eventually(&format!("{name} sleeps for a time on clock {clock}"), || {
        waits_in(tid).is_some_and(|(call, args)| {
            call == libc::SYS_clock_nanosleep && args[..2] == [clock as u64, 0]
        })
    });
}

/// Threads that have a POSIX timer of CLOCK_MONOTONIC, by /proc/PID/timers.
fn timers_signal(pid: i32) -> Vec<i32> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/timers")).unwrap();
    let mut tids: Vec<i32> = text
        .lines()
        .filter_map(|line| line.strip_prefix("notify: signal/tid.")?.parse().ok())
        .collect();
    assert_eq!(text.matches("ClockID: 1").count(), tids.len(), "{text}");
    tids.sort_unstable();
    tids
}

#[test]
fn each_kind_is_released_by_the_primitive_that_it_names_and_ctrl_c_keeps_what_was_measured() {
    if !permitted(&[Need::RealTime]) {
        return;
    }
    let cpu = one_cpu();
    let mut run = start(&cpu, &["--duration", "1000s"]);
    let threads = measuring_threads(&mut run);
    let of = |name: &str| threads[name];

    // Before the start all of them wait for one futex.
    let woken = |name: &str| {
        let text =
            std::fs::read_to_string(format!("/proc/{}/status", of(name))).unwrap_or_default();
        let line = text.lines().find_map(|l| l.strip_prefix("voluntary_ctxt_switches:"));
        line.and_then(|n| n.trim().parse::<u64>().ok()).unwrap_or(0)
    };
    for name in threads.keys() {
        eventually(&format!("{name} is released, time after time"), || woken(name) > 10);
    }

    // The wait of our own futex; of the C library's condition variables; of its shared semaphores.
    let direct = libc::FUTEX_WAIT_BITSET | libc::FUTEX_PRIVATE_FLAG;
    let condition = direct | libc::FUTEX_CLOCK_REALTIME;
    let semaphore = libc::FUTEX_WAIT_BITSET | libc::FUTEX_CLOCK_REALTIME;
    let pair = |one: &str, other: &str, operation| {
        [one, other].map(|name| futex_of(name, of(name), operation))
    };
    for (one, other, operation) in
        [("task1", "task2", direct), ("task3", "task4", condition), ("task5", "task6", semaphore)]
    {
        let [a, b] = pair(one, other, operation);
        assert!(a.abs_diff(b) >= 4, "each has its own: {a:#x} {b:#x}");
    }
    // A condition variable has words for two groups of waiters.
    let near = |[a, b]: [u64; 2]| a.abs_diff(b) < size_of::<libc::pthread_cond_t>() as u64;
    assert!(!near(pair("task3", "task4", condition)), "sth: a condition variable for each");
    assert!(near(pair("task15", "task16", condition)), "bth: one condition variable for both");

    for name in ["task7", "task8", "task9", "task10", "exec"] {
        waits_for_signal(name, of(name));
    }
    let mut own = ["exec", "task9", "task10"].map(of);
    own.sort_unstable();
    assert_eq!(timers_signal(run.pid()), own, "hrt: a timer of its own; sig: none");
    for (name, clock) in [("task11", libc::CLOCK_MONOTONIC), ("task13", libc::CLOCK_REALTIME)] {
        sleeps_by(name, of(name), clock);
    }

    // Policies and priorities are those of the article's tables, and no child would inherit them.
    let reset = 0x4000_0000;
    let is = |name: &str, policy: i32, priority: i32| {
        let a = attributes(of(name)).unwrap();
        assert_eq!((a.policy, a.priority), (policy | reset, priority), "{name}");
    };
    is("exec", libc::SCHED_FIFO, 5);
    is("task1", libc::SCHED_FIFO, 29);
    is("task8", libc::SCHED_FIFO, 18);
    is("task9", libc::SCHED_RR, 17);
    is("task16", libc::SCHED_RR, 7);

    kill(run.pid(), libc::SIGINT);
    let ended = run.end();
    ended.assert_code(130).assert_nothing_left(&[]);
    let document = document(&ended);
    let tasks = document["result"]["runs"][0]["tasks"].as_array().unwrap().clone();
    assert_eq!(tasks.len(), 17);
    for task in &tasks {
        let figure = |key: &str| task[key].as_u64().unwrap_or_else(|| panic!("{key} of {task:#}"));
        assert!(figure("cycles") > 0, "{task:#}");
        assert_eq!(figure("determinism_ns"), figure("worst_ns") - figure("best_ns"), "{task:#}");
    }
    let machine = &document["result"]["machine"];
    assert!(machine["kernel"].is_string() && machine["cpus"].is_array(), "{machine:#}");
}

#[test]
fn a_requirement_that_is_not_kept_is_a_failure_and_one_that_is_kept_is_none() {
    if !permitted(&[Need::RealTime]) {
        return;
    }
    let cpu = one_cpu();
    for (bound, code) in [("worst=1ns", 1), ("worst=1000s,determinism=1000s", 0)] {
        let ended = start(&cpu, &["--duration", "1s", "--require", bound]).end();
        let document = document(ended.assert_code(code));
        assert_eq!(document["ok"], code == 0, "{document:#}");
        let verdict = document["verdict"].as_str().unwrap();
        assert_eq!(verdict.starts_with("Not kept: worst "), code == 1, "{verdict}");
        let run = &document["result"]["runs"][0];
        assert_eq!((&run["rate_hz"], &run["cpu"]), (&50.into(), &cpu.0.into()));
        // The executive takes each beat once; those that it lost are late.
        let beats = &run["tasks"][0];
        let all = beats["cycles"].as_u64().unwrap() + beats["late"].as_u64().unwrap();
        assert!(all >= 50, "1 s at 50 Hz: {beats:#}");
    }
}

#[test]
fn work_that_does_not_fit_is_scaled_down_and_the_header_says_so() {
    if !permitted(&[Need::RealTime]) {
        return;
    }
    let (cpu, work) = (one_cpu(), "4000000");
    let ended = start(&cpu, &["--duration", "300ms", "--work", work]).end();
    let run = document(&ended)["result"]["runs"][0].take();
    let units = run["work"].as_u64().unwrap();
    assert_eq!(run["work_asked"], 4_000_000);
    assert!(units > 0 && units < 4_000_000, "{run:#}");
}

#[test]
fn on_a_terminal_the_figures_are_redrawn_in_place() {
    if !permitted(&[Need::RealTime, Need::Tool("script")]) {
        return;
    }
    let cpu = one_cpu();
    let line = format!(
        "{} measure determinism --cpu {} --rate {RATE} --duration 1000s",
        crate::punctual::PUNCTUAL.display(),
        cpu.0
    );
    let scratch = crate::punctual::Scratch::new();
    let shown = scratch.path("shown");
    let mark = crate::punctual::new_mark();
    let mut c = std::process::Command::new("script");
    c.args(["-qec", &line, "/dev/null"]).env("PUNCTUAL_TEST_MARK", &mark).env("TERM", "xterm");
    c.stdin(std::process::Stdio::piped()).stdout(std::fs::File::create(&shown).unwrap());
    let mut script = Running::of(c, mark);
    let out = || std::fs::read_to_string(&shown).unwrap();
    let end = std::time::Instant::now() + LIVENESS;
    script.wait_for("a second table", |_| {
        out().contains("A\x1b[J") || std::time::Instant::now() > end
    });
    // Ctrl-C, as its terminal sends it.
    script.child.stdin.as_mut().unwrap().write_all(b"\x03").unwrap();
    let ended = script.end();
    assert_eq!(ended.code, Some(130), "{}", out());
    assert!(
        out().contains("task16") && out().contains("determ") && out().contains("A\x1b[J"),
        "{}",
        out()
    );
    ended.assert_nothing_left(&[]);
}
