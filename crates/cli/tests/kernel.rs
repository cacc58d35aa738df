//! `punctual run --host kernel`. Where the kernel has no sched_ext it must say so; the rest is shown in the virtual
//! machine: `vm/test 7.3 -- -p punctual-cli --test kernel`. With PUNCTUAL_SCHED_EXT=required its absence is a failure.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

const TWO: &str = r#"
cpu = 0
policy = "edf"
duration = "2s"
[[task]]
name = "spinning"
period = "2ms"
budget = "1ms"
work = { spin = "forever" }
[[task]]
name = "periodic"
period = "5ms"
budget = "1ms"
work = { spin = "600us" }
"#;

const THREE_LEVELS: &str = r#"
cpu = 0
policy = "edf"
duration = "500ms"
[[budget_group]]
name = "guest"
period = "20ms"
budget = "6ms"
[[group]]
name = "outer"
policy = "rm"
period = "10ms"
budget = "4ms"
[[group]]
name = "inner"
parent = "outer"
policy = "edf"
period = "10ms"
budget = "2ms"
[[task]]
name = "top"
period = "5ms"
budget = "1ms"
work = { spin = "700us" }
[[task]]
name = "low"
group = "inner"
budget_group = "guest"
period = "20ms"
budget = "3ms"
work = { spin = "forever" }
"#;

fn state() -> Option<String> {
    std::fs::read_to_string("/sys/kernel/sched_ext/state").ok().map(|s| s.trim().to_owned())
}

/// Whether this machine can show it; says so if not.
fn can() -> bool {
    let required = std::env::var("PUNCTUAL_SCHED_EXT").is_ok_and(|v| v == "required");
    assert!(state().is_some() || !required, "this kernel has no sched_ext, and it is required");
    if state().is_none() {
        eprintln!("not run: this kernel has no sched_ext");
    }
    state().is_some()
}

fn file(name: &str, text: &str) -> PathBuf {
    let path = std::env::temp_dir().join(format!("punctual-kernel-{}-{name}", std::process::id()));
    std::fs::write(&path, text).expect("room for a small file");
    path
}

fn start(set: &Path, more: &[&str]) -> Child {
    let mut command = Command::new(env!("CARGO_BIN_EXE_punctual"));
    command.args(["run", "--host", "kernel", "--overload", "--json"]).args(more).arg(set);
    command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it was built")
}

fn results(output: &Output) -> Value {
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    serde_json::from_slice(&output.stdout).expect("JSON")
}

/// The task received its budget in every period, within so many millionths, and none was missed.
fn keeps_its_budget(task: &Value, within: u64) {
    let received = &task["budget_received"];
    assert_eq!(task["misses"], 0, "{task:#}");
    for key in ["p1_ppm", "worst_ppm"] {
        let got = received[key].as_u64().unwrap_or_else(|| panic!("no {key}: {task:#}"));
        assert!(got.abs_diff(1_000_000) <= within, "{key} {got}: {task:#}");
    }
}

fn back_to_normal() {
    let limit = Instant::now() + Duration::from_secs(5);
    while state().as_deref() != Some("disabled") {
        assert!(Instant::now() < limit, "the scheduler is still there: {:?}", state());
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn a_kernel_without_sched_ext_is_named_with_the_other_hosts() {
    if state().is_some() {
        return;
    }
    let set = file("refused.toml", TWO);
    let output = start(&set, &[]).wait_with_output().expect("it ends");
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert_eq!(output.status.code(), Some(4), "{output:?}");
    assert!(said.contains("sched_ext") || said.contains("too old"), "{said}");
    assert!(said.contains("--host user") && said.contains("--host sim"), "{said}");
}

#[test]
fn a_spinning_task_gets_its_budget_beside_a_hog_and_the_trace_replays() {
    if !can() {
        return;
    }
    let (set, trace) = (file("hog.toml", TWO), file("hog.trace", ""));
    let run = start(&set, &["--hog", "--trace", trace.to_str().expect("plain")]).wait_with_output().expect("it ends");
    let results = results(&run);
    keeps_its_budget(&results["tasks"][0], 5_000);
    assert_eq!(results["tasks"][1]["misses"], 0);
    let replay = Command::new(env!("CARGO_BIN_EXE_punctual")).args(["sim", "--replay"]).arg(&trace).output();
    let replay = replay.expect("it was built");
    assert_eq!(replay.status.code(), Some(0), "{replay:?}");
    back_to_normal();
}

#[test]
fn a_task_three_levels_down_gets_its_budget_and_no_more() {
    if !can() {
        return;
    }
    let run = start(&file("levels.toml", THREE_LEVELS), &["--hog"]).wait_with_output().expect("it ends");
    let results = results(&run);
    keeps_its_budget(&results["tasks"][1], 5_000);
    assert_eq!(results["tasks"][0]["misses"], 0);
}

fn send(child: &Child, signal: i32) {
    // SAFETY: a child of ours that was not waited for.
    assert_eq!(unsafe { libc::kill(child.id() as i32, signal) }, 0);
}

#[test]
fn reservations_go_on_while_the_loader_is_stopped_for_a_second() {
    if !can() {
        return;
    }
    let child = start(&file("stopped.toml", TWO), &[]);
    std::thread::sleep(Duration::from_millis(500));
    send(&child, libc::SIGSTOP);
    std::thread::sleep(Duration::from_secs(1));
    send(&child, libc::SIGCONT);
    let results = results(&child.wait_with_output().expect("it ends"));
    keeps_its_budget(&results["tasks"][0], 5_000);
    assert!(results["tasks"][0]["periods"].as_u64() >= Some(990), "{results:#}");
}

#[test]
fn a_second_scheduler_is_refused_and_a_killed_loader_leaves_nothing() {
    if !can() {
        return;
    }
    let set = file("killed.toml", TWO);
    let mut child = start(&set, &[]);
    std::thread::sleep(Duration::from_millis(700));
    assert_eq!(state().as_deref(), Some("enabled"));
    let second = start(&set, &[]).wait_with_output().expect("it ends");
    assert_eq!(second.status.code(), Some(4), "{second:?}");
    assert!(String::from_utf8_lossy(&second.stdout).contains("another sched_ext scheduler"), "{second:?}");
    send(&child, libc::SIGKILL);
    child.wait().expect("it was killed");
    back_to_normal();
}

#[test]
fn a_policy_that_is_asked_at_each_release_is_refused() {
    if !can() {
        return;
    }
    let set = file("dual.toml", &TWO.replace("\"edf\"", "\"dual\""));
    let output = start(&set, &[]).wait_with_output().expect("it ends");
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    assert!(String::from_utf8_lossy(&output.stdout).contains("--host user"), "{output:?}");
}
