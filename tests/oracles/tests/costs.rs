//! On a host that takes time for its own work: what admission admits with these costs never misses
//! in the simulator with the same costs.

use punctual_analysis::{analyse_within, Capacity, Fit, Ppm, WHOLE};
use punctual_oracles::{
    costs, enlarged, flat, hierarchy, reclaiming, seeds, simulate_with, table, timed, Flat, Random,
};
use punctual_taskset::{Arrival, TaskSet};

/// Times are so many times those of the other tests, so that costs of some ns are a small part.
const LARGER: u64 = 100;

/// How many sets were admitted, and how many of them only without the costs.
fn none_misses(make: impl Fn(&mut Random) -> TaskSet, end: u64) -> (u64, u64) {
    let (mut admitted, mut refused) = (0, 0);
    for seed in seeds(3000) {
        let mut random = Random::new(seed);
        let mut set = enlarged(make(&mut random), LARGER);
        // Nothing bounds how often these are released.
        if set
            .tasks
            .iter()
            .any(|t| matches!(t.arrival, Arrival::Aperiodic { .. } | Arrival::List(_)))
        {
            continue;
        }
        let costs = costs(&mut random);
        let whole = Capacity { limit: Ppm(WHOLE), total: Ppm(WHOLE), costs, ..Capacity::THEORY };
        let mut analysis = analyse_within(&set, &whole);
        analysis.promote(&mut set);
        let cpu = analysis.domains.remove(0);
        if !cpu.fits() {
            let free = Capacity { costs: Default::default(), ..whole };
            refused += u64::from(analyse_within(&set, &free).fits());
            continue;
        }
        let seen =
            simulate_with(&set, costs, end * LARGER).expect("an admitted set can be simulated");
        for (t, seen) in cpu.tasks.iter().zip(&seen).filter(|(t, _)| t.fit == Fit::Fits) {
            let which = || format!("seed {seed}: {}: {costs:?} {seen:?} {set:#?} {cpu:#?}", t.name);
            assert_eq!(seen.misses, 0, "{}", which());
            assert!(t.response.is_none_or(|bound| seen.worst <= bound), "{}", which());
        }
        admitted += 1;
    }
    println!("{admitted} admitted, {refused} refused for the costs alone");
    assert!(admitted > 0 && refused > 0);
    (admitted, refused)
}

#[test]
fn no_set_admitted_with_the_costs_of_a_host_misses() {
    for policy in ["rm", "dm", "fp", "edf", "imprecise", "dual"] {
        none_misses(|random| flat(policy, Flat::Any, random), 600);
    }
}

#[test]
fn no_set_released_at_once_and_admitted_with_the_costs_misses() {
    for policy in ["rm", "dm", "fp", "edf"] {
        none_misses(|random| flat(policy, Flat::Critical, random), 300);
    }
}

#[test]
fn no_set_whose_tasks_reclaim_admitted_with_the_costs_misses() {
    let make = |random: &mut Random| {
        let set = flat("edf", Flat::Any, random);
        reclaiming(set, random)
    };
    none_misses(make, 600);
}

#[test]
fn no_hierarchy_admitted_with_the_costs_misses() {
    none_misses(hierarchy, 1200);
}

#[test]
fn no_set_within_windows_admitted_with_the_costs_misses() {
    none_misses(timed, 1200);
}

#[test]
fn no_time_table_admitted_with_the_costs_misses() {
    none_misses(table, 1200);
}
