//! `punctual measure`.

pub mod determinism;
pub mod latency;
pub mod overhead;

use punctual_measure::require::Violation;

/// The verdict where a requirement is not kept: the first one, and how many more there are.
fn not_kept(violations: &[Violation]) -> Option<String> {
    let (first, others) = violations.split_first()?;
    let more = match others.len() {
        0 => String::new(),
        more => format!(", and {more} more"),
    };
    Some(format!("Not kept: {}{more}.", first.describe()))
}
