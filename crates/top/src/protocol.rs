//! What a running set and its observers send each other: a line of JSON each.

use punctual_diagnostic::Diagnostic;
use punctual_session::results::{PolicyChange, Results};
use serde::{Deserialize, Serialize};

/// Version of requests and replies; it rises when one changes its meaning.
pub const VERSION: u32 = 1;

/// Longest request, bytes with its line break; a longer one ends the connection.
pub const LONGEST_REQUEST: usize = 4096;

/// What an observer asks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Query {
    /// The figures so far.
    Snapshot,
    /// Another budget for a task, from its next release on.
    ChangeBudget {
        /// The task's place in the set, from 0.
        place: usize,
        /// ns per period.
        budget_ns: u64,
    },
    /// Reads the set's file again, and swaps the policies that differ.
    Reload,
}

/// What the running set answers.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reply {
    /// The figures so far.
    Snapshot(Box<Snapshot>),
    /// The task has its new budget from its next release on.
    Changed,
    /// The policies that were swapped, perhaps none.
    Reloaded(Vec<PolicyChange>),
    /// Nothing was done.
    Refused {
        /// What is wrong.
        cause: String,
        /// What helps.
        help: String,
    },
}

impl From<Diagnostic> for Reply {
    fn from(error: Diagnostic) -> Reply {
        let place = error.place().map_or_else(String::new, |place| format!("{place}: "));
        Reply::Refused { cause: place + &error.cause, help: error.help }
    }
}

/// A running set at one instant.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Snapshot {
    /// [`VERSION`].
    pub version: u32,
    /// The process that runs it.
    pub pid: u32,
    /// The set's file or the command.
    pub what: String,
    /// The figures so far.
    pub results: Results,
    /// Where each task stands, in the order of the results.
    pub places: Vec<TaskPlace>,
}

/// Where a task stands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskPlace {
    /// Its scheduling group; `null` for the top.
    pub group: Option<String>,
    /// The CPUs of its domain.
    pub cpus: Vec<u32>,
    /// Whether it has not ended.
    pub alive: bool,
}
