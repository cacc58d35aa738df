//! The errors that several parts of the simulator have.

use punctual_diagnostic::Diagnostic;

/// A policy issues jobs without end at one instant: virtual time stands still.
pub(crate) fn stuck(cpu: u32, at: u64) -> Diagnostic {
    let cause = format!(
        "CPU {cpu}: time stands still at {at} ns, since a policy never comes to an end there"
    );
    Diagnostic::usage(
        cause,
        "correct the policy; if it is one of Punctual's, report it with the task set",
    )
}
