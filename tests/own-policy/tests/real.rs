//! The user host runs the policy of a program of its own.

mod common;
#[path = "common/guide.rs"]
mod guide;

use std::process::Command;

use common::{program, text, SET};
use punctual_test_support::{clock_is_counted, missing, Scratch};

#[test]
fn the_user_host_runs_a_policy_of_the_program() {
    let scratch = Scratch::new();
    scratch.file("set.toml", SET);
    let mut command = Command::new(program());
    command.args(guide::run_on(false)).arg("--json").current_dir(scratch.folder());
    let output = command.output().expect("the program starts");
    let results = text(&output);
    match output.status.code() {
        Some(0) => {}
        Some(4) if !clock_is_counted() => return missing(results),
        // Only a counted clock shows whether deadlines are met.
        Some(1) if !clock_is_counted() => {}
        _ => panic!("{results}"),
    }
    assert!(results.contains("\"policy\": \"shortest\""), "{results}");
}
