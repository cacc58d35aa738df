//! `punctual policy`: what it lists is what task sets may name.

use std::process::{Command, Output};

use punctual_taskset::TaskSet;
use serde_json::Value;

fn policy(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_punctual")).arg("policy").args(args).output().expect("starts")
}

fn document(args: &[&str]) -> Value {
    let output = policy(args);
    let document: Value = serde_json::from_slice(&output.stdout).expect("it is JSON");
    let schema = serde_json::from_str(include_str!("../../../docs/policy.schema.json"));
    let schema = jsonschema::validator_for(&schema.expect("the schema is JSON")).expect("a schema");
    let errors: Vec<String> = schema.iter_errors(&document).map(|e| e.to_string()).collect();
    assert!(errors.is_empty(), "{errors:?} in {document:#}");
    assert_eq!(output.status.code().map(i64::from), document["exit_code"].as_i64());
    document
}

/// A set that names it, with all that any policy needs.
fn names(key: &str, name: &str, takes_order: bool, in_task: bool) -> String {
    let (top, server) = match (key, name) {
        ("policy", _) => (name, "polling"),
        (_, "sporadic") => ("rm", name),
        _ => ("edf", name),
    };
    let (of_task, server) = match in_task {
        true => (format!("server = \"{server}\"\n"), "polling"),
        false => (String::new(), server),
    };
    let policy = match takes_order {
        true => format!("{{ name = \"{top}\", order = \"period\" }}"),
        false => format!("\"{top}\""),
    };
    let of_group = match top {
        "td" => "cycle = \"40ms\"\nwindows = [{ start = \"0ms\", length = \"5ms\" }]".to_owned(),
        _ => format!("period = \"40ms\"\nbudget = \"5ms\"\nserver = \"{server}\""),
    };
    format!(
        "cpu = 0\npolicy = {policy}\n[[group]]\nname = \"g\"\npolicy = \"rm\"\npriority = 1\n\
         {of_group}\n[[task]]\nname = \"t\"\npriority = 1\nperiod = \"20ms\"\nbudget = \"2ms\"\n\
         work = {{ spin = \"1ms\" }}\n{of_task}"
    )
}

/// A set of one task with a weight.
fn shared(policy: &str) -> String {
    format!(
        "cpu = 0\npolicy = {{ name = \"{policy}\", quantum = \"1ms\" }}\n[[task]]\nname = \"t\"\n\
         weight = 1\nwork = {{ spin = \"1ms\" }}\n"
    )
}

#[test]
fn each_name_in_the_list_is_one_that_a_task_set_may_have() {
    let list = document(&["list", "--json"]);
    let policies = list["result"]["policies"].as_array().expect("a list");
    assert!(policies.len() >= 10, "{list:#}");
    for policy in policies {
        let text = |key: &str| policy[key].as_str().expect("a text");
        let tables = policy["tables"].as_array().expect("a list");
        assert!(!tables.is_empty(), "{policy:#}");
        for table in tables {
            let takes_order = policy["takes_order"] == true;
            let set = match policy["takes_weights"] == true {
                true => shared(text("name")),
                false => names(text("key"), text("name"), takes_order, table == "task"),
            };
            TaskSet::parse(&set, "set.toml").unwrap_or_else(|e| panic!("{policy}: {e}"));
        }
        assert!(
            !text("title").is_empty() && !text("source").is_empty() && !text("limits").is_empty()
        );
    }
}

#[test]
fn one_policy_is_shown_as_in_the_list() {
    let list = document(&["list", "--json"]);
    for policy in list["result"]["policies"].as_array().expect("a list") {
        let name = policy["name"].as_str().expect("a name");
        assert_eq!(&document(&["show", name, "--json"])["result"]["policies"][0], policy);
        let text = String::from_utf8(self::policy(&["show", name]).stdout).expect("text");
        assert!(text.starts_with(&format!("{name}: ")), "{text}");
        assert!(text.contains(policy["source"].as_str().expect("a source")), "{text}");
    }
}

#[test]
fn a_name_that_no_policy_has_is_refused_with_all_that_there_are() {
    let document = document(&["show", "lottery", "--json"]);
    assert_eq!(document["error"]["kind"], "usage");
    let help = document["error"]["help"].as_str().expect("a help");
    assert!(help.contains("edf") && help.contains("constant_bandwidth"), "{help}");
    assert_eq!(policy(&["show", "lottery"]).status.code(), Some(2));
}

/// `punctual policy new` in this folder: its exit code and its error.
fn new_project(folder: &std::path::Path, args: &[&str]) -> (Option<i32>, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_punctual"));
    let output = command.args(["policy", "new"]).args(args).current_dir(folder).output();
    let output = output.expect("starts");
    (output.status.code(), String::from_utf8(output.stderr).expect("text"))
}

#[test]
fn a_new_project_has_its_name_and_the_source_that_was_asked_for() {
    let folder = tempfile::tempdir().expect("a folder");
    let url = "https://example.org/punctual.git";
    assert_eq!(new_project(folder.path(), &["my-own", "--source", url]), (Some(0), String::new()));
    let file = |name: &str| std::fs::read_to_string(folder.path().join("my-own").join(name));
    let manifest = file("Cargo.toml").expect("a manifest");
    assert!(manifest.contains("name = \"my-own\""), "{manifest}");
    assert!(manifest.contains(&format!("punctual-cli = {{ git = \"{url}\" }}")), "{manifest}");
    for name in ["src/main.rs", "tests/sim.rs", "set.toml", "README.md"] {
        let text = file(name).expect(name);
        assert!(text.contains("my-own") && !text.contains("shortest"), "{name}: {text}");
    }
    assert!(new_project(folder.path(), &["here"]).0 == Some(0));
    let manifest = std::fs::read_to_string(folder.path().join("here/Cargo.toml"));
    let manifest = manifest.expect("a manifest");
    assert!(manifest.contains("crates/cli\" }"), "the checkout of the command: {manifest}");
}

#[test]
fn a_project_that_cannot_be_is_refused_with_one_error_and_nothing_is_written() {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("taken"), "").expect("room for a file");
    let cases = [
        (&["taken"][..], "File exists"),
        (&["edf"], "Punctual has a policy of this name"),
        (&["sporadic"], "a kind of server of this name"),
        (&["Upper"], "not a name for a policy"),
        (&["../up"], "not a name for a policy"),
        (&[""], "not a name for a policy"),
        (&["while"], "cannot be the name of a package"),
        (&["punctual-cli"], "cannot be the name of a package"),
        (&["mine", "--source", "/nowhere"], "no sources of Punctual"),
    ];
    for (args, cause) in cases {
        let (code, error) = new_project(folder.path(), args);
        assert_eq!(code, Some(2), "{args:?}: {error}");
        assert!(error.contains(cause) && error.contains("\n  help: "), "{args:?}: {error}");
    }
    assert_eq!(std::fs::read_dir(folder.path()).expect("it is there").count(), 1);
}
