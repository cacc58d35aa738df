//! Budget groups (RED-Linux V-B): what they leave to those whom they limit.
//!
//! A node that gets as much in each period as its members can execute in it never runs dry, and
//! limits nobody. One that may run dry gives nothing from the moment it is used up until its next
//! period: it is dry for at most period - budget, and at the end of its period, so that the first
//! `budget` ns of each period are sure to be wet.

use std::collections::BTreeMap;

use punctual_taskset::{Arrival, ServerSpec, TaskSet, TaskSpec, Window};

use crate::supply::{Supply, Table};

/// One budget group.
#[derive(Debug, Clone)]
pub(crate) struct Node {
    /// The most that its members can execute in one of its periods, ns.
    pub(crate) wanted: u128,
    /// Whether that may be more than it gets.
    pub(crate) dry: bool,
    supply: Supply,
    parent: Option<usize>,
}

/// All budget groups of a set, by index.
#[derive(Debug)]
pub(crate) struct Nodes(pub(crate) Vec<Node>);

impl Nodes {
    pub(crate) fn new(set: &TaskSet) -> Nodes {
        let nodes = set.budget_groups.iter().enumerate().map(|(n, spec)| {
            let wanted = wanted(set, n, spec.period);
            let windows = [Window { start: 0, length: spec.budget }];
            let supply = Supply::Table(Table::new(spec.period.max(1), &windows));
            Node { wanted, dry: wanted > u128::from(spec.budget), supply, parent: spec.parent }
        });
        Nodes(nodes.collect())
    }

    /// What the node and those above it leave; `None`: they never limit.
    pub(crate) fn wet(&self, of: Option<usize>) -> Option<Supply> {
        let mut left = None;
        let mut at = of;
        for _ in 0..self.0.len() {
            let Some(node) = at.and_then(|n| self.0.get(n)) else { break };
            if node.dry {
                left = Some(match left {
                    None => node.supply.clone(),
                    Some(supply) => node.supply.clone().and(supply),
                });
            }
            at = node.parent;
        }
        left
    }

    /// The first of the node and those above it that may run dry.
    pub(crate) fn dry(&self, of: Option<usize>) -> Option<usize> {
        let mut at = of;
        for _ in 0..self.0.len() {
            let n = at?;
            if self.0.get(n)?.dry {
                return Some(n);
            }
            at = self.0[n].parent;
        }
        None
    }
}

/// The most that all members of a node can execute in one of its periods.
fn wanted(set: &TaskSet, node: usize, period: u64) -> u128 {
    let mut by_group: BTreeMap<Option<usize>, u128> = BTreeMap::new();
    for task in set.tasks.iter().filter(|t| t.budget_group == Some(node)) {
        *by_group.entry(task.group).or_default() += u128::from(of_task(task, period));
    }
    let tasks = by_group.into_iter().map(|(group, sum)| match group.and_then(|g| set.groups.get(g)) {
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
    match &task.arrival {
        Arrival::Periodic => within(window, Some(task.start), task.period, task.budget, task.deadline),
        Arrival::Sporadic { .. } => within(window, None, task.period, task.budget, task.deadline),
        Arrival::Aperiodic { .. } | Arrival::List(_) => window,
    }
}

fn of_server(server: &ServerSpec, window: u64) -> u64 {
    match server {
        ServerSpec::Periodic { period, budget, deadline, start, .. } => {
            within(window, Some(*start), *period, *budget, *deadline)
        }
        ServerSpec::Windows { cycle, windows } => windows
            .iter()
            .fold(0, |sum: u64, w| sum.saturating_add(within(window, Some(w.start), *cycle, w.length, w.length))),
    }
    .min(window)
}

/// The most that jobs of `budget` each `period`, each executing between its release and its
/// deadline, can execute within one period of a node (which begins where all begin). `start`: of those
/// that come each period; `None`: sporadic, at no fixed place in the node's period.
fn within(window: u64, start: Option<u64>, period: u64, budget: u64, deadline: u64) -> u64 {
    let period = period.max(1);
    // On the node's own grid: jobs lie within its periods as a whole.
    let inside = start.is_some_and(|start| start % period <= period - deadline.min(period));
    if window % period == 0 && inside {
        return (u128::from(window / period) * u128::from(budget)).min(u128::from(window)) as u64;
    }
    // The first one as late as it can, the next ones at once (Bertogna, Cirinei and Lipari 2005).
    let length = u128::from(window) + u128::from(deadline.saturating_sub(budget));
    let whole = length / u128::from(period);
    let rest = (length % u128::from(period)).min(u128::from(budget));
    (whole * u128::from(budget) + rest).min(u128::from(window)) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn on_its_grid_a_task_wants_its_budgets_and_off_it_one_that_is_carried_in_as_well() {
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
        // Released 7 before the node's period, executed in its first 4, then at 13 and 33 after it began.
        assert_eq!(within(40, None, 20, 7, 11), 14 + 4);
    }
}
