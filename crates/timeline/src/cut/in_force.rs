//! What is in force at some time of a trace, as the records that say it.

use std::collections::{BTreeMap, VecDeque};

use punctual_trace::{kind, kind::event, Record};

use super::is_release;

/// No task: server jobs and segments.
const NONE: u32 = u32::MAX;
const SERVER_ENDS: [u32; 3] = [
    kind::EVENT + event::COMPLETED,
    kind::EVENT + event::EXHAUSTED,
    kind::EVENT + event::CANCELLED,
];
/// Overrun policies whose delayed waits return one by one (`enum pd_overrun`).
const CARRY: [u64; 2] = [0, 3];

/// A record, and its number in the trace.
type Numbered = (u64, Record);

/// What is in force after the records so far. Its memory is that of the set, of the time that a
/// server's budget lasts, and of the releases that a task is behind.
#[derive(Debug, Default)]
pub(super) struct InForce {
    number: u64,
    /// The set: all of it.
    declared: Vec<Numbered>,
    /// By the dispatcher's task numbers.
    tasks: BTreeMap<u32, Task>,
    /// Threads that execute, by task and thread.
    running: BTreeMap<(u32, u64), Numbered>,
    /// The task that executed last.
    executed: Option<u32>,
    /// Ends of servers and segments, with the tasks that used them up.
    supply: VecDeque<Numbered>,
    /// How long one of these may matter, ns.
    longest: u64,
    /// The task whose reservation is being declared.
    declaring: u32,
}

#[derive(Debug, Default)]
struct Task {
    /// Delayed waits return one by one.
    carries: bool,
    /// It has waited for a release.
    waited: bool,
    /// Releases that it was not done with.
    behind: u64,
    /// Its releases and waits since it was last done with all of them.
    since: Vec<Numbered>,
    blocked: Option<Numbered>,
    lends: Option<Numbered>,
    raised: Option<Numbered>,
    gone: Option<Numbered>,
}

impl InForce {
    pub fn record(&mut self, r: &Record) {
        let this = (self.number, *r);
        self.number += 1;
        match r.kind {
            kind::GRANULARITY | kind::ORDER | kind::TASK_ADD => self.declared.push(this),
            kind::WINDOW_ADD | kind::WINDOW_DROP | kind::TASK_PLACE | kind::POLICY => {
                self.declared.push(this)
            }
            kind::RESERVATION_ADD..=kind::RESERVATION_CHANGE | kind::RESERVATION_REMOVE => {
                self.reservation(r);
                self.declared.push(this);
            }
            kind::RUNNING => {
                self.executed = Some(r.small);
                self.running.insert((r.small, r.a), this);
            }
            kind::STOPPED => drop(self.running.remove(&(r.small, r.b))),
            kind::CHARGE_TASK => self.executed = Some(r.small),
            kind::TASK_BLOCKED => self.task(r).blocked = Some(this),
            kind::TASK_READY => self.task(r).blocked = None,
            kind::TASK_LEND => self.task(r).lends = (r.a != u64::from(NONE)).then_some(this),
            kind::TASK_RAISE => self.task(r).raised = (r.b != 0).then_some(this),
            kind::TASK_GONE => self.task(r).gone = Some(this),
            kind::TASK_DONE => self.task(r).done(this),
            _ if is_release(r) => self.task(r).released(this),
            _ => self.server(this),
        }
    }

    /// A gap: what executes at its other end is not known.
    pub fn lost(&mut self) {
        self.running.clear();
    }

    /// Records that say all of it, in the order of the trace. `from`: the time of it, ns.
    pub fn records(self, from: u64) -> Vec<Record> {
        let mut all = self.declared;
        all.extend(self.running.into_values());
        for task in self.tasks.into_values() {
            all.extend(task.since);
            all.extend(task.blocked);
            all.extend(task.lends);
            all.extend(task.raised);
            all.extend(task.gone);
        }
        let since = from.saturating_sub(self.longest);
        all.extend(self.supply.into_iter().filter(|(_, r)| r.time >= since));
        all.sort_by_key(|&(number, _)| number);
        all.into_iter().map(|(_, record)| record).collect()
    }

    fn task(&mut self, r: &Record) -> &mut Task {
        self.tasks.entry(r.small).or_default()
    }

    fn reservation(&mut self, r: &Record) {
        match r.kind {
            kind::RESERVATION_ADD => {
                self.declaring = r.small;
                if r.small == NONE {
                    self.longest = self.longest.max(r.b);
                }
            }
            kind::RESERVATION_ADD_3 if self.declaring != NONE => {
                self.tasks.entry(self.declaring).or_default().carries = CARRY.contains(&r.b);
            }
            _ => {}
        }
    }

    /// Ends of servers' budgets. A server's job does not say which server it was: that is found by
    /// the task that executed, which a charge of nothing names here.
    fn server(&mut self, (number, r): Numbered) {
        let ends = SERVER_ENDS.contains(&r.kind) && r.small == NONE;
        let event = r.kind.wrapping_sub(kind::EVENT);
        if !ends && !matches!(event, event::GROUP_IDLE | event::SEGMENT_EXHAUSTED) {
            return;
        }
        if let Some(small) = self.executed.filter(|_| ends) {
            let charge =
                Record { time: r.time, small, kind: kind::CHARGE_TASK, ..Record::default() };
            self.supply.push_back((number, charge));
        }
        self.supply.push_back((number, r));
        let old = |at: u64| at.saturating_add(self.longest) < r.time;
        while self.supply.front().is_some_and(|(_, first)| old(first.time)) {
            self.supply.pop_front();
        }
    }
}

impl Task {
    fn released(&mut self, this: Numbered) {
        if !self.waited {
            self.since.clear();
        } else if !self.carries {
            // Only the last release and the last wait matter.
            self.since.retain(|(_, r)| !is_release(r));
        }
        let releases = if this.1.kind == kind::EVENT + event::RELEASED { 1 } else { this.1.b };
        self.behind = self.behind.saturating_add(releases);
        self.since.push(this);
    }

    fn done(&mut self, this: Numbered) {
        self.behind = if self.waited { self.behind.saturating_sub(1) } else { 0 };
        self.waited = true;
        if self.behind == 0 || !self.carries {
            let last = self.since.iter().rfind(|(_, r)| is_release(r)).copied();
            self.since.clear();
            self.since.extend(last);
        }
        self.since.push(this);
    }
}
