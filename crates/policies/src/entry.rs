//! The table's entries: what is said of a policy once, and how one is made for a group.

use punctual_dispatcher::{Attribute, OverrunPolicy};
use punctual_taskset as taskset;
use taskset::{Costs, DomainId, PolicyInfo, PolicySpec, TaskSet, TaskSpec};

use crate::policy::{number, MemberParams, SchedulingPolicy};
use punctual_diagnostic::Diagnostic;

/// An entry of the table of policies.
#[derive(Debug)]
pub struct PolicyEntry {
    /// What the registry has of it, or, of a program's own policy, the program.
    pub info: &'static PolicyInfo,
    /// The ordering of its scheduling group.
    pub order: &'static [Attribute],
    /// The priority of a server job of these attributes, or of a task's jobs under a standard
    /// periodic policy: larger first. [`SchedulingPolicy::server_priority`] precedes it.
    pub priority: fn(&Urgency) -> i64,
    /// Whether a task that wakes in mid-job is cut to its bandwidth. Under fixed priorities
    /// admission counts the jitter instead (design, "Reservation").
    pub wakeup_rule: bool,
    /// Whether it sets timers.
    pub timers: bool,
    /// Makes one for a group of a set, or returns why it cannot.
    pub make: Make,
}

impl PolicyEntry {
    /// A policy whose jobs are selected by their priority, the larger first; it has no wake-up rule
    /// and sets no timers.
    #[must_use]
    pub const fn new(info: &'static PolicyInfo, make: Make) -> PolicyEntry {
        let order = &[Attribute::Priority];
        PolicyEntry { info, order, priority: |_| 0, wakeup_rule: false, timers: false, make }
    }
}

/// Makes a policy for a group of a set.
pub type Make =
    fn(&'static PolicyEntry, &Setup<'_>) -> Result<Box<dyn SchedulingPolicy>, Diagnostic>;

/// What a policy is made for.
pub struct Setup<'a> {
    /// The whole set.
    pub set: &'a TaskSet,
    /// The domain of the dispatcher.
    pub domain: DomainId,
    /// The scheduling group.
    pub group: u32,
    /// The policy to make: of the set, or of a swap.
    pub policy: &'a PolicySpec,
    /// What the host takes for its own work.
    pub costs: Costs,
    /// How many members there can be: indices are below.
    pub members: u32,
}

impl<'a> Setup<'a> {
    /// The tasks of the group in this domain, with their places in the set.
    pub fn tasks(&self) -> impl Iterator<Item = (usize, &'a TaskSpec)> + '_ {
        let mine = |t: &TaskSpec| t.domain == self.domain && number(t.group) == self.group;
        self.set.tasks.iter().enumerate().filter(move |(_, t)| mine(t))
    }
}

/// What makes a task or a server important. Times are ns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Urgency {
    /// Time between releases.
    pub period: u64,
    /// Relative deadline.
    pub deadline: u64,
    /// As the set gives it.
    pub priority: i64,
}

impl Urgency {
    /// Of a task.
    pub fn of(member: &MemberParams) -> Urgency {
        let MemberParams { period, deadline, priority, .. } = *member;
        Urgency { period, deadline, priority }
    }
}

/// The dispatcher's word for a set's.
pub(crate) fn overrun(of: taskset::Overrun) -> OverrunPolicy {
    match of {
        taskset::Overrun::Carry => OverrunPolicy::Carry,
        taskset::Overrun::Skip => OverrunPolicy::Skip,
        taskset::Overrun::Background => OverrunPolicy::Background,
        taskset::Overrun::Signal => OverrunPolicy::Signal,
    }
}

/// Periods and deadlines as priorities: the shorter, the larger.
pub(crate) fn shorter_first(ns: u64) -> i64 {
    -i64::try_from(ns).unwrap_or(i64::MAX)
}
