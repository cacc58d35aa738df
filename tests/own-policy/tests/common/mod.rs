//! The program with a policy of its own, as its tests start it.

use std::path::PathBuf;
use std::process::{Command, Output};

use punctual_test_support::PUNCTUAL;

/// The task set that `punctual policy new shortest` writes.
#[allow(dead_code)] // some tests have sets of their own
pub const SET: &str = include_str!("../../../../crates/cli/src/policy_new/set.toml");

/// The program. Found beside the command at run time, because no path of the machine that builds
/// the tests may be in them (docs/vm.md).
pub fn program() -> PathBuf {
    PUNCTUAL.with_file_name("shortest")
}

/// Its output for these arguments.
#[allow(dead_code)] // some tests need the program alone
pub fn shortest(args: &[&str]) -> Output {
    Command::new(program()).args(args).output().expect("the program starts")
}

/// Both streams and the exit code, as text.
pub fn text(output: &Output) -> String {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    format!("{}\n{}{}", output.status, text(&output.stdout), text(&output.stderr))
}
