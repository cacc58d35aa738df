//! Compares the traces of one task set from two versions of Punctual, for `scripts/same-decisions`.
//!
//! `compare_traces exact OLD NEW`: every byte must be the same, as in virtual time.
//! `compare_traces guest OLD NEW`: the decisions must be the same, and measured times within the
//! bounds of `guest.rs`, as on a real kernel with a counted clock.
//!
//! Prints one line, and for a difference both records. Exit code: 0 the same, 1 different, 2 bad
//! usage or a file that this version cannot read.

mod difference;
mod exact;
mod guest;
#[cfg(test)]
mod tests;

use std::fs::File;
use std::io::BufReader;
use std::process::ExitCode;

use difference::Difference;
use punctual_trace::Trace;

const USAGE: &str = "compare_traces exact|guest OLD NEW";

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    match compare(&args) {
        Ok(Ok(summary)) => {
            println!("{summary}");
            ExitCode::SUCCESS
        }
        Ok(Err(difference)) => {
            println!("{difference}");
            ExitCode::from(1)
        }
        Err(error) => {
            eprintln!("compare_traces: {error}");
            ExitCode::from(2)
        }
    }
}

/// What both have in common, or their first difference. The outer error is one of usage or of a
/// file.
fn compare(args: &[String]) -> Result<Result<String, Difference>, String> {
    let [rule, old, new] = args else { return Err(format!("usage: {USAGE}")) };
    let rule = match rule.as_str() {
        "exact" => exact::compare,
        "guest" => guest::compare,
        _ => return Err(format!("usage: {USAGE}")),
    };
    Ok(rule(&read(old)?, &read(new)?))
}

fn read(path: &str) -> Result<Trace, String> {
    let file = File::open(path).map_err(|e| format!("{path}: {e}"))?;
    let trace = Trace::read(&mut BufReader::new(file)).map_err(|e| format!("{path}: {e}"))?;
    match trace.lost() {
        0 => Ok(trace),
        lost => Err(format!("{path}: {lost} records are missing; give them more room")),
    }
}
