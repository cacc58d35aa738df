//! Hierarchies with random phases, servers, budget groups and disturbers: no task that was promised
//! something misses, and none takes longer than its bound.

use punctual_oracles::{check_admitted, hierarchy, seeds, timed, Random};
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
        check_admitted(seed, &set, 1200, |task, _| {
            promised.tasks += 1;
            let grouped = task.group.is_some();
            promised.suspending += u64::from(matches!(task.body, Body::Steps(_)) && grouped);
            promised.grouped += u64::from(grouped);
            promised.limited += u64::from(task.budget_group.is_some());
            promised.deep += u64::from(task.group.is_some_and(|g| set.groups[g].parent.is_some()));
        });
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
