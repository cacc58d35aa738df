//! Sets in which tasks have servers of their own, and groups sporadic ones: no admitted task
//! misses.

use punctual_oracles::{
    check_admitted, flat, hierarchy, seeds, with_adaptive_budgets, with_servers, Flat, Random,
};
use punctual_taskset::{ServerKind, ServerSpec, TaskSet};

/// Twice round all periods and the longest offset.
const LONG: u64 = 2 * 240 + 120;

/// Of sets `make` gives; returns how many admitted tasks had a server of their own, and how many
/// had none.
fn none_misses(make: impl Fn(&mut Random) -> TaskSet) -> (u64, u64) {
    let (mut served, mut unserved) = (0, 0);
    for seed in seeds(4000) {
        let random = &mut Random::new(seed);
        let set = make(random);
        let set = with_servers(set, random);
        check_admitted(seed, &set, LONG, |task, seen| match task.server {
            Some(_) => served += seen.releases.min(1),
            None => unserved += seen.releases.min(1),
        });
    }
    (served, unserved)
}

fn none_misses_under(policy: &str) {
    let (served, unserved) = none_misses(|random| flat(policy, Flat::Any, random));
    println!("{policy}: {served} admitted with a server, {unserved} without");
    assert!(served > 0 && unserved > 0);
}

#[test]
fn under_edf_no_admitted_task_misses_beside_bandwidth_servers() {
    none_misses_under("edf");
}

#[test]
fn under_fixed_priorities_no_admitted_task_misses_beside_sporadic_servers() {
    for policy in ["rm", "dm", "fp"] {
        none_misses_under(policy);
    }
}

#[test]
fn in_groups_no_admitted_task_misses() {
    let (served, unserved) = none_misses(hierarchy);
    println!("{served} admitted with a server, {unserved} without");
    assert!(served > 0 && unserved > 0);
}

/// Adaptive budgets change no guarantee: each release of an admitted task receives its budget by
/// its deadline, and tasks beside it miss nothing. Each run is longer than the window of uses.
fn adaptive_budgets(make: impl Fn(&mut Random) -> TaskSet) {
    let (mut adapted, mut beside) = (0, 0);
    for seed in seeds(400) {
        let random = &mut Random::new(seed);
        let set = make(random);
        let set = with_adaptive_budgets(set, random);
        check_admitted(seed, &set, 10 * LONG, |task, seen| match task.server {
            Some(_) => adapted += seen.adapted,
            None => beside += seen.releases.min(1),
        });
    }
    println!("{adapted} releases with a smaller budget, {beside} tasks beside them");
    assert!(adapted > 1000 && beside > 100);
}

#[test]
fn under_edf_no_admitted_task_misses_beside_adaptive_budgets() {
    adaptive_budgets(|random| flat("edf", Flat::Any, random));
}

#[test]
fn under_fixed_priorities_no_admitted_task_misses_beside_adaptive_budgets() {
    for policy in ["rm", "dm", "fp"] {
        adaptive_budgets(|random| flat(policy, Flat::Any, random));
    }
}

#[test]
fn in_groups_no_admitted_task_misses_beside_adaptive_budgets() {
    adaptive_budgets(hierarchy);
}

#[test]
fn the_sets_have_groups_with_sporadic_servers() {
    let sporadic = |set: &TaskSet| {
        set.groups.iter().any(|group| {
            matches!(group.server, ServerSpec::Periodic { kind: ServerKind::Sporadic, .. })
        })
    };
    let sets = seeds(1000).map(|seed| {
        let random = &mut Random::new(seed);
        let set = hierarchy(random);
        with_servers(set, random)
    });
    assert!(sets.filter(sporadic).count() > 100);
}
