//! Every sequence of eight operations over a reservation with windows in rows that differ, and another
//! task's job beside it: compared and checked after each step.
//!
//! As in exhaustive.rs, each branch begins with a new dispatcher to which all calls that lead there are
//! made again, and `PUNCTUAL_DEPTH` sets the number of operations.

use punctual_dispatcher::{
    Attribute, Dispatcher, For, Job, Limits, Overrun, Reservation, ReservationId, TaskId, INFINITE,
};

use crate::operation::Op;
use crate::pair::Pair;

const A: TaskId = TaskId(0);
const B: TaskId = TaskId(1);
const PERIOD: u64 = 4;

const LIMITS: Limits = Limits {
    jobs: 3,
    tasks: 2,
    reservations: 1,
    groups: 1,
    budget_groups: 0,
    timers: 0,
    depth: 1,
    events: 64,
    records: 1,
    windows: 9,
};

#[derive(Clone, Copy, Debug)]
enum Step {
    /// A unit of time passes, and all that is due is done.
    Tick,
    /// More than a period passes: windows and releases go by.
    Leap,
    /// The selected job executed a unit; nothing is done about it yet.
    Charge,
    /// Task A falls asleep, or wakes.
    Sleep,
    /// Task A waits for its next release.
    Done,
    /// From the next release on: other windows, or none, in turn.
    Change,
}

const STEPS: [Step; 6] = [Step::Tick, Step::Leap, Step::Charge, Step::Sleep, Step::Done, Step::Change];

/// Windows of a release; two rows, then one, then none.
const TABLES: [&[&[(u64, u64)]]; 3] = [&[&[(0, 1), (2, 2)], &[(1, 1), (2, 1), (3, 1)]], &[&[(1, 3)]], &[]];

/// An operation and the time at which it was made.
type Call = (Op, u64);

fn make(d: &mut Dispatcher, (op, now): &Call) {
    let now = *now;
    // Answers were compared when the call was made first.
    match op {
        Op::AddTask => drop(d.add_task(now)),
        Op::Order(group, by) => drop(d.set_order(*group, by)),
        Op::Granularity(ns) => drop(d.set_granularity(*ns)),
        Op::AddJob(job) => drop(d.add_job(job, now)),
        Op::DraftWindow(start, length, begins) => drop(d.draft_window(*start, *length, *begins, now)),
        Op::AddReservation(r) => drop(d.add_reservation(r, now)),
        Op::ChangeReservation(r, to) => drop(d.change_reservation(ReservationId(*r), to, now)),
        Op::Advance => d.advance(now),
        Op::ChargeSelected(ran) => {
            if let Some(job) = d.select(0, now) {
                let _ = d.charge_job(job, *ran, now);
            }
        }
        Op::Block(task) => drop(d.task_blocked(TaskId(*task), now)),
        Op::Wake(task) => drop(d.task_ready(TaskId(*task), now)),
        Op::Done(task) => drop(d.task_done(TaskId(*task), now)),
        Op::Pass(_) => {}
        other => unreachable!("{other:?} is no step"),
    }
    while d.next_event().is_some() {}
    d.select(0, now);
}

struct Scenario {
    granularity: u64,
    budget: u64,
    overrun: Overrun,
}

impl Scenario {
    fn reservation(&self) -> Reservation {
        Reservation {
            serves: For::Task(A),
            start: 0,
            period: PERIOD,
            budget: self.budget,
            deadline: PERIOD,
            priority: 0,
            group: 0,
            budget_group: 0,
            cookie: None,
            overrun: self.overrun,
            wakeup_rule: false,
        }
    }

    fn operations(&self, step: Step, pair: &Pair, changes: usize) -> Vec<Op> {
        match step {
            Step::Tick => vec![Op::Pass(1), Op::Advance],
            Step::Leap => vec![Op::Pass(PERIOD + 1), Op::Advance],
            Step::Charge => vec![Op::ChargeSelected(1)],
            Step::Sleep if pair.model.tasks[0].as_ref().is_some_and(|t| t.blocked) => vec![Op::Wake(A.0)],
            Step::Sleep => vec![Op::Block(A.0)],
            Step::Done => vec![Op::Done(A.0)],
            Step::Change => {
                let mut ops = draft(TABLES[(changes + 1) % TABLES.len()]);
                ops.push(Op::ChangeReservation(0, self.reservation()));
                ops
            }
        }
    }

    fn apply(op: &Op, pair: &mut Pair, calls: &mut Vec<Call>) {
        calls.push((op.clone(), pair.now));
        pair.apply(op);
    }

    fn explore(&self, pair: &Pair, calls: &mut Vec<Call>, steps: &mut Vec<Step>, depth: u64) -> (u64, u64) {
        if depth == 0 {
            return (1, pair.model.went_on);
        }
        let made = calls.len();
        let (mut sequences, mut went_on) = (0, 0);
        for step in STEPS {
            let mut real = Dispatcher::new(LIMITS).expect("valid limits");
            calls.iter().for_each(|call| make(&mut real, call));
            let mut next = pair.beside(real);
            let changes = steps.iter().filter(|s| matches!(s, Step::Change)).count();
            steps.push(step);
            let guard = Announced { steps };
            for op in self.operations(step, pair, changes) {
                Self::apply(&op, &mut next, calls);
            }
            std::mem::forget(guard);
            let below = self.explore(&next, calls, steps, depth - 1);
            (sequences, went_on) = (sequences + below.0, went_on + below.1);
            steps.pop();
            calls.truncate(made);
        }
        (sequences, went_on)
    }

    fn explore_all(&self) {
        let depth = crate::environment("PUNCTUAL_DEPTH", 8);
        let mut pair = Pair::new(LIMITS, 0, false, false);
        let mut ops = vec![Op::AddTask, Op::AddTask, Op::Granularity(self.granularity)];
        ops.push(Op::Order(0, vec![Attribute::Start]));
        ops.push(Op::AddJob(Job { start: 2, finish: INFINITE, ..Job::new(For::Task(B), 4) }));
        ops.extend(draft(TABLES[0]));
        ops.extend([Op::AddReservation(self.reservation()), Op::Advance]);
        let mut calls = Vec::new();
        ops.iter().for_each(|op| Self::apply(op, &mut pair, &mut calls));
        let (sequences, went_on) = self.explore(&pair, &mut calls, &mut Vec::new(), depth);
        assert_eq!(sequences, (STEPS.len() as u64).pow(depth as u32));
        assert!(depth < 4 || went_on > sequences / 10, "{went_on} windows in {sequences} sequences");
    }
}

fn draft(table: &[&[(u64, u64)]]) -> Vec<Op> {
    let row = |row: &&[(u64, u64)]| {
        let window = |(place, w): (usize, &(u64, u64))| Op::DraftWindow(w.0, w.1, place == 0);
        row.iter().enumerate().map(window).collect::<Vec<_>>()
    };
    table.iter().flat_map(row).collect()
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
fn every_sequence_with_windows_whose_budget_ends_in_them() {
    Scenario { granularity: 0, budget: 2, overrun: Overrun::Signal }.explore_all();
}

#[test]
fn every_sequence_with_windows_shorter_than_the_budget_and_a_granularity() {
    Scenario { granularity: 1, budget: 4, overrun: Overrun::Skip }.explore_all();
}
