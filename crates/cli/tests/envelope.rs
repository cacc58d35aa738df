//! What `punctual measure` and `punctual profile` refuse, in the envelope. What they measure and
//! record needs root: tests/real.

use std::process::Command;

use serde_json::Value;

/// Each row: options, exit code, kind of error, and words of its cause or help. Every document
/// conforms to the schema.
fn refused(command: &[&str], schema: &str, cases: &[(&str, i32, &str, &str)]) {
    let schema = serde_json::from_str(schema).expect("the schema is JSON");
    let schema = jsonschema::validator_for(&schema).expect("it is a schema");
    for (options, code, kind, cause) in cases {
        let output = Command::new(env!("CARGO_BIN_EXE_punctual"))
            .args(command)
            .arg("--json")
            .args(options.split_whitespace())
            .output()
            .expect("it starts");
        let document: Value =
            serde_json::from_slice(&output.stdout).unwrap_or_else(|e| panic!("{e}: {output:?}"));
        let errors: Vec<String> = schema.iter_errors(&document).map(|e| e.to_string()).collect();
        assert!(errors.is_empty(), "{errors:?} in {document:#}");
        let error = &document["error"];
        assert_eq!(
            (output.status.code(), error["kind"].as_str()),
            (Some(*code), Some(*kind)),
            "{document:#}"
        );
        let said = format!("{} {}", error["cause"], error["help"]);
        assert!(said.contains(cause), "{cause}: {document:#}");
        assert!(document["result"].is_null(), "{document:#}");
    }
}

#[test]
fn a_measurement_that_is_asked_wrongly_or_does_not_fit_is_refused() {
    let schema = include_str!("../../../docs/measure-determinism.schema.json");
    refused(
        &["measure", "determinism"],
        schema,
        &[
            ("--rate 0", 2, "usage", "--rate"),
            ("--duration 0s", 2, "usage", "no time"),
            ("--require p99=1ms", 2, "usage", "choose one of worst, determinism"),
            ("--cpu 100000", 2, "usage", "no CPU 100000"),
            ("--rate 1000000", 3, "not_admitted", "at 1000000 Hz the releases alone"),
        ],
    );
}

#[test]
fn a_profile_that_is_asked_wrongly_is_refused() {
    let schema = include_str!("../../../docs/profile.schema.json");
    refused(
        &["profile"],
        schema,
        &[
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
        ],
    );
}
