//! Makes a task's periods from what a host observes of its releases.

use punctual_taskset::{Body, TaskChange, TaskSpec};
use punctual_trace::{has_slept, JobEnd, Period, NEVER};

/// What stays the same from release to release. Times are ns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PeriodParams {
    /// The task's place in its set.
    pub task: u32,
    /// Time between releases.
    pub period: u64,
    /// Relative deadline.
    pub deadline: u64,
    /// Execution time per period.
    pub budget: u64,
    /// Its jobs may suspend themselves: all but those of synthetic execution.
    pub suspends: bool,
    /// Its jobs do not expire at their deadlines: one that completes later has missed its own.
    pub overdue: bool,
}

impl PeriodParams {
    /// Of the task at place `task` of its set.
    pub fn new(task: u32, spec: &TaskSpec) -> PeriodParams {
        let TaskSpec { period, deadline, budget, .. } = *spec;
        PeriodParams {
            task,
            period,
            deadline,
            budget,
            suspends: !matches!(spec.body, Body::Spin(_)),
            overdue: spec.weight.is_some(),
        }
    }
}

/// A release as it begins. Times are ns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NewRelease {
    /// From 0.
    pub number: u64,
    /// When it was due, CLOCK_MONOTONIC.
    pub release: u64,
    /// Its absolute deadline, CLOCK_MONOTONIC.
    pub deadline: u64,
    /// Its budget, without carried enforcement error.
    pub assigned: u64,
}

/// The periods of one task. Each call reports something about its latest release; [`released`]
/// returns the period of the release before.
///
/// Neither allocates nor makes a system call.
///
/// [`released`]: PeriodBuilder::released
#[derive(Debug, Clone, Copy)]
pub struct PeriodBuilder {
    params: PeriodParams,
    /// Those of the next release, if they are others.
    changed: Option<PeriodParams>,
    /// The task calls `wait_period`; learned from its first call on some hosts.
    waits: bool,
    /// The latest release, until its period was returned.
    open: bool,
    ended: bool,
    /// Time that the task could have executed in before its job's end, and did not, ns.
    suspended: u64,
    latest: Period,
}

impl PeriodBuilder {
    /// Of a task without a release yet. `waits`: it calls `wait_period`, as far as is known.
    pub fn new(params: PeriodParams, waits: bool) -> PeriodBuilder {
        let latest = Period::unjudged(params.task, 0, 0, params.deadline, params.budget);
        PeriodBuilder {
            params,
            changed: None,
            waits,
            open: false,
            ended: false,
            suspended: 0,
            latest,
        }
    }

    /// What stays the same, as of the latest release.
    pub fn params(&self) -> &PeriodParams {
        &self.params
    }

    /// The same of the next release.
    pub fn next_params(&self) -> &PeriodParams {
        self.changed.as_ref().unwrap_or(&self.params)
    }

    /// The latest release: as far as it is known.
    pub fn latest(&self) -> &Period {
        &self.latest
    }

    /// The task has other parameters from its next release on.
    pub fn change(&mut self, change: &TaskChange) {
        let mut to = *self.next_params();
        (to.period, to.deadline) = change.times(to.period, to.deadline);
        to.budget = change.budget.unwrap_or(to.budget);
        self.changed = Some(to);
    }

    /// The task has called `wait_period`.
    pub fn waits(&mut self) {
        self.waits = true;
    }

    /// The task executed for `ns`.
    pub fn executed(&mut self, ns: u64) {
        self.latest.received += ns;
    }

    /// The task executed at `at`, CLOCK_MONOTONIC ns; the first call after a release counts.
    pub fn started(&mut self, at: u64) {
        if self.latest.started == NEVER {
            self.latest.started = at;
        }
    }

    /// The task could have executed for `ns` and did not. It counts until its job has ended.
    pub fn suspended(&mut self, ns: u64) {
        if !self.ended {
            self.suspended = self.suspended.saturating_add(ns);
        }
    }

    /// The task gave up `ns` of its budget.
    pub fn unused(&mut self, ns: u64) {
        self.latest.unused += ns;
    }

    /// The task executed `ns` beyond its budget, in time that its policy added to it.
    pub fn extended(&mut self, ns: u64) {
        self.latest.assigned += ns;
    }

    /// The dispatcher (or the observer) itself was late.
    pub fn woken_late(&mut self) {
        self.latest.woken_late = true;
    }

    /// The release's job ended; `completed` is when, CLOCK_MONOTONIC ns, if it did complete.
    pub fn ended(&mut self, end: JobEnd, completed: u64) {
        self.ended = true;
        self.latest.end = end;
        if end == JobEnd::Completed {
            self.latest.completed = completed;
            self.latest.miss = self.params.overdue && completed > self.latest.deadline;
        }
    }

    /// The release is over at `at`, CLOCK_MONOTONIC ns, because its server was replenished.
    pub fn replenished(&mut self, at: u64) {
        self.ended = true;
        self.latest.end = JobEnd::Replenished;
        self.latest.miss = at > self.latest.deadline;
    }

    /// The next release: the period of the release before, if there was one.
    pub fn released(&mut self, next: NewRelease) -> Option<Period> {
        let NewRelease { number, release, deadline, assigned } = next;
        let period = self.close();
        self.params = self.changed.take().unwrap_or(self.params);
        self.open = true;
        self.ended = false;
        self.suspended = 0;
        self.latest = Period::unjudged(self.params.task, number, release, deadline, assigned);
        period
    }

    /// Release `number`, which was never made. Its times follow from those of the latest release,
    /// which the next one follows at the distance that it had before any change.
    pub fn lost(&self, number: u64) -> Period {
        let PeriodParams { task, period, deadline, budget, .. } = *self.next_params();
        let since = number.saturating_sub(self.latest.number);
        let first = self.params.period.saturating_mul(since.min(1));
        let others = period.saturating_mul(since.saturating_sub(1));
        let release = self.latest.release.saturating_add(first).saturating_add(others);
        Period::lost(task, number, release, release.saturating_add(deadline), budget)
    }

    /// The latest release has a job that has ended.
    pub fn has_ended(&self) -> bool {
        self.open && self.ended
    }

    /// Forgets the latest release without a period of it.
    pub fn discard(&mut self) {
        self.open = false;
    }

    /// The period of the latest release, once: for the end of a run. Of a release whose job has not
    /// ended it is [`Period::unknown`].
    pub fn close(&mut self) -> Option<Period> {
        if !std::mem::take(&mut self.open) {
            return None;
        }
        let slept = self.params.suspends.then(|| has_slept(self.suspended, self.params.deadline));
        Some(if self.ended { self.latest.judged(self.waits, slept) } else { self.latest.unknown() })
    }
}

#[cfg(test)]
mod tests;
