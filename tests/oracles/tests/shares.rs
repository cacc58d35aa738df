//! Groups of tasks with weights beside control tasks: no admitted task misses, each quantum ends by
//! the deadline of its bound, and what a group receives is divided by the weights.

use punctual_analysis::{analyse, Fit};
use punctual_oracles::{check_admitted, flat, seeds, simulate, with_shares, Flat, Random};
use punctual_taskset::TaskSet;

/// Twice round all periods and the longest offset, and some delays.
const LONG: u64 = 2 * 240 + 520;

fn random_set(policy: &str, seed: u64, backlogged: bool) -> TaskSet {
    let random = &mut Random::new(seed);
    let set = flat(policy, Flat::Any, random);
    with_shares(set, backlogged, random)
}

#[test]
fn no_admitted_task_misses_and_no_quantum_is_later_than_its_bound() {
    for policy in ["edf", "rm", "fp"] {
        let (mut quanta, mut control) = (0, 0);
        for seed in seeds(1500) {
            let set = random_set(policy, seed, false);
            check_admitted(seed, &set, LONG, |task, seen| match task.weight {
                Some(_) => quanta += seen.releases,
                None => control += seen.releases.min(1),
            });
        }
        println!("{policy}: {quanta} quanta, {control} control tasks");
        assert!(quanta > 1000 && control > 100);
    }
}

/// Of tasks that always want to execute, no two differ by more than a quantum of each.
#[test]
fn what_a_group_receives_is_divided_by_weight() {
    let mut pairs = 0;
    for seed in seeds(1000) {
        let set = random_set("edf", seed, true);
        let groups = &analyse(&set).domains[0].groups;
        let seen = simulate(&set, LONG).unwrap_or_else(|e| panic!("seed {seed}: {e}"));
        for g in groups.iter().filter(|g| g.fit == Fit::Fits).map(|g| g.group) {
            let members: Vec<(u64, u64)> = set
                .tasks
                .iter()
                .zip(&seen)
                .filter(|(task, _)| task.group == Some(g))
                .map(|(task, seen)| (u64::from(task.weight.unwrap()), seen.received))
                .collect();
            let quantum = set.groups[g].policy.quantum_ns();
            for (n, &(weight, received)) in members.iter().enumerate() {
                for &(other, its) in &members[n + 1..] {
                    let differ = (received * other).abs_diff(its * weight);
                    let most = quantum * (weight + other);
                    assert!(differ <= most, "seed {seed}: {members:?} {set:#?}");
                    pairs += u64::from(received > quantum && its > quantum);
                }
            }
        }
    }
    assert!(pairs > 100, "{pairs}");
}
