//! How admission tests the members of a group of some policy.

use std::fmt;

use crate::ReleaseAttributes;

/// The priority of all jobs of a member.
pub type PriorityFn = dyn Fn(&ReleaseAttributes) -> i64 + Sync;

/// The test of a policy. It must match what the policy does: what it accepts is promised.
#[derive(Clone, Copy, Default)]
pub enum AdmissionTest {
    /// There is none: a set with such a group runs with `--overload` alone.
    #[default]
    None,
    /// Jobs are selected by their absolute deadlines: processor demand, as under `edf`.
    ByDeadline,
    /// All jobs of a member have this priority, the larger first: response-time analysis.
    ByPriority(&'static PriorityFn),
    /// A test of its own: for each member the longest time from its release to its completion, ns;
    /// `None` where no bound is known.
    Own(fn(&GroupDemand<'_>) -> Vec<Option<u64>>),
}

impl fmt::Debug for AdmissionTest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            AdmissionTest::None => "None",
            AdmissionTest::ByDeadline => "ByDeadline",
            AdmissionTest::ByPriority(_) => "ByPriority",
            AdmissionTest::Own(_) => "Own",
        })
    }
}

/// A group for the test of its policy.
pub struct GroupDemand<'a> {
    /// Its tasks in the order of the file, then the servers of groups in it.
    pub members: &'a [MemberDemand<'a>],
    /// See [`GroupDemand::time_for`].
    pub supply: &'a dyn Fn(u64) -> Option<u64>,
}

impl GroupDemand<'_> {
    /// The longest time in which the group is sure to execute so much, ns, if it has something to
    /// execute throughout: its server, the groups above it, and the host's own work are taken into
    /// account. `None`: it may never do so.
    #[must_use]
    pub fn time_for(&self, execution: u64) -> Option<u64> {
        (self.supply)(execution)
    }
}

/// A task, or the server of a group. Times are ns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MemberDemand<'a> {
    /// Its name.
    pub name: &'a str,
    /// Execution time per release, with what the host takes for it.
    pub budget: u64,
    /// Least time between releases; `None`: unbounded.
    pub period: Option<u64>,
    /// Relative deadline.
    pub deadline: u64,
    /// Releases may be this late.
    pub jitter: u64,
    /// The longest blocking by another task.
    pub blocking: u64,
    /// As the set has it.
    pub priority: i64,
    /// It may stop executing before its budget is used, and continue later.
    pub suspends: bool,
}
