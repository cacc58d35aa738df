//! Small worlds, in which few jobs, groups and nodes meet in few instants, so that everything
//! collides; and the operations that happen in them.

use punctual_dispatcher::{
    Attribute, For, Job, Limits, OverrunPolicy, Reservation, TaskCeiling, TaskId, INFINITE,
};

use crate::model::Model;
use crate::operation::Op;
use crate::random::Random;

#[derive(Clone, Copy, Debug)]
pub struct World {
    pub limits: Limits,
    /// The most that windows and budgets may be, ns.
    pub span: u64,
    /// Where its clock begins.
    pub origin: u64,
    /// Events wait until they are asked for, in a ring that overflows.
    pub lazy: bool,
    /// Now and then a value near the end of its range.
    pub extreme: bool,
}

/// Each of the four, and each combination in each sequence.
pub fn some_order(random: &mut Random) -> Vec<Attribute> {
    let mut all = vec![Attribute::Start, Attribute::Finish, Attribute::Budget, Attribute::Priority];
    let count = 1 + random.below(4) as usize;
    (0..count).map(|_| all.swap_remove(random.below(all.len() as u64) as usize)).collect()
}

impl World {
    /// What happens before anything else.
    pub fn begin(&self, random: &mut Random) -> Vec<Op> {
        let granularity = [0, 0, 0, 1, self.span / 4][random.below(5) as usize];
        let mut ops = vec![Op::Granularity(granularity)];
        ops.extend((0..self.limits.groups).map(|group| Op::Order(group, some_order(random))));
        ops.extend((0..self.limits.tasks.div_ceil(2)).map(|_| Op::AddTask));
        ops
    }

    fn some_task(&self, random: &mut Random) -> u32 {
        random.below_or_at(self.limits.tasks.into()) as u32
    }

    fn some_group(&self, random: &mut Random) -> u32 {
        random.below_or_at(self.limits.groups.into()) as u32
    }

    fn some_node(&self, random: &mut Random) -> u32 {
        random.below_or_at(u64::from(self.limits.budget_groups) + 1) as u32
    }

    /// One of the three kinds of job, with its group and the node above it.
    fn some_place(&self, model: &Model, random: &mut Random) -> (For, u32, u32) {
        let under = |random: &mut Random| if random.one_in(2) { 0 } else { self.some_node(random) };
        match random.below(8) {
            0..=1 if self.limits.groups > 1 => {
                let served = 1 + random.below_or_at(u64::from(self.limits.groups) - 1) as u32;
                // Mostly where the group stands already.
                let fixed = model.groups.get(served as usize).and_then(|g| g.parent);
                let group =
                    fixed.filter(|_| !random.one_in(8)).unwrap_or_else(|| self.some_group(random));
                (For::Group(served - u32::from(random.one_in(64))), group, under(random))
            }
            2..=3 if self.limits.budget_groups > 0 => {
                let node = self.some_node(random);
                let fixed = model.parent_of_node(node).filter(|_| !random.one_in(8));
                let above = fixed.unwrap_or_else(|| random.below32(node + 1) * random.below32(2));
                (For::Budget(node), u32::from(random.one_in(64)), above)
            }
            _ => {
                (For::Task(TaskId(self.some_task(random))), self.some_group(random), under(random))
            }
        }
    }

    fn some_job(&self, model: &Model, random: &mut Random, now: u64) -> Job {
        let (serves, group, budget_group) = self.some_place(model, random);
        let span = self.span;
        let mut job = Job {
            serves,
            start: match random.below(4) {
                0 => now.saturating_add(random.below(span)),
                1 => now.saturating_sub(random.below(span)),
                _ => now,
            },
            finish: match random.below(8) {
                0 | 1 => INFINITE,
                2 => now - random.below(3.min(now + 1)),
                _ => now.saturating_add(random.below(2 * span)),
            },
            budget: match random.below(16) {
                0 => 0,
                1 => INFINITE,
                2..=5 => span / 2,
                _ => random.below(span),
            },
            priority: random.below(3) as i64 - 1,
            cookie: random.below(4),
            group,
            budget_group,
        };
        if self.extreme && random.one_in(3) {
            let large = u64::MAX - random.below(4);
            match random.below(4) {
                0 => job.priority = if random.one_in(2) { i64::MIN } else { i64::MAX },
                1 => job.start = large,
                2 => job.finish = large,
                _ => job.budget = large >> random.below(2),
            }
        }
        job
    }

    fn some_reservation(&self, model: &Model, random: &mut Random, now: u64) -> Reservation {
        let (serves, group, budget_group) = self.some_place(model, random);
        let span = self.span;
        let period = match random.below(16) {
            0 if self.extreme => (1 << 62) - random.below(2),
            0 => span * 1000,
            _ => 1 + random.below(span),
        };
        let deadline = if random.one_in(2) { period } else { 1 + random.below(period) };
        Reservation {
            serves,
            start: if random.one_in(4) {
                now.saturating_sub(random.below(4 * span))
            } else {
                now.saturating_add(random.below(span))
            },
            period,
            budget: 1 + random.below_or_at(deadline),
            deadline: deadline + u64::from(random.one_in(32)),
            priority: random.below(3) as i64 - 1,
            group,
            budget_group,
            cookie: (!random.one_in(3)).then(|| random.below(4)),
            overrun: [
                OverrunPolicy::Carry,
                OverrunPolicy::Skip,
                OverrunPolicy::Background,
                OverrunPolicy::Signal,
            ][random.below(4) as usize],
            // Above 2^32 ns the dispatcher's rounding is coarser than the reference's.
            wakeup_rule: deadline < 1 << 31 && random.one_in(2),
        }
    }

