//! How much of each domain the tasks and groups in group 0 reserve. A group counts with what its
//! server receives, or with what its members may execute, whichever is less.

use punctual_taskset::{Arrival, DomainId, ServerSpec, TaskSet};

use crate::utilization::{Ppm, Utilization};
use crate::verdict::DomainLoad;

/// The utilization of a set, summed over its domains and rounded up to a millionth of one CPU.
#[must_use]
pub fn utilization(set: &TaskSet) -> Ppm {
    sum(set, |_| true).0.ppm()
}

/// The sum of budget / period over tasks given as (budget, period), in ns, each period at least 1;
/// rounded up to a millionth of one CPU.
#[must_use]
pub fn utilization_of(tasks: impl IntoIterator<Item = (u64, u64)>) -> Ppm {
    Utilization::sum(tasks).ppm()
}

/// The utilization of one domain.
pub(crate) struct DomainUtilization {
    pub(crate) load: DomainLoad,
    pub(crate) exact: Utilization,
    /// By group: whether it counts with all that its server receives.
    pub(crate) server_counts: Vec<bool>,
}

impl DomainUtilization {
    pub(crate) fn new(set: &TaskSet, domain: DomainId) -> DomainUtilization {
        let (exact, server_counts) = sum(set, |of| of == domain);
        let tasks = set.tasks.iter().filter(|t| t.domain == domain).count();
        let cpus = set.domain(domain).cpus.clone();
        let load = DomainLoad { domain, cpus, tasks, utilization: exact.ppm() };
        DomainUtilization { load, exact, server_counts }
    }
}

/// The utilization of the selected domains; and by group, whether it counts with all that its
/// server receives.
fn sum(set: &TaskSet, selected: impl Fn(DomainId) -> bool) -> (Utilization, Vec<bool>) {
    // Index 0 is group 0, index n + 1 the set's group n.
    let mut tasks: Vec<Vec<(u64, u64)>> = vec![Vec::new(); set.groups.len() + 1];
    let mut unbounded = vec![false; set.groups.len() + 1];
    let place = |group: Option<usize>| group.map_or(0, |g| (g + 1).min(set.groups.len()));
    for t in set.tasks.iter().filter(|t| selected(t.domain)) {
        let at = place(t.group);
        let unbound = matches!(t.arrival, Arrival::Aperiodic { .. } | Arrival::List(_));
        unbounded[at] |= unbound && t.server.is_none() || t.weight.is_some();
        // An aperiodic task without a server is guaranteed nothing; it counts with its mean.
        let period = match t.arrival {
            Arrival::Aperiodic { mean, .. } if t.server.is_none() => mean,
            _ => t.period,
        };
        tasks[at].push((t.budget, period));
    }
    let mut below: Vec<Vec<usize>> = vec![Vec::new(); set.groups.len() + 1];
    for (g, group) in set.groups.iter().enumerate().filter(|(_, g)| selected(g.domain)) {
        below[place(group.parent)].push(g);
    }
    // Parents before their children; the sums go the other way.
    let mut order = vec![0];
    let mut next = 0;
    while next < order.len() && order.len() <= set.groups.len() {
        order.extend(below[order[next]].iter().map(|g| g + 1));
        next += 1;
    }
    let mut server_counts = vec![false; set.groups.len()];
    let mut sums = vec![Utilization::sum([]); set.groups.len() + 1];
    for &at in order.iter().rev() {
        let groups = below[at].iter().map(|&g| sums[g + 1].clone()).collect();
        let wanted = Utilization::sum(tasks[at].iter().copied()).plus_all(groups);
        sums[at] = match at.checked_sub(1) {
            None => wanted,
            Some(g) => {
                let server = of_server(&set.groups[g].server);
                // Members with unbounded releases take all that the server receives.
                server_counts[g] = unbounded[at] || !server.exceeds(&wanted);
                if server_counts[g] {
                    server
                } else {
                    wanted
                }
            }
        };
    }
    (sums.swap_remove(0), server_counts)
}

fn of_server(server: &ServerSpec) -> Utilization {
    match server {
        ServerSpec::Periodic { period, budget, .. } => Utilization::sum([(*budget, *period)]),
        ServerSpec::Windows { cycle, windows } => {
            Utilization::sum(windows.iter().map(|w| (w.length, *cycle)))
        }
    }
}
