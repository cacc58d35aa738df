//! Why a host could not be had, or a task not be taken in.

use punctual_custody::CustodyError;
use punctual_policies::PolicyError;

/// What is in the way, and what to do about it.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{cause}: {cure}")]
pub struct HostError {
    /// What is in the way.
    pub cause: String,
    /// What to do about it.
    pub cure: String,
    /// The command's exit code (design, 5): 2 bad usage, 3 not admitted, 4 the machine.
    pub exit_code: i32,
}

impl HostError {
    pub(crate) fn usage(cause: impl Into<String>, cure: impl Into<String>) -> HostError {
        HostError { cause: cause.into(), cure: cure.into(), exit_code: 2 }
    }

    pub(crate) fn machine(cause: impl Into<String>, cure: impl Into<String>) -> HostError {
        HostError { cause: cause.into(), cure: cure.into(), exit_code: 4 }
    }
}

impl From<CustodyError> for HostError {
    fn from(e: CustodyError) -> HostError {
        HostError { exit_code: e.exit_code(), cause: e.cause, cure: e.cure }
    }
}

impl From<PolicyError> for HostError {
    fn from(e: PolicyError) -> HostError {
        HostError::usage(format!("{}: {}", e.place, e.cause), e.cure)
    }
}
