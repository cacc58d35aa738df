//! Two and three levels of groups under EDF, and what the periodic resource model says of them
//! (Shin and Lee, "Periodic Resource Model for Compositional Real-Time Guarantees", RTSS 2003):
//! written from the paper, with nothing of the analysis in it.

use punctual_taskset::{
    Body, DomainId, GroupSpec, PolicySpec, ServerKind, ServerSpec, Spin, TaskSet, TaskSpec,
};

use crate::random::set;
use crate::Random;

const SERVER_PERIODS: [u64; 5] = [10, 12, 20, 30, 40];
const TASK_PERIODS: [u64; 6] = [40, 60, 80, 120, 240, 480];
/// All periods come round in it.
const HYPERPERIOD: u64 = 480;

/// Servers with implicit deadlines under EDF, in `levels` levels with the tasks; in groups EDF or
/// rate monotonic; in group 0 now and then a task.
pub fn served_by_deadline(levels: usize, random: &mut Random) -> TaskSet {
    let mut tree = set("edf", Vec::new());
    let mut left = 100;
    for n in 0..random.within(2, 4) {
        let share = random.within(10, left.clamp(10, 60));
        left = left.saturating_sub(share);
        let period = random.of(&SERVER_PERIODS);
        let last = levels == 2 || random.once_in(2);
        let policy = if last { random.of(&["edf", "rm"]) } else { "edf" };
        tree.groups.push(group(n, None, policy, period, (period * share / 100).max(1)));
        let top = tree.groups.len() - 1;
        if last {
            add_tasks(&mut tree, Some(top), share, random);
            continue;
        }
        for below in 0..random.within(1, 2) {
            let times = random.within(2, 4);
            let share = random.within(5, share.max(5) / 2);
            let budget = (period * times * share / 100).max(1);
            let policy = random.of(&["edf", "rm"]);
            tree.groups.push(group(10 * n + below, Some(top), policy, period * times, budget));
            let group = tree.groups.len() - 1;
            add_tasks(&mut tree, Some(group), share, random);
        }
    }
    if random.once_in(2) {
        add_tasks(&mut tree, None, left.max(5), random);
    }
    tree
}

fn group(n: u64, parent: Option<usize>, policy: &str, period: u64, budget: u64) -> GroupSpec {
    let above = parent.map_or(String::new(), |p| format!("{p}-"));
    GroupSpec {
        name: format!("g{above}{n}"),
        parent,
        policy: PolicySpec::named(policy),
        server: ServerSpec::Periodic {
            period,
            budget,
            deadline: period,
            offset: 0,
            kind: ServerKind::ConstantBandwidth,
        },
        priority: 0,
        budget_group: None,
        domain: DomainId(0),
        line: None,
    }
}

/// Tasks for some 40 to 100 hundredths of `share` percent of a CPU.
fn add_tasks(tree: &mut TaskSet, group: Option<usize>, share: u64, random: &mut Random) {
    let mut left = share * random.within(40, 100) / 100;
    for _ in 0..random.within(1, 3) {
        let period = random.of(&TASK_PERIODS);
        let part = random.within(1, left.max(1));
        left = left.saturating_sub(part);
        let budget = (period * part / 100).max(1);
        let n = tree.tasks.len();
        tree.tasks.push(TaskSpec {
            group,
            offset: if random.once_in(2) { random.within(0, period) } else { 0 },
            ..TaskSpec::new(format!("t{n}"), period, budget, Body::Spin(Spin::For(budget)))
        });
    }
}

/// Whether the model accepts a set of [`served_by_deadline`].
pub fn model_accepts(set: &TaskSet) -> bool {
    (0..=set.groups.len()).all(|n| accepts_group(set, n.checked_sub(1)))
}

/// A task, or a server as its parent sees it: period and budget.
type Workload = (u64, u64);

fn accepts_group(set: &TaskSet, group: Option<usize>) -> bool {
    let tasks = set.tasks.iter().filter(|t| t.group == group).map(|t| (t.period, t.budget));
    let groups = set.groups.iter().filter(|g| g.parent == group).map(resource);
    let workload: Vec<Workload> = tasks.chain(groups).collect();
    let supply = |t: u64| match group {
        None => t,
        Some(g) => supply_within(resource(&set.groups[g]), t),
    };
    let rate_monotonic = group.is_some_and(|g| set.groups[g].policy.name == "rm");
    if rate_monotonic {
        return workload
            .iter()
            .enumerate()
            .all(|(n, task)| by_priority(&workload, n, task, supply));
    }
    // Theorem 1: up to twice the time after which everything comes again.
    (1..=2 * 4 * HYPERPERIOD).all(|t| {
        let demand: u64 = workload.iter().map(|(period, budget)| t / period * budget).sum();
        demand <= supply(t)
    })
}

fn resource(group: &GroupSpec) -> Workload {
    match group.server {
        ServerSpec::Periodic { period, budget, .. } => (period, budget),
        ServerSpec::Windows { .. } => panic!("no group has windows"),
    }
}

/// Theorem 2: some time up to the deadline in which the supply covers the task and all that is as
/// important or more.
fn by_priority(
    workload: &[Workload],
    n: usize,
    task: &Workload,
    supply: impl Fn(u64) -> u64,
) -> bool {
    (1..=task.0).any(|t| {
        let others = workload.iter().enumerate().filter(|(m, w)| *m != n && w.0 <= task.0);
        let demand = others.map(|(_, (period, budget))| t.div_ceil(*period) * budget).sum::<u64>();
        demand + task.1 <= supply(t)
    })
}

/// Equation 6: nothing for twice what the period is longer than the budget; then the budget at the
/// beginning of each period.
fn supply_within((period, budget): Workload, t: u64) -> u64 {
    let t = t.saturating_sub(2 * (period - budget));
    t / period * budget + (t % period).min(budget)
}
