//! Verdicts, tables and lines, as people see them.

mod balance;
mod groups;
#[path = "../../../session/src/results/tests/runs.rs"]
mod runs;
mod tables;

use crate::*;
use punctual_session::results::*;
use punctual_session::HostKind;
use punctual_trace::{JobEnd, Period, NEVER};
use runs::*;

/// Without colours.
fn shown(results: &Results, width: usize) -> String {
    table(results, &View { width, ..View::default() })
}

/// All columns.
fn shown_wide(results: &Results, width: usize) -> String {
    table(results, &View { width, wide: true, ..View::default() })
}
