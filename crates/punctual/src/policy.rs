//! Which of the ready tasks runs.

use std::fmt;
use std::sync::OnceLock;

use punctual_policies::{register, JOBS};

use crate::Error;

/// Which of the ready tasks of a CPU runs; the others wait or are preempted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum Policy {
    /// Earliest deadline first. With deadlines equal to periods, all admitted tasks meet them.
    #[default]
    Edf,
    /// The shorter the period, the more important.
    RateMonotonic,
    /// The shorter the relative deadline, the more important.
    DeadlineMonotonic,
    /// The larger [`priority`](crate::TaskDraft::priority), the more important; every task needs
    /// one.
    FixedPriority,
    /// The program adds the jobs of each task, and so is its own allocator: see
    /// [`TaskHandle::jobs`](crate::TaskHandle::jobs). On the user host only.
    Jobs,
}

impl Policy {
    /// Its name: in task-set files `edf`, `rm`, `dm` or `fp`; `jobs`, which they do not take.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Policy::Edf => "edf",
            Policy::RateMonotonic => "rm",
            Policy::DeadlineMonotonic => "dm",
            Policy::FixedPriority => "fp",
            Policy::Jobs => JOBS.info.name,
        }
    }

    /// Makes its name known, before a set has it. Files have no use for `jobs`: nothing would add
    /// any.
    ///
    /// # Errors
    /// The program has registered another policy of that name.
    pub(crate) fn register(self) -> Result<(), Error> {
        static JOBS_KNOWN: OnceLock<Result<(), Error>> = OnceLock::new();
        match self {
            Policy::Jobs => JOBS_KNOWN.get_or_init(|| register(&[&JOBS])).clone(),
            _ => Ok(()),
        }
    }
}

/// Its name in task-set files.
impl fmt::Display for Policy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_policy_is_in_the_table_of_names() {
        use Policy::{DeadlineMonotonic, Edf, FixedPriority, Jobs, RateMonotonic};
        for policy in [Edf, RateMonotonic, DeadlineMonotonic, FixedPriority, Jobs] {
            policy.register().expect("there is no other policy of its name");
            assert!(punctual_policies::by_name(&policy.to_string()).is_some(), "{policy:?}");
        }
    }
}
