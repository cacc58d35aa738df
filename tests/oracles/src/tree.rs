//! Random hierarchies: up to three levels of groups, servers of all kinds, budget groups,
//! aperiodic disturbers on servers of their own.

use punctual_taskset::{
    Arrival, Body, BudgetGroupSpec, DomainId, GroupSpec, PolicySpec, ServerKind, ServerSpec, Spin,
    TaskSet, TaskSpec,
};

use crate::random::{set, sleeper};
use crate::Random;

const POLICIES: [&str; 4] = ["rm", "dm", "fp", "edf"];
const KINDS: [ServerKind; 3] =
    [ServerKind::Deferrable, ServerKind::Polling, ServerKind::ConstantBandwidth];
const SERVER_PERIODS: [u64; 5] = [6, 8, 10, 12, 20];
const TASK_PERIODS: [u64; 6] = [20, 30, 40, 60, 80, 120];

/// A hierarchy of one to four groups, with random phases everywhere.
pub fn hierarchy(random: &mut Random) -> TaskSet {
    let mut tree = set(random.of(&POLICIES), Vec::new());
    if random.once_in(2) {
        for n in 0..random.within(1, 2) as usize {
            let period = random.of(&SERVER_PERIODS) * 2;
            let budget = random.within(period / 4, period);
            let parent = (n > 0 && random.once_in(2)).then_some(0);
            tree.budget_groups.push(BudgetGroupSpec {
                name: format!("b{n}"),
                parent,
                period,
                budget,
                domain: DomainId(0),
                line: None,
            });
        }
    }
    for n in 0..random.within(1, 4) as usize {
        let parent = if n == 0 || random.once_in(2) {
            None
        } else {
            Some(random.within(0, n as u64 - 1) as usize)
        };
        let group = group(n, parent, &tree, random);
        tree.groups.push(group);
    }
    for n in 0..random.within(1, 6) as usize {
        let group = if random.once_in(4) {
            None
        } else {
            Some(random.within(0, tree.groups.len() as u64 - 1) as usize)
        };
        let task = task(n, group, &tree, random);
        tree.tasks.push(task);
    }
    // A group without tasks has nothing to execute; most others get a disturber now and then.
    for g in 0..tree.groups.len() {
        let alone = !tree.tasks.iter().any(|t| t.group == Some(g))
            && !tree.groups.iter().any(|o| o.parent == Some(g));
        if alone && random.once_in(2) {
            tree.tasks.push(disturber(tree.tasks.len(), g, &tree, random));
        }
    }
    tree
}

fn node(tree: &TaskSet, random: &mut Random) -> Option<usize> {
    (!tree.budget_groups.is_empty() && random.once_in(3))
        .then(|| random.within(0, tree.budget_groups.len() as u64 - 1) as usize)
}

fn group(n: usize, parent: Option<usize>, tree: &TaskSet, random: &mut Random) -> GroupSpec {
    let (period, budget) = match parent.map(|p| &tree.groups[p].server) {
        Some(ServerSpec::Periodic { period, budget, .. }) => {
            let times = random.within(2, 4);
            (period * times, random.within(1, (budget * times / 2).max(1)))
        }
        _ => {
            let period = random.of(&SERVER_PERIODS);
            (period, random.within(1, period * 6 / 10))
        }
    };
    let deadline = if random.once_in(2) { period } else { random.within(budget, period) };
    GroupSpec {
        name: format!("g{n}"),
        parent,
        policy: PolicySpec::named(random.of(&POLICIES)),
        server: ServerSpec::Periodic {
            period,
            budget,
            deadline,
            offset: random.within(0, period),
            kind: random.of(&KINDS),
        },
        priority: random.within(0, 4) as i64,
        budget_group: node(tree, random),
        domain: DomainId(0),
        line: None,
    }
}

fn task(n: usize, group: Option<usize>, tree: &TaskSet, random: &mut Random) -> TaskSpec {
    let budget_group = node(tree, random);
    // Now and then as often as the node's budget comes, or twice as often.
    let period = match budget_group.map(|b| tree.budget_groups[b].period) {
        Some(period) if random.once_in(2) => period / random.within(1, 2),
        _ => random.of(&TASK_PERIODS),
    };
    let most = match group.map(|g| &tree.groups[g].server) {
        Some(ServerSpec::Periodic { period: cycle, budget, .. }) => period * budget / cycle / 2,
        _ if budget_group.is_some() => period / 3,
        _ => period / 5,
    };
    let budget = random.within(1, most.max(1));
    let body = if random.once_in(4) {
        sleeper(budget, 5, random)
    } else if random.once_in(2) {
        Body::Spin(Spin::For(budget))
    } else {
        Body::Spin(Spin::Uniform { min: 1, max: budget, seed: random.within(0, 1 << 40) })
    };
    let arrival = match random.once_in(4) {
        true => Arrival::Sporadic {
            longest: period + random.within(0, period),
            seed: random.within(0, 1 << 40),
        },
        false => Arrival::Periodic,
    };
    TaskSpec {
        offset: random.within(0, period),
        priority: random.within(0, 4) as i64,
        deadline: if random.once_in(3) { random.within(budget, period) } else { period },
        group,
        budget_group,
        arrival,
        ..TaskSpec::new(format!("t{n}"), period, budget, body)
    }
}

/// Wants more than its group gets, at any time.
fn disturber(n: usize, group: usize, tree: &TaskSet, random: &mut Random) -> TaskSpec {
    let budget = random.within(1, 10);
    TaskSpec {
        group: Some(group),
        budget_group: node(tree, random),
        arrival: Arrival::Aperiodic { mean: random.within(5, 60), seed: random.within(0, 1 << 40) },
        ..TaskSpec::new(format!("t{n}"), 40, budget, Body::Spin(Spin::For(budget)))
    }
}
