//! What became of reservations.

use punctual_trace::{JobEnd, Period, NEVER};
use serde::{Deserialize, Serialize};

/// One release of a reservation, as it turned out: `punctual_trace::Period`, with times that never
/// came missing. Times are CLOCK_MONOTONIC, ns.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PeriodReport {
    /// Number of the release, from 0.
    pub number: u64,
    /// When it was released.
    pub release_ns: u64,
    /// Its absolute deadline.
    pub deadline_ns: u64,
    /// The budget.
    pub assigned_ns: u64,
    /// Execution time received.
    pub received_ns: u64,
    /// Budget that the task gave up.
    pub unused_ns: u64,
    /// When the task first executed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started_ns: Option<u64>,
    /// When the task completed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub completed_ns: Option<u64>,
    /// How its job ended.
    pub end: JobEnd,
    /// The task did not suspend itself.
    pub ready_throughout: bool,
    /// The dispatcher was late.
    pub woken_late: bool,
    /// The deadline was missed.
    pub miss: bool,
    /// The budget was used up, or the deadline came, before the task was done.
    pub overrun: bool,
}

/// One event of one reservation; one of `period`, `unreported` and `ended` is there.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskEvent {
    /// The reservation.
    pub id: u64,
    /// A release.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub period: Option<PeriodReport>,
    /// Releases without a report since the last event of this kind.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unreported: Option<u64>,
    /// It has ended: `ended`, its processes are gone; `released`, its client or the service gave it
    /// back; `refused`, by the dispatcher, or by a service that took the place of another.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended: Option<String>,
    /// With `ended`: why it was refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cause: Option<String>,
}

/// The answer to `TakeEvents`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EventsReply {
    /// In order of time.
    pub events: Vec<TaskEvent>,
    /// More of them wait.
    pub more: bool,
    /// Events that found no room since the last call.
    pub dropped: u64,
}

fn at(time: u64) -> Option<u64> {
    (time != NEVER).then_some(time)
}

impl From<&Period> for PeriodReport {
    fn from(p: &Period) -> PeriodReport {
        PeriodReport {
            number: p.number,
            release_ns: p.release,
            deadline_ns: p.deadline,
            assigned_ns: p.assigned,
            received_ns: p.received,
            unused_ns: p.unused,
            started_ns: at(p.started),
            completed_ns: at(p.completed),
            end: p.end,
            ready_throughout: p.ready_throughout,
            woken_late: p.woken_late,
            miss: p.miss,
            overrun: p.overrun,
        }
    }
}

impl PeriodReport {
    /// The release, of the task at this place in a set.
    pub fn period(&self, task: u32) -> Period {
        Period {
            task,
            number: self.number,
            release: self.release_ns,
            deadline: self.deadline_ns,
            assigned: self.assigned_ns,
            received: self.received_ns,
            unused: self.unused_ns,
            started: self.started_ns.unwrap_or(NEVER),
            completed: self.completed_ns.unwrap_or(NEVER),
            end: self.end,
            ready_throughout: self.ready_throughout,
            woken_late: self.woken_late,
            miss: self.miss,
            overrun: self.overrun,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_period_survives_the_way_to_a_client() {
        let ends = [
            JobEnd::Completed,
            JobEnd::Exhausted,
            JobEnd::Expired,
            JobEnd::Cancelled,
            JobEnd::TaskGone,
            JobEnd::Replenished,
        ];
        for (n, end) in ends.into_iter().enumerate() {
            let n = n as u64;
            let period = Period {
                received: 5 + n,
                unused: n,
                started: if n % 2 == 0 { NEVER } else { 70 },
                completed: if n % 3 == 0 { NEVER } else { 90 },
                end,
                ready_throughout: n == 1,
                woken_late: n == 2,
                miss: n == 3,
                overrun: n == 4,
                ..Period::unjudged(3, n, 100 + n, 200 + n, 50)
            };
            assert_eq!(PeriodReport::from(&period).period(3), period);
        }
    }
}
