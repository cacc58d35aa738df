//! Plain data: a task set as every host and policy reads it. Times are nanoseconds.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{registry, DomainId, DomainSpec, Objective};

/// Later than any time there is; an absent limit.
pub const INFINITE: u64 = u64::MAX;

/// A whole task set: what one `punctual run` starts.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TaskSet {
    /// What has a dispatcher each; one CPU per domain when partitioned. A [`DomainId`] is an index.
    pub domains: Vec<DomainSpec>,
    /// The policy of group 0.
    pub policy: PolicySpec,
    /// How long to run, in ns; `None` until everything has ended or Ctrl-C.
    pub duration: Option<u64>,
    /// The tasks, in file order; a task's index here is its number everywhere.
    pub tasks: Vec<TaskSpec>,
    /// Scheduling groups below group 0, in file order: the n-th is the dispatcher's group n + 1.
    pub groups: Vec<GroupSpec>,
    /// Budget groups, in file order: the n-th is the dispatcher's node n + 1.
    pub budget_groups: Vec<BudgetGroupSpec>,
}

/// A scheduling group: a virtual processor with a policy of its own (RED-Linux V-A).
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct GroupSpec {
    /// Unique among the groups.
    pub name: String,
    /// Index of the group in which its server jobs compete; `None` for group 0.
    pub parent: Option<usize>,
    /// How its members are scheduled.
    pub policy: PolicySpec,
    /// When it may execute, and how much.
    pub server: ServerSpec,
    /// The importance of its server jobs where the parent's policy is `fp`: larger first.
    pub priority: i64,
    /// The budget group that limits it (an index).
    pub budget_group: Option<usize>,
    /// The domain whose dispatcher has it.
    pub domain: DomainId,
    /// The line of the file where it begins, from 1; `None` when it is from no file.
    #[serde(skip)]
    pub line: Option<u32>,
}

/// What a group executes on: the server jobs that its parent selects.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ServerSpec {
    /// A budget each period.
    Periodic {
        /// Time between replenishments, ns.
        period: u64,
        /// Execution time per period, ns, 1..=deadline.
        budget: u64,
        /// Relative deadline, ns, budget..=period.
        deadline: u64,
        /// The first replenishment, from the start of the run, ns.
        offset: u64,
        /// What becomes of the budget while the group has nothing to execute.
        kind: ServerKind,
    },
    /// Windows in a cycle (time-driven; RED-Linux Table 2): within each, all of it.
    Windows {
        /// After which the windows come again, ns.
        cycle: u64,
        /// In order of start, not overlapping, within the cycle.
        windows: Vec<Window>,
    },
}

/// What becomes of a server's budget while it has nothing to execute, and when it comes back. In a
/// file a group's default is `constant_bandwidth` where the policy above is `edf`, else
/// `deferrable`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema, Default)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)] // tasks and groups have different ones, and draft 7 adds nothing to a $ref
pub enum ServerKind {
    /// Keeps its budget until the end of its period (Strosnider, Lehoczky and Sha 1995).
    #[default]
    Deferrable,
    /// Loses its budget as soon as it has nothing to execute (Sprunt, Sha and Lehoczky 1989).
    Polling,
    /// Keeps of its budget what its bandwidth allows until its deadline, once it has something to
    /// execute again (Abeni and Buttazzo 1998, with hard reservations): for groups under EDF.
    ConstantBandwidth,
    /// Is replenished as soon as it is exhausted, with a later deadline (Abeni and Buttazzo 1998):
    /// for tasks under EDF.
    SoftConstantBandwidth,
    /// Gives each request a deadline by the bandwidth (Spuri and Buttazzo 1994): for tasks under
    /// EDF.
    TotalBandwidth,
    /// As that, and no request begins before the deadline of the one before (Deng, Liu and Sun
    /// 1997): for tasks under EDF.
    ConstantUtilization,
    /// What was executed comes back a period later (Sprunt, Sha and Lehoczky 1989): under fixed
    /// priorities.
    Sporadic,
    /// Gives each release the budget that the task's recent use predicts (Abeni and Buttazzo 1999):
    /// for periodic and sporadic tasks.
    Adaptive,
}

/// A part of a cycle.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Window {
    /// From the start of the cycle, ns.
    pub start: u64,
    /// ns, at least 1.
    pub length: u64,
}

/// A budget that several tasks and groups share, whatever schedules them (RED-Linux V-B).
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct BudgetGroupSpec {
    /// Unique among the budget groups.
    pub name: String,
    /// Index of the budget group that limits this one.
    pub parent: Option<usize>,
    /// Time between replenishments, ns.
    pub period: u64,
    /// Execution time per period, ns, 1..=period.
    pub budget: u64,
    /// The domain whose dispatcher has it.
    pub domain: DomainId,
    /// The line of the file where it begins, from 1; `None` when it is from no file.
    #[serde(skip)]
    pub line: Option<u32>,
}

