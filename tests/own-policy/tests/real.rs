//! The user host runs the policy of a program of its own.

#[path = "common/answers.rs"]
mod answers;
mod common;
#[path = "common/faults.rs"]
mod faults;
#[path = "common/guide.rs"]
mod guide;
#[path = "common/plugins.rs"]
mod plugins;

use std::process::{Command, Output};
use std::sync::{Mutex, PoisonError};

use common::{program, text, SET};
use punctual_test_support::{clock_is_counted, missing, Scratch, PUNCTUAL};
use serde_json::Value;

/// What the program said; one after the other, since all sets here are for one CPU.
fn output(command: &mut Command) -> Output {
    static CPU: Mutex<()> = Mutex::new(());
    let _one = CPU.lock().unwrap_or_else(PoisonError::into_inner);
    command.output().expect("the program starts")
}

/// A run under this policy, to its end.
fn meets_its_deadlines(command: &mut Command, policy: &str) {
    let output = output(command);
    let results = text(&output);
    match output.status.code() {
        Some(0) => {}
        Some(4) if !clock_is_counted() => return missing(results),
        // Only a counted clock shows whether deadlines are met.
        Some(1) if !clock_is_counted() => {}
        _ => panic!("{results}"),
    }
    assert!(results.contains(&format!("\"policy\": \"{policy}\"")), "{results}");
}

#[test]
fn the_user_host_runs_a_policy_of_the_program() {
    let scratch = Scratch::new();
    scratch.file("set.toml", SET);
    let mut command = Command::new(program());
    command.args(guide::run_on(false)).arg("--json").current_dir(scratch.folder());
    meets_its_deadlines(&mut command, "shortest");
}

/// The results of the set with this policy; `None`: this machine cannot run it.
fn faulty(policy: &str) -> Option<Value> {
    let scratch = Scratch::new();
    let mut command = Command::new(PUNCTUAL.with_file_name("faulty"));
    command.args(faults::arguments(&scratch, &["run", "--overload"], policy));
    let output = output(command.current_dir(scratch.folder()));
    if output.status.code() == Some(4) && !clock_is_counted() {
        missing(text(&output));
        return None;
    }
    let document = serde_json::from_slice(&output.stdout);
    Some(document.unwrap_or_else(|e| panic!("{e}: {}", text(&output))))
}

#[test]
fn on_the_user_host_another_policy_takes_the_place_of_one_that_panics() {
    faulty("late").into_iter().for_each(|results| faults::holds(&results, clock_is_counted()));
}

#[test]
fn on_the_user_host_another_policy_takes_the_place_of_one_that_answers_late() {
    faulty("slow").iter().for_each(answers::were_late);
}

#[test]
fn on_the_user_host_a_policy_that_does_not_return_ends_the_run() {
    faulty("loops").iter().for_each(answers::never_came);
}

#[test]
fn the_user_host_runs_a_plugin() {
    let scratch = Scratch::new();
    plugins::write(&scratch);
    let mut command = Command::new(&*PUNCTUAL);
    command.args(["run", "--overload", "--json", "set.toml"]);
    meets_its_deadlines(command.current_dir(scratch.folder()), "halves");
}
