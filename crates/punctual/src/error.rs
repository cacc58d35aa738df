//! The errors of the library's own.

use punctual_diagnostic::Diagnostic;

/// The supervisor thread is gone: it panicked, which is a defect of Punctual.
pub(crate) fn run_has_ended() -> Diagnostic {
    Diagnostic::machine("this run has ended", "start another")
}