/// A policy by name, with its order, its quantum or another option where it takes one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PolicySpec {
    /// One of the [registry](crate::registry::POLICIES), or that of a program's own policy.
    pub name: String,
    /// The shared object that it is in: an absolute path, or one from the working directory.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub plugin: Option<PathBuf>,
    /// For the policy `objective`: the smaller its value, the more important the release.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub order: Option<Objective>,
    /// Of a policy whose tasks have weights: the budget of each of their jobs, ns; `None`:
    /// [`DEFAULT_QUANTUM`](crate::DEFAULT_QUANTUM).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub quantum: Option<u64>,
    /// Of `edf`: tasks reclaim the budgets that others do not use.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub reclaim: bool,
}

impl PolicySpec {
    /// A policy that needs its name only.
    #[must_use]
    pub fn named(name: impl Into<String>) -> PolicySpec {
        PolicySpec { name: name.into(), plugin: None, order: None, quantum: None, reclaim: false }
    }

    /// The policy `objective` with this order.
    #[must_use]
    pub fn objective(order: Objective) -> PolicySpec {
        PolicySpec { order: Some(order), ..PolicySpec::named(registry::OBJECTIVE.name) }
    }

    /// The budget of each job of its tasks, ns, where they have weights.
    #[must_use]
    pub fn quantum_ns(&self) -> u64 {
        self.quantum.unwrap_or(crate::DEFAULT_QUANTUM)
    }

    /// Whether its tasks have weights in place of periods and budgets.
    #[must_use]
    pub fn takes_weights(&self) -> bool {
        registry::policies().iter().any(|info| info.takes_weights && info.name == self.name)
    }
}

/// One task of a set.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TaskSpec {
    /// Unique in its set.
    pub name: String,
    /// Time between releases, ns, [`LEAST_PERIOD`](crate::LEAST_PERIOD) to below
    /// [`DURATION_LIMIT`](crate::DURATION_LIMIT).
    pub period: u64,
    /// Execution time guaranteed and allowed per period, ns, 1..=deadline.
    pub budget: u64,
    /// Relative deadline, ns, budget..=period.
    pub deadline: u64,
    /// The first release, from the start of the run, ns.
    pub offset: u64,
    /// Importance for the policy `fp`: larger first.
    pub priority: i64,
    /// When it is released.
    pub arrival: Arrival,
    /// The scheduling group in which it competes (an index); `None` for group 0.
    pub group: Option<usize>,
    /// Under a policy that takes weights, and only there: its part of what its group receives is
    /// this by the sum of all weights of the group, 1..=[`MOST_WEIGHT`](crate::MOST_WEIGHT). Such
    /// a task executes whenever it can; its budget is the quantum, and its period the time in which
    /// its part of the group is one quantum.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub weight: Option<u32>,
    /// The budget group that limits it (an index).
    pub budget_group: Option<usize>,
    /// Its own server, of its budget and period, which makes its releases; `None`: each arrival is
    /// a release.
    pub server: Option<ServerKind>,
    /// For the server `adaptive`: the least budget of a release, ns, 1..=budget; `None`: a tenth of
    /// the budget.
    pub min_budget: Option<u64>,
    /// For the policy `dual`: the time from its release to its promotion, ns, below
    /// the deadline; `None`: the policy computes it from the response time (Davis and Wellings
    /// 1995).
    pub promotion: Option<u64>,
    /// For the policy `imprecise`: the budget of the mandatory part, ns, 1..=budget; the rest is
    /// the optional one's. `None`: all of it is mandatory.
    pub mandatory: Option<u64>,
    /// For the policy `td`: when it executes, in a cycle of one period; empty: the policy
    /// synthesises a table.
    pub windows: Vec<Window>,
    /// A release may come so much late, ns, below the period: for admission.
    pub jitter: u64,
    /// The longest time that a task of lower priority may block it, ns: for admission.
    pub blocking: u64,
    /// The domain whose dispatcher has this task.
    pub domain: DomainId,
    /// What happens when the budget is used up, or the finish reached, before the task is done.
    pub overrun: Overrun,
    /// What the task executes.
    pub body: Body,
    /// The role whose period, budget, deadline and overrun policy it has, all of them; written text
    /// has these instead.
    #[serde(skip)]
    pub role: Option<String>,
    /// The line of the file where it begins, from 1, for messages; `None` when it is from no file.
    #[serde(skip)]
    pub line: Option<u32>,
}

impl TaskSet {
    /// A set on these CPUs, each a domain, to which tasks are added.
    #[must_use]
    pub fn without_tasks(cpus: impl IntoIterator<Item = u32>, policy: PolicySpec) -> TaskSet {
        TaskSet {
            domains: cpus.into_iter().map(DomainSpec::of_cpu).collect(),
            policy,
            duration: None,
            tasks: Vec::new(),
            groups: Vec::new(),
            budget_groups: Vec::new(),
        }
    }

    /// The policy of a group, by its index; `None`: of group 0.
    #[must_use]
    pub fn policy_of(&self, group: Option<usize>) -> &PolicySpec {
        group.map_or(&self.policy, |group| &self.groups[group].policy)
    }

