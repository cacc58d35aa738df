//! The errors of the library's own.

use punctual_diagnostic::Diagnostic;

/// The task of a request is not alive.
pub(crate) fn task_has_ended() -> Diagnostic {
    Diagnostic::usage("the task has ended", "look at is_finished first").with_errno(libc::ESRCH)
}

/// The supervisor thread is gone: the run was stopped.
pub(crate) fn run_has_ended() -> Diagnostic {
    Diagnostic::machine("this run has ended", "start another").with_errno(libc::ECANCELED)
}
