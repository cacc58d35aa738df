//! Every sequence of seven operations over the jobs of three tasks, of which two are raised to
//! ceilings and one lends.

use punctual_dispatcher::{Attribute, For, Limits, TaskCeiling, TaskId};

use crate::operation::Op;
use crate::pair::Pair;
use crate::sequences::{explore_all, Scenario};
use crate::three_tasks::{self, beginning, job, A, B, C};

/// From the beginning to the finish of the first job of A.
const WITHIN: u64 = 3;

#[derive(Clone, Copy, Debug)]
enum Step {
    /// The selected job executed a unit, and all that is due is done.
    Execute,
    /// The task falls asleep, or wakes.
    SleepA,
    /// The task is raised, or no longer: C to the value of A, B to that of A and by the other
    /// attribute in turn.
    RaiseC,
    RaiseB,
    /// A lends to C, or no longer.
    LendA,
    /// C has a second job, or it is cancelled.
    JobOfC,
    /// The group is ordered by the other attribute.
    Order,
}

struct Ceilings {
    order: Attribute,
}

impl Scenario for Ceilings {
    type Step = Step;
    const STEPS: &'static [Step] = &[
        Step::Execute,
        Step::SleepA,
        Step::RaiseC,
        Step::RaiseB,
        Step::LendA,
        Step::JobOfC,
        Step::Order,
    ];
    const DEPTH: u64 = 7;
    const LIMITS: Limits = three_tasks::LIMITS;

    fn beginning(&self) -> Vec<Op> {
        beginning(self.order, WITHIN)
    }

    fn operations(&self, step: Step, pair: &Pair, before: &[Step]) -> Vec<Op> {
        let task = |task: u32| pair.model.tasks[task as usize].as_ref().expect("it stays");
        let so_far = |counts: fn(&Step) -> bool| before.iter().filter(|s| counts(s)).count();
        let is_turned = so_far(|s| matches!(s, Step::Order)) % 2 == 1;
        let by_finish = (self.order == Attribute::Finish) != is_turned;
        let ceiling = |by_finish| match by_finish {
            true => TaskCeiling::Finish(pair.now + 3),
            false => TaskCeiling::Priority(0),
        };
        match step {
            Step::Execute => vec![Op::ChargeSelected(1), Op::Pass(1), Op::Advance],
            Step::SleepA if task(A).sleeps => vec![Op::Wake(A)],
            Step::SleepA => vec![Op::Block(A)],
            Step::RaiseC => {
                vec![Op::Raise(C, task(C).ceiling.is_none().then(|| ceiling(by_finish)))]
            }
            Step::RaiseB => match so_far(|s| matches!(s, Step::RaiseB)) % 3 {
                2 => vec![Op::Raise(B, None)],
                n => vec![Op::Raise(B, Some(ceiling(by_finish == (n == 0))))],
            },
            Step::LendA => vec![Op::Lend(A, task(A).lends_to.is_none().then_some(C))],
            Step::JobOfC => {
                let of_c = |serves: &For| *serves == For::Task(TaskId(C));
                let places: Vec<usize> = (0..pair.model.jobs.len())
                    .filter(|&place| of_c(&pair.model.jobs[place].attr.serves))
                    .collect();
                match places[..] {
                    [_, second, ..] => vec![Op::Cancel(second)],
                    _ => vec![Op::AddJob(job(C, pair.now, WITHIN))],
                }
            }
            Step::Order => {
                let other = if by_finish { Attribute::Priority } else { Attribute::Finish };
                vec![Op::Order(0, vec![other])]
            }
        }
    }
}

#[test]
fn every_sequence_of_three_tasks_of_which_two_are_raised_first_ordered_by_finish() {
    explore_all(&Ceilings { order: Attribute::Finish });
}

#[test]
fn every_sequence_of_three_tasks_of_which_two_are_raised_first_ordered_by_priority() {
    explore_all(&Ceilings { order: Attribute::Priority });
}
