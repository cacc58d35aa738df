//! One release of one task, as it turned out: what results are made of.

use serde::{Deserialize, Serialize};

/// How a job ended, each exactly once (design, "Job"); of a release: its last job, or it was
/// replenished.
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
    /// Of a release only: its server was replenished, which began another one. Its budget was used
    /// up, or the task was asleep.
    Replenished,
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
    /// When it was released (the ideal time, not that at which the host handled it).
    pub release: u64,
    /// Its absolute deadline.
    pub deadline: u64,
    /// The task's budget, without carried enforcement error.
    pub assigned: u64,
    /// Execution time received from this release to the next.
    pub received: u64,
    /// Part of the budget that the task gave up, ns: left when it completed or slept at its finish,
    /// or cut off by the wake-up rule after it suspended itself. 0 if it was ready throughout.
    /// Where the host does not know it, all that was not received.
    pub unused: u64,
    /// When the task first ran on it; `NEVER` if it did not or the host does not know.
    pub started: u64,
    /// When the task said it was done; `NEVER` if it did not.
    pub completed: u64,
    /// How its job ended.
    pub end: JobEnd,
    /// The task did not suspend itself, as far as the host can see, and its budget was used up or
    /// its finish came before it was done (docs/results.md).
    pub ready_throughout: bool,
    /// The one who enforces (dispatcher or observer) was itself woken late in this period.
    pub woken_late: bool,
    /// The deadline was missed, as the design defines it (section 3, Reservation).
    pub miss: bool,
    /// The task used up its budget, or reached its finish, before it was done.
    pub overrun: bool,
}

impl Period {
    /// A release of which nothing is known yet. `deadline` is absolute; both times and the budget
    /// `assigned` are ns.
    pub fn unjudged(task: u32, number: u64, release: u64, deadline: u64, assigned: u64) -> Period {
        Period {
            task,
            number,
            release,
            deadline,
            assigned,
            received: 0,
            unused: 0,
            started: NEVER,
            completed: NEVER,
            end: JobEnd::Expired,
            ready_throughout: false,
            woken_late: false,
            miss: false,
            overrun: false,
        }
    }

    /// A release that was never made, since the dispatcher was not advanced in time.
    pub fn lost(task: u32, number: u64, release: u64, deadline: u64, assigned: u64) -> Period {
        Period {
            ready_throughout: true,
            woken_late: true,
            miss: true,
            overrun: true,
            ..Period::unjudged(task, number, release, deadline, assigned)
        }
    }

    /// Judges a period whose job has ended: readiness, miss and overrun (docs/results.md). `waits`:
    /// the task calls `wait_period`. `slept`: it suspended itself; `None` for a task that never
    /// does.
    ///
    /// A job that ended exhausted with part of its budget `unused` was cut by the wake-up rule.
    /// That follows on a suspension, however short, except for a task that never suspends itself:
    /// such a task lost what was cut off.
    pub fn judged(self, waits: bool, slept: Option<bool>) -> Period {
        let exhausted = self.end == JobEnd::Exhausted;
        let expired = self.end == JobEnd::Expired;
        let replenished = self.end == JobEnd::Replenished;
        let cut = (exhausted || replenished) && self.unused > 0 && slept.is_some();
        let slept = slept == Some(true);
        let ready_throughout = (exhausted || expired || replenished) && !slept && !cut;
        Period {
            ready_throughout,
            unused: match self.end {
                _ if ready_throughout => 0,
                JobEnd::Cancelled | JobEnd::TaskGone => self.assigned.saturating_sub(self.received),
                _ => self.unused,
            },
            // A server's release misses its deadline when its budget was received later.
            miss: match self.end {
                JobEnd::Replenished => self.miss && ready_throughout,
                // Of a task whose jobs do not expire at their deadlines.
                JobEnd::Completed => self.miss,
                _ if waits => exhausted || expired,
                _ => expired && !slept,
            },
            overrun: exhausted || waits && expired,
            ..self
        }
    }

    /// A period of which the host does not know whether the task was ready: not ready throughout,
    /// and what was not received counts as unused.
    pub fn unknown(self) -> Period {
        Period {
            ready_throughout: false,
            unused: self.assigned.saturating_sub(self.received),
            ..self
        }
    }
}

/// Whether a task that was seen asleep for so long, ns, really slept: clocks and switches make less
/// than a hundredth of the relative deadline, ns, uncertain, and less than 0.1 ms.
pub fn has_slept(asleep: u64, deadline: u64) -> bool {
    asleep > (deadline / 100).max(100_000)
}

#[cfg(test)]
mod tests;
