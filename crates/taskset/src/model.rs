//! Plain data: a task set as every host and policy reads it. Times are nanoseconds.

use serde::Serialize;

/// Later than any time there is; an absent limit.
pub const INFINITE: u64 = u64::MAX;

/// A whole task set: what one `punctual run` starts.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TaskSet {
    /// The CPUs it may use, in the order given; one dispatcher each when partitioned.
    pub cpus: Vec<u32>,
    /// How several CPUs are shared.
    pub domain: Domain,
    /// The policy of group 0.
    pub policy: PolicySpec,
    /// How long to run, in ns; `None` until everything has ended or Ctrl-C.
    pub duration: Option<u64>,
    /// The tasks, in file order; a task's index here is its number everywhere.
    pub tasks: Vec<TaskSpec>,
}

/// How the CPUs of a set are shared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Domain {
    /// One dispatcher per CPU; each task names its CPU.
    Partitioned,
    /// One dispatcher over all CPUs.
    Global,
}

/// A policy by name. The names are those of the table in `punctual-policies`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PolicySpec {
    /// `rm`, `dm`, `edf` or `fp`.
    pub name: String,
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
    /// Offset of the first release from the start of the run, ns.
    pub start: u64,
    /// Importance for the policy `fp`: larger first.
    pub priority: i64,
    /// The CPU whose dispatcher has this task.
    pub cpu: u32,
    /// What happens when the budget is used up, or the finish reached, before the task is done.
    pub overrun: Overrun,
    /// What the task executes.
    pub body: Body,
    /// The line of the file where it begins, from 1, for messages; `None` when it is from no file.
    #[serde(skip)]
    pub line: Option<u32>,
}

/// Overrun policies (RTAI paper 3.3.1 for `carry`; the others are ours).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Default)]
#[serde(rename_all = "snake_case")]
pub enum Overrun {
    /// Goes on at the next release with the fresh budget; delayed waits are ignored, one each.
    #[default]
    Carry,
    /// Goes on likewise, but a late wait returns at the next release after the call.
    Skip,
    /// Goes on in the ordinary class until its next release.
    Background,
    /// As `carry`, and the task gets the overrun signal.
    Signal,
}

/// What a task executes.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Body {
    /// Synthetic execution, then `wait_period`.
    Spin(Spin),
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
    /// Never done: the runaway.
    Forever,
}
