//! Each task's periods: from the records (what was executed, and when) and from the allocators'
//! release events (which release it was, and how it ended).
//!
//! The records of a task are cut into intervals, each from one release to the next. A release event
//! names the interval that begins with it; earlier intervals belong to the release before.

use std::collections::{BTreeMap, VecDeque};

use punctual_dispatcher::End;
use punctual_policies::{NewRelease, PeriodBuilder, PeriodParams, ReleaseEvent};
use punctual_taskset::{TaskChange, TaskSpec};
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
    /// The index of the task to which it lends; and how many tasks lend to it.
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

/// A task that is being added to the dispatcher.
struct Joining {
    index: usize,
    /// Once it is known.
    number: Option<u32>,
    /// Records were lost meanwhile: perhaps that of its addition.
    lost: bool,
}

/// Those of one domain.
#[derive(Default)]
pub(crate) struct DomainPeriods {
    /// By index.
    tasks: BTreeMap<usize, TaskRecords>,
    /// Indices by number in the dispatcher, which gives a number to one task after another.
    indices: BTreeMap<u32, usize>,
    /// In the order in which their additions are recorded.
    joining: VecDeque<Joining>,
    /// A job that is being added: for this task, at this time.
    adding: Option<(u32, u64)>,
    /// When the dispatcher last selected another job, ns, if no task has begun to run since.
    selected: Option<u64>,
    /// Records are missing; release events may still refer to them.
    behind: bool,
    pub latenesses: Latenesses,
}

impl DomainPeriods {
    /// The next task whose addition is recorded is this one.
    pub fn joins(&mut self, index: usize, spec: &TaskSpec) {
        self.tasks.insert(index, TaskRecords::new(index, spec));
        self.joining.push_back(Joining { index, number: None, lost: false });
    }

    /// It has this number in the dispatcher; `None`: it was not added.
    pub fn joined(&mut self, index: usize, number: Option<u32>) {
        let Some(at) = self.joining.iter().position(|j| j.index == index) else { return };
        match number {
            Some(number) if !self.joining[at].lost => self.joining[at].number = Some(number),
            Some(number) => {
                self.joining.remove(at);
                self.indices.insert(number, index);
            }
            None => {
                self.joining.remove(at);
                self.tasks.remove(&index);
            }
        }
    }

    /// A task was added with this number: its index.
    fn added(&mut self, number: u32) -> Option<usize> {
        let known = |j: &Joining| j.number.is_none_or(|n| n == number);
        let at = self.joining.iter().position(known)?;
        let index = self.joining.remove(at)?.index;
        self.indices.insert(number, index);
        Some(index)
    }

    /// The index of the task that has this number at the latest record.
    pub fn index(&self, number: u32) -> Option<usize> {
        self.indices.get(&number).copied()
    }

    /// All records and events of a task were added: its latest release is over.
    pub fn left(&mut self, index: usize, sink: &mut dyn FnMut(Period)) {
        if self.tasks.get(&index).is_some_and(|task| task.ended.is_some()) {
            self.close(index, None).into_iter().for_each(sink);
        }
        // The dispatcher records the end of what is lent to a task that goes, not of what it lends.
        self.lends(index, u64::MAX);
        for other in self.tasks.values_mut() {
            other.lends_to = other.lends_to.filter(|&to| to != index);
        }
        self.tasks.remove(&index);
        self.indices.retain(|_, of| *of != index);
    }

