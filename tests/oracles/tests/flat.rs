//! Flat sets, each policy: no admitted one ever misses; what an exact test refuses does miss, from
//! its critical instant.

use punctual_analysis::{analyse, Fit};
use punctual_oracles::{check_admitted, flat, seeds, simulate, Flat, Random};
use punctual_taskset::Body;

/// Twice round all periods and the longest offset.
const LONG: u64 = 2 * 240 + 120;

fn none_misses(policy: &str) {
    let (mut admitted, mut suspending) = (0, 0);
    for seed in seeds(4000) {
        let set = flat(policy, Flat::Any, &mut Random::new(seed));
        check_admitted(seed, &set, LONG, |task, seen| {
            admitted += seen.releases.min(1);
            suspending += u64::from(matches!(task.body, Body::Steps(_)));
        });
    }
    println!("{policy}: {admitted} admitted, {suspending} of them sleep");
    assert!(admitted > 0 && suspending > 0);
}

fn refused_miss(policy: &str) {
    let (mut refused, mut reached) = (0, 0);
    for seed in seeds(4000) {
        let set = flat(policy, Flat::Critical, &mut Random::new(seed));
        let cpu = analyse(&set).domains.remove(0);
        let seen = simulate(&set, 2 * LONG).unwrap();
        let late: Vec<_> = cpu.tasks.iter().filter(|t| t.fit == Fit::Late && t.exact).collect();
        if policy == "edf" {
            assert!(
                late.is_empty() || seen.iter().any(|s| s.misses > 0),
                "seed {seed}: no task misses: {set:#?}"
            );
            refused += u64::from(!late.is_empty());
        } else {
            for t in late {
                assert!(seen[t.task].misses > 0, "seed {seed}: {} never misses: {set:#?}", t.name);
                refused += 1;
            }
            for t in cpu.tasks.iter().filter(|t| t.fit == Fit::Fits && t.reached) {
                assert_eq!(
                    Some(seen[t.task].worst),
                    t.response,
                    "seed {seed}: {}: {set:#?}",
                    t.name
                );
                reached += 1;
            }
        }
        if cpu.tasks.iter().all(|t| t.exact) && cpu.schedulable() {
            assert!(seen.iter().all(|s| s.misses == 0), "seed {seed}: {set:#?}");
        }
    }
    assert!(refused > 0 && (policy == "edf" || reached > 0));
}

#[test]
fn no_set_admitted_under_rm_misses() {
    none_misses("rm");
}

#[test]
fn no_set_admitted_under_dm_misses() {
    none_misses("dm");
}

#[test]
fn no_set_admitted_under_fp_misses() {
    none_misses("fp");
}

#[test]
fn no_set_admitted_under_edf_misses() {
    none_misses("edf");
}

#[test]
fn no_mandatory_part_that_was_admitted_misses() {
    none_misses("imprecise");
}

#[test]
fn no_set_admitted_under_dual_priority_misses() {
    none_misses("dual");
}

#[test]
fn no_set_admitted_to_a_time_table_misses() {
    none_misses("td");
}

#[test]
fn what_is_refused_under_rm_misses_and_responses_are_reached() {
    refused_miss("rm");
}

#[test]
fn what_is_refused_under_dm_misses_and_responses_are_reached() {
    refused_miss("dm");
}

#[test]
fn what_is_refused_under_fp_misses_and_responses_are_reached() {
    refused_miss("fp");
}

#[test]
fn what_is_refused_under_edf_misses() {
    refused_miss("edf");
}
