//! Processes that a test starts: none is waited for longer than [`LIVENESS`].
//!
//! [`LIVENESS`]: crate::LIVENESS

use std::fs::File;
use std::process::{Child, Command, ExitStatus, Output};

use crate::{comes_true, missing, Scratch};

/// The exit code of a test's program where the machine lacks something.
pub const MISSING: i32 = 77;

/// The output of a command that ends by itself and succeeds.
pub fn run(command: &mut Command) -> Output {
    let output = command.output().unwrap_or_else(|e| panic!("{command:?}: {e}"));
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {}: {text}", output.status);
    output
}

/// The standard output of such a command.
pub fn text_of(command: &mut Command) -> String {
    String::from_utf8(run(command).stdout).expect("text")
}

/// How a child ended; `None`: it did not end in time, and was killed.
pub fn end_of(child: &mut Child) -> Option<ExitStatus> {
    let mut ended = None;
    let in_time = comes_true(|| {
        ended = child.try_wait().expect("it is a child");
        ended.is_some()
    });
    if !in_time {
        child.kill().expect("it is alive");
    }
    ended
}

/// How a command ended, and what it printed, which goes to a file: a pipe would be kept open by
/// children that it leaves. Panics if it does not end in time.
pub fn finish(command: &mut Command) -> (ExitStatus, String) {
    let folder = Scratch::new();
    let log = folder.path("log");
    let file = || File::options().create(true).append(true).open(&log).expect("it can be made");
    let mut child = command.stdout(file()).stderr(file()).spawn().expect("it runs");
    let ended = end_of(&mut child);
    let text = std::fs::read_to_string(&log).expect("it was made");
    (ended.unwrap_or_else(|| panic!("{command:?} does not end: {text}")), text)
}

/// Whether a command has succeeded that ended so and printed this. False, which is reported: it
/// exited with [`MISSING`], and printed what is missing. Panics if it failed.
pub fn has_succeeded(command: &Command, status: ExitStatus, text: &str) -> bool {
    match status.code() {
        Some(0) => true,
        Some(MISSING) => {
            missing(text.trim());
            false
        }
        _ => panic!("{command:?}: {status}: {text}"),
    }
}

/// An ignored test of this test program, by its name, for a process of its own.
pub fn ignored_test(name: &str) -> Command {
    let mut command = Command::new(std::env::current_exe().expect("/proc is mounted"));
    command.args(["--exact", name, "--ignored", "--nocapture"]);
    command
}

/// Whether such a process has succeeded. False, which is reported: it exited with [`MISSING`],
/// without a dispatcher. Panics if it failed, or does not end in time.
pub fn has_run(scenario: &mut Command) -> bool {
    let ended = end_of(&mut scenario.spawn().expect("it runs"));
    let is_missing = ended.and_then(|status| status.code()) == Some(MISSING);
    if is_missing {
        missing("a dispatcher needs root, and a CPU that no other one has");
    } else {
        assert!(ended.is_some_and(|status| status.success()), "{scenario:?}: {ended:?}");
    }
    !is_missing
}
