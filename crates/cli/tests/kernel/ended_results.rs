//! A run whose scheduler is ended leaves its results and a whole trace, with the cause.

use std::path::Path;
use std::process::{Command, Output};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::budgets::TWO;
use crate::machine::{state, Machine};
use crate::punctual::{document_with, replays, start, task, trace, words_of, Scratch, PUNCTUAL};

const ENDED: i32 = 5;

/// Its JSON document is the results and the cause, and its trace is whole: from the first release
/// to the end.
fn has_results(output: &Output, path: &Path, cause: &str) {
    let document: Value = document_with(output, ENDED);
    assert!(
        document["error"]["cause"].as_str().is_some_and(|c| c.contains(cause)),
        "{}",
        words_of(output)
    );
    assert_eq!((&document["exit_code"], &document["ok"]), (&ENDED.into(), &false.into()));
    assert!(
        document["verdict"].as_str().is_some_and(|v| v.starts_with("Ended early: ")),
        "{document:#}"
    );
    let results = &document["result"];
    let periods = task(results, "spinning")["periods"].as_u64().expect("a figure");
    assert!(periods >= 40, "{periods} periods: {}", words_of(output));
    assert!(results["duration_ns"].as_u64() >= Some(100_000_000), "{}", words_of(output));
    // It panics if the end is missing.
    assert!(trace(path).records.len() > 200);
    replays(path);
}

fn traced(
    scratch: &Scratch,
    set: &str,
    duration: &str,
) -> (crate::punctual::Running, std::path::PathBuf) {
    let path = scratch.path("trace");
    let set = scratch.file("set.toml", set);
    (start(&set, &["--duration", duration, "--trace", path.to_str().expect("plain")]), path)
}

#[test]
fn after_sysrq_s_there_are_results_and_a_whole_trace() {
    let Some(mut machine) = Machine::with_sched_ext() else { return };
    machine.expects("disabled by sysrq-S");
    let scratch = Scratch::new();
    let (run, path) = traced(&scratch, TWO, "60s");
    run.tasks_after(2, 100_000_000);
    std::fs::write("/proc/sysrq-trigger", "S").expect("root may");
    has_results(&run.output(), &path, "SysRq");
}

#[test]
fn after_the_watchdog_there_are_results_and_a_whole_trace() {
    let Some(mut machine) = Machine::with_sched_ext() else { return };
    machine.expects("runnable task stall");
    let scratch = Scratch::new();
    let (run, path) = traced(&scratch, &TWO.replace("\"edf\"", "\"dual\""), "120s");
    run.tasks_after(2, 100_000_000);
    // Jobs of this policy come from the loader, and without them its tasks wait.
    run.send(libc::SIGSTOP);
    let waited = Instant::now();
    while state().as_deref() == Some("enabled") {
        assert!(waited.elapsed() < Duration::from_secs(90), "the watchdog never came");
        std::thread::sleep(Duration::from_millis(500));
    }
    run.send(libc::SIGCONT);
    has_results(&run.output(), &path, "watchdog");
}

#[test]
fn after_the_end_of_its_timer_process_there_are_results_and_a_whole_trace() {
    let Some(mut machine) = crate::timer::machine() else { return };
    machine.expects(crate::timer::BY_ITSELF);
    let scratch = Scratch::new();
    let path = scratch.path("trace");
    let run = crate::timer::start(
        &scratch,
        &["--duration", "60s", "--trace", path.to_str().expect("plain")],
    );
    crate::timer::send(crate::timer::timer_process_of(&run), libc::SIGKILL);
    has_results(&run.output(), &path, "timer process");
}

/// Debian's kernels have no core scheduling, so every 500th ops.dispatch counts as called on the
/// sibling.
#[test]
fn after_core_scheduling_is_enabled_there_are_results_and_a_whole_trace() {
    let Some(mut machine) = Machine::with_sched_ext() else { return };
    machine.expects("unregistered from BPF");
    let scratch = Scratch::new();
    let (set, path) = (scratch.file("set.toml", TWO), scratch.path("trace"));
    let mut command = Command::new(&*PUNCTUAL);
    command
        .args(["run", "--host", "kernel", "--json", "--overload", "--duration", "60s", "--trace"])
        .arg(&path);
    let output = command
        .arg(set)
        .env("PUNCTUAL_KERNEL_REMOTE_DISPATCH", "500")
        .output()
        .expect("it was built");
    has_results(&output, &path, "core scheduling");
}
