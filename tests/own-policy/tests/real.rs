//! The user host runs the policy of a program of its own.

mod common;
#[path = "common/faults.rs"]
mod faults;
#[path = "common/guide.rs"]
mod guide;

use std::process::{Command, Output};
use std::sync::{Mutex, PoisonError};

use common::{program, text, SET};
use punctual_test_support::{clock_is_counted, missing, Scratch, PUNCTUAL};

/// What the program said; one after the other, since all sets here are for one CPU.
fn output(command: &mut Command) -> Output {
    static CPU: Mutex<()> = Mutex::new(());
    let _one = CPU.lock().unwrap_or_else(PoisonError::into_inner);
    command.output().expect("the program starts")
}

#[test]
fn the_user_host_runs_a_policy_of_the_program() {
    let scratch = Scratch::new();
    scratch.file("set.toml", SET);
    let mut command = Command::new(program());
    command.args(guide::run_on(false)).arg("--json").current_dir(scratch.folder());
    let output = output(&mut command);
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

#[test]
fn on_the_user_host_another_policy_takes_the_place_of_one_that_panics() {
    let scratch = Scratch::new();
    let mut command = Command::new(PUNCTUAL.with_file_name("faulty"));
    command.args(faults::arguments(&scratch, &["run", "--overload"])).current_dir(scratch.folder());
    let output = output(&mut command);
    if output.status.code() == Some(4) && !clock_is_counted() {
        return missing(text(&output));
    }
    let document = serde_json::from_slice(&output.stdout);
    let document = document.unwrap_or_else(|e| panic!("{e}: {}", text(&output)));
    faults::holds(&document, clock_is_counted());
}
