//! Every sequence of steps: each step is some operations, and all that they say is compared and
//! checked after each.
//!
//! The dispatcher cannot be copied: each branch begins with a new one, to which all calls that lead
//! there are made again. The reference beside it is copied.
//!
//! `PUNCTUAL_DEPTH` sets the number of steps of all scenarios.

use std::fmt::Debug;

use punctual_dispatcher::{
    Attribute, Dispatcher, Job, JobId, Limits, Reservation, ReservationId, TaskCeiling, TaskId,
};

use crate::operation::Op;
use crate::pair::Pair;

/// Where all sequences begin, and what their steps are.
pub trait Scenario {
    type Step: Copy + Debug + 'static;
    const STEPS: &'static [Self::Step];
    const LIMITS: Limits;
    /// The number of steps.
    const DEPTH: u64 = 8;

    /// What is done before the first step.
    fn beginning(&self) -> Vec<Op>;

    /// The operations of a step that follows others; none if it means nothing there.
    fn operations(&self, step: Self::Step, pair: &Pair, before: &[Self::Step]) -> Vec<Op>;
}

/// What was seen at the ends of all sequences.
#[derive(Clone, Copy, Default)]
pub struct Explored {
    pub sequences: u64,
    /// Releases that continued in another window.
    pub went_on: u64,
}

/// A call as it was made, to be made again.
#[derive(Clone, Copy)]
enum Call {
    AddTask,
    Order(u32, Attribute),
    Granularity(u64),
    Advance,
    Charge(JobId, u64),
    ChargeSelected(u64),
    Block(u32),
    Wake(u32),
    Done(u32),
    Gone(u32),
    Lend(u32, Option<u32>),
    Raise(u32, Option<TaskCeiling>),
    AddJob(Job),
    Complete(JobId),
    Cancel(JobId),
    DraftWindow(u64, u64, bool),
    AddReservation(Reservation),
    ChangeReservation(u32, Reservation),
}

impl Call {
    /// `None` for an operation that makes no call.
    fn of(op: &Op, pair: &Pair) -> Option<Call> {
        let id = |place: usize| pair.names.job(pair.model.jobs[place].id);
        Some(match *op {
            Op::Pass(_) => return None,
            Op::AddTask => Call::AddTask,
            Op::Order(group, ref by) => Call::Order(group, by[0]),
            Op::Granularity(ns) => Call::Granularity(ns),
            Op::Advance => Call::Advance,
            Op::Charge(place, ran) => Call::Charge(id(place), ran),
            Op::ChargeSelected(ran) => Call::ChargeSelected(ran),
            Op::Block(task) => Call::Block(task),
            Op::Wake(task) => Call::Wake(task),
            Op::Done(task) => Call::Done(task),
            Op::Gone(task) => Call::Gone(task),
            Op::Lend(task, to) => Call::Lend(task, to),
            Op::Raise(task, ceiling) => Call::Raise(task, ceiling),
            Op::AddJob(job) => Call::AddJob(job),
            Op::Complete(place) => Call::Complete(id(place)),
            Op::Cancel(place) => Call::Cancel(id(place)),
            Op::DraftWindow(start, length, begins) => Call::DraftWindow(start, length, begins),
            Op::AddReservation(r) => Call::AddReservation(r),
            Op::ChangeReservation(r, to) => Call::ChangeReservation(r, to),
            ref other => unreachable!("{other:?} is no step"),
        })
    }

    fn make(self, d: &mut Dispatcher, now: u64) {
        // Answers were compared when the call was made first.
        match self {
            Call::AddTask => drop(d.add_task(now)),
            Call::Order(group, by) => drop(d.set_order(group, &[by])),
            Call::Granularity(ns) => drop(d.set_granularity(ns)),
            Call::Advance => d.advance(now),
            Call::Charge(job, ran) => drop(d.charge_job(job, ran, now)),
            Call::ChargeSelected(ran) => {
                if let Some(job) = d.select(0, now) {
                    let _ = d.charge_job(job, ran, now);
                }
            }
            Call::Block(task) => drop(d.task_blocked(TaskId(task), now)),
            Call::Wake(task) => drop(d.task_ready(TaskId(task), now)),
            Call::Done(task) => drop(d.task_done(TaskId(task), now)),
            Call::Gone(task) => drop(d.task_gone(TaskId(task), now)),
            Call::Lend(task, to) => drop(d.lend(TaskId(task), to.map(TaskId), now)),
            Call::Raise(task, ceiling) => drop(d.raise(TaskId(task), ceiling, now)),
            Call::AddJob(job) => drop(d.add_job(&job, now)),
            Call::Complete(job) => drop(d.complete_job(job, now)),
            Call::Cancel(job) => drop(d.cancel_job(job, now)),
            Call::DraftWindow(start, length, begins) => {
                let _ = d.draft_window(start, length, begins, now);
            }
            Call::AddReservation(r) => drop(d.add_reservation(&r, now)),
            Call::ChangeReservation(r, to) => {
                let _ = d.change_reservation(ReservationId(r), &to, now);
            }
        }
        while d.next_event().is_some() {}
        d.select(0, now);
    }
}

/// All sequences there are.
pub fn explore_all<S: Scenario>(scenario: &S) -> Explored {
    let depth = crate::environment("PUNCTUAL_DEPTH", S::DEPTH);
    let mut pair = Pair::new(S::LIMITS, 0, false, false);
    let mut tree = Tree { scenario, calls: Vec::new(), steps: Vec::new() };
    scenario.beginning().iter().for_each(|op| tree.apply(op, &mut pair));
    let explored = tree.explore(&pair, depth);
    assert_eq!(explored.sequences, (S::STEPS.len() as u64).pow(depth as u32));
    explored
}

/// The way from the beginning to where it is at.
struct Tree<'a, S: Scenario> {
    scenario: &'a S,
    /// And when each was made.
    calls: Vec<(Call, u64)>,
    steps: Vec<S::Step>,
}

impl<S: Scenario> Tree<'_, S> {
    fn apply(&mut self, op: &Op, pair: &mut Pair) {
        self.calls.extend(Call::of(op, pair).map(|call| (call, pair.now)));
        pair.apply(op);
    }

    /// All that can follow, so deep: what was seen at the ends here and below.
    fn explore(&mut self, pair: &Pair, depth: u64) -> Explored {
        if depth == 0 {
            return Explored { sequences: 1, went_on: pair.model.went_on };
        }
        let made = self.calls.len();
        let mut explored = Explored::default();
        for &step in S::STEPS {
            let ops = self.scenario.operations(step, pair, &self.steps);
            if ops.is_empty() {
                // No call at all: what follows is what follows the other steps, one step shorter.
                explored.sequences += (S::STEPS.len() as u64).pow(depth as u32 - 1);
                continue;
            }
            let mut real = Dispatcher::new(S::LIMITS).expect("valid limits");
            self.calls.iter().for_each(|(call, now)| call.make(&mut real, *now));
            let mut next = pair.beside(real);
            self.steps.push(step);
            ops.iter().for_each(|op| self.apply(op, &mut next));
            let below = self.explore(&next, depth - 1);
            explored.sequences += below.sequences;
            explored.went_on += below.went_on;
            self.steps.pop();
            self.calls.truncate(made);
        }
        explored
    }
}

/// Says which sequence it was, when one of its steps panics.
impl<S: Scenario> Drop for Tree<'_, S> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("the sequence: {:?}", self.steps);
        }
    }
}
