//! Why a policy cannot do what a task set asks.

use std::fmt;

/// What a policy cannot do: where, why, and what to do about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PolicyError {
    /// What in the set: `task "servo", line 7`.
    pub place: String,
    /// Why not.
    pub cause: String,
    /// What would be right.
    pub cure: String,
}

impl PolicyError {
    pub(crate) fn new(place: impl Into<String>, cause: impl Into<String>, cure: impl Into<String>) -> PolicyError {
        PolicyError { place: place.into(), cause: cause.into(), cure: cure.into() }
    }
}

/// `task "servo", line 7`, or without the line when it is from no file.
pub(crate) fn place(what: &str, name: &str, line: Option<u32>) -> String {
    match line {
        Some(line) => format!("{what} \"{name}\", line {line}"),
        None => format!("{what} \"{name}\""),
    }
}

impl fmt::Display for PolicyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {} ({})", self.place, self.cause, self.cure)
    }
}

impl std::error::Error for PolicyError {}

impl From<PolicyError> for punctual_diagnostic::Diagnostic {
    fn from(e: PolicyError) -> Self {
        Self::usage(format!("{}: {}", e.place, e.cause), e.cure)
    }
}
