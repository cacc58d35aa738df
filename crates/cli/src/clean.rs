//! `punctual clean`: restores what a killed Punctual and its guardian have left, the one case that
//! no process can repair.

use crate::output::Outcome;
use punctual_diagnostic::Diagnostic;
use punctual_process::RestoreReport;
use serde::Serialize;

/// The result of `punctual clean --json`.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct CleanResult {
    /// One entry for each killed Punctual.
    restored: Vec<Restored>,
}

/// What one killed Punctual had left.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct Restored {
    /// Its process number; 0 if that is not known.
    owner: i32,
    /// Its command line.
    command: String,
    /// Commands of its run that were killed.
    killed: usize,
    /// Adopted processes that regained their scheduling attributes.
    restored: usize,
    /// Threads of theirs whose attributes had to be changed for that.
    threads: usize,
    /// Stopped processes that were continued.
    continued: usize,
    /// Cgroups removed.
    groups: usize,
    /// What is left, and why.
    problems: Vec<String>,
}

impl From<&RestoreReport> for Restored {
    fn from(report: &RestoreReport) -> Restored {
        Restored {
            owner: report.owner,
            command: report.command.clone(),
            killed: report.killed,
            restored: report.given_back,
            threads: report.threads,
            continued: report.continued,
            groups: report.groups,
            problems: report.problems.clone(),
        }
    }
}

pub fn run() -> Result<Outcome<CleanResult>, Diagnostic> {
    let reports = punctual_process::clean()?;
    let problems: Vec<&str> =
        reports.iter().flat_map(|r| r.problems.iter().map(String::as_str)).collect();
    let error = (!problems.is_empty()).then(|| {
        Diagnostic::machine(problems.join("; "), "run it as the user that ran Punctual, or as root")
    });
    let verdict = match (reports.len(), problems.is_empty()) {
        (0, _) => "Nothing to clean: no killed Punctual has left anything behind.".to_owned(),
        (1, true) => "The changes of a killed Punctual are restored.".to_owned(),
        (n, true) => format!("The changes of {n} killed Punctual processes are restored."),
        (_, false) => "Not all changes of a killed Punctual could be restored.".to_owned(),
    };
    let result = CleanResult { restored: reports.iter().map(Restored::from).collect() };
    let text =
        reports.iter().fold(format!("{verdict}\n"), |text, report| format!("{text}{report}\n"));
    let code = error.as_ref().map_or(0, Diagnostic::exit_code);
    Ok(Outcome { ok: error.is_none(), verdict, code, result, text, error })
}
