//! Each task's periods: from the records (what was executed, and when) and from the allocators'
//! release events (which release it was, and how it ended).
//!
//! The records of a task are cut into intervals, each from one release to the next. A release event
//! names the interval that begins with it; earlier intervals belong to the release before.

use std::collections::VecDeque;

use punctual_dispatcher::TaskId;
use punctual_policies::{NewRelease, PeriodBuilder, PeriodParams, ReleaseEvent};
use punctual_taskset::{TaskSet, TaskSpec};
use punctual_trace::kind::{self, event};
use punctual_trace::{JobEnd, Period, Record};
use punctual_workload::Work;

use crate::domain::{Key, KeyedEvent};
use crate::lateness::{Lateness, Latenesses};

const COMPLETED: u32 = kind::EVENT + event::COMPLETED;
const EXHAUSTED: u32 = kind::EVENT + event::EXHAUSTED;
const EXPIRED: u32 = kind::EVENT + event::EXPIRED;
const RELEASED: u32 = kind::EVENT + event::RELEASED;
const READY: u32 = kind::EVENT + event::TASK_READY;
const BLOCKED: u32 = kind::EVENT + event::TASK_BLOCKED;

/// A task's records from one release to the next. Times are ns.
struct Interval {
    key: Key,
    begun: u64,
    /// What was charged.
    executed: u64,
    started: Option<u64>,
    /// It was selected at the instant at which it began.
    at_once: bool,
    asleep: u64,
    /// Its job has ended.
    over: bool,
    /// Its task lent its jobs, or executed others'.
    lent: bool,
}

impl Interval {
    fn slept(&mut self, ns: u64) {
        self.asleep += if self.over { 0 } else { ns };
    }
}

/// How a release ended: when, what it used, what its task gave up of its budget, and what it
/// executed beyond that, ns.
struct Ended {
    at: u64,
    end: JobEnd,
    used: u64,
    unused: u64,
    extended: u64,
}

struct TaskRecords {
    intervals: VecDeque<Interval>,
    periods: PeriodBuilder,
    /// How the latest release ended; applied when its intervals are complete.
    ended: Option<Ended>,
    running: bool,
    blocked: Option<u64>,
    /// The place of the task to which it lends; and how many tasks lend to it.
    lends_to: Option<usize>,
    lenders: u32,
}

impl TaskRecords {
    fn new(index: usize, spec: &TaskSpec) -> TaskRecords {
        let waits = Work::of(&spec.body).is_some_and(|w| !w.is_forever());
        TaskRecords {
            intervals: VecDeque::new(),
            periods: PeriodBuilder::new(PeriodParams::new(index as u32, spec), waits),
            ended: None,
            running: false,
            blocked: None,
            lends_to: None,
            lenders: 0,
        }
    }

    /// Adds the suspension so far to the latest interval; what follows belongs to a later one.
    fn wakes(&mut self, at: u64) {
        if let (Some(since), Some(interval)) = (self.blocked, self.intervals.back_mut()) {
            interval.slept(at.saturating_sub(since));
        }
    }
}

/// Those of one domain.
pub(crate) struct DomainPeriods {
    /// By place in the set.
    tasks: Vec<TaskRecords>,
    /// Places in the set, by number in the dispatcher.
    places: Vec<usize>,
    /// A job that is being added: for this task, at this time.
    adding: Option<(u32, u64)>,
    /// When the dispatcher last selected another job, ns, if no task has begun to run since.
    selected: Option<u64>,
    /// Records are missing; release events may still refer to them.
    behind: bool,
    pub latenesses: Latenesses,
}

impl DomainPeriods {
    /// Of tasks with these numbers in the dispatcher.
    pub fn new(set: &TaskSet, joined: &[(usize, TaskId)]) -> DomainPeriods {
        let mut places =
            vec![usize::MAX; joined.iter().map(|(_, n)| n.0 as usize + 1).max().unwrap_or(0)];
        joined.iter().for_each(|&(index, n)| places[n.0 as usize] = index);
        let tasks = set
            .tasks
            .iter()
            .enumerate()
            .map(|(index, spec)| TaskRecords::new(index, spec))
            .collect();
        DomainPeriods {
            tasks,
            places,
            adding: None,
            selected: None,
            behind: false,
            latenesses: Latenesses::default(),
        }
    }

    /// A task's place in the set.
    pub fn place(&self, task: u32) -> Option<usize> {
        self.places.get(task as usize).copied().filter(|&p| p != usize::MAX)
    }

    /// The number in the dispatcher of the task at this place.
    pub fn number(&self, place: usize) -> Option<TaskId> {
        self.places.iter().position(|&p| p == place).map(|number| TaskId(number as u32))
    }

    /// Records that follow those before.
    pub fn records(&mut self, records: &[Record]) {
        for r in records {
            match r.kind {
                kind::SELECTED => self.selected = Some(r.time),
                kind::JOB_ADD => self.adding = Some((r.small, r.time)),
                kind::JOB_ADD_2 => {
                    if let Some((task, time)) = self.adding.take() {
                        self.release(task, Key::Made(r.b), time);
                    }
                }
                RELEASED => self.release(r.small, Key::Reserved(r.a), r.time),
                _ => self.other(r),
            }
        }
    }

    fn release(&mut self, task: u32, key: Key, at: u64) {
        let Some(place) = self.place(task) else { return };
        let task = &mut self.tasks[place];
        // Who runs already needs not begin.
        let started = task.running.then_some(at);
        task.wakes(at);
        task.blocked = task.blocked.map(|_| at);
        let (executed, asleep) = (0, 0);
        task.intervals.push_back(Interval {
            key,
            begun: at,
            executed,
            started,
            at_once: false,
            asleep,
            over: false,
            lent: task.lends_to.is_some() || task.lenders > 0,
        });
    }

