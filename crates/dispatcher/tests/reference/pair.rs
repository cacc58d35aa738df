//! Both dispatchers, the real one and the reference: each operation to both, and all that they
//! say compared after each.

use std::fmt::Debug;

use punctual_dispatcher::{Dispatcher, End, JobId, Limits, ReservationId, TaskId, TimerId};

use crate::events::{Names, Ring};
use crate::invariants::Ledger;
use crate::model::Model;
use crate::operation::Op;

/// Panics unless both say the same.
#[track_caller]
pub fn same<T: PartialEq + Debug>(real: T, model: T, what: &str) {
    assert_eq!(real, model, "{what}: dispatcher (left) and reference differ");
}

/// Runners-up that are compared.
const RANKS: u32 = 4;

pub struct Pair {
    pub real: Dispatcher,
    pub model: Model,
    pub now: u64,
    pub names: Names,
    pub ring: Ring,
    pub ledger: Ledger,
    /// Events wait until they are asked for.
    pub lazy: bool,
    /// Selection is only looked at when it is asked for.
    pub quiet: bool,
    /// Whatever is due was done, and nothing was executed since.
    pub fresh: bool,
    /// A job and a timer that have ended.
    stale_job: JobId,
    stale_timer: TimerId,
}

impl Pair {
    pub fn new(limits: Limits, now: u64, lazy: bool, quiet: bool) -> Pair {
        Pair {
            real: Dispatcher::new(limits).expect("valid limits"),
            model: Model::new(limits),
            now,
            names: Names::default(),
            ring: Ring::new(limits.events),
            ledger: Ledger::new(&limits),
            lazy,
            quiet,
            fresh: false,
            stale_job: JobId::from_u64(0),
            stale_timer: TimerId::from_u64(0),
        }
    }

    /// A copy of all but the real one, which was brought to the same state.
    pub fn beside(&self, real: Dispatcher) -> Pair {
        Pair {
            real,
            model: self.model.clone(),
            names: self.names.clone(),
            ring: self.ring.clone(),
            ledger: self.ledger.clone(),
            ..*self
        }
    }

    /// The job at a place among those that are there, in both names; the reference has no job 0.
    fn pick(&self, place: usize) -> (JobId, u64) {
        match self.model.jobs.get(place) {
            Some(job) => (self.names.job(job.id), job.id),
            None => (self.stale_job, 0),
        }
    }

    pub fn apply(&mut self, op: &Op) {
        self.call(op);
        self.compare_events(if self.lazy { 0 } else { usize::MAX });
        self.compare_state();
        if !self.quiet {
            self.compare_selection(RANKS);
        }
        if !self.lazy {
            self.check_ledger();
        }
    }

