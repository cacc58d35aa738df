//! Policies in shared objects: in the simulator, and those that are refused.

mod common;
#[path = "common/plugins.rs"]
mod plugins;

use std::process::{Command, Output};

use common::text;
use punctual_test_support::{Scratch, PUNCTUAL};
use serde_json::Value;

fn punctual(scratch: &Scratch, args: &[&str]) -> Output {
    let mut command = Command::new(&*PUNCTUAL);
    command.args(args).current_dir(scratch.folder()).output().expect("the program starts")
}

fn document(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).unwrap_or_else(|e| panic!("{e}: {}", text(output)))
}

/// Each task's second half begins at half of its period, so that it responds a little later.
#[test]
fn a_plugin_makes_the_jobs_of_its_tasks() {
    let scratch = Scratch::new();
    plugins::write(&scratch);
    let output = punctual(&scratch, &["sim", "set.toml", "--json"]);
    let document = document(&output);
    assert_eq!(output.status.code(), Some(0), "{document:#}");
    assert_eq!(document["result"]["policy"], "halves");
    let responses = |task: usize| &document["result"]["tasks"][task]["response_time"]["worst_ns"];
    // 2 ms and 1 ms at 10 ms; 1 ms and 0.5 ms at 25 ms. Both begin at 0, 25 ms and 100 ms.
    assert_eq!(responses(0), 11_000_000, "{document:#}");
    assert_eq!(responses(1), 25_500_000, "{document:#}");
}

#[test]
fn a_plugin_may_be_named_on_the_command_line_and_shown() {
    let scratch = Scratch::new();
    plugins::write(&scratch);
    scratch.file("edf.toml", &plugins::SET.replace("{ plugin = \"./halves.so\" }", "\"edf\""));
    let output = punctual(&scratch, &["sim", "edf.toml", "--policy", "halves.so", "--json"]);
    assert_eq!(document(&output)["result"]["policy"], "halves");
    let shown = text(&punctual(&scratch, &["policy", "show", "./halves.so"]));
    assert!(shown.contains("policy = { plugin = \"./halves.so\" }"), "{shown}");
    assert!(shown.contains("finish, budget, then arrival"), "{shown}");
}

#[test]
fn a_set_without_a_test_of_admission_needs_overload() {
    let scratch = Scratch::new();
    plugins::write(&scratch);
    let output = punctual(&scratch, &["check", "set.toml"]);
    assert_eq!(output.status.code(), Some(3), "{}", text(&output));
}

/// One error, with this in it.
fn is_refused(scratch: &Scratch, args: &[&str], cause: &str) {
    let output = punctual(scratch, args);
    let said = text(&output);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains(cause), "{said}");
}

#[test]
fn what_a_plugin_says_of_a_set_is_the_error() {
    let scratch = Scratch::new();
    plugins::write(&scratch);
    scratch.file("set.toml", &plugins::SET.replace("\"4ms\"", "\"4000001ns\""));
    let cause = "the policy \"halves\": an odd budget has no halves";
    is_refused(&scratch, &["sim", "set.toml"], cause);
}

macro_rules! faulty {
    ($($name:literal),*) => {
        [$(($name, include_bytes!(concat!(env!("OUT_DIR"), "/", $name, ".so")).as_slice())),*]
    };
}

#[test]
fn each_fault_of_a_plugin_is_one_error_with_its_place() {
    let faulty = faulty![
        "NO_SYMBOL",
        "FUNCTION",
        "SMALL",
        "VERSION",
        "SIZE",
        "NO_NAME",
        "NAME",
        "NEITHER",
        "ORDER",
        "ADMISSION"
    ];
    let causes = [
        "it exports no symbol punctual_policy",
        "its symbol punctual_policy is no data: a policy is a structure",
        "its symbol punctual_policy has 4 bytes, a policy 88",
        "it has version 7 of the interface, not 1",
        "its policy has 64 bytes, not 88",
        "its policy has no name",
        "the policy \"edf\": Punctual has a policy of this name",
        "the policy \"faulty\" has neither priority nor handle",
        "the policy \"faulty\" has the order 9",
        "the policy \"faulty\" has the admission test 9",
    ];
    for ((name, plugin), cause) in faulty.into_iter().zip(causes) {
        let scratch = Scratch::new();
        plugins::write(&scratch);
        std::fs::write(scratch.folder().join("halves.so"), plugin).expect("room for a file");
        let output = punctual(&scratch, &["check", "set.toml", "--json"]);
        let document = document(&output);
        let error = &document["error"];
        let said = error["cause"].as_str().expect("a cause");
        assert!(said.ends_with(cause), "{name}: {said}");
        assert_eq!(error["place"]["line"], 2, "{name}: {document:#}");
        assert!(error["help"].as_str().is_some_and(|help| !help.is_empty()), "{name}");
        assert_eq!(output.status.code(), Some(2), "{name}");
    }
}

#[test]
fn a_file_that_is_no_shared_object_is_one_error() {
    for (content, cause) in [
        (Some("policy"), "the plugin \"./halves.so\": this is no shared object"),
        (None, "the plugin \"./halves.so\": there is no such file"),
    ] {
        let scratch = Scratch::new();
        scratch.file("set.toml", plugins::SET);
        content.into_iter().for_each(|text| drop(scratch.file("halves.so", text)));
        is_refused(&scratch, &["sim", "set.toml"], cause);
    }
    let device = ["policy", "show", "/dev/zero"];
    is_refused(&Scratch::new(), &device, "the plugin \"/dev/zero\": this is no regular file");
}

#[test]
fn a_plugin_that_calls_from_another_thread_is_stopped() {
    let scratch = Scratch::new();
    plugins::write(&scratch);
    let [(_, plugin)] = faulty!["THREAD"];
    std::fs::write(scratch.folder().join("halves.so"), plugin).expect("room for a file");
    let output = punctual(&scratch, &["sim", "set.toml", "--json"]);
    let document = document(&output);
    let change = &document["result"]["policy_changes"][0];
    assert_eq!([&change["from"], &change["to"]], ["faulty", "edf"], "{document:#}");
    assert_eq!(change["cause"], "has made a call from another thread than that of the event");
    assert_eq!(output.status.code(), Some(1), "{document:#}");
}
