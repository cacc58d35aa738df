//! What a host tells of a run while it goes on.

use crate::Period;

/// What became known.
#[derive(Debug, Clone, PartialEq)]
pub enum Told {
    /// One release of one task.
    Period(Period),
    /// So many releases of a task, by its place in the set, that nothing more is known of: the host's reports of them
    /// found no room.
    Unreported {
        /// The task.
        task: u32,
        /// How many, since this was last told.
        count: u64,
    },
    /// The task, by its place in the set, has ended: its thread returned, all its processes are gone. In words, how.
    Ended(u32, String),
    /// Something people should know.
    Warning(String),
}
