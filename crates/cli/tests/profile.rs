//! `punctual profile`: what it refuses, in the envelope. What it sees needs root: tests/real.

use std::path::Path;
use std::process::Command;

use serde_json::Value;

fn document(args: &[&str]) -> (Option<i32>, Value) {
    let output = Command::new(env!("CARGO_BIN_EXE_punctual")).args(args).output().unwrap();
    let document: Value =
        serde_json::from_slice(&output.stdout).unwrap_or_else(|e| panic!("{e}: {output:?}"));
    let schema = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/profile.schema.json");
    let schema = serde_json::from_str(&std::fs::read_to_string(schema).unwrap()).unwrap();
    let errors: Vec<String> = jsonschema::validator_for(&schema)
        .unwrap()
        .iter_errors(&document)
        .map(|e| e.to_string())
        .collect();
    assert!(errors.is_empty(), "{errors:?} in {document:#}");
    (output.status.code(), document)
}

#[test]
fn what_is_asked_wrongly_is_refused_in_the_envelope() {
    for (options, code, kind, cause) in [
        ("", 2, "usage", "--pid"),
        ("--meet 0% -- true", 2, "usage", "--meet"),
        ("--meet 101 -- true", 2, "usage", "--meet"),
        ("--duration 0s -- true", 125, "usage", "no time"),
        ("--duration soon -- true", 125, "usage", "--duration"),
        ("--skip 1 -- true", 125, "usage", "no unit"),
        ("--deadline 1us -- true", 125, "usage", "shorter than any period"),
        ("--policy td -- true", 2, "usage", "--policy"),
        ("--output inherit -- true", 125, "usage", "--output"),
        ("-o /none/set.toml -- true", 125, "machine", "cannot be written"),
        ("--cpu 9999 -- true", 125, "usage", "cpu 9999 is out of range"),
        ("--pid 1 -- true", 2, "usage", "cannot be used with"),
        ("--pid -1", 2, "usage", "out of range"),
        ("--pid 2000000000", 2, "usage", "out of range"),
        ("--pid 4194304", 2, "usage", "there is no process"),
    ] {
        let words = options.split(' ').filter(|word| !word.is_empty());
        let args: Vec<&str> = ["profile", "--json"].into_iter().chain(words).collect();
        let (exit, document) = document(&args);
        let error = &document["error"];
        assert_eq!((exit, error["kind"].as_str()), (Some(code), Some(kind)), "{document:#}");
        let said = format!("{} {}", error["cause"], error["help"]);
        assert!(said.contains(cause), "{cause}: {document:#}");
        assert!(document["result"].is_null(), "{document:#}");
    }
}
