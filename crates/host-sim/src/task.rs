//! A simulated task: what it does next, and the story of its latest release.

use punctual_dispatcher::End;
use punctual_taskset::{Body, Spin, Step, TaskSpec};
use punctual_trace::{JobEnd, Period, NEVER};
use punctual_workload::{Act, Demand, Script};

/// What a task is at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    /// Stands in `wait_period`.
    Waiting,
    /// Wants the CPU, whether it has a job or not.
    Working,
    /// Asleep in the middle of a job.
    Sleeping,
}

/// One task.
pub(crate) struct Task {
    pub(crate) state: State,
    /// Execution until it does something else, ns; 0 when it is not known before it has the CPU.
    pub(crate) left: u64,
    /// `None` for a program: it wants whatever it can get.
    script: Option<Script>,
    /// It calls `wait_period` some time.
    waits: bool,
    /// A release was made.
    open: bool,
    /// It is over.
    ended: bool,
    /// The task slept in it.
    slept: bool,
    period: u64,
    /// The latest release, as far as it is known.
    latest: Period,
}

impl Task {
    pub(crate) fn new(index: u32, spec: &TaskSpec) -> Task {
        let waits = match &spec.body {
            Body::Spin(spin) => *spin != Spin::Forever,
            Body::Steps(steps) => !steps.contains(&Step::Spin(Spin::Forever)),
            Body::Command(_) | Body::Pid(_) => false,
        };
        let latest = Period {
            task: index,
            number: 0,
            release: 0,
            deadline: spec.deadline,
            assigned: spec.budget,
            received: 0,
            unused: 0,
            started: NEVER,
            completed: NEVER,
            end: JobEnd::Expired,
            ready_throughout: false,
            woken_late: false,
            miss: false,
            overrun: false,
        };
        Task {
            state: State::Waiting,
            left: 0,
            script: Script::of(&spec.body),
            waits,
            open: false,
            ended: false,
            slept: false,
            period: spec.period,
            latest,
        }
    }

    /// Its place in the task set.
    pub(crate) fn index(&self) -> u32 {
        self.latest.task
    }

    /// What it does now that it has the CPU.
    pub(crate) fn act(&mut self) -> Act {
        self.script.as_mut().map_or(Act::Execute(Demand::Forever), Script::next)
    }

    pub(crate) fn sleep(&mut self) {
        self.state = State::Sleeping;
        self.slept = true;
    }

    /// It executed so long, on a job, until `now`.
    pub(crate) fn executed(&mut self, ran: u64, now: u64) {
        self.latest.received += ran;
        if self.latest.started == NEVER {
            self.latest.started = now - ran;
        }
    }

    /// It had the CPU, if only to see that it has nothing to do.
    pub(crate) fn touched(&mut self, now: u64) {
        if !self.ended {
            self.latest.started = self.latest.started.min(now);
        }
    }

    /// The next release: the story of the one before.
    pub(crate) fn released(&mut self, number: u64, release: u64, deadline: u64) -> Option<Period> {
        let told = self.close();
        self.open = true;
        self.ended = false;
        self.slept = self.state == State::Sleeping;
        self.latest = Period {
            number,
            release,
            deadline,
            received: 0,
            unused: 0,
            started: NEVER,
            completed: NEVER,
            end: JobEnd::Expired,
            ..self.latest
        };
        if self.state == State::Waiting {
            self.state = State::Working;
            self.left = 0;
        }
        told
    }

    /// The latest release is over; the task gave up `unused` ns of its budget.
    pub(crate) fn ended(&mut self, end: End, at: u64, unused: u64) {
        self.ended = true;
        self.latest.unused = unused;
        self.latest.end = end.into();
        if end == End::Completed {
            self.latest.completed = at;
        }
    }

    /// A release that was never made.
    pub(crate) fn lost(&self, number: u64) -> Period {
        let since = number.saturating_sub(self.latest.number).saturating_mul(self.period);
        let release = self.latest.release.saturating_add(since);
        let deadline = self.latest.deadline.saturating_add(since);
        // Whoever enforces is never late here.
        Period { woken_late: false, ..Period::lost(self.latest.task, number, release, deadline, self.latest.assigned) }
    }

    /// The latest release as it stands, once.
    pub(crate) fn close(&mut self) -> Option<Period> {
        if !std::mem::take(&mut self.open) {
            return None;
        }
        Some(if self.ended { self.latest.judged(self.waits, Some(self.slept)) } else { self.latest.unknown() })
    }
}
