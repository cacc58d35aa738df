//! The task set in the simulator.

use std::process::Command;

fn sim(args: &[&str]) -> Option<i32> {
    // Cargo executes tests in the folder of the package.
    let mut command = Command::new(env!("CARGO_BIN_EXE_shortest"));
    command.args(["sim", "set.toml"]).args(args).status().expect("the program starts").code()
}

#[test]
fn the_set_meets_its_deadlines_under_this_policy() {
    assert_eq!(sim(&[]), Some(0));
}

#[test]
fn rate_monotonic_misses_a_deadline_of_the_same_set() {
    assert_eq!(sim(&["--policy", "rm"]), Some(1));
}
