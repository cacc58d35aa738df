//! What the tests know of one member of a scheduling group: a task, the mandatory or optional part
//! of a task, a group's server, or one window of a server. Times are ns.

use crate::self_suspension::ExecutionSegment;
use crate::supply::Supply;

/// What releases the jobs, by its index in the set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Entity {
    /// A task, or its mandatory part.
    Task(usize),
    /// An optional part or an aperiodic task, for which nothing is guaranteed.
    Unguaranteed(usize),
    /// The server of a group.
    Server(usize),
}

/// Whether a job can stop executing before its budget is used, although its start is past and no
/// more important job is ready: the task suspends itself, the server's group is idle, or the budget
/// group is exhausted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Deferral {
    /// It cannot.
    Never,
    /// The task may suspend itself; at the wake-up its remaining budget is cut to its bandwidth
    /// (revised CBS rule).
    CutToBandwidth,
    /// It keeps all of its budget, and may execute it at any time before its finish.
    KeepsBudget,
}

/// One member of a group, as the tests see it.
#[derive(Debug, Clone)]
pub(crate) struct AnalysedTask {
    pub(crate) entity: Entity,
    /// Execution time per release.
    pub(crate) budget: u64,
    /// What the host takes for each job, within the job's execution and on no budget.
    pub(crate) overhead: u64,
    /// Least time between releases; `None`: unbounded.
    pub(crate) period: Option<u64>,
    /// Relative to the release; at most the period.
    pub(crate) deadline: u64,
    /// A release may be this late at most.
    pub(crate) jitter: u64,
    /// The longest blocking by a less important task.
    pub(crate) blocking: u64,
    /// The sum of the known self-suspensions of a job.
    pub(crate) suspension: u64,
    /// The execution between the known self-suspensions; empty where there are none.
    pub(crate) segments: Vec<ExecutionSegment>,
    pub(crate) deferral: Deferral,
    /// Jobs may be ready earlier than a period after the last one, although their deadlines are a
    /// period apart (total bandwidth server).
    pub(crate) early: bool,
    /// The fixed priority: larger is more important.
    pub(crate) rank: i128,
    /// The index that decides between jobs of equal rank and release; `None`: unknown.
    pub(crate) tie_break: Option<usize>,
    /// The first release of a strictly periodic task; `None`: sporadic.
    pub(crate) offset: Option<u64>,
    /// What the budget groups above it supply, where they can be exhausted.
    pub(crate) limited_by: Option<Supply>,
}

impl AnalysedTask {
    /// A member that executes nothing and is never released; callers set what differs.
    pub(crate) fn new(entity: Entity) -> AnalysedTask {
        AnalysedTask {
            entity,
            budget: 0,
            overhead: 0,
            period: None,
            deadline: 0,
            jitter: 0,
            blocking: 0,
            suspension: 0,
            segments: Vec::new(),
            deferral: Deferral::Never,
            early: false,
            rank: 0,
            tie_break: None,
            offset: None,
            limited_by: None,
        }
    }

    /// The release jitter that others see. A job that can be deferred executes at any time before
    /// its finish, so that deadline less budget bounds the delay of its first execution (Chen et
    /// al. 2019, "Many suspensions, many problems": suspension as jitter).
    pub(crate) fn effective_jitter(&self) -> u64 {
        match self.deferral {
            Deferral::Never => self.jitter,
            Deferral::CutToBandwidth | Deferral::KeepsBudget => {
                self.jitter.max(self.deadline.saturating_sub(self.budget))
            }
        }
    }

    /// Period and offset of a task that is released exactly each period: two such tasks with equal
    /// values are always released together.
    pub(crate) fn exact_releases(&self) -> Option<(u64, u64)> {
        match (self.period, self.offset) {
            (Some(period), Some(offset)) if self.effective_jitter() == 0 => Some((period, offset)),
            _ => None,
        }
    }

    /// What one job takes of the CPU: its budget, and what the host takes for it.
    pub(crate) fn cost(&self) -> u64 {
        self.budget.saturating_add(self.overhead)
    }

    /// Whether only its budget and more important tasks delay its completion.
    pub(crate) fn is_plain(&self) -> bool {
        self.blocking == 0
            && self.suspension == 0
            && self.segments.is_empty()
            && self.limited_by.is_none()
    }

    /// Whether its last segment executes nothing: the job ends with a suspension.
    pub(crate) fn ends_suspended(&self) -> bool {
        self.segments.last().is_some_and(|s| s.execution == 0)
    }

    /// The part of its group's supply on which this member can count.
    pub(crate) fn supply(&self, group: &Supply) -> Supply {
        match &self.limited_by {
            Some(limit) => group.clone().and(limit.clone()),
            None => group.clone(),
        }
    }
}

/// The result of a test for one member.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Outcome {
    pub(crate) met: DeadlineMet,
    /// The longest time from a release to the completion; `None`: no bound is known.
    pub(crate) response: Option<u64>,
    /// Whether the test is exact: a refusal means that a deadline is missed.
    pub(crate) exact: bool,
    /// Whether `response` occurs, and is not only a bound.
    pub(crate) reached: bool,
    /// Why the deadline is not guaranteed, where the task's own suspensions are the reason.
    pub(crate) suspension_fault: Option<&'static str>,
    /// Under `dual`, where the set has no promotion: the time from release to promotion.
    pub(crate) promotion: Option<u64>,
}

/// Whether a member meets its deadlines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DeadlineMet {
    Yes,
    No,
    /// The step limit was reached.
    Unknown,
}

impl Outcome {
    pub(crate) const UNKNOWN: Outcome = Outcome {
        met: DeadlineMet::Unknown,
        response: None,
        exact: false,
        reached: false,
        suspension_fault: None,
        promotion: None,
    };
    pub(crate) const LATE: Outcome = Outcome { met: DeadlineMet::No, ..Outcome::UNKNOWN };

    /// The deadline is met, with this bound of the response.
    pub(crate) fn within(response: u64, exact: bool) -> Outcome {
        Outcome { met: DeadlineMet::Yes, response: Some(response), exact, ..Outcome::UNKNOWN }
    }

    /// The deadline is not guaranteed because the task suspends itself.
    pub(crate) fn suspension_fault(reason: &'static str) -> Outcome {
        Outcome { suspension_fault: Some(reason), ..Outcome::LATE }
    }
}
