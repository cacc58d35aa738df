//! The errors that several parts of the kernel host have.

use punctual_diagnostic::Diagnostic;

/// What the other hosts do instead.
pub(crate) const OTHERS: &str =
    "use --host user (a dispatcher thread, on any Linux) or --host sim (exact virtual time; \
     nothing is started)";

/// The kernel refused an object or a program; `cause` is what it reported.
pub(crate) fn refused(cause: String) -> Diagnostic {
    let files = std::io::Error::from_raw_os_error(libc::EMFILE).to_string();
    let help =
        if cause.contains(&files) { "raise the limit on open files (ulimit -n)" } else { OTHERS };
    Diagnostic::machine(cause, help)
}

/// The set asks for what this host does not do.
pub(crate) fn not_done_here(cause: impl Into<String>) -> Diagnostic {
    Diagnostic::usage(cause, OTHERS)
}

/// A thread that is to be on a domain's CPU is on another one.
pub(crate) fn wrong_cpu(cause: String) -> Diagnostic {
    Diagnostic::machine(cause, "leave the affinity of this program's threads as it is")
}
