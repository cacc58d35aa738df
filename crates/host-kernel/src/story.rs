//! What became of each release: from the records (what was executed, and when) and from what the allocators told (what
//! it was, and how it ended).
//!
//! The records of a task are cut into stretches, each from one release to the next. A release that is told names the
//! stretch that begins with it; what stands before belongs to the release before.

use std::collections::VecDeque;

use punctual_dispatcher::{End, TaskId};
use punctual_policies::Told;
use punctual_taskset::{Body, TaskSet};
use punctual_trace::kind::{self, event};
use punctual_trace::{has_slept, Period, Record, NEVER};
use punctual_workload::Work;

use crate::domain::{Key, Tale};
use crate::lateness::{Lateness, Latenesses};

const COMPLETED: u32 = kind::EVENT + event::COMPLETED;
const EXHAUSTED: u32 = kind::EVENT + event::EXHAUSTED;
const EXPIRED: u32 = kind::EVENT + event::EXPIRED;
const RELEASED: u32 = kind::EVENT + event::RELEASED;

/// A task's records from one release to the next. Times are ns.
struct Stretch {
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
}

impl Stretch {
    fn slept(&mut self, ns: u64) {
        self.asleep += if self.over { 0 } else { ns };
    }
}

/// The release that was told last.
struct Open {
    number: u64,
    release: u64,
    deadline: u64,
    ended: Option<Ended>,
}

/// How a release ended: when, what it used, and what its task gave up of its budget, ns.
struct Ended {
    at: u64,
    end: End,
    used: u64,
    unused: u64,
}

#[derive(Default)]
struct Thread {
    stretches: VecDeque<Stretch>,
    open: Option<Open>,
    running: bool,
    blocked: Option<u64>,
}

impl Thread {
    /// So far it slept; if it goes on, that is no matter of this stretch any more.
    fn wakes(&mut self, at: u64) {
        if let (Some(since), Some(stretch)) = (self.blocked, self.stretches.back_mut()) {
            stretch.slept(at.saturating_sub(since));
        }
    }
}

/// One domain's.
pub(crate) struct Story<'a> {
    set: &'a TaskSet,
    /// By place in the set.
    threads: Vec<Thread>,
    /// Places in the set, by number in the dispatcher.
    places: Vec<usize>,
    /// A job that is being added: for this task, at this time.
    adding: Option<(u32, u64)>,
    /// When the dispatcher last selected another job, ns, and nobody has begun to run since.
    selected: Option<u64>,
    /// Records are missing, and what was told since is of what stood before.
    behind: bool,
    pub latenesses: Latenesses,
}

