//! Hierarchies with random phases, servers, budget groups and disturbers: no task that was promised
//! something misses, and none takes longer than its bound.

use punctual_analysis::analyse;
use punctual_oracles::{
    check_admitted, hierarchy, model_accepts, seeds, served_by_deadline, timed, Random,
};
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

/// Sets in `levels` levels: how many the periodic resource model accepts, how many of these are
/// refused here, and how many are accepted here though not by the model.
fn beside_the_resource_model(levels: usize) -> [u64; 3] {
    let [mut accepted, mut refused, mut more] = [0; 3];
    for seed in seeds(3000) {
        let set = served_by_deadline(levels, &mut Random::new(seed));
        let fits = analyse(&set).schedulable();
        match (model_accepts(&set), fits) {
            (true, true) => accepted += 1,
            (true, false) => {
                accepted += 1;
                refused += 1;
            }
            (false, true) => more += 1,
            (false, false) => {}
        }
        check_admitted(seed, &set, 4 * 480, |_, _| {});
    }
    println!(
        "{levels} levels: the model accepts {accepted}, of them {refused} refused; {more} more"
    );
    [accepted, refused, more]
}

#[test]
fn no_two_levels_that_the_periodic_resource_model_accepts_are_refused() {
    let [accepted, refused, _] = beside_the_resource_model(2);
    assert!(accepted > 300 && refused == 0, "{refused} of {accepted} refused");
}

#[test]
fn no_three_levels_that_the_periodic_resource_model_accepts_are_refused() {
    let [accepted, refused, _] = beside_the_resource_model(3);
    assert!(accepted > 300 && refused == 0, "{refused} of {accepted} refused");
}