    fn other(&mut self, r: &Record) {
        let Some(place) = self.place(r.small) else { return };
        let selected = self.selected;
        let task = &mut self.tasks[place];
        match r.kind {
            kind::RUNNING => {
                task.running = true;
                self.selected = None;
                if let Some(interval) = task.intervals.back_mut().filter(|s| s.started.is_none()) {
                    interval.started = Some(r.time);
                    interval.at_once = selected == Some(interval.begun);
                }
            }
            kind::STOPPED => task.running = false,
            kind::CHARGE_TASK => {
                task.intervals.iter_mut().next_back().into_iter().for_each(|s| s.executed += r.a)
            }
            kind::TASK_LEND => self.lends(place, r.a),
            // A task that lends is ready while the task is that its jobs execute.
            BLOCKED => task.blocked = Some(r.time),
            READY => {
                task.wakes(r.time);
                task.blocked = None;
            }
            COMPLETED | EXHAUSTED | EXPIRED => {
                task.wakes(r.time);
                task.intervals.iter_mut().next_back().into_iter().for_each(|s| s.over = true);
            }
            _ => {}
        }
    }

    /// The task at this place lends to the task of another number, or to none.
    fn lends(&mut self, place: usize, to: u64) {
        let to = u32::try_from(to).ok().and_then(|to| self.place(to));
        let before = std::mem::replace(&mut self.tasks[place].lends_to, to);
        before
            .into_iter()
            .for_each(|p| self.tasks[p].lenders = self.tasks[p].lenders.saturating_sub(1));
        to.into_iter().for_each(|p| self.tasks[p].lenders += 1);
        for p in to.into_iter().chain([place]) {
            self.tasks[p].intervals.back_mut().into_iter().for_each(|i| i.lent = true);
        }
    }

    /// Some records are missing here: what stands before is of no release for sure.
    pub fn gap(&mut self) {
        self.behind = true;
        self.adding = None;
        self.selected = None;
        for task in &mut self.tasks {
            task.intervals.clear();
            task.running = false;
            task.blocked = None;
        }
    }

    /// Release events are missing: the latest release of each task may have ended, and others
    /// begun.
    pub fn events_lost(&mut self) {
        for task in &mut self.tasks {
            task.periods.discard();
            task.ended = None;
        }
    }

    /// A release event. All records of it were added before.
    pub fn event(&mut self, keyed: &KeyedEvent, sink: &mut dyn FnMut(Period)) {
        match keyed.event {
            ReleaseEvent::Released { index, number, release, deadline, assigned, .. } => {
                if let Some(period) = self.close(index as usize, Some(keyed.key)) {
                    sink(period);
                }
                let task = &mut self.tasks[index as usize];
                if let Some(i) = task.intervals.front().filter(|i| i.key == keyed.key && i.at_once)
                {
                    self.latenesses.add(i.started.unwrap_or(i.begun).saturating_sub(release));
                }
                task.periods.released(NewRelease { number, release, deadline, assigned });
            }
            ReleaseEvent::Ended { at, index, end, used, unused, extended, .. } => {
                let end = end.into();
                self.tasks[index as usize].ended = Some(Ended { at, end, used, unused, extended });
            }
            ReleaseEvent::Replenished { at, index, used, unused, .. } => {
                let (end, extended) = (JobEnd::Replenished, 0);
                self.tasks[index as usize].ended = Some(Ended { at, end, used, unused, extended });
            }
            ReleaseEvent::Lost { index, first, count, .. } => {
                let periods = &self.tasks[index as usize].periods;
                (first..first.saturating_add(count)).for_each(|number| sink(periods.lost(number)));
            }
            _ => {}
        }
    }

    /// The end of the run: releases that are over and that no other follows.
    pub fn finish(&mut self, sink: &mut dyn FnMut(Period)) {
        for index in 0..self.tasks.len() {
            if self.tasks[index].ended.is_some() {
                self.close(index, None).into_iter().for_each(&mut *sink);
            }
        }
    }

    /// Release latency: from each release to its task running.
    pub fn lateness(&mut self) -> Option<Lateness> {
        self.latenesses.figures()
    }

    /// The period of the latest release, with all intervals before the one of this key, which is
    /// the first then.
    fn close(&mut self, index: usize, until: Option<Key>) -> Option<Period> {
        let task = &mut self.tasks[index];
        let found = until.and_then(|key| task.intervals.iter().position(|i| i.key == key));
        let behind = self.behind;
        self.behind &= found.is_none();
        let count = match found {
            Some(at) => at,
            // One that is not there was lost with a gap: the others are of later ones.
            None if behind => 0,
            None => task.intervals.len(),
        };
        let ended = task.ended.take();
        let used = ended.as_ref().map_or(0, |e| e.used);
        let (mut executed, mut lent) = (0, false);
        for interval in task.intervals.drain(..count) {
            executed += interval.executed;
            lent |= interval.lent;
            task.periods.suspended(interval.asleep);
            interval.started.into_iter().for_each(|at| task.periods.started(at));
        }
        // What a task executed may have been charged to another one's job.
        task.periods.executed(if count > 0 && !lent { executed } else { used });
        if let Some(Ended { at, end, unused, extended, .. }) = ended {
            task.periods.unused(unused);
            task.periods.extended(extended);
            match end {
                JobEnd::Replenished => task.periods.replenished(at),
                _ => task.periods.ended(end, at),
            }
        }
        let period = task.periods.close()?;
        // Without its records, what its job used was counted between other instants, and cannot be
        // compared with its budget.
        let known = count > 0 || !behind;
        Some(if known { period } else { period.unknown() })
    }
}

#[cfg(test)]
mod tests;
