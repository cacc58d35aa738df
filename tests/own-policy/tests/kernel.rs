//! The kernel host runs the policy of a program of its own: with PUNCTUAL_SCHED_EXT=required, in
//! virtual machines (`vm/tests`).

#[path = "common/answers.rs"]
mod answers;
mod common;
#[path = "common/faults.rs"]
mod faults;
#[path = "common/guide.rs"]
mod guide;
#[path = "common/plugins.rs"]
mod plugins;

use std::process::Command;

use common::{program, text, SET};
use punctual_test_support::{clock_is_counted, has_sched_ext, Scratch, PUNCTUAL};
use serde_json::Value;

#[test]
fn the_kernel_host_runs_a_policy_of_the_program() {
    if !has_sched_ext() {
        return;
    }
    let scratch = Scratch::new();
    scratch.file("set.toml", SET);
    let trace = scratch.path("trace");
    let mut command = Command::new(program());
    command.args(guide::run_on(true)).args(["--json", "--trace", &trace]);
    let output = command.current_dir(scratch.folder()).output().expect("the program starts");
    let results = text(&output);
    match output.status.code() {
        Some(0) => {}
        Some(1) if !clock_is_counted() => {}
        _ => panic!("{results}"),
    }
    assert!(results.contains("\"policy\": \"shortest\""), "{results}");
    let replay = common::shortest(&["sim", "--replay", &trace]);
    assert!(replay.status.success(), "{}", text(&replay));
}

/// The results of the set with this policy; `None`: this kernel cannot run it.
fn faulty(policy: &str) -> Option<Value> {
    if !has_sched_ext() {
        return None;
    }
    let scratch = Scratch::new();
    let mut command = Command::new(PUNCTUAL.with_file_name("faulty"));
    let host = ["run", "--overload", "--host", "kernel"];
    command.args(faults::arguments(&scratch, &host, policy));
    let output = command.current_dir(scratch.folder()).output().expect("the program starts");
    let document = serde_json::from_slice(&output.stdout);
    Some(document.unwrap_or_else(|e| panic!("{e}: {}", text(&output))))
}

#[test]
fn on_the_kernel_host_another_policy_takes_the_place_of_one_that_panics() {
    faulty("late").into_iter().for_each(|results| faults::holds(&results, clock_is_counted()));
}

#[test]
fn on_the_kernel_host_another_policy_takes_the_place_of_one_that_answers_late() {
    faulty("slow").iter().for_each(answers::were_late);
}

#[test]
fn on_the_kernel_host_a_policy_that_does_not_return_ends_the_run() {
    faulty("loops").iter().for_each(answers::never_came);
}

#[test]
fn the_kernel_host_runs_a_plugin_and_its_trace_replays() {
    if !has_sched_ext() {
        return;
    }
    let scratch = Scratch::new();
    plugins::write(&scratch);
    let punctual = |args: &[&str]| {
        let mut command = Command::new(&*PUNCTUAL);
        command.args(args).current_dir(scratch.folder()).output().expect("the program starts")
    };
    let host = ["run", "--overload", "--host", "kernel", "--trace", "trace", "set.toml"];
    let output = punctual(&host);
    match output.status.code() {
        Some(0) => {}
        Some(1) if !clock_is_counted() => {}
        _ => panic!("{}", text(&output)),
    }
    let replay = punctual(&["sim", "--replay", "trace"]);
    assert!(replay.status.success(), "{}", text(&replay));
}