impl<'a> Story<'a> {
    /// Of tasks with these numbers in the dispatcher.
    pub fn new(set: &'a TaskSet, joined: &[(usize, TaskId)]) -> Story<'a> {
        let mut places = vec![usize::MAX; joined.iter().map(|(_, n)| n.0 as usize + 1).max().unwrap_or(0)];
        joined.iter().for_each(|&(index, n)| places[n.0 as usize] = index);
        let threads = set.tasks.iter().map(|_| Thread::default()).collect();
        Story { set, threads, places, adding: None, selected: None, behind: false, latenesses: Latenesses::default() }
    }

    /// A task's place in the set.
    pub fn place(&self, task: u32) -> Option<usize> {
        self.places.get(task as usize).copied().filter(|&p| p != usize::MAX)
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
        let thread = &mut self.threads[place];
        // Who runs already needs not begin.
        let started = thread.running.then_some(at);
        thread.wakes(at);
        thread.blocked = thread.blocked.map(|_| at);
        let (executed, asleep) = (0, 0);
        thread.stretches.push_back(Stretch { key, begun: at, executed, started, at_once: false, asleep, over: false });
    }

    fn other(&mut self, r: &Record) {
        let Some(place) = self.place(r.small) else { return };
        let selected = self.selected;
        let thread = &mut self.threads[place];
        match r.kind {
            kind::RUNNING => {
                thread.running = true;
                self.selected = None;
                if let Some(stretch) = thread.stretches.back_mut().filter(|s| s.started.is_none()) {
                    stretch.started = Some(r.time);
                    stretch.at_once = selected == Some(stretch.begun);
                }
            }
            kind::STOPPED => thread.running = false,
            kind::CHARGE_TASK => thread.stretches.iter_mut().next_back().into_iter().for_each(|s| s.executed += r.a),
            kind::TASK_BLOCKED => thread.blocked = Some(r.time),
            kind::TASK_READY => {
                thread.wakes(r.time);
                thread.blocked = None;
            }
            COMPLETED | EXHAUSTED | EXPIRED => {
                thread.wakes(r.time);
                thread.stretches.iter_mut().next_back().into_iter().for_each(|s| s.over = true);
            }
            _ => {}
        }
    }

    /// Some records are missing here: what stands before is of no release for sure.
    pub fn gap(&mut self) {
        self.behind = true;
        self.adding = None;
        self.selected = None;
        for thread in &mut self.threads {
            thread.stretches.clear();
            thread.running = false;
            thread.blocked = None;
        }
    }

    /// Some of what was to be told is missing here: a release that was told may have ended, and others begun.
    pub fn untold(&mut self) {
        self.threads.iter_mut().for_each(|thread| thread.open = None);
    }

    /// What was told. All records of it have been here.
    pub fn tale(&mut self, tale: &Tale, sink: &mut dyn FnMut(Period)) {
        match tale.told {
            Told::Released { index, number, release, deadline, .. } => {
                if let Some(period) = self.close(index as usize, Some(tale.key)) {
                    sink(period);
                }
                let thread = &mut self.threads[index as usize];
                if let Some(s) = thread.stretches.front().filter(|s| s.key == tale.key && s.at_once) {
                    self.latenesses.add(s.started.unwrap_or(s.begun).saturating_sub(release));
                }
                thread.open = Some(Open { number, release, deadline, ended: None });
            }
            Told::Ended { at, index, end, used, unused, .. } => {
                if let Some(open) = &mut self.threads[index as usize].open {
                    open.ended = Some(Ended { at, end, used, unused });
                }
            }
            Told::Lost { index, first, count, .. } => {
                for number in first..first.saturating_add(count) {
                    sink(self.lost(index, number));
                }
            }
            _ => {}
        }
    }

    /// The end: releases that are over and that nothing follows.
    pub fn finish(&mut self, sink: &mut dyn FnMut(Period)) {
        for index in 0..self.threads.len() {
            if self.threads[index].open.as_ref().is_some_and(|o| o.ended.is_some()) {
                self.close(index, None).into_iter().for_each(&mut *sink);
            }
        }
    }

    /// From due to running.
    pub fn lateness(&mut self) -> Option<Lateness> {
        self.latenesses.figures()
    }

    /// The release that was told last, with all that was executed until the stretch of this key; that is the first then.
    fn close(&mut self, index: usize, until: Option<Key>) -> Option<Period> {
        let thread = &mut self.threads[index];
        let found = until.and_then(|key| thread.stretches.iter().position(|s| s.key == key));
        let behind = self.behind;
        self.behind &= found.is_none();
        let count = match found {
            Some(at) => at,
            // One that is not there was lost with a gap: the others are of later ones.
            None if behind => 0,
            None => thread.stretches.len(),
        };
        let (mut executed, mut started, mut asleep) = (0u64, None, 0u64);
        for stretch in thread.stretches.drain(..count) {
            executed += stretch.executed;
            asleep += stretch.asleep;
            started = started.or(stretch.started);
        }
        let open = thread.open.take()?;
        let ended = open.ended.unwrap_or(Ended { at: NEVER, end: End::Cancelled, used: executed, unused: 0 });
        let Ended { at, end, used, unused } = ended;
        let spec = &self.set.tasks[index];
        let waits = Work::of(&spec.body).is_some_and(|w| !w.is_forever());
        let slept = (!matches!(spec.body, Body::Spin(_))).then(|| has_slept(asleep, spec.deadline));
        let period = Period {
            task: index as u32,
            number: open.number,
            release: open.release,
            deadline: open.deadline,
            assigned: spec.budget,
            received: if count > 0 { executed } else { used },
            unused,
            started: started.unwrap_or(NEVER),
            completed: if end == End::Completed { at } else { NEVER },
            end: end.into(),
            ready_throughout: false,
            woken_late: false,
            miss: false,
            overrun: false,
        };
        let judged = period.judged(waits, slept);
        // What its jobs say of it counts by other instants, and cannot be held against its budget.
        let known = count > 0 || !behind;
        Some(if known { judged } else { judged.unknown() })
    }

    fn lost(&self, index: u32, number: u64) -> Period {
        let spec = &self.set.tasks[index as usize];
        let open = self.threads[index as usize].open.as_ref();
        let since = open.map_or(0, |o| number.saturating_sub(o.number).saturating_mul(spec.period));
        let release = open.map_or(0, |o| o.release.saturating_add(since));
        Period::lost(index, number, release, release.saturating_add(spec.deadline), spec.budget)
    }
}

#[cfg(test)]
mod tests;
