//! Every sequence of seven operations over the jobs of three tasks, which lend to each other: A to
//! B, B to C, and C to A where that is no cycle.

use punctual_dispatcher::{Attribute, For, Job, Limits, TaskId};

use crate::operation::Op;
use crate::pair::Pair;
use crate::sequences::{explore_all, Scenario};

const A: u32 = 0;
const B: u32 = 1;
const C: u32 = 2;

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

fn job(task: u32, now: u64) -> Job {
    let finish = now + 4 + u64::from(task);
    Job { start: now, finish, priority: -i64::from(task), ..Job::new(For::Task(TaskId(task)), 3) }
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
    const LIMITS: Limits = Limits {
        jobs: 4,
        tasks: 3,
        reservations: 0,
        groups: 1,
        budget_groups: 0,
        timers: 0,
        depth: 1,
        events: 32,
        records: 1,
        windows: 0,
    };

    fn beginning(&self) -> Vec<Op> {
        let mut ops = vec![Op::Order(0, vec![self.order])];
        ops.extend([A, B, C].map(|_| Op::AddTask));
        ops.extend([A, B, C].map(|task| Op::AddJob(job(task, 0))));
        ops
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
            Step::ExistB => vec![Op::AddTask, Op::AddJob(job(B, pair.now))],
        }
    }
}

#[test]
fn every_sequence_of_three_tasks_that_lend_ordered_by_priority() {
    explore_all(&Lending { order: Attribute::Priority });
}
