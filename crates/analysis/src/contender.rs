//! What competes in a scheduling group, as the tests see it: a task's jobs, the mandatory or
//! optional part of them, a group's server jobs, one window of a table. Times are ns.

use crate::sleepers::Awake;
use crate::supply::Supply;

/// Whose jobs they are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Who {
    /// A task (its index), or the part of it that must be done.
    Task(usize),
    /// A part of a task that is promised nothing: an optional part, an aperiodic task.
    Extra(usize),
    /// The server of a group (its index).
    Group(usize),
}

/// How execution may be put off, although the job's start is past and nobody more important runs:
/// the task sleeps, the group is idle, the budget group is dry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PutOff {
    /// Not at all.
    Never,
    /// The task may sleep; when it wakes, its budget is cut to its bandwidth (revised CBS rule).
    Cut,
    /// It keeps all of its budget, and may execute it as late as it likes before its finish.
    Keeps,
}

/// One who competes.
#[derive(Debug, Clone)]
pub(crate) struct Contender {
    pub(crate) who: Who,
    /// Execution time per release.
    pub(crate) budget: u64,
    /// What the host takes for each of its jobs, within its execution and on no budget.
    pub(crate) overhead: u64,
    /// Least time between releases; `None`: nothing bounds how often they come.
    pub(crate) period: Option<u64>,
    /// Relative to the release; at most the period.
    pub(crate) deadline: u64,
    /// A release may come so much late.
    pub(crate) jitter: u64,
    /// It may be held up so long by one that is less important.
    pub(crate) blocking: u64,
    /// It sleeps so long in all within each job (of a task whose sleeps are known).
    pub(crate) sleep: u64,
    /// Between its known sleeps; empty where there are none.
    pub(crate) stretches: Vec<Awake>,
    pub(crate) put_off: PutOff,
    /// Among fixed priorities: the larger, the more important.
    pub(crate) rank: i128,
    /// Its place in the file, among the tasks of equal rank that are released at one instant;
    /// `None`: unknown.
    pub(crate) place: Option<usize>,
    /// First release, of one that is strictly periodic; `None`: sporadic.
    pub(crate) start: Option<u64>,
    /// What the budget groups above it leave, where they may run dry.
    pub(crate) wet: Option<Supply>,
}

impl Contender {
    /// How late after a release (in time) its execution may begin for reasons of its own: the next
    /// release may then follow sooner. A job executes only before its finish, so that this bounds
    /// every sleep (Chen et al. 2019, suspension as jitter).
    pub(crate) fn delay(&self) -> u64 {
        match self.put_off {
            PutOff::Never => self.jitter,
            PutOff::Cut | PutOff::Keeps => self.jitter.max(self.deadline.saturating_sub(self.budget)),
        }
    }

    /// Released each period, with nothing that could delay it: two such of one period and start
    /// are always released together.
    pub(crate) fn grid(&self) -> Option<(u64, u64)> {
        match (self.period, self.start) {
            (Some(period), Some(start)) if self.delay() == 0 => Some((period, start)),
            _ => None,
        }
    }

    /// What one job takes of the CPU: its budget, and what the host takes for it.
    pub(crate) fn cost(&self) -> u64 {
        self.budget.saturating_add(self.overhead)
    }

    /// Its greatest demand for execution within `w`, released as close together as can be.
    pub(crate) fn demand(&self, w: u64) -> u128 {
        self.period.map_or(0, |period| u128::from((w + self.delay()).div_ceil(period)) * u128::from(self.cost()))
    }

    /// Nothing but its budget keeps it from being done.
    pub(crate) fn is_plain(&self) -> bool {
        self.blocking == 0 && self.sleep == 0 && self.stretches.is_empty() && self.wet.is_none()
    }

    /// The supply that this one can count on, out of the group's.
    pub(crate) fn supply(&self, group: &Supply) -> Supply {
        match &self.wet {
            Some(wet) => group.clone().and(wet.clone()),
            None => group.clone(),
        }
    }
}

/// What a test says about one contender.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Outcome {
    pub(crate) fit: Fit,
    /// From the release to the completion, at most; `None`: no bound is known.
    pub(crate) response: Option<u64>,
    /// Whether `response` is reached, and a refusal right: nothing was estimated.
    pub(crate) exact: bool,
    /// Whether `response` itself is reached, not only never exceeded.
    pub(crate) reached: bool,
    /// Why it is not sure, where its own sleeps are the reason.
    pub(crate) asleep: Option<&'static str>,
    /// Under `dual`: when it is promoted, after its release, where the set has no promotion.
    pub(crate) promotion: Option<u64>,
}

/// Whether a contender gets what it is promised.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fit {
    Yes,
    No,
    /// The effort was used up.
    Unknown,
}

impl Outcome {
    pub(crate) const UNKNOWN: Outcome =
        Outcome { fit: Fit::Unknown, response: None, exact: false, reached: false, asleep: None, promotion: None };
    pub(crate) const LATE: Outcome = Outcome { fit: Fit::No, ..Outcome::UNKNOWN };

    /// In time, within so much.
    pub(crate) fn within(response: u64, exact: bool) -> Outcome {
        Outcome { fit: Fit::Yes, response: Some(response), exact, ..Outcome::UNKNOWN }
    }

    /// Not sure to be in time, for its own sleeps.
    pub(crate) fn asleep(why: &'static str) -> Outcome {
        Outcome { asleep: Some(why), ..Outcome::LATE }
    }
}