    /// Records that follow those before. The index of the task that was added last.
    pub fn records(&mut self, records: &[Record]) -> Option<usize> {
        let mut added = None;
        for r in records {
            match r.kind {
                kind::TASK_ADD => added = self.added(r.small),
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
        added
    }

    fn release(&mut self, task: u32, key: Key, at: u64) {
        let Some(task) = self.of_number(task) else { return };
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
        let selected = self.selected;
        let Some(index) = self.index(r.small) else { return };
        let Some(task) = self.tasks.get_mut(&index) else { return };
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
            kind::TASK_LEND => self.lends(index, r.a),
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

    /// The task of this index lends to the task of another number, or to none.
    fn lends(&mut self, index: usize, to: u64) {
        let to = u32::try_from(to).ok().and_then(|to| self.index(to));
        let Some(task) = self.tasks.get_mut(&index) else { return };
        let before = std::mem::replace(&mut task.lends_to, to);
        if let Some(before) = before.and_then(|before| self.tasks.get_mut(&before)) {
            before.lenders = before.lenders.saturating_sub(1);
        }
        if let Some(to) = to.and_then(|to| self.tasks.get_mut(&to)) {
            to.lenders += 1;
        }
        for index in to.into_iter().chain([index]) {
            let latest = self.tasks.get_mut(&index).and_then(|task| task.intervals.back_mut());
            latest.into_iter().for_each(|interval| interval.lent = true);
        }
    }

    fn of_number(&mut self, number: u32) -> Option<&mut TaskRecords> {
        self.tasks.get_mut(self.indices.get(&number)?)
    }

    /// Other parameters from its next release on.
    pub fn change(&mut self, index: usize, change: &TaskChange) {
        let task = self.tasks.get_mut(&index).into_iter();
        task.for_each(|task| task.periods.change(change));
    }

    /// Some records are missing here: what stands before is of no release for sure.
    pub fn gap(&mut self) {
        self.behind = true;
        self.adding = None;
        self.selected = None;
        for joining in std::mem::take(&mut self.joining) {
            match joining.number {
                Some(number) => drop(self.indices.insert(number, joining.index)),
                None => self.joining.push_back(Joining { lost: true, ..joining }),
            }
        }
        for task in self.tasks.values_mut() {
            task.intervals.clear();
            task.running = false;
            task.blocked = None;
        }
    }

    /// Release events are missing: the latest release of each task may have ended, and others
    /// begun.
    pub fn events_lost(&mut self) {
        for task in self.tasks.values_mut() {
            task.periods.discard();
            task.ended = None;
        }
    }

    /// A release event. All records of it were added before.
    pub fn event(&mut self, keyed: &KeyedEvent, sink: &mut dyn FnMut(Period)) {
        let index = keyed.index;
        if let ReleaseEvent::Released { .. } = keyed.event {
            self.close(index, Some(keyed.key)).into_iter().for_each(&mut *sink);
        }
        let Some(task) = self.tasks.get_mut(&index) else { return };
        match keyed.event {
            ReleaseEvent::Released { number, release, deadline, assigned, .. } => {
                if let Some(i) = task.intervals.front().filter(|i| i.key == keyed.key && i.at_once)
                {
                    self.latenesses.add(i.started.unwrap_or(i.begun).saturating_sub(release));
                }
                task.periods.released(NewRelease { number, release, deadline, assigned });
            }
            ReleaseEvent::Ended { at, end, used, unused, extended, .. } => {
                // Only a wait completes a job.
                if end == End::Completed {
                    task.periods.waits();
                }
                task.ended = Some(Ended { at, end: end.into(), used, unused, extended });
            }
            ReleaseEvent::Replenished { at, used, unused, .. } => {
                let (end, extended) = (JobEnd::Replenished, 0);
                task.ended = Some(Ended { at, end, used, unused, extended });
            }
            ReleaseEvent::Lost { first, count, .. } => {
                let numbers = first..first.saturating_add(count);
                numbers.for_each(|number| sink(task.periods.lost(number)));
            }
            _ => {}
        }
    }

    /// The end of the run: releases that are over and that no other follows.
    pub fn finish(&mut self, sink: &mut dyn FnMut(Period)) {
        let over = self.tasks.iter().filter(|(_, task)| task.ended.is_some());
        for index in over.map(|(&index, _)| index).collect::<Vec<_>>() {
            self.close(index, None).into_iter().for_each(&mut *sink);
        }
    }

    /// Release latency: from each release to its task running.
    pub fn lateness(&mut self) -> Option<Lateness> {
        self.latenesses.figures()
    }

    /// The period of the latest release, with all intervals before the one of this key, which is
    /// the first then.
    fn close(&mut self, index: usize, until: Option<Key>) -> Option<Period> {
        let task = self.tasks.get_mut(&index)?;
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
