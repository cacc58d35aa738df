//! Why a deadline was missed, from the trace of its run.
//!
//! ```text
//! Trace ──> History ──> window of a miss, release to deadline, without a hole ──> Cause
//!           (when each task executed,   (shares that add up to it)
//!            slept, had no budget)
//! ```
//!
//! Nothing is guessed from statistics: each share is read from records, and what no record accounts
//! for is a share of its own.

mod cause;
mod execution;
mod explanation;
mod history;
mod order;
mod supply;
mod window;

pub use cause::{Cause, CauseKind};
pub use explanation::{Explainer, Explanation, Share, Span};
pub use order::Reason;
pub use window::Activity;
