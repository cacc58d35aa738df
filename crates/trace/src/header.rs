//! The first line of a trace: whose it is, and what its dispatcher was made with.

use serde::{Deserialize, Serialize};

use crate::Limits;

pub(crate) const FORMAT: &str = "punctual-trace";
/// The version that is written and read.
pub(crate) const VERSION: u32 = 3;

/// Whose trace it is. The dispatcher's limits are needed to replay it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Header {
    /// Always `punctual-trace`.
    pub format: String,
    /// Of this format; 3.
    pub version: u32,
    /// Who recorded: `user`, `kernel`, `sim`.
    pub host: String,
    /// The CPU of the dispatcher.
    pub cpu: u32,
    /// The name of group 0's policy.
    pub policy: String,
    /// Names of the tasks, by index in their set.
    pub tasks: Vec<String>,
    /// The whole set, as the text of a task-set file (`punctual_taskset::TaskSet::to_toml`); empty
    /// where the records are of no set. Which of the dispatcher's tasks is which of the set's
    /// stands in records of the kind `TASK_PLACE`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub set: String,
    /// What the dispatcher was made with.
    pub limits: Limits,
    /// Which part of a run it is; `None`: all of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cut: Option<Cut>,
}

/// The part of a run that a trace was cut to (`punctual trace cut`). Times are ns on the
/// recording's clock.
///
/// Before and after the records of the part stand some that complete it: what was in force when it
/// begins, and the ends of what executes when it ends.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cut {
    /// When the run began.
    pub start: u64,
    /// Where the part begins; 0: with the run, so that it can be replayed.
    pub from: u64,
    /// Where it ends.
    pub to: u64,
    /// Only these tasks are in it; empty: all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tasks: Vec<String>,
}

impl Cut {
    /// Of an execution, ns, what is in the part; `None`: nothing.
    #[must_use]
    pub fn clip(&self, from: u64, to: u64) -> Option<(u64, u64)> {
        let (from, to) = (from.max(self.from), to.min(self.to));
        (from < to).then_some((from, to))
    }

    /// Whether it begins with the run and has all tasks, so that it can be replayed.
    #[must_use]
    pub fn is_from_the_start(&self) -> bool {
        self.from == 0 && self.tasks.is_empty()
    }

    /// Whether this time, ns, is in the part.
    #[must_use]
    pub fn has(&self, at: u64) -> bool {
        (self.from..self.to).contains(&at)
    }
}

impl Header {
    /// A header of this version, without its set.
    pub fn new(host: &str, cpu: u32, policy: &str, tasks: Vec<String>, limits: Limits) -> Header {
        Header {
            format: FORMAT.to_owned(),
            version: VERSION,
            host: host.to_owned(),
            cpu,
            policy: policy.to_owned(),
            tasks,
            set: String::new(),
            limits,
            cut: None,
        }
    }
}
