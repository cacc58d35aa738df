//! `punctual trace` as a user meets it, on traces that the simulator records.

mod bad_input;
mod cut;
mod diff;
mod export;
mod perfetto;
mod stats;

use std::process::{Command, Output, Stdio};

use punctual_test_support::Scratch;

/// Two tasks that fit, until everything repeats at 35 ms.
const FITS: &str = "cpu = 0\npolicy = \"edf\"\nduration = \"35ms\"\n\
    [[task]]\nname = \"short\"\nperiod = \"5ms\"\nbudget = \"2ms\"\nwork = { spin = \"2ms\" }\n\
    [[task]]\nname = \"long\"\nperiod = \"7ms\"\nbudget = \"4ms\"\nwork = { spin = \"4ms\" }\n";

/// A task that wants more than its budget, above one that does not.
const OVERRUNS: &str = "cpu = 0\npolicy = \"rm\"\nduration = \"40ms\"\n\
    [[task]]\nname = \"wild \\\"one\\\"\"\nperiod = \"4ms\"\nbudget = \"1ms\"\noverrun = \"skip\"\n\
    work = { spin = \"1500us\" }\n\
    [[task]]\nname = \"calm\"\nperiod = \"8ms\"\nbudget = \"4ms\"\nwork = { spin = \"4ms\" }\n";

/// The trace of a set that is simulated, and what `sim --json` says of it.
fn simulated(scratch: &Scratch, set: &str) -> (String, serde_json::Value) {
    let trace = scratch.path("t");
    let set = scratch.file("set.toml", set);
    let output = punctual(&["sim", &set, "--trace", &trace, "--json"]);
    (trace, json(&output))
}

fn punctual(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_punctual"))
        .args(arguments)
        .stdin(Stdio::null())
        .output()
        .expect("it starts")
}

fn trace(arguments: &[&str]) -> Output {
    punctual(&[&["trace"], arguments].concat())
}

/// What is printed on a terminal of so many columns.
fn in_columns(columns: usize, arguments: &[&str]) -> String {
    let punctual = env!("CARGO_BIN_EXE_punctual");
    let line = format!("stty cols {columns} rows 24; exec {punctual} {}", arguments.join(" "));
    let output = Command::new("script")
        .args(["-qec", &line, "/dev/null"])
        .env("NO_COLOR", "1")
        .stdin(Stdio::null())
        .output()
        .expect("script is a part of every Debian");
    text(&output.stdout).replace('\r', "")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn json(output: &Output) -> serde_json::Value {
    serde_json::from_slice(&output.stdout).unwrap_or_else(|e| panic!("{e}: {output:?}"))
}

/// Where the first record begins.
fn records_at(trace: &[u8]) -> usize {
    trace.iter().position(|&b| b == b'\n').expect("a header line") + 1 + 4
}
