//! Why a set cannot be simulated.

use punctual_policies::PolicyError;

/// Why a simulation could not be made, or did not come to its end.
#[derive(Debug, thiserror::Error)]
pub enum SimError {
    /// A policy cannot do what the set asks.
    #[error("{0}")]
    Policy(#[from] PolicyError),
    /// What is asked for is not simulated, or not with this set.
    #[error("{cause} ({cure})")]
    Set {
        /// What.
        cause: String,
        /// What to do about it.
        cure: String,
    },
    /// The trace could not be written.
    #[error("the trace cannot be written: {0}")]
    Trace(String),
    /// A policy goes on and on at one instant: virtual time stands still.
    #[error("CPU {cpu}: time stands still at {at} ns, since a policy never comes to an end there")]
    Stuck {
        /// On which CPU.
        cpu: u32,
        /// When, ns.
        at: u64,
    },
}

impl SimError {
    pub(crate) fn set(cause: impl Into<String>, cure: impl Into<String>) -> SimError {
        SimError::Set { cause: cause.into(), cure: cure.into() }
    }

    pub(crate) fn trace(e: impl ToString) -> SimError {
        SimError::Trace(e.to_string())
    }
}
