//! The window of a period, from its release to its deadline, divided without a hole.

use punctual_taskset::{Body, Overrun, Spin, Step, TaskSet};
use punctual_trace::{has_slept, Period};

use crate::explanation::Span;
use crate::history::{ancestors, limits, History, TaskHistory};
use crate::order::{reason, Reason};
use crate::supply::Lack;

/// What a part of the window was used for. Tasks, groups and budget groups by their places in the
/// set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Activity {
    /// The task executed this release's work.
    Executed,
    /// The task executed work of earlier releases, for which it was late.
    CarriedOver,
    /// Another task executed.
    Task {
        /// Which.
        task: u32,
        /// Why it came first.
        reason: Reason,
        /// The group by whose server it competes with the task.
        group: Option<u32>,
        /// It overran in this period, or executed work of earlier releases.
        overrun: bool,
    },
    /// The task was blocked or slept.
    Suspended,
    /// Its budget was used up.
    BudgetExhausted,
    /// Its job had ended otherwise.
    JobEnded,
    /// The server of this group, its own or one above, was exhausted.
    ServerExhausted(u32),
    /// This server was not replenished yet, or outside its windows.
    ServerNotReplenished(u32),
    /// The segment of this budget group was exhausted.
    SegmentExhausted(u32),
    /// None of its own windows (`td`).
    OutsideWindow,
    /// The dispatcher made the release later than it was due.
    ReleasedLate,
    /// The release was never made: the dispatcher was not advanced in time.
    NeverReleased,
    /// It was ready and first, and no record accounts for the time: interrupts, steal, other
    /// scheduling classes, the host's own work.
    Unaccounted,
    /// Records are missing.
    RecordsLost,
}

/// Divides the window of one period.
pub(crate) struct Window<'h> {
    pub set: &'h TaskSet,
    pub history: &'h History,
    pub period: &'h Period,
    /// Its release was made, ns.
    made: u64,
    /// Work of earlier releases ends, ns.
    carried_until: u64,
    groups: Vec<u32>,
    limits: Vec<u32>,
    /// On the user host, what leaves the CPU to others suspends itself.
    suspends: bool,
}

