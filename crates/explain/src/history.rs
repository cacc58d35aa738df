//! What the records say of each task, group and budget group, read in one pass.

use std::collections::HashMap;

use punctual_taskset::TaskSet;
use punctual_trace::kind::{self, event};
use punctual_trace::{Period, Record, Trace};

use crate::execution::{Execution, Executions};
use crate::supply::Supply;

/// No task: server jobs and segments.
const NONE: u32 = u32::MAX;
/// Kinds of the events that are read.
const RELEASED: u32 = kind::EVENT + event::RELEASED;
const COMPLETED: u32 = kind::EVENT + event::COMPLETED;
const EXHAUSTED: u32 = kind::EVENT + event::EXHAUSTED;
const CANCELLED: u32 = kind::EVENT + event::CANCELLED;
const TASK_GONE: u32 = kind::EVENT + event::TASK_GONE;
const RELEASES_LOST: u32 = kind::EVENT + event::RELEASES_LOST;
const SEGMENT_EXHAUSTED: u32 = kind::EVENT + event::SEGMENT_EXHAUSTED;
const GROUP_IDLE: u32 = kind::EVENT + event::GROUP_IDLE;

/// What the records say of one task. Times are ns, in order.
#[derive(Clone, Debug, Default)]
pub(crate) struct TaskHistory {
    /// By release number.
    pub released: HashMap<u64, Released>,
    /// When the releases were made, the lost ones included.
    pub releases: Vec<u64>,
    /// Its waits for the next release.
    pub done: Vec<u64>,
    /// Blocked from and to.
    pub blocked: Vec<(u64, u64)>,
    /// Ends of its jobs: when, and whether exhausted.
    pub ends: Vec<(u64, bool)>,
    /// Jobs that a policy added itself: when, and their start.
    pub jobs: Vec<(u64, u64)>,
    /// Rows of windows of its reservation: start after the release, and length.
    pub rows: Vec<Vec<(u64, u64)>>,
    pub periods: Vec<Period>,
    pub executions: Vec<(u64, u64)>,
}

/// A release that the dispatcher made.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Released {
    /// When it made it, ns: late, if its timer was.
    pub at: u64,
    /// The budget, less what it settles, ns.
    pub budget: u64,
    /// How many were made or lost before.
    before: usize,
}

/// What a trace says.
#[derive(Debug, Default)]
pub(crate) struct History {
    /// By places in the set.
    pub tasks: Vec<TaskHistory>,
    /// By places in the set.
    pub groups: Vec<Supply>,
    pub budget_groups: Vec<Supply>,
    /// Policies that were swapped, in order: since when, ns, the dispatcher's group, the name.
    policies: Vec<(u64, u32, String)>,
    /// In order of start.
    pub executions: Vec<Execution>,
    /// Between the records before and after a gap.
    pub gaps: Vec<(u64, u64)>,
    /// The last time of a record.
    pub end: u64,
}

/// Builds a [`History`].
struct Reader<'t> {
    set: &'t TaskSet,
    /// By the dispatcher's task numbers.
    places: Vec<u32>,
    /// The task that was charged last: of its servers one was exhausted.
    charged: Option<u32>,
    /// The last time before a gap.
    gap_from: Option<u64>,
    /// A polling server gives up its budget when its group is idle.
    idle: Option<u32>,
    addition: Addition,
    drafted: Vec<Vec<(u64, u64)>>,
    executions: Executions,
    history: History,
}

/// A reservation of which not all records were read.
#[derive(Default, Clone, Copy)]
struct Addition {
    task: u32,
    start: u64,
    period: u64,
    deadline: u64,
    budget: u64,
}

impl History {
    /// The name of the policy that a group, by its number in the dispatcher, has by a swap at `at`,
    /// ns; `None`: that of the set.
    pub fn swapped_policy(&self, group: u32, at: u64) -> Option<&str> {
        let mut swaps = self.policies.iter().rev();
        swaps.find(|(since, of, _)| *of == group && *since <= at).map(|(.., name)| name.as_str())
    }

