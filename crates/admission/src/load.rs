//! How much of each CPU is promised: its tasks and servers that compete in group 0.

use std::collections::HashMap;

use punctual_taskset::{Arrival, ServerSpec, TaskSet};

use crate::utilization::Utilization;
use crate::verdict::{Change, CpuLoad, Cure, Quantity, Whose};
use crate::LIMIT;

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
}

impl Promised {
    pub(crate) fn new(set: &TaskSet, cpu: u32) -> Promised {
        let tasks = set.tasks.iter().filter(|t| t.cpu == cpu && t.group.is_none()).map(|t| {
            // Of an aperiodic task nothing is promised; it counts with what it wants on average.
            let period = match t.arrival {
                Arrival::Aperiodic { mean, .. } => mean,
                _ => t.period,
            };
            (t.budget, period)
        });
        let mut all: Vec<(u64, u64)> = tasks.collect();
        for g in set.groups.iter().filter(|g| g.cpu == cpu && g.parent.is_none()) {
            match &g.server {
                ServerSpec::Periodic { period, budget, .. } => all.push((*budget, *period)),
                ServerSpec::Windows { cycle, windows } => all.extend(windows.iter().map(|w| (w.length, *cycle))),
            }
        }
        let utilization = Utilization::sum(all);
        let tasks = set.tasks.iter().filter(|t| t.cpu == cpu).count();
        Promised { load: CpuLoad { cpu, tasks, utilization: utilization.ppm() }, utilization }
    }
}

/// The least change that brings a CPU within [`LIMIT`]: one budget, of the one that loses the
/// smallest part of its own by it, which is the one with the largest utilization. Of equals the one
/// with the longest period, which feels a cut least; then the first. If even that one cannot spare
/// it, all of them together. `None`: it is within it.
pub(crate) fn cure(set: &TaskSet, cpu: u32, promised: &Promised) -> Option<Cure> {
    let excess = promised.utilization.above(LIMIT)?;
    let tasks = set.tasks.iter().enumerate().filter(|(_, t)| t.cpu == cpu && t.group.is_none());
    let tasks = tasks.map(|(n, t)| (Whose::Task, n, t.budget, t.period));
    let groups = set.groups.iter().enumerate().filter(|(_, g)| g.cpu == cpu && g.parent.is_none());
    let groups = groups.filter_map(|(n, g)| match &g.server {
        ServerSpec::Periodic { period, budget, .. } => Some((Whose::Group, n, *budget, *period)),
        ServerSpec::Windows { .. } => None,
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
    Some(lowered.unwrap_or_else(|| Cure::Scale { to: promised.utilization.factor_to(LIMIT) }))
}
