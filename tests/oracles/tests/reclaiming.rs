//! Tasks that reclaim the budgets that others do not use (GRUB, Lipari and Baruah 2000): no
//! admitted task misses, whatever the others take beyond their budgets.

use punctual_oracles::{
    check_admitted, flat, hierarchy, reclaiming, seeds, simulate, with_servers, Flat, Random,
};
use punctual_taskset::{Body, Spin, TaskSet};

/// Twice round all periods and the longest offset.
const LONG: u64 = 2 * 240 + 120;

/// So that what is rounded is small, and a cycle of all periods.
const SCALE: u64 = 1000;
const CYCLE: u64 = 240 * SCALE;
const CYCLES: u64 = 20;

/// How many admitted tasks executed more than all of their budgets, and how many did not.
fn none_misses(make: impl Fn(&mut Random) -> TaskSet) -> (u64, u64) {
    let (mut more, mut others) = (0, 0);
    for seed in seeds(4000) {
        let random = &mut Random::new(seed);
        let set = make(random);
        let set = reclaiming(set, random);
        check_admitted(seed, &set, LONG, |task, seen| {
            if seen.received > (seen.releases + 1) * task.budget {
                more += 1;
            } else {
                others += 1;
            }
        });
    }
    println!("{more} admitted tasks executed more than their budgets, {others} did not");
    (more, others)
}

#[test]
fn no_admitted_task_misses_beside_tasks_that_reclaim() {
    let (more, others) = none_misses(|random| flat("edf", Flat::Any, random));
    assert!(more > 300 && others > 300);
}

#[test]
fn no_admitted_task_misses_beside_servers_and_tasks_that_reclaim() {
    let (more, others) = none_misses(|random| {
        let set = flat("edf", Flat::Any, random);
        with_servers(set, random)
    });
    assert!(more > 100 && others > 300);
}

#[test]
fn no_admitted_task_misses_in_groups_beside_tasks_that_reclaim() {
    let (more, others) = none_misses(hierarchy);
    assert!(more > 30 && others > 300);
}

/// The bandwidth bound: what all tasks always want, they receive in proportion to their bandwidths
/// and 90 % of the CPU, each within two budgets and what is rounded in its releases.
#[test]
fn of_tasks_that_always_want_to_execute_each_receives_its_part_of_nine_tenths() {
    let mut tasks = 0;
    for seed in seeds(1000) {
        let random = &mut Random::new(seed);
        let mut set = reclaiming(flat("edf", Flat::Critical, random), random);
        for task in &mut set.tasks {
            task.body = Body::Spin(Spin::Forever);
            (task.period, task.budget) = (SCALE * task.period, SCALE * task.budget);
            task.deadline = task.period;
        }
        // In a cycle of all periods, executing no more than its budgets.
        let demand: u64 = set.tasks.iter().map(|t| t.budget * (CYCLE / t.period)).sum();
        if demand * 10 > CYCLE * 9 {
            continue;
        }
        let seen = simulate(&set, CYCLES * CYCLE).unwrap();
        for (task, seen) in set.tasks.iter().zip(&seen) {
            let own = u128::from(task.budget * (CYCLE / task.period) * CYCLES);
            let part = own * u128::from(CYCLE) * 9 / (10 * u128::from(demand));
            let part = u64::try_from(part).unwrap();
            let rounding = 2 * CYCLES * CYCLE / task.period;
            let most = 2 * task.budget + rounding;
            assert!(
                seen.received.abs_diff(part) <= most,
                "seed {seed}: {task:?} received {}, its part is {part}: {set:#?}",
                seen.received
            );
            tasks += 1;
        }
    }
    assert!(tasks > 100, "{tasks}");
}
