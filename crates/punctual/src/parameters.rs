//! Other parameters for a task that runs.

use std::time::Duration;

use punctual_taskset::TaskChange;

/// Other parameters for a task that runs ([`TaskHandle::change`](crate::TaskHandle::change)). What
/// is not given stays as it is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[must_use = "it changes nothing before TaskHandle::change"]
pub struct Parameters(pub(crate) TaskChange);

impl Parameters {
    /// All as it is.
    pub fn new() -> Parameters {
        Parameters::default()
    }

    /// Time between releases, at least 100 us, less than 2^62 ns. The task's next release comes
    /// when it was due, and the following ones at this distance from it.
    pub fn period(mut self, period: Duration) -> Self {
        self.0.period = Some(ns(period));
        self
    }

    /// Execution time guaranteed and allowed in each period: 1 ns to the deadline.
    pub fn budget(mut self, budget: Duration) -> Self {
        self.0.budget = Some(ns(budget));
        self
    }

    /// Relative deadline: `budget` to `period`. Where it is the period and is not given, it stays
    /// the period.
    pub fn deadline(mut self, deadline: Duration) -> Self {
        self.0.deadline = Some(ns(deadline));
        self
    }

    /// Importance under [`Policy::FixedPriority`](crate::Policy), larger first; other policies
    /// ignore it.
    pub fn priority(mut self, priority: i64) -> Self {
        self.0.priority = Some(priority);
        self
    }
}

impl From<TaskChange> for Parameters {
    fn from(change: TaskChange) -> Parameters {
        Parameters(change)
    }
}

/// What is too long for this is refused as too long.
fn ns(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}
