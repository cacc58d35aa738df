//! Starting the command, and reading what it tells.

use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

pub use punctual_test_support::PUNCTUAL;
use punctual_trace::Trace;
use serde_json::Value;

use crate::machine::{children, executed, executed_by, name, scheduler_becomes, until};

/// The name of the process that wakes the dispatcher on PREEMPT_RT.
pub const TIMER: &str = "punctual-timer";
/// Processes that stay beside a run: that one, the guardian of its commands with its ordinary
/// child, and before Linux 7 the one that helps the scheduler to be detached.
const HELPERS: [&str; 4] = [TIMER, "punctual-guard", "punctual-watch", "punctual-detach"];

/// What a virtual machine brings back.
pub const RESULTS: &str = "/job/results";

/// A directory of a test's own, removed at its end; if the test failed in a virtual machine, that
/// brings it back.
pub struct Scratch(PathBuf);

impl Scratch {
    pub fn new() -> Scratch {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let dir =
            std::env::temp_dir().join(format!("punctual-kernel-{}-{number}", std::process::id()));
        std::fs::create_dir_all(&dir).expect("room for a directory");
        Scratch(dir)
    }

    pub fn file(&self, name: &str, text: &str) -> PathBuf {
        let path = self.0.join(name);
        std::fs::write(&path, text).expect("room for a small file");
        path
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let results = Path::new(RESULTS);
        if std::thread::panicking() && results.is_dir() {
            let _ = Command::new("cp").arg("-R").args([&self.0, results]).status();
        }
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// This test binary in a role (adversarial.rs), as words of a command.
pub fn adversarial(role: &str) -> Vec<String> {
    let me = std::env::current_exe().expect("there is /proc");
    let mut words = vec![me.to_str().expect("a plain path").to_owned()];
    let mut parts = role.split(' ');
    words.push(format!("adversarial:{}", parts.next().expect("a role")));
    words.extend(parts.map(str::to_owned));
    words
}

/// Words as a TOML list.
pub fn list(words: &[String]) -> String {
    format!("{words:?}")
}

/// This test binary in a role, beside the command; it ends with the test.
pub fn companion(role: &str) -> Running {
    let words = adversarial(role);
    let mut command = Command::new(&words[0]);
    // A group of its own, so that its orphans end with it.
    command.args(&words[1..]).stdin(Stdio::null()).stdout(Stdio::null()).process_group(0);
    Running(Some(command.spawn().expect("it is this program")))
}

/// The same, once it has executed for 5 ms.
pub fn executing_companion(role: &str) -> Running {
    let companion = companion(role);
    until("it executes", || executed(companion.id()) > 5_000_000);
    companion
}

/// A started program, which does not outlive its test.
pub struct Running(Option<Child>);

impl Running {
    pub fn of(child: Child) -> Running {
        Running(Some(child))
    }

    pub fn id(&self) -> u32 {
        self.0.as_ref().expect("it was not waited for").id()
    }

    pub fn send(&self, signal: i32) {
        // SAFETY: a child of ours that was not waited for.
        assert_eq!(unsafe { libc::kill(self.id() as i32, signal) }, 0);
    }

    pub fn output(mut self) -> Output {
        self.0.take().expect("it was not waited for").wait_with_output().expect("it ends")
    }

    /// Its tasks, once they have executed for so long in all, ns.
    pub fn tasks_after(&self, count: usize, execution: u64) -> Vec<u32> {
        scheduler_becomes("enabled");
        until("the tasks execute", || executed_by(&children(self.id())) >= execution);
        let is_task = |pid: &u32| !HELPERS.contains(&name(*pid).as_str());
        let tasks: Vec<u32> = children(self.id()).into_iter().filter(is_task).collect();
        assert_eq!(tasks.len(), count, "tasks of the command: {tasks:?}");
        tasks
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if let Some(mut child) = self.0.take() {
            // SAFETY: a system call without memory. It fails where the child leads no group.
            unsafe { libc::kill(-(child.id() as i32), libc::SIGKILL) };
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// `punctual run --host kernel` with these words.
pub fn run(words: &[&str]) -> Running {
    let mut command = Command::new(&*PUNCTUAL);
    command.args(["run", "--host", "kernel", "--json"]).args(words).stdin(Stdio::null());
    Running(Some(
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it was built"),
    ))
}

/// It adopts a program, on CPU 0.
pub fn adopt(program: &Running, words: &str) -> Running {
    let pid = program.id().to_string();
    run(&words.split(' ').chain(["--cpu", "0", "--pid", &pid]).collect::<Vec<_>>())
}

/// It starts this test binary in a role.
pub fn run_role(words: &str, role: &str) -> Running {
    let program = adversarial(role);
    let program = program.iter().map(String::as_str);
    run(&words.split(' ').chain(["--"]).chain(program).collect::<Vec<_>>())
}

/// Of a task set, whether it fits or not.
pub fn start(set: &Path, more: &[&str]) -> Running {
    let mut words = vec!["--overload"];
    words.extend(more);
    words.push(set.to_str().expect("a plain path"));
    run(&words)
}

/// Its results, having ended with this code.
pub fn results_with(output: &Output, code: i32) -> Value {
    document_with(output, code)["result"].take()
}

/// Its JSON document, having ended with this code.
pub fn document_with(output: &Output, code: i32) -> Value {
    assert_eq!(output.status.code(), Some(code), "{}", words_of(output));
    serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|e| panic!("no JSON ({e}): {}", words_of(output)))
}

/// What it reported, all deadlines met.
pub fn results(output: &Output) -> Value {
    results_with(output, 0)
}

/// All that it said.
pub fn words_of(output: &Output) -> String {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    format!("{}\n{}{}", output.status, text(&output.stdout), text(&output.stderr))
}

/// It ended with this code, and one message that has all of these words.
pub fn says(output: &Output, code: i32, words: &[&str]) {
    assert_eq!(output.status.code(), Some(code), "{}", words_of(output));
    let said = words_of(output);
    for word in words {
        assert!(said.contains(word), "it does not say \"{word}\": {said}");
    }
}

/// The task of that name in the results.
pub fn task<'a>(results: &'a Value, name: &str) -> &'a Value {
    let tasks = results["tasks"].as_array().expect("tasks");
    tasks
        .iter()
        .find(|task| task["name"] == name)
        .unwrap_or_else(|| panic!("no {name}: {results:#}"))
}

/// None was missed, it received its budget in every period to so many ns, and in the long run to a
/// ten-thousandth: by what an end comes late the next period has less, but after the last one.
pub fn keeps_its_budget(task: &Value, within: u64) {
    let number = |value: &Value| value.as_u64().unwrap_or_else(|| panic!("no figure: {task:#}"));
    assert_eq!(task["misses"], 0, "{task:#}");
    let worst = number(&task["budget_received"]["worst_ppm"]).abs_diff(1_000_000);
    let off = worst * number(&task["budget_ns"]) / 1_000_000;
    assert!(off <= within, "{off} ns off in one period, more than {within}: {task:#}");
    let (received, assigned) = (number(&task["received_ns"]), number(&task["assigned_ns"]));
    assert!(
        received.abs_diff(assigned) <= assigned / 10_000 + within,
        "{received} ns of {assigned}: {task:#}"
    );
}

/// The missed deadlines of a trace, as `trace why` explains them.
pub fn misses_of(trace: &Path) -> Vec<Value> {
    let why = Command::new(&*PUNCTUAL)
        .args(["trace", "why", "--json"])
        .arg(trace)
        .output()
        .expect("it was built");
    let mut document: Value = serde_json::from_slice(&why.stdout).expect("it is JSON");
    match document["result"]["misses"].take() {
        Value::Array(misses) => misses,
        _ => panic!("no list of misses: {document:#}"),
    }
}

/// A trace that was written by the command.
pub fn trace(path: &Path) -> Trace {
    let file = std::fs::File::open(path).expect("a trace was written");
    Trace::read(&mut std::io::BufReader::new(file)).expect("a whole trace")
}

/// The simulator comes to the same decisions from the trace's inputs.
pub fn replays(path: &Path) {
    let output = Command::new(&*PUNCTUAL)
        .args(["sim", "--replay"])
        .arg(path)
        .output()
        .expect("it was built");
    says(&output, 0, &["The same: "]);
}