    /// Gives the top and each group the policy that it has in `other`, which has the same groups.
    pub fn set_policies(&mut self, other: &TaskSet) {
        self.policy.clone_from(&other.policy);
        for (group, other) in self.groups.iter_mut().zip(&other.groups) {
            group.policy.clone_from(&other.policy);
        }
    }
}

/// The first release from `time` on of those at `first` and whole periods later, ns.
#[must_use]
pub fn next_release(first: u64, period: u64, time: u64) -> u64 {
    let past = time.saturating_sub(first).div_ceil(period.max(1));
    first.saturating_add(past.saturating_mul(period))
}

/// When a task with this period is released after `time`, if this is one of its releases; if none
/// is known, the latest that it can be; ns.
#[must_use]
pub fn release_after(release: Option<u64>, period: u64, time: u64) -> u64 {
    let after = time.saturating_add(1);
    release.map_or(time.saturating_add(period), |release| next_release(release, period, after))
}

impl TaskSpec {
    /// Whether it is released exactly each period: it arrives so, and neither a server of its own
    /// nor its weight decides.
    #[must_use]
    pub fn is_released_each_period(&self) -> bool {
        self.server.is_none() && self.weight.is_none() && self.arrival == Arrival::Periodic
    }

    /// A task that is released each `period` ns for `budget` ns, with whatever else a task-set file
    /// may leave out as if it were left out: the deadline is the period, the domain the first.
    #[must_use]
    pub fn new(name: impl Into<String>, period: u64, budget: u64, body: Body) -> Self {
        TaskSpec {
            name: name.into(),
            period,
            budget,
            deadline: period,
            offset: 0,
            priority: 0,
            arrival: Arrival::Periodic,
            group: None,
            weight: None,
            budget_group: None,
            server: None,
            min_budget: None,
            promotion: None,
            mandatory: None,
            windows: Vec::new(),
            jitter: 0,
            blocking: 0,
            domain: DomainId(0),
            overrun: Overrun::default(),
            body,
            role: None,
            line: None,
        }
    }
}

/// When a task is released.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Default)]
#[serde(rename_all = "snake_case")]
pub enum Arrival {
    /// Each period.
    #[default]
    Periodic,
    /// At least one period after the last, at most `longest` (ns), evenly distributed, seeded.
    Sporadic {
        /// The longest time between two, ns, at least the period.
        longest: u64,
        /// Seed of the generator.
        seed: u64,
    },
    /// At any time, exponentially distributed with this mean (ns), seeded: no least distance.
    Aperiodic {
        /// Mean time between two, ns.
        mean: u64,
        /// Seed of the generator.
        seed: u64,
    },
    /// At these times, ns from the start of the run, in order.
    List(Vec<u64>),
}

impl Arrival {
    /// Whether releases are at least a period apart, without which no deadline can be guaranteed:
    /// of such a task alone `dual` promotes the jobs, and others are in its middle band.
    #[must_use]
    pub fn has_minimum_interarrival(&self) -> bool {
        matches!(self, Arrival::Periodic | Arrival::Sporadic { .. })
    }
}

/// Overrun policies (RTAI paper 3.3.1 for `carry`; the others are Punctual's).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema, Default)]
#[serde(rename_all = "snake_case")]
pub enum Overrun {
    /// Continues at the next release on the new budget; delayed waits are ignored, one each.
    #[default]
    Carry,
    /// Continues likewise, but a late wait returns at the next release after the call.
    Skip,
    /// Continues in the ordinary class until its next release.
    Background,
    /// As `carry`, and the task gets the overrun signal.
    Signal,
}

/// Its name in task-set files.
impl std::fmt::Display for Overrun {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Overrun::Carry => "carry",
            Overrun::Skip => "skip",
            Overrun::Background => "background",
            Overrun::Signal => "signal",
        })
    }
}

/// What a task executes.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Body {
    /// Synthetic execution, then `wait_period`.
    Spin(Spin),
    /// Synthetic execution and sleeps, in order, then `wait_period`.
    Steps(Vec<Step>),
    /// A program and its arguments, not through a shell.
    Command(Vec<String>),
    /// A running process, adopted with all its threads.
    Pid(i32),
}

/// Synthetic execution per job.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Spin {
    /// So many ns of execution, then done.
    For(u64),
    /// Uniformly between the two (ns, inclusive), seeded.
    Uniform {
        /// Least execution time, ns.
        min: u64,
        /// Greatest execution time, ns.
        max: u64,
        /// Seed of the generator.
        seed: u64,
    },
    /// One of these, with a probability in proportion to its weight, seeded.
    Histogram {
        /// Execution time, ns, and weight; in order of time.
        bins: Vec<(u64, u64)>,
        /// Seed of the generator.
        seed: u64,
    },
    /// These execution times, ns, one per job, over and over: a recorded run.
    Recorded(Vec<u64>),
    /// Never done: the runaway.
    Forever,
}

/// A part of a job.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Step {
    /// Executes.
    Spin(Spin),
    /// Sleeps for this time, ns: the task blocks.
    Sleep(u64),
}
