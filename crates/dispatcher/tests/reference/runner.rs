//! Runs random operations, and when the two differ, cuts the sequence down to what matters.

use std::panic::{catch_unwind, AssertUnwindSafe};

use crate::operation::Op;
use crate::pair::Pair;
use crate::random::Random;
use crate::world::World;

/// Operations after which a new world begins.
const LIFE: u64 = 400;

fn new_pair(world: &World, quiet: bool) -> Pair {
    Pair::new(world.limits, world.origin, world.lazy, quiet)
}

/// Whether the sequence still makes them differ.
fn differs(world: &World, quiet: bool, ops: &[Op]) -> bool {
    let mut pair = new_pair(world, quiet);
    catch_unwind(AssertUnwindSafe(|| ops.iter().for_each(|op| pair.apply(op)))).is_err()
}

/// Leaves out whatever can be left out.
fn shrink(world: &World, quiet: bool, mut ops: Vec<Op>) -> Vec<Op> {
    let mut stretch = ops.len() / 2;
    while stretch > 0 {
        let mut at = 0;
        while at < ops.len() {
            let mut fewer = ops.clone();
            fewer.drain(at..(at + stretch).min(ops.len()));
            if differs(world, quiet, &fewer) {
                ops = fewer;
            } else {
                at += stretch;
            }
        }
        stretch /= 2;
    }
    ops
}

/// Two passings of time as one.
fn join(world: &World, quiet: bool, mut ops: Vec<Op>) -> Vec<Op> {
    let mut at = 1;
    while at < ops.len() {
        if let (Op::Pass(a), Op::Pass(b)) = (&ops[at - 1], &ops[at]) {
            let mut fewer = ops.clone();
            fewer.splice(at - 1..=at, [Op::Pass(a + b)]);
            if differs(world, quiet, &fewer) {
                ops = fewer;
                continue;
            }
        }
        at += 1;
    }
    ops
}

/// Prints the shortest sequence found, and panics with its difference.
fn report(world: &World, quiet: bool, ops: Vec<Op>) -> ! {
    let hook = std::panic::take_hook();
    std::panic::set_hook(Box::new(|_| {}));
    let shortest = join(world, quiet, shrink(world, quiet, ops));
    let shortest = shrink(world, quiet, shortest);
    std::panic::set_hook(hook);
    eprintln!("{world:?}, quiet: {quiet}");
    for op in &shortest {
        eprintln!("    Op::{op:?},");
    }
    let mut pair = new_pair(world, quiet);
    for op in &shortest {
        pair.apply(op);
    }
    unreachable!("it differed before");
}

/// How many jobs there were in random operations, how many events were lost, and how often a
/// release continued in another window.
#[derive(Default)]
pub struct Seen {
    pub jobs: u64,
    pub lost: u64,
    pub went_on: u64,
}

/// So many operations, in one short life after the other.
pub fn run(world: &World, seed: u64, operations: u64) -> Seen {
    let mut random = Random(seed);
    let mut seen = Seen::default();
    let mut done = 0;
    while done < operations {
        let quiet = random.one_in(4);
        let mut pair = new_pair(world, quiet);
        let mut ops = world.begin(&mut random);
        for next in 0..LIFE as usize {
            if next == ops.len() {
                ops.push(world.some_op(&pair.model, &mut random, pair.now));
            }
            let step = AssertUnwindSafe(|| pair.apply(&ops[next]));
            if catch_unwind(step).is_err() {
                report(world, quiet, ops);
            }
        }
        done += LIFE;
        seen.jobs += pair.model.jobs_so_far();
        seen.lost += pair.ring.lost_ever;
        seen.went_on += pair.model.went_on;
    }
    seen
}

/// A sequence once found, kept so that what it showed stays mended.
pub fn replay(world: &World, ops: &[Op]) {
    let mut pair = new_pair(world, false);
    for op in ops {
        pair.apply(op);
    }
}
