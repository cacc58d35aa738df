//! Groups of tasks with weights in random sets.

use punctual_taskset::{
    Arrival, Body, GroupSpec, PolicySpec, ServerKind, ServerSpec, Spin, Step, TaskSet, TaskSpec,
};

use crate::Random;

/// Puts groups under `wfq` and `sfq` in the place of some tasks: their servers have the period and
/// the budget of the task. `backlogged`: all their tasks always want to execute.
pub fn with_shares(set: TaskSet, backlogged: bool, random: &mut Random) -> TaskSet {
    let (mut kept, mut shares) = (Vec::new(), Vec::new());
    let mut groups = Vec::new();
    for task in set.tasks {
        if !random.once_in(2) {
            kept.push(task);
            continue;
        }
        let group = Some(groups.len());
        let kind = random.of(kinds(&set.policy.name));
        let (period, budget) = (task.period, task.budget);
        let deadline = if kind == ServerKind::Sporadic { period } else { task.deadline };
        let quantum = Some(random.within(1, 12));
        groups.push(GroupSpec {
            name: format!("of {}", task.name),
            parent: None,
            policy: PolicySpec { quantum, ..PolicySpec::named(random.of(&["wfq", "sfq"])) },
            server: ServerSpec::Periodic { period, budget, deadline, offset: 0, kind },
            priority: task.priority,
            budget_group: None,
            domain: task.domain,
            line: None,
        });
        shares.extend((0..random.within(1, 4)).map(|n| {
            let name = format!("{} {n}", task.name);
            let weight = Some(random.within(1, 6) as u32);
            let spec = TaskSpec { group, weight, ..TaskSpec::new(name, 1, 1, forever()) };
            if backlogged {
                spec
            } else {
                sometimes(spec, random)
            }
        }));
    }
    kept.extend(shares);
    let mut set = TaskSet { tasks: kept, groups, ..set };
    set.apply_weights();
    set
}

fn forever() -> Body {
    Body::Spin(Spin::Forever)
}

/// A task that always executes, one that sleeps, or one with arrivals.
fn sometimes(mut task: TaskSpec, random: &mut Random) -> TaskSpec {
    let seed = random.within(0, 1 << 40);
    let work = Spin::Uniform { min: 1, max: random.within(1, 20), seed };
    match random.within(1, 3) {
        1 => {}
        2 => task.body = Body::Steps(vec![Step::Spin(work), Step::Sleep(random.within(1, 40))]),
        _ => {
            task.body = Body::Spin(work);
            task.arrival = Arrival::Aperiodic { mean: random.within(10, 60), seed };
        }
    }
    task
}

/// The servers that can compete under a policy.
fn kinds(policy: &str) -> &'static [ServerKind] {
    use ServerKind::{ConstantBandwidth, Deferrable, Polling, Sporadic};
    match policy {
        "edf" => &[ConstantBandwidth, Deferrable, Polling],
        _ => &[Deferrable, Polling, Sporadic],
    }
}
