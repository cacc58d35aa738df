//! A program with a policy of its own has the command line of `punctual`, with that policy.

mod common;

use common::{shortest, text, SET};
use punctual_test_support::{Scratch, PUNCTUAL};
use serde_json::Value;

fn document(args: &[&str], code: i32) -> Value {
    let output = shortest(args);
    assert_eq!(output.status.code(), Some(code), "{}", text(&output));
    serde_json::from_slice(&output.stdout).unwrap_or_else(|e| panic!("{e}: {}", text(&output)))
}

fn set() -> (Scratch, String) {
    let scratch = Scratch::new();
    let file = scratch.file("set.toml", SET);
    (scratch, file)
}

#[test]
fn lists_help_and_errors_name_the_policy_and_the_program() {
    let list = text(&shortest(&["policy", "list"]));
    assert!(list.contains("\n  shortest "), "{list}");
    let show = text(&shortest(&["policy", "show", "shortest"]));
    assert!(show.contains("shortest: the smaller budget first"), "{show}");
    let help = text(&shortest(&["run", "--help"]));
    assert!(help.contains("sfq, shortest"), "{help}");
    assert!(help.contains("Usage: shortest run [OPTIONS] SET.toml"), "{help}");
    for words in ["punctual run", "punctual check"] {
        assert!(!help.contains(words), "{words}: {help}");
    }
    let refused = text(&shortest(&["sim", "/nowhere/set.toml"]));
    assert!(refused.contains("shortest: "), "{refused}");
    let usage = text(&shortest(&["walk"]));
    assert!(usage.contains("Usage: shortest "), "{usage}");
    let version = text(&shortest(&["--version"]));
    assert!(version.contains("shortest (punctual "), "{version}");
}

#[test]
fn an_unknown_policy_in_a_set_is_answered_with_the_policies_of_the_program() {
    let scratch = Scratch::new();
    let file = scratch.file("set.toml", &SET.replace("\"shortest\"", "\"no policy\""));
    let output = shortest(&["check", &file]);
    assert_eq!(output.status.code(), Some(2), "{}", text(&output));
    let words: Vec<String> = text(&output).split_whitespace().map(str::to_owned).collect();
    assert!(words.join(" ").contains("\"sfq\", \"shortest\""), "{}", text(&output));
}

#[test]
fn the_command_itself_does_not_have_the_policy() {
    let (_scratch, file) = set();
    let output = std::process::Command::new(&*PUNCTUAL).args(["check", &file]).output().unwrap();
    assert_eq!(output.status.code(), Some(2), "{}", text(&output));
    assert!(text(&output).contains("unknown policy \"shortest\""), "{}", text(&output));
}

#[test]
fn the_set_meets_its_deadlines_under_the_policy_and_misses_them_under_another() {
    let (_scratch, file) = set();
    let results = document(&["sim", &file, "--json"], 0);
    assert_eq!(results["result"]["policy"], "shortest", "{results:#}");
    assert_eq!(results["result"]["totals"]["missed"], 0, "{results:#}");
    let results = document(&["sim", &file, "--json", "--policy", "rm"], 1);
    assert_eq!(results["result"]["totals"]["missed"], 25, "{results:#}");
}

#[test]
fn the_policy_serves_a_group_and_its_trace_replays() {
    let (scratch, trace) = (Scratch::new(), Scratch::new());
    let group = "[[group]]\nname = \"g\"\npolicy = \"shortest\"\nperiod = \"10ms\"\n\
                 budget = \"8ms\"\n";
    let of_group = SET.replace("policy = \"shortest\"", "policy = \"edf\"");
    let of_group = of_group.replace("[[task]]\n", "[[task]]\ngroup = \"g\"\n") + group;
    let file = scratch.file("set.toml", &of_group);
    let path = trace.path("trace");
    document(&["sim", &file, "--json", "--trace", &path], 0);
    let replay = shortest(&["sim", "--replay", &path]);
    assert_eq!(replay.status.code(), Some(0), "{}", text(&replay));
}

#[test]
fn the_set_is_admitted_by_the_test_of_the_policy() {
    let (_scratch, file) = set();
    let tasks = &document(&["check", "--json", &file], 0)["result"]["domains"][0]["tasks"];
    let found = |n: usize| (&tasks[n]["test"], &tasks[n]["response_ns"]);
    // The longer task waits for the shorter one.
    let expected = [8_000_000, 2_000_000].map(|ns: u64| ("response_time".into(), ns.into()));
    assert_eq!([found(0), found(1)], [0, 1].map(|n| (&expected[n].0, &expected[n].1)), "{tasks:#}");
    let results = document(&["run", "--host", "sim", "--json", &file], 0);
    assert_eq!(results["result"]["policy"], "shortest", "{results:#}");
    // With deadline monotonic priorities it would fit.
    let scratch = Scratch::new();
    let late =
        SET.replace("\"6ms\"", "\"1500us\"").replace("deadline = \"5ms\"", "deadline = \"3ms\"");
    let file = scratch.file("set.toml", &late);
    assert_eq!(document(&["check", "--json", &file], 3)["ok"], false);
}
