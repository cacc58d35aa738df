//! A trace as what happened: typed moments of a schedule, with the tasks as their set numbers them.
//!
//! ```text
//! TraceReader ──> Places (which task is which) ──> Decoder (what a record says) ──> Moment
//! ```
//!
//! [`Timeline`] reads record by record: its memory does not grow with the trace.

mod decoder;
mod moment;
mod places;
mod timeline;

pub use moment::{Moment, What};
pub use timeline::Timeline;

#[cfg(test)]
mod tests;