    pub fn read(trace: &Trace, set: &TaskSet) -> History {
        let mut reader = Reader::new(set, trace.header.host == "user");
        // A host may record late which task is which.
        trace
            .records
            .iter()
            .rev()
            .filter(|r| r.kind == kind::TASK_PLACE)
            .for_each(|r| reader.place(r));
        trace.records.iter().for_each(|r| reader.record(r));
        let mut history = reader.finish();
        for period in trace.periods() {
            if let Some(task) = history.tasks.get_mut(period.task as usize) {
                task.periods.push(period);
            }
        }
        history
    }

    /// What overlaps `from..to`, ns, in order of start.
    pub fn executions_in(&self, from: u64, to: u64) -> impl Iterator<Item = &Execution> {
        let all = &self.executions[..self.executions.partition_point(|e| e.from < to)];
        // On one CPU they hardly overlap: a few back from the first that starts within.
        let first = all.partition_point(|e| e.from < from).saturating_sub(64);
        all[first..].iter().filter(move |e| e.to > from)
    }
}

impl<'t> Reader<'t> {
    fn new(set: &'t TaskSet, by_charges: bool) -> Reader<'t> {
        let history = History {
            tasks: vec![TaskHistory::default(); set.tasks.len()],
            groups: vec![Supply::default(); set.groups.len()],
            budget_groups: vec![Supply::default(); set.budget_groups.len()],
            ..History::default()
        };
        let executions = Executions::new(by_charges);
        let (places, drafted) = (Vec::new(), Vec::new());
        let addition = Addition::default();
        Reader {
            set,
            places,
            charged: None,
            gap_from: None,
            idle: None,
            addition,
            drafted,
            executions,
            history,
        }
    }

    fn place(&mut self, r: &Record) {
        let task = r.small as usize;
        if self.places.len() <= task {
            self.places.resize(task + 1, NONE);
        }
        self.places[task] = r.a as u32;
    }

    /// Its place in the set; `None` for a task that is not of the set.
    fn task_of(&self, r: &Record) -> Option<u32> {
        let place = *self.places.get(r.small as usize)?;
        ((place as usize) < self.history.tasks.len()).then_some(place)
    }

    fn record(&mut self, r: &Record) {
        if r.kind == kind::LOST_RECORDS {
            self.gap_from.get_or_insert(self.history.end);
        }
        if let Some(at) = r.at() {
            if let Some(from) = self.gap_from.take() {
                self.history.gaps.push((from, at));
            }
            self.history.end = self.history.end.max(at);
        }
        let task = self.task_of(r);
        self.executions.record(r, task);
        match r.kind {
            kind::TASK_PLACE => self.place(r),
            kind::POLICY => {
                let swapped = r.policy_name().map(|name| (r.time, r.small, name));
                self.history.policies.extend(swapped);
            }
            kind::CHARGE_TASK | kind::RUNNING => self.charged = task.or(self.charged),
            kind::WINDOW_ADD => {
                if r.small != 0 || self.drafted.is_empty() {
                    self.drafted.push(Vec::new());
                }
                self.drafted.iter_mut().last().into_iter().for_each(|row| row.push((r.a, r.b)));
            }
            kind::WINDOW_DROP => self.drafted.clear(),
            kind::RESERVATION_ADD..=kind::RESERVATION_ADD_4 => self.reservation(r, task),
            GROUP_IDLE if r.small > 0 => self.idle = Some(r.small - 1),
            EXHAUSTED if r.small == NONE => self.server_exhausted(r.time, r.b),
            COMPLETED | CANCELLED if r.small == NONE => {
                let idle =
                    self.idle.take().and_then(|group| self.history.groups.get_mut(group as usize));
                idle.into_iter().for_each(|group| group.ended(r.time));
            }
            SEGMENT_EXHAUSTED => {
                let node = r
                    .small
                    .checked_sub(1)
                    .and_then(|n| self.history.budget_groups.get_mut(n as usize));
                node.into_iter().for_each(|node| node.ended(r.time));
            }
            _ => {
                if let Some(task) = task {
                    self.history.tasks[task as usize].record(r);
                }
            }
        }
    }

    fn reservation(&mut self, r: &Record, task: Option<u32>) {
        match r.kind {
            kind::RESERVATION_ADD => {
                self.addition =
                    Addition { task: r.small, start: r.a, period: r.b, ..Addition::default() };
                if let Some(task) = task {
                    self.history.tasks[task as usize].rows = std::mem::take(&mut self.drafted);
                }
            }
            kind::RESERVATION_ADD_2 => {
                (self.addition.budget, self.addition.deadline) = (r.time, r.a)
            }
            kind::RESERVATION_ADD_4 if self.addition.task == NONE => {
                let Addition { start, period, deadline, budget, .. } = self.addition;
                let History { groups, budget_groups, .. } = &mut self.history;
                let (supplies, number) =
                    if r.b == 0 { (groups, r.time) } else { (budget_groups, r.b) };
                let supply = number.checked_sub(1).and_then(|n| supplies.get_mut(n as usize));
                supply
                    .into_iter()
                    .for_each(|supply| supply.reserve(start, period, deadline, budget));
            }
            _ => {}
        }
    }

    /// A server's job does not say its group. It is one above the task that executed last: of
    /// those that still had budget, the one whose budget is nearest to what was `used`, ns.
    fn server_exhausted(&mut self, at: u64, used: u64) {
        let Some(task) = self.charged else { return };
        let groups = &mut self.history.groups;
        let open = ancestors(self.set, task)
            .into_iter()
            .filter(|&g| groups[g as usize].lack(at).is_none());
        if let Some(group) = open.min_by_key(|&g| groups[g as usize].distance(used)) {
            groups[group as usize].ended(at);
        }
    }

    fn finish(self) -> History {
        let mut history = self.history;
        if let Some(from) = self.gap_from {
            history.gaps.push((from, u64::MAX));
        }
        history.executions = self.executions.finish();
        for e in history.executions.iter().filter(|e| !e.background) {
            history.tasks[e.task as usize].executions.push((e.from, e.to));
        }
        history
    }
}

/// The groups of a task, from its own up.
pub(crate) fn ancestors(set: &TaskSet, task: u32) -> Vec<u32> {
    let mut chain = Vec::new();
    let mut at = set.tasks[task as usize].group;
    while let Some(group) = at.filter(|_| chain.len() <= set.groups.len()) {
        chain.push(group as u32);
        at = set.groups[group].parent;
    }
    chain
}

/// The budget groups that limit a task: its own, those of its groups, and all above these.
pub(crate) fn limits(set: &TaskSet, task: u32) -> Vec<u32> {
    let own = set.tasks[task as usize].budget_group;
    let of_groups = ancestors(set, task).into_iter().map(|g| set.groups[g as usize].budget_group);
    let mut found: Vec<u32> = Vec::new();
    for first in std::iter::once(own).chain(of_groups) {
        let mut at = first;
        while let Some(node) = at.filter(|&node| !found.contains(&(node as u32))) {
            found.push(node as u32);
            at = set.budget_groups[node].parent;
        }
    }
    found
}

impl TaskHistory {
    fn record(&mut self, r: &Record) {
        match r.kind {
            RELEASED => {
                let before = self.releases.len();
                self.released.insert(r.a, Released { at: r.time, budget: r.b, before });
                self.releases.push(r.time);
            }
            RELEASES_LOST => self.releases.extend((0..r.b.min(1 << 20)).map(|_| r.time)),
            kind::TASK_DONE => self.done.push(r.time),
            kind::TASK_BLOCKED if self.blocked.last().is_none_or(|b| b.1 != u64::MAX) => {
                self.blocked.push((r.time, u64::MAX));
            }
            kind::TASK_READY => {
                self.blocked
                    .last_mut()
                    .filter(|b| b.1 == u64::MAX)
                    .into_iter()
                    .for_each(|b| b.1 = r.time);
            }
            COMPLETED | CANCELLED | TASK_GONE => self.ends.push((r.time, false)),
            EXHAUSTED => self.ends.push((r.time, true)),
            kind::JOB_ADD => self.jobs.push((r.time, r.a)),
            _ => {}
        }
    }

