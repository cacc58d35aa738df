//! Every sequence of eight operations over three jobs (a task's job in a group and below a budget
//! group, its server job, and another task's job beside it), two groups and one budget group,
//! compared and checked after each step. Nothing is cut but charges while nothing is selected: they
//! make no call, so that what follows them is explored without them.
//!
//! The dispatcher cannot be copied: each branch begins with a new one, to which all calls that lead
//! there are made again. The reference beside it is copied.
//!
//! `PUNCTUAL_DEPTH` sets the number of operations (8).

use punctual_dispatcher::{Attribute, Dispatcher, For, Job, JobId, Limits, TaskId, INFINITE};

use crate::model::Model;
use crate::operation::Op;
use crate::pair::Pair;

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

const STEPS: [Step; 7] =
    [Step::Tick, Step::Charge, Step::Sleep, Step::JobOfA, Step::JobOfB, Step::Server, Step::Segment];

/// What differs between two explorations.
#[derive(Clone, Copy)]
struct Scenario {
    order: Attribute,
    granularity: u64,
    /// From now to the start of what is added.
    ahead: u64,
    /// Whether one of each is there at the beginning.
    furnished: bool,
}

/// A call as it was made, to be made again.
#[derive(Clone, Copy)]
enum Call {
    AddTask,
    Order(u32, Attribute),
    Granularity(u64),
    Advance(u64),
    Charge(JobId, u64),
    Block(u64),
    Wake(u64),
    Add(Job, u64),
    Complete(JobId, u64),
    Cancel(JobId, u64),
}

impl Call {
    fn make(self, d: &mut Dispatcher) {
        // Answers were compared when the call was made first.
        match self {
            Call::AddTask => drop(d.add_task(0)),
            Call::Order(group, by) => drop(d.set_order(group, &[by])),
            Call::Granularity(ns) => drop(d.set_granularity(ns)),
            Call::Advance(now) => d.advance(now),
            Call::Charge(job, now) => drop(d.charge_job(job, 1, now)),
            Call::Block(now) => drop(d.task_blocked(A, now)),
            Call::Wake(now) => drop(d.task_ready(A, now)),
            Call::Add(job, now) => drop(d.add_job(&job, now)),
            Call::Complete(job, now) => drop(d.complete_job(job, now)),
            Call::Cancel(job, now) => drop(d.cancel_job(job, now)),
        }
        while d.next_event().is_some() {}
        d.select(0, 0);
    }
}

fn places(model: &Model, serves: For) -> Vec<usize> {
    (0..model.jobs.len()).filter(|place| model.jobs[*place].attr.serves == serves).collect()
}

impl Scenario {
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
            For::Budget(_) => Job { start, finish: if elder { start + 2 } else { INFINITE }, ..Job::new(serves, 2) },
        }
    }

    /// The operations of a step; none if it means nothing here.
    fn operations(&self, step: Step, pair: &Pair) -> Vec<Op> {
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

    /// As it is to be made again.
    fn call(&self, op: &Op, pair: &Pair) -> Option<Call> {
        let now = pair.now;
        let id = |place: usize| pair.names.job(pair.model.jobs[place].id);
        Some(match op {
            Op::AddTask => Call::AddTask,
            Op::Order(group, by) => Call::Order(*group, by[0]),
            Op::Granularity(ns) => Call::Granularity(*ns),
            Op::Advance => Call::Advance(now),
            Op::Charge(place, _) => Call::Charge(id(*place), now),
            Op::Block(_) => Call::Block(now),
            Op::Wake(_) => Call::Wake(now),
            Op::AddJob(job) => Call::Add(*job, now),
            Op::Complete(place) => Call::Complete(id(*place), now),
            Op::Cancel(place) => Call::Cancel(id(*place), now),
            _ => return None,
        })
    }

    fn apply(&self, op: &Op, pair: &mut Pair, calls: &mut Vec<Call>) {
        calls.extend(self.call(op, pair));
        pair.apply(op);
    }

    fn begin(&self, calls: &mut Vec<Call>) -> Pair {
        let mut pair = Pair::new(LIMITS, 0, false, false);
        let mut ops = vec![Op::AddTask, Op::AddTask, Op::Granularity(self.granularity)];
        ops.extend((0..2).map(|group| Op::Order(group, vec![self.order])));
        if self.furnished {
            let all = [For::Budget(NODE), For::Group(GROUP), For::Task(A), For::Task(B)];
            ops.extend(all.map(|serves| Op::AddJob(self.job(serves, 0, false))));
        }
        ops.iter().for_each(|op| self.apply(op, &mut pair, calls));
        pair
    }

    /// All that can follow, so deep; how many sequences ended here and below.
    fn explore(&self, pair: &Pair, calls: &mut Vec<Call>, steps: &mut Vec<Step>, depth: u64) -> u64 {
        if depth == 0 {
            return 1;
        }
        let made = calls.len();
        let mut sequences = 0;
        for step in STEPS {
            let ops = self.operations(step, pair);
            if ops.is_empty() {
                // No call at all: what follows is what follows the other steps, one step shorter.
                sequences += (STEPS.len() as u64).pow(depth as u32 - 1);
                continue;
            }
            let mut real = Dispatcher::new(LIMITS).expect("valid limits");
            calls.iter().for_each(|call| call.make(&mut real));
            let mut next = pair.beside(real);
            steps.push(step);
            let guard = Announced { steps };
            ops.iter().for_each(|op| self.apply(op, &mut next, calls));
            std::mem::forget(guard);
            sequences += self.explore(&next, calls, steps, depth - 1);
            steps.pop();
            calls.truncate(made);
        }
        sequences
    }

    fn explore_all(&self) {
        let depth = crate::environment("PUNCTUAL_DEPTH", 8);
        let mut calls = Vec::new();
        let pair = self.begin(&mut calls);
        let sequences = self.explore(&pair, &mut calls, &mut Vec::new(), depth);
        assert_eq!(sequences, (STEPS.len() as u64).pow(depth as u32));
    }
}

/// Says which sequence it was, when one of its steps panics.
struct Announced<'a> {
    steps: &'a [Step],
}

impl Drop for Announced<'_> {
    fn drop(&mut self) {
        eprintln!("the sequence: {:?}", self.steps);
    }
}

#[test]
fn every_sequence_from_one_of_each_ordered_by_finish() {
    Scenario { order: Attribute::Finish, granularity: 0, ahead: 0, furnished: true }.explore_all();
}

#[test]
fn every_sequence_from_one_of_each_that_starts_later_ordered_by_budget() {
    Scenario { order: Attribute::Budget, granularity: 1, ahead: 1, furnished: true }.explore_all();
}

#[test]
fn every_sequence_from_nothing_ordered_by_priority() {
    Scenario { order: Attribute::Priority, granularity: 0, ahead: 0, furnished: false }.explore_all();
}
