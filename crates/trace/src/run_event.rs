//! What a run reports while it goes on, from every host.

use crate::Period;

/// One report of a run. Tasks are places in the set.
#[derive(Debug, Clone, PartialEq)]
pub enum RunEvent {
    /// One release, as it turned out; reported when the next one comes. Releases that were never made
    /// are reported too.
    Period(Period),
    /// Releases of a task without a [`Period`]: the host's ring was full. `count` of them since the
    /// previous event of this kind.
    Unreported {
        /// The task.
        task: u32,
        /// Number of releases.
        count: u64,
    },
    /// The task has ended: its thread returned, or all its processes are gone.
    Ended {
        /// The task.
        task: u32,
        /// In words: `returned`, `exited with 0`, `ended by signal 9`.
        how: String,
    },
    /// Something that the user should know.
    Warning(String),
}
