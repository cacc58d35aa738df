//! `punctual measure`: what it refuses, in the envelope. What it measures needs root: tests/real.

use std::path::Path;
use std::process::Command;

use serde_json::Value;

/// Its exit code and its document, which conforms to the schema.
fn document(args: &[&str]) -> (Option<i32>, Value) {
    let output = Command::new(env!("CARGO_BIN_EXE_punctual")).args(args).output().unwrap();
    let document: Value =
        serde_json::from_slice(&output.stdout).unwrap_or_else(|e| panic!("{e}: {output:?}"));
    let schema =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/measure-determinism.schema.json");
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
fn what_is_asked_wrongly_or_does_not_fit_is_refused_in_the_envelope() {
    for (options, code, kind, cause) in [
        ("--rate 0", 2, "usage", "--rate"),
        ("--duration 0s", 2, "usage", "no time"),
        ("--require p99=1ms", 2, "usage", "choose one of worst, determinism"),
        ("--cpu 100000", 2, "usage", "no CPU 100000"),
        ("--rate 1000000", 3, "not_admitted", "at 1000000 Hz the releases alone"),
    ] {
        let args: Vec<&str> =
            ["measure", "determinism", "--json"].into_iter().chain(options.split(' ')).collect();
        let (exit, document) = document(&args);
        let error = &document["error"];
        assert_eq!((exit, error["kind"].as_str()), (Some(code), Some(kind)), "{document:#}");
        let said = format!("{} {}", error["cause"], error["help"]);
        assert!(said.contains(cause), "{cause}: {document:#}");
        assert!(document["result"].is_null(), "{document:#}");
    }
}
