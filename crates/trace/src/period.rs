//! One release of one task, as it turned out: what results are made of.

use serde::{Deserialize, Serialize};

/// How a job ended. Each job ends exactly once (design, "Job").
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum JobEnd {
    /// The task said that it was done.
    Completed,
    /// The budget was used up.
    Exhausted,
    /// The finish was reached.
    Expired,
    /// The allocator took it back.
    Cancelled,
    /// The task is gone.
    TaskGone,
}

/// A time that never came.
pub const NEVER: u64 = u64::MAX;

/// One release of one task. All times are ns on CLOCK_MONOTONIC.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Period {
    /// Index of the task in its set.
    pub task: u32,
    /// Number of the release, from 0.
    pub number: u64,
    /// When it was released (the ideal time, not when somebody noticed).
    pub release: u64,
    /// Its absolute deadline.
    pub deadline: u64,
    /// The task's budget, without carried enforcement error.
    pub assigned: u64,
    /// Execution time received from this release to the next.
    pub received: u64,
    /// When the task first ran on it; `NEVER` if it did not or nobody could tell.
    pub started: u64,
    /// When the task said it was done; `NEVER` if it did not.
    pub completed: u64,
    /// How its job ended.
    pub end: JobEnd,
    /// The task wanted the CPU all the time until its budget was used up.
    pub ready_throughout: bool,
    /// The one who enforces (dispatcher or observer) was itself woken late in this period.
    pub woken_late: bool,
    /// The deadline was missed, as the design defines it (section 3, Reservation).
    pub miss: bool,
    /// The task used up its budget, or reached its finish, before it was done.
    pub overrun: bool,
}