    /// When the dispatcher made a release, ns, as far as the trace has it: of a task whose jobs its
    /// policy adds itself, when it added the first.
    pub fn made(&self, period: &Period) -> Option<u64> {
        let job = || self.jobs_in(period.release, period.deadline).next().map(|job| job.0);
        self.released.get(&period.number).map(|r| r.at).or_else(job)
    }

    /// How many of its waits were still due when `period` was released: what it executes first is
    /// work of earlier releases. A release that ended without a wait leaves one, unless the task
    /// never waited before (`dispatcher/late_wait.h`).
    pub fn late_waits(&self, period: &Period, carries: bool) -> usize {
        let Some(&Released { at: made, before, .. }) = self.released.get(&period.number) else {
            return 0;
        };
        let done = self.done.partition_point(|&at| at <= made);
        let (Some(&first), Some(last)) = (self.done.first(), before.checked_sub(1)) else {
            return 0;
        };
        if done == 0 {
            return 0;
        }
        if !carries {
            return usize::from(self.done[done - 1] <= self.releases[last]);
        }
        let never_waited = self.releases.partition_point(|&at| at < first).saturating_sub(1);
        before.saturating_sub(never_waited + done)
    }

    /// The time of its `n`-th wait from `from` on, ns, from 0.
    pub fn done_after(&self, from: u64, n: usize) -> Option<u64> {
        self.done.get(self.done.partition_point(|&at| at <= from) + n).copied()
    }

