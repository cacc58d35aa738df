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

impl Period {
    /// A release that was never made, since nobody looked in time. `deadline` is absolute; both times and the budget
    /// `assigned` are ns.
    pub fn lost(task: u32, number: u64, release: u64, deadline: u64, assigned: u64) -> Period {
        Period {
            task,
            number,
            release,
            deadline,
            assigned,
            received: 0,
            started: NEVER,
            completed: NEVER,
            end: JobEnd::Expired,
            ready_throughout: true,
            woken_late: true,
            miss: true,
            overrun: true,
        }
    }

    /// Says of one whose job has ended what the design calls a miss and an overrun (section 3, Reservation). `waits`: the
    /// task calls `wait_period`; `slept`: it did not want the CPU all the time.
    pub fn judged(self, waits: bool, slept: bool) -> Period {
        let exhausted = self.end == JobEnd::Exhausted;
        let expired = self.end == JobEnd::Expired;
        Period {
            ready_throughout: exhausted || expired && !slept,
            miss: if waits { exhausted || expired } else { expired && !slept },
            overrun: exhausted || waits && expired,
            ..self
        }
    }
}

/// Whether a task that was seen asleep for so long, ns, really slept: clocks and switches make less than a hundredth of
/// the relative deadline, ns, uncertain, and less than 0.1 ms.
pub fn has_slept(asleep: u64, deadline: u64) -> bool {
    asleep > (deadline / 100).max(100_000)
}
