//! Servers of their own for tasks of random sets.

use punctual_taskset::{
    Arrival, Body, PolicySpec, ServerKind, ServerSpec, Spin, TaskSet, TaskSpec,
};

use crate::Random;

/// Gives some of the tasks servers that their policy admits, and arrivals at any time; and groups
/// below fixed priorities sporadic servers.
pub fn with_servers(mut set: TaskSet, random: &mut Random) -> TaskSet {
    let policies: Vec<PolicySpec> = set.groups.iter().map(|g| g.policy.clone()).collect();
    let policy = |group: Option<usize>| group.map_or(&set.policy, |g| &policies[g]);
    for task in &mut set.tasks {
        let kinds = kinds(policy(task.group));
        if !kinds.is_empty() && random.once_in(2) {
            serve(task, random.of(kinds), random);
        }
    }
    for group in &mut set.groups {
        if !kinds(policy(group.parent)).contains(&ServerKind::Sporadic) || random.once_in(2) {
            continue;
        }
        if let ServerSpec::Periodic { kind, period, deadline, .. } = &mut group.server {
            (*kind, *deadline) = (ServerKind::Sporadic, *period);
        }
    }
    set
}

fn kinds(policy: &PolicySpec) -> &'static [ServerKind] {
    match policy.name.as_str() {
        "edf" => &[
            ServerKind::SoftConstantBandwidth,
            ServerKind::TotalBandwidth,
            ServerKind::ConstantUtilization,
        ],
        "rm" | "dm" | "fp" => &[ServerKind::Sporadic],
        _ => &[],
    }
}

fn serve(task: &mut TaskSpec, kind: ServerKind, random: &mut Random) {
    task.server = Some(kind);
    task.deadline = task.period;
    let (period, seed) = (task.period, random.within(0, 1 << 40));
    task.arrival = match random.within(1, 4) {
        1 => Arrival::Aperiodic { mean: random.within(1, 2 * period), seed },
        2 => {
            let mut at = 0;
            let gaps = 0..random.within(1, 40);
            Arrival::List(
                gaps.map(|_| {
                    at += random.within(0, period);
                    at
                })
                .collect(),
            )
        }
        3 => Arrival::Sporadic { longest: 2 * period, seed },
        _ => task.arrival.clone(),
    };
    // Its demand is at most its bandwidth, however much it executes.
    if kind == ServerKind::SoftConstantBandwidth && random.once_in(2) {
        task.body = Body::Spin(Spin::Uniform { min: 1, max: 3 * task.budget, seed });
    }
}

/// Gives some of the tasks whose policies suit them adaptive budgets, and demands of up to twice
/// the budget. Arrivals stay as they are.
pub fn with_adaptive_budgets(mut set: TaskSet, random: &mut Random) -> TaskSet {
    for n in 0..set.tasks.len() {
        let suits = ServerKind::Adaptive.suits(set.policy_of(set.tasks[n].group));
        let task = &mut set.tasks[n];
        if !suits || !task.arrival.has_minimum_interarrival() || random.once_in(3) {
            continue;
        }
        task.server = Some(ServerKind::Adaptive);
        task.min_budget = random.once_in(2).then(|| random.within(1, task.budget));
        if matches!(task.body, Body::Spin(_)) {
            let max = random.within(1, 2 * task.budget);
            let seed = random.within(0, 1 << 40);
            task.body = Body::Spin(Spin::Uniform { min: random.within(1, max), max, seed });
        }
    }
    set
}
