//! Policies of a program with faults, in the simulator.

mod common;
#[path = "common/faults.rs"]
mod faults;

use std::process::Command;

use common::text;
use punctual_test_support::{Scratch, PUNCTUAL};

fn faulty(scratch: &Scratch, args: &[String]) -> std::process::Output {
    let mut command = Command::new(PUNCTUAL.with_file_name("faulty"));
    command.args(args).current_dir(scratch.folder()).output().expect("the program starts")
}

#[test]
fn in_the_simulator_another_policy_takes_the_place_of_one_that_panics() {
    let scratch = Scratch::new();
    let output = faulty(&scratch, &faults::arguments(&scratch, &["sim"], "late"));
    let document = serde_json::from_slice(&output.stdout);
    faults::holds(&document.unwrap_or_else(|e| panic!("{e}: {}", text(&output))), true);
    let replay = ["sim", "--replay", "trace"].map(str::to_owned);
    let replayed = faulty(&scratch, &replay);
    assert!(replayed.status.success(), "{}", text(&replayed));
}

#[test]
fn a_policy_that_panics_before_the_run_is_one_error() {
    for (policy, cause) in [("unmade", "no memory for it"), ("asked", "a table of reservations")] {
        let scratch = Scratch::new();
        scratch.file("set.toml", &faults::SET.replace("\"late\"", &format!("{policy:?}")));
        let output = faulty(&scratch, &["sim", "set.toml"].map(str::to_owned));
        let said = text(&output);
        assert_eq!(output.status.code(), Some(2), "{said}");
        let error = format!("the policy \"{policy}\" has panicked: {cause}");
        assert!(said.contains(&error), "{said}");
    }
}

#[test]
fn in_the_simulator_a_policy_may_take_its_time() {
    let scratch = Scratch::new();
    let output = faulty(&scratch, &faults::arguments(&scratch, &["sim"], "slow"));
    let document: serde_json::Value = serde_json::from_slice(&output.stdout).expect("results");
    assert_eq!(document["result"]["policy_changes"].as_array().map(Vec::len), Some(0));
}

#[test]
fn in_the_simulator_a_policy_that_does_not_return_is_one_error() {
    for policy in ["loops", "sleeps"] {
        let scratch = Scratch::new();
        let output = faulty(&scratch, &faults::arguments(&scratch, &["sim"], policy));
        let document: serde_json::Value = serde_json::from_slice(&output.stdout).expect("an error");
        let cause = document["error"]["cause"].as_str().expect("a sentence");
        assert!(cause.starts_with(&format!("the policy \"{policy}\" has not returned")), "{cause}");
        assert_eq!(output.status.code(), Some(2));
    }
}