impl<'h> Window<'h> {
    pub fn new(
        set: &'h TaskSet,
        history: &'h History,
        period: &'h Period,
        on_user_host: bool,
    ) -> Window<'h> {
        let task = &history.tasks[period.task as usize];
        let spec = &set.tasks[period.task as usize];
        let late = task.late_waits(period, carries(spec.overrun));
        let made = task.made(period).unwrap_or(u64::MAX);
        let carried_until = match late.checked_sub(1) {
            Some(waits) => task.done_after(made, waits).unwrap_or(u64::MAX),
            None => 0,
        };
        Window {
            set,
            history,
            period,
            made,
            carried_until,
            groups: ancestors(set, period.task),
            limits: limits(set, period.task),
            suspends: on_user_host && suspends(&spec.body),
        }
    }

    pub fn task(&self) -> &'h TaskHistory {
        &self.history.tasks[self.period.task as usize]
    }

    /// Where work of earlier releases ends, ns; `u64::MAX` if it never did.
    pub fn carried_until(&self) -> u64 {
        self.carried_until
    }

    /// The window, in order and without a hole, neighbours of the same activity joined.
    pub fn spans(&self) -> Vec<Span> {
        let mut spans: Vec<Span> = Vec::new();
        let times = self.times();
        for pair in times.windows(2) {
            let what = self.activity(pair[0]);
            match spans.last_mut() {
                Some(last) if last.what == what => last.to_ns = pair[1],
                _ => spans.push(Span { from_ns: pair[0], to_ns: pair[1], what }),
            }
        }
        if self.suspends {
            self.join_suspensions(&mut spans);
        }
        spans
    }

    /// The times at which the activity may change, the window's ends among them.
    fn times(&self) -> Vec<u64> {
        let (from, to) = (self.period.release, self.period.deadline);
        let (task, mut times) = (self.task(), vec![from, to, self.made, self.carried_until]);
        for e in self.history.executions_in(from, to) {
            times.extend([e.from, e.to]);
            if e.task != self.period.task {
                let other = &self.history.tasks[e.task as usize];
                times.extend(other.periods_in(e.from, e.to).map(|p| p.release));
            }
        }
        times.extend(task.blocked_in(from, to).flat_map(|b| [b.0, b.1]));
        times.extend(task.ends_in(from, to).map(|e| e.0));
        times.extend(task.jobs_in(from, to).flat_map(|j| [j.0, j.1]));
        times.extend(self.row().iter().flat_map(|w| [from + w.0, from + w.0 + w.1]));
        times.extend(self.history.gaps.iter().flat_map(|g| [g.0, g.1]));
        let (groups, nodes) = (&self.history.groups, &self.history.budget_groups);
        self.groups.iter().for_each(|&g| groups[g as usize].changes(from, to, &mut times));
        self.limits.iter().for_each(|&n| nodes[n as usize].changes(from, to, &mut times));
        times.retain(|&at| at >= from && at <= to);
        times.sort_unstable();
        times.dedup();
        times
    }

    /// The windows of this release.
    fn row(&self) -> &[(u64, u64)] {
        let rows = &self.task().rows;
        match rows.len() {
            0 => &[],
            n => &rows[(self.period.number % n as u64) as usize],
        }
    }

    /// What happens from `at` to the next of the times.
    fn activity(&self, at: u64) -> Activity {
        let executing = || self.history.executions_in(at, at + 1).filter(|e| e.from <= at);
        if executing().any(|e| e.task == self.period.task) {
            return if at < self.carried_until {
                Activity::CarriedOver
            } else {
                Activity::Executed
            };
        }
        self.obstacle(at).unwrap_or_else(|| match executing().find(|e| !e.background) {
            Some(other) => self.other(other.task, at),
            None => Activity::Unaccounted,
        })
    }

    /// What kept the task from executing, whichever other one did.
    fn obstacle(&self, at: u64) -> Option<Activity> {
        let task = self.task();
        if self.history.gaps.iter().any(|g| g.0 <= at && at < g.1) {
            return Some(Activity::RecordsLost);
        }
        if at < self.made {
            let never = self.made == u64::MAX;
            return Some(if never { Activity::NeverReleased } else { Activity::ReleasedLate });
        }
        if task.blocked_in(at, at + 1).next().is_some() {
            return Some(Activity::Suspended);
        }
        if let Some(&(_, exhausted)) = task.ends_in(self.made, at + 1).last() {
            // A policy may add several for one release.
            let (jobs, over) =
                (task.jobs_in(self.made, at + 1).count(), task.ends_in(self.made, at + 1).count());
            if over >= jobs {
                return Some(if exhausted {
                    Activity::BudgetExhausted
                } else {
                    Activity::JobEnded
                });
            }
        }
        let since = at - self.period.release;
        let row = self.row();
        if !row.is_empty() && !row.iter().any(|w| w.0 <= since && since < w.0 + w.1) {
            return Some(Activity::OutsideWindow);
        }
        let dry = |&&n: &&u32| self.history.budget_groups[n as usize].lack(at).is_some();
        if let Some(&node) = self.limits.iter().find(dry) {
            return Some(Activity::SegmentExhausted(node));
        }
        let of =
            |&group: &u32| self.history.groups[group as usize].lack(at).map(|lack| (group, lack));
        self.groups.iter().find_map(of).map(|(group, lack)| match lack {
            Lack::Exhausted => Activity::ServerExhausted(group),
            Lack::NotReplenished => Activity::ServerNotReplenished(group),
        })
    }

    /// Another task executes although this one could.
    fn other(&self, other: u32, at: u64) -> Activity {
        let (reason, group) = reason(self.set, self.history, other, self.period.task, at);
        if self.suspends && reason == Reason::Later {
            return Activity::Suspended;
        }
        let task = &self.history.tasks[other as usize];
        let overrun = task.period_at(at).is_some_and(|p| {
            p.overrun || task.late_waits(p, carries(self.set.tasks[other as usize].overrun)) > 0
        });
        Activity::Task { task: other, reason, group, overrun }
    }

    /// The user host finds a suspension late: what the task left idle before belongs to it.
    fn join_suspensions(&self, spans: &mut Vec<Span>) {
        for n in (1..spans.len()).rev() {
            let idle = spans[n - 1].to_ns - spans[n - 1].from_ns;
            let before = spans[n - 1].what == Activity::Unaccounted;
            if before
                && has_slept(idle, self.period.deadline - self.period.release)
                && spans[n].what == Activity::Suspended
            {
                spans[n].from_ns = spans[n - 1].from_ns;
                spans.remove(n - 1);
            }
        }
    }
}

/// Whether each late release makes one wait return at once.
pub(crate) fn carries(overrun: Overrun) -> bool {
    matches!(overrun, Overrun::Carry | Overrun::Signal)
}

/// Whether a task may sleep in its job.
fn suspends(body: &Body) -> bool {
    !matches!(body, Body::Spin(_))
}

/// What a job has to execute, ns, where the set says so.
pub(crate) fn demand(body: &Body) -> Option<u64> {
    let fixed = |spin: &Spin| match spin {
        Spin::For(ns) => Some(*ns),
        _ => None,
    };
    match body {
        Body::Spin(spin) => fixed(spin),
        Body::Steps(steps) => steps.iter().try_fold(0, |sum: u64, step| match step {
            Step::Spin(spin) => fixed(spin).and_then(|ns| sum.checked_add(ns)),
            Step::Sleep(_) => Some(sum),
        }),
        _ => None,
    }
}
