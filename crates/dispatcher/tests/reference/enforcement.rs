//! Enforcement errors of all sizes, of all kinds of reservations: budgets that have a tenth and a
//! twenty-fifth, stopped late and early, release after release, and changed to others in between.

use punctual_dispatcher::{Attribute, For, Limits, Reservation, TaskId};

use crate::operation::Op;
use crate::pair::Pair;
use crate::random::Random;

const PERIOD: u64 = 10_000;
const GRANULARITY: u64 = 20;

const LIMITS: Limits = Limits {
    jobs: 4,
    tasks: 1,
    reservations: 1,
    groups: 2,
    budget_groups: 1,
    timers: 0,
    depth: 2,
    events: 64,
    records: 1,
    windows: 8,
};

/// Tiny ones too, up to the period's half.
fn some_budget(random: &mut Random) -> u64 {
    let most = [12, 250, 1_000, PERIOD / 2][random.below(4) as usize];
    1 + random.below(most)
}

fn some_reservation(serves: For, random: &mut Random) -> Reservation {
    Reservation::new(serves, PERIOD, some_budget(random))
}

/// Early by the granularity or less, some parts of a hundred late, or several budgets.
fn some_execution(left: u64, random: &mut Random) -> u64 {
    match random.below(8) {
        0 => left,
        1..=3 => left.saturating_sub(random.below(GRANULARITY + 1)),
        4..=6 => left + random.below(left / 20 + 2),
        _ => left + random.below(4 * left + 2),
    }
}

/// Two windows that share the budget, in half of the cases.
fn draft(serves: For, random: &mut Random) -> Vec<Op> {
    if matches!(serves, For::Task(_)) && random.one_in(2) {
        vec![Op::DraftWindow(0, PERIOD / 4, true), Op::DraftWindow(PERIOD / 2, PERIOD / 4, false)]
    } else {
        Vec::new()
    }
}

fn releases(serves: For, random: &mut Random) {
    let mut pair = Pair::new(LIMITS, 0, false, false);
    let mut carried = 0;
    pair.apply(&Op::AddTask);
    pair.apply(&Op::Granularity(GRANULARITY));
    pair.apply(&Op::Order(0, vec![Attribute::Finish]));
    draft(serves, random).iter().for_each(|op| pair.apply(op));
    pair.apply(&Op::AddReservation(some_reservation(serves, random)));
    for _ in 0..500 {
        // Four looks at each period, each at a quarter of it.
        for _ in 0..4 {
            pair.apply(&Op::Advance);
            if let Some(left) = pair.model.jobs.first().map(|job| job.remaining) {
                pair.apply(&Op::Charge(0, some_execution(left, random)));
            } else if random.one_in(16) {
                pair.apply(&Op::ChargeTask(0, random.below(GRANULARITY)));
            }
            pair.apply(&Op::Advance);
            pair.apply(&Op::Pass(PERIOD / 4));
        }
        let v = pair.model.reservations[0].as_ref().expect("it is there");
        carried += u64::from(v.error != 0);
        if random.one_in(32) {
            draft(serves, random).iter().for_each(|op| pair.apply(op));
            pair.apply(&Op::ChangeReservation(0, some_reservation(serves, random)));
        }
    }
    assert!(carried > 100, "only {carried} of 500 releases have something to settle");
}

#[test]
fn errors_of_all_sizes_are_settled_as_the_reference_says() {
    let mut random = Random(crate::environment("PUNCTUAL_SEED", 1));
    for _ in 0..60 {
        for serves in [For::Task(TaskId(0)), For::Group(1), For::Budget(1)] {
            releases(serves, &mut random);
        }
    }
}
