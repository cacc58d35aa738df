//! The dispatcher against a naive reference: the same random operations to both, everything that
//! they say compared, and the invariants of the design (section 3) checked after each.
//!
//! `PUNCTUAL_OPERATIONS` sets the number of operations (10,000,000), `PUNCTUAL_SEED` the seed.

mod enforcement;
mod events;
mod exhaustive;
mod exhaustive_ceilings;
mod exhaustive_lending;
mod exhaustive_windows;
mod invariants;
mod model;
mod operation;
mod pair;
mod random;
mod regressions;
mod room;
mod runner;
mod sequences;
mod three_tasks;
mod trace;
mod world;

use punctual_dispatcher::Limits;
use runner::Seen;
use world::World;

fn environment(name: &str, otherwise: u64) -> u64 {
    match std::env::var(name) {
        Ok(text) => text.parse().unwrap_or_else(|_| panic!("{name}={text} is not a number")),
        Err(_) => otherwise,
    }
}

const FLAT: World = World {
    limits: Limits {
        jobs: 5,
        tasks: 3,
        reservations: 3,
        groups: 1,
        budget_groups: 0,
        timers: 3,
        depth: 1,
        events: 64,
        records: 64,
        windows: 12,
    },
    span: 8,
    origin: 100,
    lazy: false,
    extreme: false,
};

const GROUPS: World =
    World { limits: Limits { jobs: 8, groups: 4, depth: 3, ..FLAT.limits }, ..FLAT };
const BUDGETS: World =
    World { limits: Limits { jobs: 7, budget_groups: 3, depth: 2, ..FLAT.limits }, ..FLAT };
const BOTH: World = World {
    limits: Limits { jobs: 10, groups: 4, budget_groups: 3, depth: 3, events: 128, ..FLAT.limits },
    ..FLAT
};

/// In this share of the operations, percent.
fn random_operations(world: &World, percent: u64) -> u64 {
    let operations = environment("PUNCTUAL_OPERATIONS", 10_000_000) * percent / 100;
    let Seen { jobs, lost, went_on } =
        runner::run(world, environment("PUNCTUAL_SEED", 1), operations);
    assert!(
        jobs > operations / 20,
        "too few jobs to mean anything: {jobs} in {operations} operations"
    );
    assert!(
        went_on > operations / 1000,
        "too few windows to mean anything: {went_on} in {operations} operations"
    );
    lost
}

#[test]
fn jobs_and_reservations_in_one_group_go_as_the_reference_says() {
    random_operations(&FLAT, 15);
}

#[test]
fn a_ring_of_events_that_overflows_tells_how_many_it_lost() {
    let world = World { limits: Limits { events: 4, ..FLAT.limits }, lazy: true, ..FLAT };
    let lost = random_operations(&world, 5);
    assert!(lost > 0, "it overflowed at times");
}

#[test]
fn scheduling_groups_go_as_the_reference_says() {
    random_operations(&GROUPS, 25);
}

#[test]
fn budget_groups_go_as_the_reference_says() {
    random_operations(&BUDGETS, 25);
}

#[test]
fn both_trees_together_go_as_the_reference_says() {
    random_operations(&BOTH, 25);
}

#[test]
fn larger_trees_go_as_the_reference_says() {
    let limits = Limits {
        jobs: 30,
        tasks: 6,
        reservations: 6,
        groups: 7,
        budget_groups: 6,
        depth: 5,
        events: 256,
        ..BOTH.limits
    };
    random_operations(&World { limits, span: 40, ..BOTH }, 3);
}

#[test]
fn the_ends_of_all_ranges_go_as_the_reference_says() {
    random_operations(&World { origin: u64::MAX - (1 << 40), extreme: true, ..BOTH }, 1);
    random_operations(&World { origin: 0, extreme: true, ..BOTH }, 1);
}
