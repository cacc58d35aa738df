//! What a policy is: a small type that turns each release of a task into jobs.

use punctual_dispatcher::{Attribute, End, TaskId};
use punctual_taskset::{TaskSpec, Window};

/// The parameters of a task for its policy. Times are ns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TaskParams {
    /// Its place in the task set.
    pub index: u32,
    /// Its number in the dispatcher.
    pub task: TaskId,
    /// The scheduling group in which its jobs compete.
    pub group: u32,
    /// The budget-group node that limits them; 0 for none.
    pub budget_group: u32,
    /// Time between releases.
    pub period: u64,
    /// Execution time per release, 1..=deadline.
    pub budget: u64,
    /// Relative deadline, budget..=period.
    pub deadline: u64,
    /// Importance, for the policy `fp`.
    pub priority: i64,
    /// Budget of the mandatory part, for the policy `imprecise`.
    pub mandatory: Option<u64>,
    /// Promotion time, for the policy `dual`.
    pub promotion: Option<u64>,
}

/// A release that is in flight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Release {
    /// From 0.
    pub number: u64,
    /// When it was due, ns.
    pub at: u64,
    /// Its remaining budget, ns.
    pub left: u64,
    /// How many jobs were made of it so far.
    pub part: u32,
}

/// A job of a release: what of its attributes the policy decides. Times are ns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    /// Not eligible before.
    pub start: u64,
    /// Not eligible at or after; [`INFINITE`](punctual_dispatcher::INFINITE) for none.
    pub finish: u64,
    /// Its share of the release's budget: at most [`Release::left`].
    pub budget: u64,
    /// Importance: larger first.
    pub priority: i64,
}

/// The reservation that carries out each release of a task by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReservationParams {
    /// Priority of its jobs.
    pub priority: i64,
    /// Whether a task that wakes in mid-job is cut to its bandwidth (the revised CBS rule).
    pub wakeup_rule: bool,
}

/// A policy at work in one scheduling group (RED-Linux IV-D.2, "the allocator").
///
/// The releases, their timers, numbers, overruns and reports to the host are the business of
/// [`Allocators`](crate::Allocators); the policy says which jobs each release becomes, one after
/// the other. It allocates nothing once tasks run.
pub trait Allocator: Send {
    /// The ordering of its group.
    fn order(&self) -> &[Attribute];

    /// Whether the dispatcher's own reservation can carry this task out, and how; `None` when
    /// each release needs the policy.
    fn terms(&self, member: &TaskParams) -> Option<ReservationParams> {
        let _ = member;
        None
    }

    /// With [`Allocator::terms`]: after how many releases the task's windows come again; 0 where a
    /// release is one job.
    fn rows(&self, member: &TaskParams) -> u64 {
        let _ = member;
        0
    }

    /// The windows of release `number`, at least one, in order; starts count from the release.
    fn windows(&self, member: &TaskParams, number: u64) -> &[Window] {
        let _ = (member, number);
        &[]
    }

    /// Whether a task that is not in the set can be added.
    fn admits(&self, member: &TaskParams) -> bool {
        let _ = member;
        true
    }

    /// The first job of a release.
    fn first(&mut self, member: &TaskParams, release: &Release) -> Part;

    /// The job that follows one that was exhausted or expired (a completed one ends its release);
    /// `None` when the release is over.
    fn next(&mut self, member: &TaskParams, release: &Release, end: End) -> Option<Part> {
        let _ = (member, release, end);
        None
    }

    /// Whether a task that wakes in mid-job is cut to its bandwidth (the revised CBS rule).
    fn wakeup_rule(&self) -> bool {
        false
    }
}

impl TaskParams {
    /// What policies know of a task of a set.
    pub fn of(spec: &TaskSpec, index: u32, task: TaskId) -> TaskParams {
        TaskParams {
            index,
            task,
            group: number(spec.group),
            budget_group: number(spec.budget_group),
            period: spec.period,
            budget: spec.budget,
            deadline: spec.deadline,
            priority: spec.priority,
            mandatory: spec.mandatory,
            promotion: spec.promotion,
        }
    }
}

/// A set's n-th group or budget group is the dispatcher's n + 1.
pub(crate) fn number(index: Option<usize>) -> u32 {
    index.map_or(0, |i| i as u32 + 1)
}
