//! What each scheduling group and budget group received: the sum of what the tasks below it did.

use super::spread::ppm;
use super::{GroupKind, GroupResult, TaskResult};
use punctual_taskset::{ServerSpec, TaskSet};

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
        let mut in_groups = vec![Vec::new(); set.groups.len()];
        let mut in_nodes = vec![Vec::new(); set.budget_groups.len()];
        for (i, task) in set.tasks.iter().enumerate() {
            let member = (i, task.is_released_each_period());
            groups_above(set, i).into_iter().for_each(|g| in_groups[g].push(member));
            nodes_above(set, i).into_iter().for_each(|n| in_nodes[n].push(member));
        }
        let groups = set.groups.iter().enumerate().map(|(g, group)| {
            let (period, budget) = supply(&group.server);
            Group {
                name: group.name.clone(),
                kind: GroupKind::Group,
                parent: group.parent.map(|p| set.groups[p].name.clone()),
                policy: Some(group.policy.name.clone()),
                period,
                budget,
                members: std::mem::take(&mut in_groups[g]),
            }
        });
        let nodes = set.budget_groups.iter().enumerate().map(|(n, node)| Group {
            name: node.name.clone(),
            kind: GroupKind::BudgetGroup,
            parent: node.parent.map(|p| set.budget_groups[p].name.clone()),
            policy: None,
            period: node.period,
            budget: node.budget,
            members: std::mem::take(&mut in_nodes[n]),
        });
        groups.chain(nodes).collect()
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    /// A scheduling group has another policy.
    pub fn set_policy(&mut self, name: &str) {
        self.policy = Some(name.to_owned());
    }

    /// What its tasks received, in a run of `duration` ns.
    pub fn result(&self, tasks: &[TaskResult], duration: u64) -> GroupResult {
        let share = |&(i, periodic): &(usize, bool)| {
            let task = &tasks[i];
            let time =
                if periodic { task.periods.saturating_mul(task.period_ns) } else { duration };
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

/// Period and budget of a server, or cycle and length of all windows, ns.
fn supply(server: &ServerSpec) -> (u64, u64) {
    match server {
        ServerSpec::Periodic { period, budget, .. } => (*period, *budget),
        ServerSpec::Windows { cycle, windows } => (*cycle, windows.iter().map(|w| w.length).sum()),
    }
}

/// The groups that a task stands in, its own first.
fn groups_above(set: &TaskSet, task: usize) -> Vec<usize> {
    std::iter::successors(set.tasks[task].group, |&g| set.groups[g].parent)
        .take(set.groups.len())
        .collect()
}

/// The budget groups that limit a task, by itself or by a group that it stands in; each once.
fn nodes_above(set: &TaskSet, task: usize) -> Vec<usize> {
    let own = set.tasks[task].budget_group;
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
