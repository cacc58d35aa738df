//! A trace as what happened: typed moments of a schedule, with the tasks as their set numbers them.
//!
//! ```text
//! TraceReader ──> Places (which task is which) ──> Decoder (what a record says) ──> Moment
//! ```
//!
//! [`Timeline`] reads record by record, and [`Exporter`] draws it for Perfetto or Chrome: their
//! memory does not grow with the trace.

mod comparison;
mod cut;
mod decoder;
mod export;
mod moment;
mod places;
mod stats;
mod timeline;

pub use comparison::{Comparison, Figures, Parting, Percentiles, Side, TaskComparison};
pub use cut::{cut, start, CutTrace};
pub use export::{Exported, Exporter, Format};
pub use moment::{Moment, What};
pub use stats::{Stats, TaskStats};
pub use timeline::Timeline;

#[cfg(test)]
mod tests;
