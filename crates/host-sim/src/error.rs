//! The errors that several parts of the simulator have.

use punctual_diagnostic::Diagnostic;

/// A policy issues jobs without end at one instant, so virtual time does not advance.
pub(crate) fn stuck(cpu: u32, at: u64) -> Diagnostic {
    let cause = format!(
        "CPU {cpu}: virtual time does not advance beyond {at} ns: a policy issues jobs without end"
    );
    Diagnostic::usage(
        cause,
        "correct the policy; if it is one of Punctual's, report it with the task set",
    )
}
