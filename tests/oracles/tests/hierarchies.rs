//! Hierarchies with random phases, servers, budget groups and disturbers: no task that was promised
//! something misses, and none takes longer than its bound.

use punctual_analysis::{analyse, Fit};
use punctual_oracles::{hierarchy, seeds, simulate, timed, Random};
use punctual_taskset::{Body, TaskSet};

/// How many were promised something: in all, in groups, under budget groups, below two groups, in
/// groups and asleep in mid-job.
#[derive(Debug, Default)]
struct Promised {
    tasks: u64,
    grouped: u64,
    limited: u64,
    deep: u64,
    suspending: u64,
}

fn none_misses(make: fn(&mut Random) -> TaskSet) -> Promised {
    let mut promised = Promised::default();
    for seed in seeds(6000) {
        let set = make(&mut Random::new(seed));
        let cpu = analyse(&set).domains.remove(0);
        if !cpu.tasks.iter().any(|t| t.fit == Fit::Fits) {
            continue;
        }
        let seen = match simulate(&set, 1200) {
            Ok(seen) => seen,
            Err(e) => {
                assert!(!cpu.schedulable(), "seed {seed}: admitted, but {e}: {set:#?}");
                continue;
            }
        };
        for (t, seen) in cpu.tasks.iter().zip(&seen).filter(|(t, _)| t.fit == Fit::Fits) {
            assert_eq!(
                seen.misses, 0,
                "seed {seed}: {} misses at {:?}: {set:#?} {cpu:#?}",
                t.name, seen.first_miss
            );
            let bound = t.response.unwrap();
            assert!(
                seen.worst <= bound,
                "seed {seed}: {} took {}, bound {bound}: {set:#?}",
                t.name,
                seen.worst
            );
            let spec = &set.tasks[t.task];
            promised.tasks += 1;
            promised.suspending +=
                u64::from(matches!(spec.body, Body::Steps(_)) && spec.group.is_some());
            promised.grouped += u64::from(spec.group.is_some());
            promised.limited += u64::from(spec.budget_group.is_some());
            promised.deep += u64::from(spec.group.is_some_and(|g| set.groups[g].parent.is_some()));
        }
    }
    println!("{promised:?}");
    promised
}

#[test]
fn no_admitted_task_in_a_hierarchy_of_servers_and_budget_groups_misses() {
    let promised = none_misses(hierarchy);
    assert!(
        promised.grouped > 0
            && promised.limited > 0
            && promised.deep > 0
            && promised.suspending > 0,
        "{promised:?}"
    );
}

#[test]
fn no_admitted_task_within_windows_misses() {
    let promised = none_misses(timed);
    assert!(promised.tasks > 0 && promised.deep > 0 && promised.suspending > 0, "{promised:?}");
}
