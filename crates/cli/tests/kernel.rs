//! `punctual run --host kernel`. Where the kernel has no sched_ext it must say so; the rest is shown in the virtual
//! machine: `vm/test 7.3 -- -p punctual-cli --test kernel`. With PUNCTUAL_SCHED_EXT=required its absence is a failure.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
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

/// One scheduler at a time: a test has the machine for itself, and finds it as it was.
fn alone() -> MutexGuard<'static, ()> {
    static MACHINE: Mutex<()> = Mutex::new(());
    let machine = MACHINE.lock().unwrap_or_else(PoisonError::into_inner);
    if state().is_some() {
        scheduler_becomes("disabled");
    }
    machine
}

/// The command, which does not outlive its test.
struct Running(Option<Child>);

impl Running {
    fn id(&self) -> u32 {
        self.0.as_ref().expect("it was not waited for").id()
    }

    fn send(&self, signal: i32) {
        // SAFETY: a child of ours that was not waited for.
        assert_eq!(unsafe { libc::kill(self.id() as i32, signal) }, 0);
    }

    fn output(mut self) -> Output {
        self.0.take().expect("it was not waited for").wait_with_output().expect("it ends")
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if let Some(mut child) = self.0.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

fn start(set: &Path, more: &[&str]) -> Running {
    let mut command = Command::new(env!("CARGO_BIN_EXE_punctual"));
    command.args(["run", "--host", "kernel", "--overload", "--json"]).args(more).arg(set);
    Running(Some(command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it was built")))
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

fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let limit = Instant::now() + Duration::from_secs(10);
    while !holds() {
        assert!(Instant::now() < limit, "not within 10 s: {what}; sched_ext is {:?}", state());
        std::thread::sleep(Duration::from_millis(10));
    }
}

fn scheduler_becomes(wanted: &str) {
    until(wanted, || state().as_deref() == Some(wanted));
}

/// All children of a process.
fn children(parent: u32) -> Vec<u32> {
    let pids = std::fs::read_dir("/proc").expect("/proc is mounted").flatten();
    let pids = pids.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let is_child = |pid: &u32| {
        let text = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        let behind_the_name = text.rsplit_once(") ").map_or("", |(_, rest)| rest);
        behind_the_name.split_whitespace().nth(1) == Some(parent.to_string().as_str())
    };
    pids.filter(is_child).collect()
}

/// The execution time of a process's children so far, ns. Not from /proc/PID/stat: its times come of the tick, which
/// short periods are in step with.
fn executed(parent: u32) -> u64 {
    let of = |pid: u32| {
        let text = std::fs::read_to_string(format!("/proc/{pid}/schedstat")).ok()?;
        text.split_whitespace().next()?.parse::<u64>().ok()
    };
    children(parent).into_iter().filter_map(of).sum()
}

#[test]
fn a_kernel_without_sched_ext_is_named_with_the_other_hosts() {
    let _machine = alone();
    if state().is_some() {
        return;
    }
    let set = file("refused.toml", TWO);
    let output = start(&set, &[]).output();
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert_eq!(output.status.code(), Some(4), "{output:?}");
    assert!(said.contains("sched_ext") || said.contains("too old"), "{said}");
    assert!(said.contains("--host user") && said.contains("--host sim"), "{said}");
}

#[test]
fn a_spinning_task_gets_its_budget_beside_a_hog_and_the_trace_replays() {
    let _machine = alone();
    if !can() {
        return;
    }
    let (set, trace) = (file("hog.toml", TWO), file("hog.trace", ""));
    let run = start(&set, &["--hog", "--trace", trace.to_str().expect("plain")]).output();
    let results = results(&run);
    keeps_its_budget(&results["tasks"][0], 5_000);
    assert_eq!(results["tasks"][1]["misses"], 0);
    let replay = Command::new(env!("CARGO_BIN_EXE_punctual")).args(["sim", "--replay"]).arg(&trace).output();
    let replay = replay.expect("it was built");
    assert_eq!(replay.status.code(), Some(0), "{replay:?}");
    scheduler_becomes("disabled");
}

#[test]
fn a_task_three_levels_down_gets_its_budget_and_no_more() {
    let _machine = alone();
    if !can() {
        return;
    }
    let run = start(&file("levels.toml", THREE_LEVELS), &["--hog"]).output();
    let results = results(&run);
    keeps_its_budget(&results["tasks"][1], 5_000);
    assert_eq!(results["tasks"][0]["misses"], 0);
}

#[test]
fn reservations_go_on_while_the_loader_is_stopped_for_a_second() {
    let _machine = alone();
    if !can() {
        return;
    }
    let run = start(&file("stopped.toml", TWO), &[]);
    scheduler_becomes("enabled");
    until("the jobs execute", || executed(run.id()) >= 100_000_000);
    run.send(libc::SIGSTOP);
    let before = executed(run.id());
    std::thread::sleep(Duration::from_secs(1));
    let meanwhile = executed(run.id()) - before;
    run.send(libc::SIGCONT);
    let results = results(&run.output());
    // 0.62 s would be right, and is what 6.18 counts; of 7.3, docs/kernel-host.md, Figures.
    assert!(meanwhile >= 200_000_000, "{meanwhile} ns");
    keeps_its_budget(&results["tasks"][0], 5_000);
    assert!(results["tasks"][0]["periods"].as_u64() >= Some(990), "{results:#}");
    scheduler_becomes("disabled");
}

#[test]
fn a_second_scheduler_is_refused_beside_the_first() {
    let _machine = alone();
    if !can() {
        return;
    }
    let set = file("second.toml", TWO);
    let first = start(&set, &[]);
    scheduler_becomes("enabled");
    let second = start(&set, &[]).output();
    assert_eq!(second.status.code(), Some(4), "{second:?}");
    assert!(String::from_utf8_lossy(&second.stdout).contains("another sched_ext scheduler"), "{second:?}");
    keeps_its_budget(&results(&first.output())["tasks"][0], 5_000);
}

#[test]
fn a_killed_loader_leaves_neither_scheduler_nor_tasks() {
    let _machine = alone();
    if !can() {
        return;
    }
    let run = start(&file("killed.toml", TWO), &[]);
    scheduler_becomes("enabled");
    until("the jobs execute", || executed(run.id()) >= 100_000_000);
    let tasks = children(run.id());
    assert_eq!(tasks.len(), 2);
    run.send(libc::SIGKILL);
    assert_eq!(run.output().status.code(), None, "it was killed");
    scheduler_becomes("disabled");
    // Whoever adopted them may not have waited for them yet.
    let dead = |pid: &u32| {
        let text = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        text.is_empty() || text.contains(") Z ")
    };
    until("the tasks are dead", || tasks.iter().all(dead));
}

#[test]
fn a_policy_that_is_asked_at_each_release_is_refused() {
    let _machine = alone();
    if !can() {
        return;
    }
    let set = file("dual.toml", &TWO.replace("\"edf\"", "\"dual\""));
    let output = start(&set, &[]).output();
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    assert!(String::from_utf8_lossy(&output.stdout).contains("--host user"), "{output:?}");
}
