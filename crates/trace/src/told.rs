//! What a host tells of a run while it goes on.

use crate::{Period, TaskEnd};

/// What became known.
#[derive(Debug, Clone, PartialEq)]
pub enum Told {
    /// One release of one task.
    Period(Period),
    /// Counts releases of a task that the host could not report because its ring was full.
    Unreported {
        /// The task, by its place in the set.
        task: u32,
        /// Number since the previous event of this kind.
        count: u64,
    },
    /// The task, by its place in the set, has ended: its thread returned, or all its processes are gone.
    Ended(u32, TaskEnd),
    /// Something people should know.
    Warning(String),
}
