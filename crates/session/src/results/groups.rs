//! What each scheduling group and budget group received: the sum of what the tasks below it did.

use super::spread::ppm;
use super::{GroupKind, GroupResult, TaskResult};
use punctual_taskset::{ServerSpec, TaskSet, TaskSpec};

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
        let groups = set.groups.iter().map(|group| {
            let (period, budget) = supply(&group.server);
            Group {
                name: group.name.clone(),
                kind: GroupKind::Group,
                parent: group.parent.map(|p| set.groups[p].name.clone()),
                policy: Some(group.policy.name.clone()),
                period,
                budget,
                members: Vec::new(),
            }
        });
        let nodes = set.budget_groups.iter().map(|node| Group {
            name: node.name.clone(),
            kind: GroupKind::BudgetGroup,
            parent: node.parent.map(|p| set.budget_groups[p].name.clone()),
            policy: None,
            period: node.period,
            budget: node.budget,
            members: Vec::new(),
        });
        let mut all = groups.chain(nodes).collect::<Vec<_>>();
        set.tasks.iter().enumerate().for_each(|(i, task)| Group::join(&mut all, set, i, task));
        all
    }

    /// Adds a task, at place `i`, to all groups of the set that limit it.
    pub fn join(all: &mut [Group], set: &TaskSet, i: usize, task: &TaskSpec) {
        let member = (i, task.is_released_each_period());
        let nodes = nodes_above(set, task).into_iter().map(|n| set.groups.len() + n);
        groups_above(set, task).into_iter().chain(nodes).for_each(|g| all[g].members.push(member));
    }

    /// Removes the task at place `i`; whether it was in a scheduling group.
    pub fn leave(all: &mut [Group], i: usize) -> bool {
        let mut grouped = false;
        for group in all {
            let before = group.members.len();
            group.members.retain(|&(place, _)| place != i);
            grouped |= group.members.len() < before && group.kind == GroupKind::Group;
        }
        grouped
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    /// A scheduling group has another policy.
    pub fn set_policy(&mut self, name: &str) {
        self.policy = Some(name.to_owned());
    }

    /// What its tasks received, in a run of `duration` ns.
    pub fn result(&self, task: impl Fn(usize) -> Option<TaskResult>, duration: u64) -> GroupResult {
        let share = |&(i, periodic): &(usize, bool)| {
            let task = task(i)?;
            let time =
                if periodic { task.periods.saturating_mul(task.period_ns) } else { duration };
            Some(ppm(task.received_ns, time))
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
            received_ppm: self.members.iter().filter_map(share).sum(),
        }
    }
}

/// Period and budget of a server, or cycle and length of all windows, ns.
fn supply(server: &ServerSpec) -> (u64, u64) {
    match server {
        ServerSpec::Periodic { period, budget, .. } => (*period, *budget),
        ServerSpec::Windows { cycle, windows } => (*cycle, windows.iter().map(|w| w.length).sum()),
    }
}

/// The groups that a task stands in, its own first.
fn groups_above(set: &TaskSet, task: &TaskSpec) -> Vec<usize> {
    std::iter::successors(task.group, |&g| set.groups[g].parent).take(set.groups.len()).collect()
}

/// The budget groups that limit a task, by itself or by a group that it stands in; each once.
fn nodes_above(set: &TaskSet, task: &TaskSpec) -> Vec<usize> {
    let own = task.budget_group;
    let of_groups = groups_above(set, task).into_iter().filter_map(|g| set.groups[g].budget_group);
    let mut nodes: Vec<usize> = own
        .into_iter()
        .chain(of_groups)
        .flat_map(|n| {
            std::iter::successors(Some(n), |&n| set.budget_groups[n].parent)
                .take(set.budget_groups.len())
        })
        .collect();
    nodes.sort_unstable();
    nodes.dedup();
    nodes
}