    /// One that can mostly take the windows that were drafted.
    fn some_reservation_in_windows(
        &self,
        model: &Model,
        random: &mut Random,
        now: u64,
    ) -> Reservation {
        let any = self.some_reservation(model, random, now);
        if model.drafted_end() == 0 || random.one_in(8) {
            return any;
        }
        let deadline =
            model.drafted_end().saturating_add(random.below(4)) - u64::from(random.one_in(16));
        Reservation {
            serves: For::Task(TaskId(self.some_task(random))),
            deadline,
            period: deadline.saturating_add(random.below(self.span)),
            budget: 1 + random.below(self.span),
            wakeup_rule: random.one_in(32),
            ..any
        }
    }

    /// Behind the one that was drafted last, or as the first of another row.
    fn some_window(&self, model: &Model, random: &mut Random) -> Op {
        let begins = random.one_in(3);
        let after = if begins { 0 } else { model.drafted_last_end() };
        let start =
            after.saturating_add(random.below(4)).saturating_sub(u64::from(random.one_in(8)));
        let length = random.below_or_at(self.span / 2);
        if self.extreme && random.one_in(16) {
            let large = (1 << [50, 61, 62][random.below(3) as usize]) - random.below(3);
            return if begins {
                Op::DraftWindow(large, length, true)
            } else {
                Op::DraftWindow(start, large, false)
            };
        }
        Op::DraftWindow(start, length, begins)
    }

    fn some_execution(&self, model: &Model, random: &mut Random, place: usize) -> u64 {
        let left = model.jobs.get(place).map_or(0, |j| j.remaining);
        match random.below(4) {
            0 if left < 1 << 40 => left + random.below(2),
            1 if left < 1 << 40 => left.saturating_sub(random.below(2)),
            _ if self.extreme && random.one_in(8) => 1 << 50,
            _ => random.below(self.span / 2),
        }
    }

    fn some_ceiling(&self, random: &mut Random, now: u64) -> TaskCeiling {
        let extreme = self.extreme && random.one_in(4);
        match random.below(2) {
            0 if extreme => TaskCeiling::Finish(u64::MAX - random.below(2)),
            0 => TaskCeiling::Finish(now.saturating_add(random.below(2 * self.span))),
            _ if extreme => {
                TaskCeiling::Priority(if random.one_in(2) { i64::MIN } else { i64::MAX })
            }
            _ => TaskCeiling::Priority(random.below(3) as i64 - 1),
        }
    }

    /// What happens next, in the reference's world at `now`; may be refused.
    pub fn some_op(&self, model: &Model, random: &mut Random, now: u64) -> Op {
        let place = random.below(model.jobs.len() as u64 + 1) as usize;
        let reservation = random.below32(self.limits.reservations + 1);
        match random.below(76) {
            0 if random.one_in(8) => Op::Pass(random.below(40 * self.span)),
            0..=9 => Op::Pass(random.below(4)),
            10..=17 => Op::Advance,
            18..=19 => Op::Look { ranks: random.below32(8) },
            20..=32 => Op::AddJob(self.some_job(model, random, now)),
            33..=37 => Op::Charge(place, self.some_execution(model, random, place)),
            38..=39 => {
                Op::ChargeTask(self.some_task(random), self.some_execution(model, random, place))
            }
            40..=44 => Op::ChargeSelected(self.some_execution(model, random, place)),
            45 => Op::Cancel(place),
            46 => Op::Complete(place),
            47..=48 => Op::Block(self.some_task(random)),
            49..=51 => Op::Wake(self.some_task(random)),
            52..=53 => Op::Done(self.some_task(random)),
            54 if random.one_in(3) => Op::Gone(self.some_task(random)),
            54 => Op::AskTimer(now + 1, random.below(4)),
            55 => Op::AddTask,
            56 => Op::Order(self.some_group(random), some_order(random)),
            57 => {
                Op::AskTimer(now.saturating_add(random.below(4)).saturating_sub(1), random.below(4))
            }
            58 if random.one_in(2) => Op::CancelTimer(random.below(3) as usize),
            59 => Op::AddReservation(self.some_reservation_in_windows(model, random, now)),
            60 if random.one_in(2) => {
                let to = self.some_reservation_in_windows(model, random, now);
                let same = model.reservations.get(reservation as usize).and_then(Option::as_ref);
                let group = same.filter(|_| !random.one_in(4)).map_or(to.group, |v| v.attr.group);
                Op::ChangeReservation(reservation, Reservation { group, ..to })
            }
            61 if random.one_in(4) => Op::RemoveReservation(reservation),
            62 => Op::TakeLost(reservation),
            63 => Op::Take(random.below(6) as usize),
            64..=67 => self.some_window(model, random),
            68 if random.one_in(6) => Op::DropWindows,
            69 => Op::AddReservation(self.some_reservation_in_windows(model, random, now)),
            70..=71 => Op::Lend(self.some_task(random), Some(self.some_task(random))),
            72 => Op::Lend(self.some_task(random), None),
            73..=74 => Op::Raise(self.some_task(random), Some(self.some_ceiling(random, now))),
            75 => Op::Raise(self.some_task(random), None),
            _ => Op::Advance,
        }
    }
}
