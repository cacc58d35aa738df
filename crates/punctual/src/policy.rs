//! Which of the ready tasks runs.

use std::fmt;

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
}

impl Policy {
    /// Its name in task-set files: `edf`, `rm`, `dm` or `fp`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Policy::Edf => "edf",
            Policy::RateMonotonic => "rm",
            Policy::DeadlineMonotonic => "dm",
            Policy::FixedPriority => "fp",
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
        for policy in
            [Policy::Edf, Policy::RateMonotonic, Policy::DeadlineMonotonic, Policy::FixedPriority]
        {
            assert!(punctual_policies::by_name(&policy.to_string()).is_some(), "{policy:?}");
        }
    }
}
