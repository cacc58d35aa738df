//! `punctual trace` as a user meets it, on traces that the simulator records.

mod export;
mod perfetto;
mod stats;

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// Two tasks that fit, until everything repeats at 35 ms.
const FITS: &str = "cpu = 0\npolicy = \"edf\"\nduration = \"35ms\"\n\
    [[task]]\nname = \"short\"\nperiod = \"5ms\"\nbudget = \"2ms\"\nwork = { spin = \"2ms\" }\n\
    [[task]]\nname = \"long\"\nperiod = \"7ms\"\nbudget = \"4ms\"\nwork = { spin = \"4ms\" }\n";

/// A task that wants more than its budget, above one that does not.
const OVERRUNS: &str = "cpu = 0\npolicy = \"rm\"\nduration = \"40ms\"\n\
    [[task]]\nname = \"wild \\\"one\\\"\"\nperiod = \"4ms\"\nbudget = \"1ms\"\noverrun = \"skip\"\n\
    work = { spin = \"1500us\" }\n\
    [[task]]\nname = \"calm\"\nperiod = \"8ms\"\nbudget = \"4ms\"\nwork = { spin = \"4ms\" }\n";

/// A folder of one test's own.
struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Scratch {
        let path = Path::new(env!("CARGO_TARGET_TMPDIR"))
            .join(format!("trace-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&path).expect("the target folder can be written");
        Scratch(path)
    }

    fn path(&self, name: &str) -> String {
        self.0.join(name).display().to_string()
    }

    fn write(&self, name: &str, contents: &[u8]) -> String {
        let path = self.path(name);
        std::fs::write(&path, contents).expect("the target folder can be written");
        path
    }

    /// The trace of a set that is simulated, and what `sim --json` says of it.
    fn simulated(&self, set: &str) -> (String, serde_json::Value) {
        let trace = self.path("t");
        let set = self.write("set.toml", set.as_bytes());
        let output = punctual(&["sim", &set, "--trace", &trace, "--json"]);
        (trace, json(&output))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
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
