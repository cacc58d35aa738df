//! Budget groups (RED-Linux V-B): what they supply to the tasks and groups that they limit.
//!
//! A budget group that receives as much in each period as its members can execute in it is never
//! exhausted, and limits nothing. One that can be exhausted throttles its members from then until
//! its next period: for at most period - budget, at the end of the period. So the first `budget` ns
//! of each period are guaranteed.

use std::collections::BTreeMap;

use punctual_taskset::{Arrival, ServerSpec, TaskSet, TaskSpec, Window};

use crate::supply::Supply;
use crate::task_server;
use crate::window_supply::WindowSupply;

/// One budget group.
#[derive(Debug, Clone)]
pub(crate) struct BudgetGroup {
    /// The most that its members can execute in one of its periods, ns.
    pub(crate) demand: u128,
    /// Whether that exceeds its budget.
    pub(crate) exhaustible: bool,
    supply: Supply,
    parent: Option<usize>,
}

/// All budget groups of a set, by index.
#[derive(Debug)]
pub(crate) struct BudgetGroups(pub(crate) Vec<BudgetGroup>);

impl BudgetGroups {
    pub(crate) fn new(set: &TaskSet) -> BudgetGroups {
        let groups = set.budget_groups.iter().enumerate().map(|(n, spec)| {
            let demand = demand(set, n, spec.period);
            let windows = [Window { start: 0, length: spec.budget }];
            let supply = Supply::Windows(WindowSupply::new(spec.period.max(1), &windows));
            BudgetGroup {
                demand,
                exhaustible: demand > u128::from(spec.budget),
                supply,
                parent: spec.parent,
            }
        });
        BudgetGroups(groups.collect())
    }

    /// A budget group and those above it, with their indices.
    fn path(&self, from: Option<usize>) -> impl Iterator<Item = (usize, &BudgetGroup)> {
        let group = |n: usize| Some((n, self.0.get(n)?));
        // A path has at most as many levels as there are groups.
        std::iter::successors(from.and_then(group), move |(_, g)| g.parent.and_then(group))
            .take(self.0.len())
    }

    /// What a budget group and those above it supply; `None`: they never limit.
    pub(crate) fn supply(&self, of: Option<usize>) -> Option<Supply> {
        let exhaustible = self.path(of).filter(|(_, group)| group.exhaustible);
        exhaustible.map(|(_, group)| group.supply.clone()).reduce(|below, above| above.and(below))
    }

    /// The first of a budget group and those above it that can be exhausted.
    pub(crate) fn first_exhaustible(&self, of: Option<usize>) -> Option<usize> {
        self.path(of).find(|(_, group)| group.exhaustible).map(|(n, _)| n)
    }
}

/// The most that all members of a budget group can execute in one of its periods, ns.
fn demand(set: &TaskSet, node: usize, period: u64) -> u128 {
    let mut by_group: BTreeMap<Option<usize>, u128> = BTreeMap::new();
    for task in set.tasks.iter().filter(|t| t.budget_group == Some(node)) {
        *by_group.entry(task.group).or_default() += u128::from(of_task(task, period));
    }
    let tasks =
        by_group.into_iter().map(|(group, sum)| match group.and_then(|g| set.groups.get(g)) {
            Some(group) => sum.min(u128::from(of_server(&group.server, period))),
            None => sum,
        });
    let groups = set.groups.iter().filter(|g| g.budget_group == Some(node));
    let groups = groups.map(|g| u128::from(of_server(&g.server, period)));
    let nodes = set.budget_groups.iter().filter(|b| b.parent == Some(node));
    let nodes = nodes.map(|b| u128::from(within(period, Some(0), b.period, b.budget, b.period)));
    (tasks.sum::<u128>() + groups.sum::<u128>() + nodes.sum::<u128>()).min(u128::from(period))
}

fn of_task(task: &TaskSpec, window: u64) -> u64 {
    if task.weight.is_some() {
        return window;
    }
    if let Some(kind) = task.server {
        return task_server::most_within(task, kind, window);
    }
    match &task.arrival {
        Arrival::Periodic => {
            within(window, Some(task.offset), task.period, task.budget, task.deadline)
        }
        Arrival::Sporadic { .. } => within(window, None, task.period, task.budget, task.deadline),
        Arrival::Aperiodic { .. } | Arrival::List(_) => window,
    }
}

fn of_server(server: &ServerSpec, window: u64) -> u64 {
    match server {
        ServerSpec::Periodic { period, budget, deadline, offset, .. } => {
            within(window, Some(*offset), *period, *budget, *deadline)
        }
        ServerSpec::Windows { cycle, windows } => windows.iter().fold(0, |sum: u64, w| {
            sum.saturating_add(within(window, Some(w.start), *cycle, w.length, w.length))
        }),
    }
    .min(window)
}

/// The most that jobs of `budget` in each `period`, each executing between its release and its
/// deadline, can execute within a window. `offset`: of jobs that are released each period, from the
/// start of the run, where the window is one period of a budget group; `None`: the releases or the
/// window may be at any time. ns.
pub(crate) fn within(
    window: u64,
    offset: Option<u64>,
    period: u64,
    budget: u64,
    deadline: u64,
) -> u64 {
    let period = period.max(1);
    // No job spans the end of a window.
    let inside = offset.is_some_and(|offset| offset % period <= period - deadline.min(period));
    if window % period == 0 && inside {
        return (u128::from(window / period) * u128::from(budget)).min(u128::from(window)) as u64;
    }
    // The first job executes as late as it can, the next ones at once (Bertogna, Cirinei and Lipari
    // 2005: carry-in).
    let length = u128::from(window) + u128::from(deadline.saturating_sub(budget));
    let whole = length / u128::from(period);
    let rest = (length % u128::from(period)).min(u128::from(budget));
    (whole * u128::from(budget) + rest).min(u128::from(window)) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jobs_that_span_the_end_of_a_window_are_carried_in() {
        assert_eq!(within(20, Some(0), 10, 3, 10), 6);
        assert_eq!(within(20, Some(5), 10, 3, 5), 6);
        assert_eq!(within(20, Some(6), 10, 3, 5), 6 + 2);
        assert_eq!(within(20, Some(5), 10, 3, 10), 6 + 3);
        assert_eq!(within(15, Some(0), 10, 3, 10), 2 * 3 + 2);
        assert_eq!(within(4, Some(0), 10, 6, 10), 4);
    }

    #[test]
    fn a_sporadic_task_may_be_carried_in_however_short_its_deadline() {
        assert_eq!(within(40, Some(1), 20, 7, 11), 14);
        // Released 7 before the window, executed in its first 4, then at 13 and 33 after it began.
        assert_eq!(within(40, None, 20, 7, 11), 14 + 4);
    }
}
