//! Results and analyses, printed: verdicts, tables and lines for people, JSON for programs.
//!
//! ```text
//! punctual_session::results::Results ──> headline, table, live, plain_line, side_by_side
//!                                   └──> Envelope (docs/run.schema.json)
//! ```

pub mod analysis;
mod compare;
mod envelope;
pub mod grid;
mod headline;
mod live;
mod table;
pub mod units;
pub mod why;

pub use compare::{side_by_side, verdicts};
pub use envelope::{Envelope, ErrorInfo, ErrorPlace, RunResult, SCHEMA};
pub use headline::headline;
pub use live::{live, plain_line};
pub use table::{figures, table, verdict, View};

#[cfg(test)]
mod tests;