    fn call(&mut self, op: &Op) {
        let now = self.now;
        let (real, model) = (&mut self.real, &mut self.model);
        match op {
            Op::Pass(by) => {
                self.now += by;
                self.fresh = false;
            }
            Op::Advance => {
                real.advance(now);
                model.advance(now);
                self.fresh = true;
            }
            Op::Look { ranks } => self.compare_selection(*ranks),
            Op::Take(most) => self.compare_events(*most),
            Op::AddTask => {
                let number = real.add_task(now).map(|t| t.0);
                same(number, model.add_task(number.ok()), "add_task");
            }
            Op::Block(task) => same(
                real.task_blocked(TaskId(*task), now),
                model.task_blocked(*task, now),
                "blocked",
            ),
            Op::Wake(task) => {
                same(real.task_ready(TaskId(*task), now), model.task_ready(*task, now), "ready")
            }
            Op::Gone(task) => {
                same(real.task_gone(TaskId(*task), now), model.task_gone(*task, now), "gone")
            }
            Op::Done(task) => {
                same(real.task_done(TaskId(*task), now), model.task_done(*task, now), "done")
            }
            Op::Lend(task, to) => same(
                real.lend(TaskId(*task), to.map(TaskId), now),
                model.lend(*task, *to, now),
                "lend",
            ),
            Op::Raise(task, ceiling) => same(
                real.raise(TaskId(*task), *ceiling, now),
                model.raise(*task, *ceiling),
                "raise",
            ),
            Op::AddJob(job) => {
                let id = real.add_job(job, now);
                let model = model.add_job(job, now);
                same(id.map(|_| ()), model.map(|_| ()), "add_job");
                if let (Ok(id), Ok(model)) = (id, model) {
                    assert!(
                        self.names.model_job(id).is_none(),
                        "add_job: an id that was given out before"
                    );
                    self.names.name_job(model, id);
                }
            }
            Op::Cancel(place) => self.end(*place, End::Cancelled),
            Op::Complete(place) => self.end(*place, End::Completed),
            Op::Charge(place, ran) => {
                let (id, model_id) = self.pick(*place);
                self.ledger.charge(&self.model, model_id, *ran);
                let due = self.model.charge_job(model_id, *ran, now);
                same(self.real.charge_job(id, *ran, now), due, "charge_job");
                self.fresh = false;
            }
            Op::ChargeTask(task, ran) => {
                if let Some(id) = model.job_of_task(*task) {
                    self.ledger.charge(model, id, *ran);
                }
                let due = model.charge_task(*task, *ran, now);
                same(real.charge_task(TaskId(*task), *ran, now), due, "charge_task");
                self.fresh = false;
            }
            Op::ChargeSelected(ran) => {
                let selected = real.select(0, now);
                let path = model.ranked(1).pop();
                let id = path.and_then(|p| p.last().copied());
                same(selected.map(|s| self.names.model_job(s)), id.map(Some), "select");
                if let (Some(selected), Some(id)) = (selected, id) {
                    self.ledger.charge(model, id, *ran);
                    let due = model.charge_job(id, *ran, now);
                    same(real.charge_job(selected, *ran, now), due, "charge_job");
                    self.fresh = false;
                }
            }
            Op::Order(group, by) => {
                same(real.set_order(*group, by), model.set_order(*group, by), "set_order")
            }
            Op::Granularity(ns) => {
                same(real.set_granularity(*ns), Ok(()), "set_granularity");
                model.granularity = *ns;
                self.fresh = false;
            }
            Op::AskTimer(at, cookie) => {
                let id = real.ask_timer(*at, *cookie, now);
                let model = model.ask_timer(*at, *cookie);
                same(id.map(|_| ()), model.map(|_| ()), "ask_timer");
                if let (Ok(id), Ok(model)) = (id, model) {
                    self.names.timers.push((model, id));
                }
            }
            Op::CancelTimer(place) => {
                let (id, model_id) = match model.timers.get(*place) {
                    Some(timer) => (self.names.timer(timer.id), timer.id),
                    None => (self.stale_timer, 0),
                };
                same(real.cancel_timer(id, now), model.cancel_timer(model_id), "cancel_timer");
            }
            Op::DraftWindow(start, length, begins) => {
                let drafted = model.draft_window(*start, *length, *begins);
                same(real.draft_window(*start, *length, *begins, now), drafted, "draft_window");
            }
            Op::DropWindows => {
                real.drop_windows(now);
                model.drop_windows();
            }
            Op::AddReservation(r) => {
                let number = real.add_reservation(r, now).map(|r| r.0 as usize);
                same(number, model.add_reservation(r, number.ok()), "add_reservation");
            }
            Op::ChangeReservation(r, to) => {
                let changed = model.change_reservation(*r as usize, to);
                same(
                    real.change_reservation(ReservationId(*r), to, now),
                    changed,
                    "change_reservation",
                );
            }
            Op::RemoveReservation(r) => {
                let removed = model.remove_reservation(*r as usize, now);
                same(
                    real.remove_reservation(ReservationId(*r), now),
                    removed,
                    "remove_reservation",
                );
            }
            Op::TakeLost(r) => {
                same(real.take_lost(ReservationId(*r)), model.take_lost(*r as usize), "take_lost")
            }
        }
    }

