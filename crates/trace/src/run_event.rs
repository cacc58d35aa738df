//! What a run reports while it lasts, from every host.

use crate::{Period, TaskEnd};

/// A time for which one task executed, ns. Neighbouring intervals of the same task are not joined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interval {
    /// The CPU.
    pub cpu: u32,
    /// The task's place in the set.
    pub task: u32,
    /// Start.
    pub from: u64,
    /// End.
    pub to: u64,
    /// In the ordinary class, on no budget.
    pub background: bool,
}

/// A policy of the program that was stopped, and what its group has instead.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PolicyStop {
    /// When, by the host's clock, ns.
    pub at: u64,
    /// The scheduling group, by its number in the dispatcher: 0 for the top.
    pub group: u32,
    /// Its name.
    pub policy: &'static str,
    /// What it did: `has panicked: ...`, with the message and the place in its source, or
    /// `took ...`, too long for an answer.
    pub cause: &'static str,
    /// The policy of the group since then; `None`: no other one supports its members, which get no
    /// time any more.
    pub fallback: Option<&'static str>,
}

/// One report of a run. `Task` names a task: hosts give its place in the set, sessions its name.
#[derive(Debug, Clone, PartialEq)]
pub enum RunEvent<Task = u32> {
    /// One release, as it turned out; reported when the next one comes. Releases that were never
    /// made are reported too.
    Period {
        /// The task.
        task: Task,
        /// The release; its `task` is the place in the set.
        period: Period,
    },
    /// Releases of a task without a [`Period`]: the host's ring was full. `count` of them since the
    /// previous event of this kind.
    Unreported {
        /// The task.
        task: Task,
        /// Number of releases.
        count: u64,
    },
    /// The task has ended: its thread returned, or all its processes are gone.
    Ended {
        /// The task.
        task: Task,
        /// How.
        how: TaskEnd,
    },
    /// The task executed; reported by the simulator, and only if it is asked for.
    Executed {
        /// The task.
        task: Task,
        /// When and where.
        interval: Interval,
    },
    /// A policy was stopped.
    PolicyStopped(PolicyStop),
    /// Something that the user should know.
    Warning(String),
}

impl RunEvent {
    /// The same event with other names of tasks.
    pub fn with_task<Name>(self, name: impl FnOnce(u32) -> Name) -> RunEvent<Name> {
        match self {
            RunEvent::Period { task, period } => RunEvent::Period { task: name(task), period },
            RunEvent::Unreported { task, count } => {
                RunEvent::Unreported { task: name(task), count }
            }
            RunEvent::Ended { task, how } => RunEvent::Ended { task: name(task), how },
            RunEvent::Executed { task, interval } => {
                RunEvent::Executed { task: name(task), interval }
            }
            RunEvent::PolicyStopped(stop) => RunEvent::PolicyStopped(stop),
            RunEvent::Warning(text) => RunEvent::Warning(text),
        }
    }
}

impl From<Period> for RunEvent {
    fn from(period: Period) -> RunEvent {
        RunEvent::Period { task: period.task, period }
    }
}
