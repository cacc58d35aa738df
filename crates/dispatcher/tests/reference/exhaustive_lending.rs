//! Every sequence of seven operations over the jobs of three tasks, which lend to each other: A to
//! B, B to C, and C to A where that is no cycle.

use punctual_dispatcher::{Attribute, Limits};

use crate::operation::Op;
use crate::pair::Pair;
use crate::sequences::{explore_all, Scenario};
use crate::three_tasks::{self, beginning, job, A, B, C};

/// From the beginning to the finish of the first job of A.
const WITHIN: u64 = 4;

#[derive(Clone, Copy, Debug)]
enum Step {
    /// The selected job executed a unit, and all that is due is done.
    Execute,
    /// The task falls asleep, or wakes.
    SleepA,
    SleepC,
    /// The task lends to the next one, or no longer. Of C that may be refused.
    LendA,
    LendB,
    LendC,
    /// The task is gone, or comes back with a job.
    ExistB,
}

struct Lending {
    order: Attribute,
}

impl Scenario for Lending {
    type Step = Step;
    const STEPS: &'static [Step] = &[
        Step::Execute,
        Step::SleepA,
        Step::SleepC,
        Step::LendA,
        Step::LendB,
        Step::LendC,
        Step::ExistB,
    ];
    const DEPTH: u64 = 7;
    const LIMITS: Limits = three_tasks::LIMITS;

    fn beginning(&self) -> Vec<Op> {
        beginning(self.order, WITHIN)
    }

    fn operations(&self, step: Step, pair: &Pair, _: &[Step]) -> Vec<Op> {
        let task = |task: u32| pair.model.tasks[task as usize].as_ref();
        let sleep = |number| match task(number).is_some_and(|t| t.sleeps) {
            true => vec![Op::Wake(number)],
            false => vec![Op::Block(number)],
        };
        let lend = |number, to: u32| {
            let lends = task(number).is_some_and(|t| t.lends_to.is_some());
            vec![Op::Lend(number, (!lends).then_some(to))]
        };
        match step {
            Step::Execute => vec![Op::ChargeSelected(1), Op::Pass(1), Op::Advance],
            Step::SleepA => sleep(A),
            Step::SleepC => sleep(C),
            Step::LendA => lend(A, B),
            Step::LendB => lend(B, C),
            Step::LendC => lend(C, A),
            Step::ExistB if task(B).is_some() => vec![Op::Gone(B)],
            Step::ExistB => vec![Op::AddTask, Op::AddJob(job(B, pair.now, WITHIN))],
        }
    }
}

#[test]
fn every_sequence_of_three_tasks_that_lend_ordered_by_priority() {
    explore_all(&Lending { order: Attribute::Priority });
}