    fn end(&mut self, place: usize, end: End) {
        let (id, model_id) = self.pick(place);
        let ended = self.model.end_job(model_id, end, self.now);
        let real = match end {
            End::Completed => self.real.complete_job(id, self.now),
            _ => self.real.cancel_job(id, self.now),
        };
        same(real, ended, "the end of a job");
    }

    /// Puts the new events into the ring, and takes up to `most` of it.
    fn compare_events(&mut self, most: usize) {
        self.ring.put(self.model.events.drain(..), self.now);
        let events =
            self.ring.compare(&mut self.real, &mut self.names, most, self.model.limits.groups);
        if !self.lazy {
            self.ledger.ended(&events);
        }
    }

    /// Everything that can be read, of every job, task and reservation.
    fn compare_state(&mut self) {
        let (real, model) = (&self.real, &self.model);
        for (r, v) in model.reservations.iter().enumerate() {
            let id = ReservationId(r as u32);
            let job = real.job_of(id);
            same(job.is_some(), v.as_ref().is_some_and(|v| v.job.is_some()), "job_of");
            if let (Some(job), Some(model_job)) = (job, v.as_ref().and_then(|v| v.job)) {
                self.names.name_job(model_job, job);
            }
            same(real.delayed(id), v.as_ref().map_or(0, |v| v.delayed), "delayed");
            same(
                i128::from(real.enforcement_error(id)),
                v.as_ref().map_or(0, |v| v.error),
                "enforcement_error",
            );
        }
        for job in &model.jobs {
            let id = self.names.job(job.id);
            let said = (real.standing(id), real.used(id), real.remaining(id), real.allowance(id));
            let expected = (Some(job.standing), job.used, job.remaining, model.allowance(job.id));
            if said != expected {
                same(
                    said,
                    expected,
                    &format!("standing, used, remaining, allowance at {} of {job:?}", self.now),
                );
            }
            let executed = job.task().map(|task| model.executed(task));
            same(real.task_of(id).map(|t| t.0), executed, "task_of");
            same(real.owner_of(id).map(|t| t.0), job.task(), "owner_of");
        }
        for task in 0..model.limits.tasks {
            let job = real.job_of_task(TaskId(task)).map(|id| self.names.model_job(id));
            same(job, model.job_of_task(task).map(Some), "job_of_task");
        }
        self.forget();
    }

    /// Drops names whose end was reported.
    fn forget(&mut self) {
        if !self.ring.is_empty() {
            return;
        }
        let (model, names) = (&self.model, &mut self.names);
        if let Some(ended) = names.jobs.iter().rev().find(|n| model.job(n.0).is_none()) {
            self.stale_job = ended.1;
            names.jobs.retain(|n| model.job(n.0).is_some());
        }
        let there = |id| model.timers.iter().any(|t| t.id == id);
        if let Some(ended) = names.timers.iter().rev().find(|n| !there(n.0)) {
            self.stale_timer = ended.1;
            names.timers.retain(|n| there(n.0));
        }
    }

    fn compare_selection(&mut self, ranks: u32) {
        let now = self.now;
        let ranked = self.model.ranked(ranks.max(1) as usize + 1);
        let selected = self.real.select(0, now);
        let best = ranked.first().and_then(|path| path.last().copied());
        same(selected.map(|s| self.names.model_job(s)), best.map(Some), "select");
        let path: Vec<_> = self.real.path(0).map(|id| self.names.model_job(id)).collect();
        let expected: Vec<_> = ranked.first().into_iter().flatten().map(|id| Some(*id)).collect();
        same(path, expected, "path");
        for rank in 0..=ranks {
            let real = self.real.runner_up(0, rank).map(|id| self.names.model_job(id));
            let model = ranked.get(rank as usize).and_then(|path| path.last()).map(|id| Some(*id));
            same(real, model, "runner_up");
        }
        if self.fresh {
            same(self.real.timer(0, ranks, now), self.model.timer(ranks as usize, now), "timer");
        }
        self.check_selection(selected);
    }
}
