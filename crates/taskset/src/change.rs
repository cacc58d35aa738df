//! Other parameters for a task that runs.

use crate::TaskSpec;

/// What of a periodic task changes while it runs, from its next release on; `None` stays as it is.
/// Times are ns.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TaskChange {
    /// Time between releases. The release that comes next comes when it was due, and the following
    /// ones at this distance from it.
    pub period: Option<u64>,
    /// Execution time per period.
    pub budget: Option<u64>,
    /// Relative deadline; `None`: where it is the period, it stays the period.
    pub deadline: Option<u64>,
    /// Importance for the policy `fp`.
    pub priority: Option<i64>,
}

impl TaskChange {
    /// Another budget, ns.
    #[must_use]
    pub fn of_budget(budget: u64) -> TaskChange {
        TaskChange { budget: Some(budget), ..TaskChange::default() }
    }

    /// Nothing changes but the priority, if that does.
    #[must_use]
    pub fn is_priority_alone(&self) -> bool {
        *self == TaskChange { priority: self.priority, ..TaskChange::default() }
    }

    /// The period and the relative deadline of a task that has had these.
    #[must_use]
    pub fn times(&self, period: u64, deadline: u64) -> (u64, u64) {
        let to = self.period.unwrap_or(period);
        let follows = if deadline == period { to } else { deadline };
        (to, self.deadline.unwrap_or(follows))
    }

    /// Changes the description of a task.
    pub fn apply(&self, task: &mut TaskSpec) {
        (task.period, task.deadline) = self.times(task.period, task.deadline);
        task.budget = self.budget.unwrap_or(task.budget);
        task.priority = self.priority.unwrap_or(task.priority);
        if self.period.or(self.budget).or(self.deadline).is_some() {
            task.role = None;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_deadline_that_is_the_period_follows_it_and_any_other_stays() {
        let longer = TaskChange { period: Some(20), ..TaskChange::default() };
        assert_eq!(longer.times(10, 10), (20, 20));
        assert_eq!(longer.times(10, 8), (20, 8));
        assert_eq!(TaskChange { deadline: Some(15), ..longer }.times(10, 10), (20, 15));
        assert_eq!(TaskChange::default().times(10, 10), (10, 10));
    }

    #[test]
    fn a_change_of_the_priority_alone_is_one_of_no_other_parameter() {
        let priority = TaskChange { priority: Some(3), ..TaskChange::default() };
        assert!(priority.is_priority_alone() && TaskChange::default().is_priority_alone());
        assert!(!TaskChange { budget: Some(5), ..priority }.is_priority_alone());
    }
}
