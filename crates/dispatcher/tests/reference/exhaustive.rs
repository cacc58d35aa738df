//! Every sequence of eight operations over three jobs (a task's job in a group and below a budget
//! group, its server job, and another task's job beside it), two groups and one budget group,
//! compared and checked after each step. Nothing is cut but charges while nothing is selected: they
//! make no call, so that what follows them is explored without them.

use punctual_dispatcher::{Attribute, For, Job, Limits, TaskId, INFINITE};

use crate::model::Model;
use crate::operation::Op;
use crate::pair::Pair;
use crate::sequences::{explore_all, Scenario};

const A: TaskId = TaskId(0);
const B: TaskId = TaskId(1);
const GROUP: u32 = 1;
const NODE: u32 = 1;

const LIMITS: Limits = Limits {
    jobs: 6,
    tasks: 2,
    reservations: 0,
    groups: 2,
    budget_groups: 1,
    timers: 0,
    depth: 2,
    events: 32,
    records: 1,
    windows: 0,
};

#[derive(Clone, Copy, Debug)]
enum Step {
    /// A unit of time passes, and all that is due is done.
    Tick,
    /// The selected job executed a unit; nothing is done about it yet.
    Charge,
    /// Task A falls asleep, or wakes.
    Sleep,
    /// The job of A is added, or completes.
    JobOfA,
    /// Likewise of B, but is cancelled.
    JobOfB,
    /// A server job is added; the elder of two is cancelled.
    Server,
    /// Likewise a segment.
    Segment,
}

/// What differs between two explorations.
#[derive(Clone, Copy)]
struct Trees {
    order: Attribute,
    granularity: u64,
    /// From now to the start of what is added.
    ahead: u64,
    /// Whether one of each is there at the beginning.
    furnished: bool,
}

fn places(model: &Model, serves: For) -> Vec<usize> {
    (0..model.jobs.len()).filter(|place| model.jobs[*place].attr.serves == serves).collect()
}

impl Trees {
    fn job(&self, serves: For, now: u64, elder: bool) -> Job {
        let start = now + self.ahead;
        match serves {
            For::Task(task) => Job {
                start,
                finish: start + 3,
                priority: i64::from(task == B),
                group: if task == A { GROUP } else { 0 },
                budget_group: if task == A { NODE } else { 0 },
                ..Job::new(serves, 2)
            },
            For::Group(_) => Job { start, finish: start + 4, ..Job::new(serves, 2) },
            // The younger of two expires first, and is taken from then on.
            For::Budget(_) => Job {
                start,
                finish: if elder { start + 2 } else { INFINITE },
                ..Job::new(serves, 2)
            },
        }
    }
}

impl Scenario for Trees {
    type Step = Step;
    const STEPS: &'static [Step] = &[
        Step::Tick,
        Step::Charge,
        Step::Sleep,
        Step::JobOfA,
        Step::JobOfB,
        Step::Server,
        Step::Segment,
    ];
    const LIMITS: Limits = LIMITS;

    fn beginning(&self) -> Vec<Op> {
        let mut ops = vec![Op::AddTask, Op::AddTask, Op::Granularity(self.granularity)];
        ops.extend((0..2).map(|group| Op::Order(group, vec![self.order])));
        if self.furnished {
            let all = [For::Budget(NODE), For::Group(GROUP), For::Task(A), For::Task(B)];
            ops.extend(all.map(|serves| Op::AddJob(self.job(serves, 0, false))));
        }
        ops
    }

    fn operations(&self, step: Step, pair: &Pair, _: &[Step]) -> Vec<Op> {
        let (model, now) = (&pair.model, pair.now);
        let add = |serves, elder| Op::AddJob(self.job(serves, now, elder));
        let toggle = |serves, most: usize, end: fn(usize) -> Op| {
            let there = places(model, serves);
            if there.len() < most {
                add(serves, !there.is_empty())
            } else {
                end(there[0])
            }
        };
        match step {
            Step::Tick => vec![Op::Pass(1), Op::Advance],
            Step::Charge => {
                let selected = model.ranked(1).pop().and_then(|path| path.last().copied());
                let place = model.jobs.iter().position(|j| Some(j.id) == selected);
                place.map(|place| Op::Charge(place, 1)).into_iter().collect()
            }
            Step::Sleep => {
                let sleeps = model.tasks[0].as_ref().is_some_and(|t| t.blocked);
                vec![if sleeps { Op::Wake(A.0) } else { Op::Block(A.0) }]
            }
            Step::JobOfA => vec![toggle(For::Task(A), 1, Op::Complete)],
            Step::JobOfB => vec![toggle(For::Task(B), 1, Op::Cancel)],
            Step::Server => vec![toggle(For::Group(GROUP), 2, Op::Cancel)],
            Step::Segment => vec![toggle(For::Budget(NODE), 2, Op::Cancel)],
        }
    }
}

#[test]
fn every_sequence_from_one_of_each_ordered_by_finish() {
    explore_all(&Trees { order: Attribute::Finish, granularity: 0, ahead: 0, furnished: true });
}

#[test]
fn every_sequence_from_one_of_each_that_starts_later_ordered_by_budget() {
    explore_all(&Trees { order: Attribute::Budget, granularity: 1, ahead: 1, furnished: true });
}

#[test]
fn every_sequence_from_nothing_ordered_by_priority() {
    explore_all(&Trees { order: Attribute::Priority, granularity: 0, ahead: 0, furnished: false });
}
