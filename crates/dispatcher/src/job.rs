//! Jobs: what an allocator gives, and what it can read.

use crate::{TaskId, INFINITE};

/// What a group may order its members by (design, "Job").
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Attribute {
    /// Earlier start first.
    Start = 1,
    /// Earlier finish first.
    Finish = 2,
    /// Less remaining budget first.
    Budget = 3,
    /// Larger priority first.
    Priority = 4,
}

/// How many attributes the ordering of a group has at most.
pub const MOST_ATTRIBUTES: usize = 4;

/// The least value that the jobs of a raised task count with ([`Dispatcher::raise`]).
///
/// [`Dispatcher::raise`]: crate::Dispatcher::raise
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TaskCeiling {
    /// In groups ordered by finish: at the latest this, ns.
    Finish(u64),
    /// In groups ordered by priority: at least this.
    Priority(i64),
}

/// What a job's budget is for: the three kinds of job (docs/model.md).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum For {
    /// A task runs on it: a real job.
    Task(TaskId),
    /// A scheduling group runs on it, 1 to the limit: a server job.
    Group(u32),
    /// It is a segment of this budget-group node, 1 to the limit; the job's `budget_group` is the
    /// node's parent. It stands in no scheduling group.
    Budget(u32),
}

/// A job's attributes (design, "Job"; RED-Linux, IV-B and V). Times are ns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Job {
    /// What its budget serves.
    pub serves: For,
    /// Not eligible before.
    pub start: u64,
    /// Not eligible at or after; [`INFINITE`] for none.
    pub finish: u64,
    /// Execution time it may use.
    pub budget: u64,
    /// Importance.
    pub priority: i64,
    /// The allocator's own word, which the job's events return.
    pub cookie: u64,
    /// The scheduling group in which it competes; 0 is the top. Segments have 0.
    pub group: u32,
    /// The budget-group node that limits it (of a segment: its node's parent); 0 for none.
    pub budget_group: u32,
}

impl Job {
    /// A job of a task in group 0, with nothing but a budget.
    pub fn new(serves: For, budget: u64) -> Job {
        Job {
            serves,
            start: 0,
            finish: INFINITE,
            budget,
            priority: 0,
            cookie: 0,
            group: 0,
            budget_group: 0,
        }
    }
}

/// What a job that has not ended does (docs/model.md, "Jobs").
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// Its start is ahead.
    Waiting,
    /// In its group's queue.
    Ready,
    /// Its task sleeps.
    Blocked,
    /// A budget group above it is exhausted.
    Throttled,
    /// A server job whose group has no ready member.
    Idle,
    /// A segment that is available.
    Open,
}

impl Standing {
    /// From the dispatcher's answer (`enum pd_job_state`); `None` when the job has ended.
    pub fn from_raw(state: i64) -> Option<Standing> {
        Some(match state {
            1 => Standing::Waiting,
            2 => Standing::Ready,
            3 => Standing::Blocked,
            4 => Standing::Throttled,
            5 => Standing::Idle,
            6 => Standing::Open,
            _ => return None,
        })
    }
}
