//! The errors of the library's own.

use punctual_analysis::{CpuRefusal, Refusal};
use punctual_diagnostic::Diagnostic;

/// The cause and the help of every CPU that is too full.
pub(crate) fn not_admitted(refusal: &Refusal) -> Diagnostic {
    let causes: Vec<String> = refusal.over.iter().map(CpuRefusal::cause).collect();
    let help: Vec<String> = refusal.over.iter().map(|over| over.help.to_string()).collect();
    Diagnostic::not_admitted(causes.join("\n"), help.join("\n"))
}

/// The supervisor thread is gone: it panicked, which is a defect of ours.
pub(crate) fn run_has_ended() -> Diagnostic {
    Diagnostic::machine("this run has ended", "start another")
}
