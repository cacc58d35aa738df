//! What each scheduling group and budget group received: the sum of what the tasks below it did.

use crate::results::{GroupKind, GroupResult, TaskResult};
use crate::spread::ppm;
use punctual_taskset::{Arrival, ServerSpec, TaskSet};

/// A group, and the tasks that are limited by it.
#[derive(Debug)]
pub(crate) struct Group {
    name: String,
    kind: GroupKind,
    parent: Option<String>,
    policy: Option<String>,
    period: u64,
    budget: u64,
    /// Indices of the tasks below it, and whether each is released periodically.
    members: Vec<(usize, bool)>,
}

impl Group {
    /// All groups of a set, then all budget groups, in file order.
    pub fn of(set: &TaskSet) -> Vec<Group> {
        let members = |inside: &dyn Fn(usize) -> bool| {
            let periodic = |i: usize| set.tasks[i].arrival == Arrival::Periodic;
            (0..set.tasks.len()).filter(|&i| inside(i)).map(|i| (i, periodic(i))).collect()
        };
        let groups = set.groups.iter().enumerate().map(|(g, group)| {
            let (period, budget) = match &group.server {
                ServerSpec::Periodic { period, budget, .. } => (*period, *budget),
                ServerSpec::Windows { cycle, windows } => (*cycle, windows.iter().map(|w| w.length).sum()),
            };
            Group {
                name: group.name.clone(),
                kind: GroupKind::Group,
                parent: group.parent.map(|p| set.groups[p].name.clone()),
                policy: Some(group.policy.name.clone()),
                period,
                budget,
                members: members(&|i| groups_above(set, i).contains(&g)),
            }
        });
        let nodes = set.budget_groups.iter().enumerate().map(|(n, node)| Group {
            name: node.name.clone(),
            kind: GroupKind::BudgetGroup,
            parent: node.parent.map(|p| set.budget_groups[p].name.clone()),
            policy: None,
            period: node.period,
            budget: node.budget,
            members: members(&|i| nodes_above(set, i).contains(&n)),
        });
        groups.chain(nodes).collect()
    }

    /// What a scheduling group of the top level is promised, as a share of a CPU.
    pub fn top_ppm(&self) -> Option<u64> {
        (self.kind == GroupKind::Group && self.parent.is_none()).then(|| ppm(self.budget, self.period))
    }

    /// What its tasks received, in a run of `duration` ns.
    pub fn result(&self, tasks: &[TaskResult], duration: u64) -> GroupResult {
        let share = |&(i, periodic): &(usize, bool)| {
            let task = &tasks[i];
            let time = if periodic { task.periods.saturating_mul(task.period_ns) } else { duration };
            ppm(task.received_ns, time)
        };
        GroupResult {
            name: self.name.clone(),
            kind: self.kind,
            parent: self.parent.clone(),
            policy: self.policy.clone(),
            period_ns: self.period,
            budget_ns: self.budget,
            tasks: self.members.len() as u64,
            assigned_ppm: ppm(self.budget, self.period),
            received_ppm: self.members.iter().map(share).sum(),
        }
    }
}

/// The groups that a task stands in, its own first.
fn groups_above(set: &TaskSet, task: usize) -> Vec<usize> {
    std::iter::successors(set.tasks[task].group, |&g| set.groups[g].parent).take(set.groups.len()).collect()
}

/// The budget groups that limit a task, by itself or by a group that it stands in.
fn nodes_above(set: &TaskSet, task: usize) -> Vec<usize> {
    let own = set.tasks[task].budget_group;
    let of_groups = groups_above(set, task).into_iter().filter_map(|g| set.groups[g].budget_group);
    own.into_iter()
        .chain(of_groups)
        .flat_map(|n| std::iter::successors(Some(n), |&n| set.budget_groups[n].parent).take(set.budget_groups.len()))
        .collect()
}
