//! Every sequence of eight operations over a reservation with windows in rows that differ, and
//! another task's job beside it: compared and checked after each step.

use punctual_dispatcher::{
    Attribute, For, Job, Limits, OverrunPolicy, Reservation, TaskId, INFINITE,
};

use crate::operation::Op;
use crate::pair::Pair;
use crate::sequences::{explore_all, Explored, Scenario};

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

/// Windows of a release; two rows, then one, then none.
const TABLES: [&[&[(u64, u64)]]; 3] =
    [&[&[(0, 1), (2, 2)], &[(1, 1), (2, 1), (3, 1)]], &[&[(1, 3)]], &[]];

struct Windows {
    granularity: u64,
    budget: u64,
    overrun: OverrunPolicy,
}

impl Windows {
    fn reservation(&self) -> Reservation {
        Reservation { overrun: self.overrun, ..Reservation::new(For::Task(A), PERIOD, self.budget) }
    }

    fn explore_all(&self) {
        let Explored { sequences, went_on } = explore_all(self);
        let deep = crate::environment("PUNCTUAL_DEPTH", 8) >= 4;
        assert!(!deep || went_on > sequences / 10, "{went_on} windows in {sequences} sequences");
    }
}

impl Scenario for Windows {
    type Step = Step;
    const STEPS: &'static [Step] =
        &[Step::Tick, Step::Leap, Step::Charge, Step::Sleep, Step::Done, Step::Change];
    const LIMITS: Limits = LIMITS;

    fn beginning(&self) -> Vec<Op> {
        let mut ops = vec![Op::AddTask, Op::AddTask, Op::Granularity(self.granularity)];
        ops.push(Op::Order(0, vec![Attribute::Start]));
        ops.push(Op::AddJob(Job { start: 2, finish: INFINITE, ..Job::new(For::Task(B), 4) }));
        ops.extend(draft(TABLES[0]));
        ops.extend([Op::AddReservation(self.reservation()), Op::Advance]);
        ops
    }

    fn operations(&self, step: Step, pair: &Pair, before: &[Step]) -> Vec<Op> {
        match step {
            Step::Tick => vec![Op::Pass(1), Op::Advance],
            Step::Leap => vec![Op::Pass(PERIOD + 1), Op::Advance],
            Step::Charge => vec![Op::ChargeSelected(1)],
            Step::Sleep if pair.model.tasks[0].as_ref().is_some_and(|t| t.blocked) => {
                vec![Op::Wake(A.0)]
            }
            Step::Sleep => vec![Op::Block(A.0)],
            Step::Done => vec![Op::Done(A.0)],
            Step::Change => {
                let changes = before.iter().filter(|s| matches!(s, Step::Change)).count();
                let mut ops = draft(TABLES[(changes + 1) % TABLES.len()]);
                ops.push(Op::ChangeReservation(0, self.reservation()));
                ops
            }
        }
    }
}

fn draft(table: &[&[(u64, u64)]]) -> Vec<Op> {
    let row = |row: &&[(u64, u64)]| {
        let window = |(place, w): (usize, &(u64, u64))| Op::DraftWindow(w.0, w.1, place == 0);
        row.iter().enumerate().map(window).collect::<Vec<_>>()
    };
    table.iter().flat_map(row).collect()
}

#[test]
fn every_sequence_with_windows_whose_budget_ends_in_them() {
    Windows { granularity: 0, budget: 2, overrun: OverrunPolicy::Signal }.explore_all();
}

#[test]
fn every_sequence_with_windows_shorter_than_the_budget_and_a_granularity() {
    Windows { granularity: 1, budget: 4, overrun: OverrunPolicy::Skip }.explore_all();
}
