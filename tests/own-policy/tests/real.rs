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

use std::process::{Command, Output, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};

use common::{program, text, SET};
use punctual_test_support::{clock_is_counted, comes_true, missing, Scratch, PUNCTUAL};
use serde_json::Value;

fn one_at_a_time() -> MutexGuard<'static, ()> {
    static CPU: Mutex<()> = Mutex::new(());
    CPU.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What the program said; one after the other, since all sets here are for one CPU.
fn output(command: &mut Command) -> Output {
    let _cpu = one_at_a_time();
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

/// No run before it has loaded that plugin.
#[test]
fn a_reload_loads_a_plugin() {
    let scratch = Scratch::new();
    plugins::write(&scratch);
    let by_name = plugins::SET.replace("{ plugin = \"./halves.so\" }", "\"edf\"");
    scratch.file("set.toml", &by_name.replace("\"1s\"", "\"60s\""));
    let punctual = |args: &[&str]| {
        let mut command = Command::new(&*PUNCTUAL);
        command.args(args).current_dir(scratch.folder());
        command.env("PUNCTUAL_STATE_DIR", scratch.folder()).stderr(Stdio::null());
        command
    };
    let _cpu = one_at_a_time();
    let run = punctual(&["run", "--overload", "--json", "set.toml"]).stdout(Stdio::piped()).spawn();
    let mut run = run.expect("the program starts");
    let reloads = || {
        let mut reload = punctual(&["reload", "set.toml"]);
        reload.stdout(Stdio::null()).status().is_ok_and(|status| status.success())
    };
    // Of the same file: the run is there then.
    let there = comes_true(|| run.try_wait().is_ok_and(|end| end.is_some()) || reloads());
    scratch.file("set.toml", &plugins::SET.replace("\"1s\"", "\"60s\""));
    let reloaded = there && reloads();
    // SAFETY: a plain system call; the process is not waited for yet, so the number is its own.
    unsafe { libc::kill(run.id() as i32, libc::SIGINT) };
    let output = run.wait_with_output().expect("it ends");
    if output.status.code() == Some(4) && !clock_is_counted() {
        return missing(text(&output));
    }
    let document: Value = serde_json::from_slice(&output.stdout).expect("results");
    assert!(reloaded, "{document:#}");
    let change = &document["result"]["policy_changes"][0];
    assert_eq!([&change["from"], &change["to"]], ["edf", "halves"], "{document:#}");
}
