//! Sets in which a host's own work is a small part of the tasks'.

use punctual_taskset::{Arrival, Body, CostBasis, Costs, ServerSpec, Spin, Step, TaskSet, Window};

use crate::Random;

/// What a host takes: up to a tenth of the shortest periods of sets that are [`enlarged`] a hundred
/// times.
pub fn costs(random: &mut Random) -> Costs {
    Costs {
        release: random.within(0, 20),
        switch: random.within(0, 10),
        timer: random.within(0, 20),
        command: random.within(0, 20),
        least_budget: 0,
        basis: CostBasis::Given,
    }
}

/// The same set with every time so many times as long.
pub fn enlarged(mut set: TaskSet, by: u64) -> TaskSet {
    let windows = |windows: &mut Vec<Window>| {
        for window in windows {
            window.start *= by;
            window.length *= by;
        }
    };
    for task in &mut set.tasks {
        for time in [
            &mut task.period,
            &mut task.budget,
            &mut task.deadline,
            &mut task.offset,
            &mut task.jitter,
            &mut task.blocking,
        ] {
            *time *= by;
        }
        for time in task.mandatory.iter_mut().chain(&mut task.promotion) {
            *time *= by;
        }
        windows(&mut task.windows);
        match &mut task.arrival {
            Arrival::Periodic => {}
            Arrival::Sporadic { longest: time, .. } | Arrival::Aperiodic { mean: time, .. } => {
                *time *= by
            }
            Arrival::List(times) => times.iter_mut().for_each(|time| *time *= by),
        }
        match &mut task.body {
            Body::Spin(one) => spin(one, by),
            Body::Steps(steps) => steps.iter_mut().for_each(|step| match step {
                Step::Spin(one) => spin(one, by),
                Step::Sleep(time) => *time *= by,
            }),
            Body::Command(_) | Body::Pid(_) => {}
        }
    }
    for group in &mut set.groups {
        match &mut group.server {
            ServerSpec::Periodic { period, budget, deadline, offset: start, .. } => {
                for time in [period, budget, deadline, start] {
                    *time *= by;
                }
            }
            ServerSpec::Windows { cycle, windows: own } => {
                *cycle *= by;
                windows(own);
            }
        }
    }
    for node in &mut set.budget_groups {
        node.period *= by;
        node.budget *= by;
    }
    set
}

fn spin(spin: &mut Spin, by: u64) {
    match spin {
        Spin::For(time) => *time *= by,
        Spin::Uniform { min, max, .. } => {
            *min *= by;
            *max *= by;
        }
        Spin::Histogram { bins, .. } => bins.iter_mut().for_each(|bin| bin.0 *= by),
        Spin::Recorded(times) => times.iter_mut().for_each(|time| *time *= by),
        Spin::Forever => {}
    }
}
