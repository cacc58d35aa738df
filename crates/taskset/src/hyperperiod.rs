//! When everything periodic in a set comes round together.

use crate::{ServerSpec, TaskSet, INFINITE};

impl TaskSet {
    /// The least common multiple, in ns, of the periods of all tasks, the periods or cycles of all groups and
    /// the periods of all budget groups; `None` when it does not fit in 64 bits. A set without any has 1.
    #[must_use]
    pub fn hyperperiod(&self) -> Option<u64> {
        let tasks = self.tasks.iter().map(|task| task.period);
        let groups = self.groups.iter().map(|group| match &group.server {
            ServerSpec::Periodic { period, .. } => *period,
            ServerSpec::Windows { cycle, .. } => *cycle,
        });
        let budgets = self.budget_groups.iter().map(|group| group.period);
        let together = tasks.chain(groups).chain(budgets).try_fold(1, least_common_multiple)?;
        (together < INFINITE).then_some(together)
    }
}

/// `None` beyond 64 bits, and for a period of 0, which has no multiples.
fn least_common_multiple(a: u64, b: u64) -> Option<u64> {
    let (mut x, mut y) = (a, b);
    while y != 0 {
        (x, y) = (y, x % y);
    }
    (a / x).checked_mul(b).filter(|&multiple| multiple != 0)
}
