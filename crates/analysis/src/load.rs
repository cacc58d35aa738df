//! How much of each CPU is promised: to the tasks and groups that compete in group 0, to a group no
//! more than its server gets and no more than its members may execute.

use std::collections::HashMap;

use punctual_taskset::{Arrival, ServerSpec, TaskSet};

use crate::interference;
use crate::utilization::{Ppm, Utilization};
use crate::verdict::{Change, CpuLoad, Cure, Quantity, Whose};
use crate::Capacity;

/// The CPUs of a set, in its order, and after them any that only a task or a group names (no file
/// can, a program might).
pub(crate) fn cpus(set: &TaskSet) -> Vec<u32> {
    let mut cpus = set.cpus.clone();
    let mut seen: HashMap<u32, ()> = cpus.iter().map(|&cpu| (cpu, ())).collect();
    for cpu in set.tasks.iter().map(|t| t.cpu).chain(set.groups.iter().map(|g| g.cpu)) {
        if seen.insert(cpu, ()).is_none() {
            cpus.push(cpu);
        }
    }
    cpus
}

/// Promises on one CPU.
pub(crate) struct Promised {
    pub(crate) load: CpuLoad,
    pub(crate) utilization: Utilization,
    /// Groups, by index: whether the budget of the server is all that its members may execute.
    full: Vec<bool>,
}

impl Promised {
    pub(crate) fn new(set: &TaskSet, cpu: u32) -> Promised {
        let mut tasks: Vec<Vec<(u64, u64)>> = vec![Vec::new(); set.groups.len() + 1];
        let mut unbounded = vec![false; set.groups.len() + 1];
        let place = |group: Option<usize>| group.map_or(0, |g| (g + 1).min(set.groups.len()));
        for t in set.tasks.iter().filter(|t| t.cpu == cpu) {
            let at = place(t.group);
            unbounded[at] |= matches!(t.arrival, Arrival::Aperiodic { .. } | Arrival::List(_));
            // Of an aperiodic task nothing is promised; it counts with what it wants on average.
            let period = match t.arrival {
                Arrival::Aperiodic { mean, .. } => mean,
                _ => t.period,
            };
            tasks[at].push((t.budget, period));
        }
        let mut below: Vec<Vec<usize>> = vec![Vec::new(); set.groups.len() + 1];
        for (g, group) in set.groups.iter().enumerate().filter(|(_, g)| g.cpu == cpu) {
            below[place(group.parent)].push(g);
        }
        // From group 0 down, then back up.
        let mut order = vec![0];
        let mut next = 0;
        while next < order.len() && order.len() <= set.groups.len() {
            order.extend(below[order[next]].iter().map(|g| g + 1));
            next += 1;
        }
        let mut full = vec![false; set.groups.len()];
        let mut sums = vec![Utilization::sum([]); set.groups.len() + 1];
        for &at in order.iter().rev() {
            let groups = below[at].iter().map(|&g| sums[g + 1].clone()).collect();
            let wanted = Utilization::sum(tasks[at].iter().copied()).and(groups);
            sums[at] = match at.checked_sub(1) {
                None => wanted,
                Some(g) => {
                    let server = served(&set.groups[g].server);
                    full[g] = unbounded[at] || !server.exceeds(&wanted);
                    // Those below that nothing bounds take what their own server gives.
                    if full[g] {
                        server
                    } else {
                        wanted
                    }
                }
            };
        }
        let utilization = sums.swap_remove(0);
        let tasks = set.tasks.iter().filter(|t| t.cpu == cpu).count();
        Promised { load: CpuLoad { cpu, tasks, utilization: utilization.ppm() }, utilization, full }
    }
}

fn served(server: &ServerSpec) -> Utilization {
    match server {
        ServerSpec::Periodic { period, budget, .. } => Utilization::sum([(*budget, *period)]),
        ServerSpec::Windows { cycle, windows } => Utilization::sum(windows.iter().map(|w| (w.length, *cycle))),
    }
}

/// The least change that brings a CPU within its capacity: one budget, of the one that loses the
/// smallest part of its own by it, which is the one with the largest utilization. Of equals the one
/// with the longest period, which feels a cut least; then the first. If even that one cannot spare
/// it, all of them together. `None`: it is within it.
pub(crate) fn cure(set: &TaskSet, cpu: u32, capacity: &Capacity, promised: &Promised) -> Option<Cure> {
    let host = interference::share(set, cpu, &capacity.costs);
    let over = promised.utilization.above(capacity.limit);
    let together = promised.utilization.clone().and(vec![host.clone()]).above(capacity.total);
    let excess = match (over, together) {
        (Some(a), Some(b)) => {
            if b.exceeds(&a) {
                b
            } else {
                a
            }
        }
        (a, b) => a.or(b)?,
    };
    // What the host takes does not depend on budgets.
    let limit = Ppm(capacity.limit.0.min(capacity.total.0.saturating_sub(host.ppm().0)));
    let tasks = set.tasks.iter().enumerate().filter(|(_, t)| t.cpu == cpu && t.group.is_none());
    let tasks = tasks.map(|(n, t)| (Whose::Task, n, t.budget, t.period));
    let groups = set.groups.iter().enumerate().filter(|(_, g)| g.cpu == cpu && g.parent.is_none());
    let groups = groups.filter_map(|(n, g)| match &g.server {
        ServerSpec::Periodic { period, budget, .. } if promised.full[n] => Some((Whose::Group, n, *budget, *period)),
        _ => None,
    });
    let largest = tasks.chain(groups).reduce(|best, next| {
        let (b1, p1) = (u128::from(best.2), u128::from(best.3));
        let (b2, p2) = (u128::from(next.2), u128::from(next.3));
        // Products of two 64-bit numbers: exact.
        if (b2 * p1, p2) > (b1 * p2, p1) {
            next
        } else {
            best
        }
    });
    let lowered = largest.and_then(|(whose, index, budget, period)| {
        let to = budget.checked_sub(excess.of(period)).filter(|&to| to > 0)?;
        Some(Cure::Change(Change::new(set, whose, index, Quantity::Budget, budget, to)))
    });
    Some(lowered.unwrap_or_else(|| match promised.utilization.factor_to(limit) {
        Ppm(0) => Cure::Unknown,
        to => Cure::Scale { to },
    }))
}
