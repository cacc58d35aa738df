//! Invariant 6 of the design: the same inputs make the same decisions, byte for byte.

use crate::pair::Pair;
use crate::random::Random;
use crate::{World, BOTH};

/// All records of a random run.
fn records(seed: u64) -> Vec<impl PartialEq + std::fmt::Debug> {
    let world: World = BOTH;
    let mut random = Random(seed);
    let mut all = Vec::new();
    for _ in 0..50 {
        let mut pair = Pair::new(world.limits, world.origin, false, false);
        let mut ops = world.begin(&mut random);
        for next in 0..400 {
            if next == ops.len() {
                ops.push(world.some_op(&pair.model, &mut random, pair.now));
            }
            let before = pair.real.record_count();
            pair.apply(&ops[next]);
            all.extend(
                (before..pair.real.record_count())
                    .map(|n| pair.real.record(n).expect("not overwritten")),
            );
        }
    }
    all
}

#[test]
fn the_same_inputs_leave_the_same_trace() {
    let first = records(7);
    assert!(first.len() > 10_000);
    assert!(first == records(7));
    assert!(first != records(8));
}
