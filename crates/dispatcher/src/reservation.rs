//! Periodic reservations: the standard allocator inside the dispatcher.

use crate::For;

/// A periodic reservation (design, "Reservation"). Times are ns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reservation {
    /// What its jobs' budgets serve; a task has one reservation at most.
    pub serves: For,
    /// First release.
    pub start: u64,
    /// At least 1.
    pub period: u64,
    /// 1 to `deadline`.
    pub budget: u64,
    /// Relative, `budget` to `period`.
    pub deadline: u64,
    /// Of its jobs.
    pub priority: i64,
    /// Of its jobs: the scheduling group in which they compete.
    pub group: u32,
    /// Of its jobs: the budget-group node that limits them (of a segment: its node's parent).
    pub budget_group: u32,
    /// Of its jobs; `None`: the number of the release.
    pub cookie: Option<u64>,
    /// When the budget is used up, or the finish reached, before the task is done.
    pub overrun: OverrunPolicy,
    /// Cut what is left to the reservation's bandwidth when its task wakes in mid-job, or when the
    /// group that it serves becomes active again (the revised CBS rule): for policies that order by
    /// finish.
    pub wakeup_rule: bool,
}

impl Reservation {
    /// `budget` in each `period`, ns, from time 0, with the period's end as deadline: in group 0,
    /// under no budget group, overruns carried.
    pub fn new(serves: For, period: u64, budget: u64) -> Reservation {
        Reservation {
            serves,
            start: 0,
            period,
            budget,
            deadline: period,
            priority: 0,
            group: 0,
            budget_group: 0,
            cookie: None,
            overrun: OverrunPolicy::Carry,
            wakeup_rule: false,
        }
    }
}

/// Overrun policies (RTAI paper, 3.2 and 3.3.1, for `Carry`; the others are Punctual's).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OverrunPolicy {
    /// Suspended until its next release; delayed waits are ignored, one each.
    Carry = 0,
    /// Likewise, but a late wait returns at the next release after the call.
    Skip = 1,
    /// In the ordinary class until its next release.
    Background = 2,
    /// As `Carry`, and [`Event::Overrun`](crate::Event::Overrun).
    Signal = 3,
}

/// What a task's `wait_period` does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wait {
    /// Returns at the next release.
    UntilRelease,
    /// It was a delayed wait: it returns at once.
    Ignored,
}