    /// What it executed in `from..to`, ns.
    pub fn executed(&self, from: u64, to: u64) -> u64 {
        let first = self.executions.partition_point(|e| e.1 <= from);
        let within = self.executions[first..].iter().take_while(|e| e.0 < to);
        within.map(|e| e.1.min(to).saturating_sub(e.0.max(from))).sum()
    }

    /// The period in which `at`, ns, is.
    pub fn period_at(&self, at: u64) -> Option<&Period> {
        self.periods[..self.periods.partition_point(|p| p.release <= at)].last()
    }

    /// Its periods that begin in `from..to`, ns.
    pub fn periods_in(&self, from: u64, to: u64) -> impl Iterator<Item = &Period> {
        let first = self.periods.partition_point(|p| p.release < from);
        self.periods[first..].iter().take_while(move |p| p.release < to)
    }

    /// Where it was blocked in `from..to`, ns.
    pub fn blocked_in(&self, from: u64, to: u64) -> impl Iterator<Item = &(u64, u64)> {
        let first = self.blocked.partition_point(|b| b.1 <= from);
        self.blocked[first..].iter().take_while(move |b| b.0 < to)
    }

    /// The ends of its jobs in `from..to`, ns.
    pub fn ends_in(&self, from: u64, to: u64) -> impl Iterator<Item = &(u64, bool)> {
        within(&self.ends, from, to)
    }

    /// The jobs that a policy added in `from..to`, ns.
    pub fn jobs_in(&self, from: u64, to: u64) -> impl Iterator<Item = &(u64, u64)> {
        within(&self.jobs, from, to)
    }
}

/// Those whose first time is in `from..to`, ns; they are in its order.
fn within<T>(all: &[(u64, T)], from: u64, to: u64) -> impl Iterator<Item = &(u64, T)> {
    let first = all.partition_point(|e| e.0 < from);
    all[first..].iter().take_while(move |e| e.0 < to)
}
