//! The errors of policies: where in the set, why, and what would be right.

use punctual_diagnostic::Diagnostic;

/// What a policy cannot do, at a place such as `task "servo", line 7`.
pub(crate) fn refused(
    place: impl std::fmt::Display,
    cause: impl std::fmt::Display,
    help: impl Into<String>,
) -> Diagnostic {
    Diagnostic::usage(format!("{place}: {cause}"), help)
}

/// `task "servo", line 7`, or without the line when it is from no file.
pub(crate) fn place(what: &str, name: &str, line: Option<u32>) -> String {
    match line {
        Some(line) => format!("{what} \"{name}\", line {line}"),
        None => format!("{what} \"{name}\""),
    }
}
