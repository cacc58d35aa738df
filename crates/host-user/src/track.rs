//! What became of a task's latest release, to be told when the next one comes.

use punctual_dispatcher::End;
use punctual_taskset::{Body, TaskSpec};
use punctual_trace::{has_slept, JobEnd, Period, NEVER};

/// The latest release of one task.
#[derive(Clone, Copy, Debug)]
pub struct Track {
    /// The task's index in its set.
    pub index: u32,
    /// Its budget per period, ns.
    pub assigned: u64,
    /// Its period, ns.
    pub period: u64,
    /// Its relative deadline, ns.
    pub deadline: u64,
    /// It has called `wait_period`.
    pub waits: bool,
    /// It never sleeps: synthetic execution.
    pub never_sleeps: bool,
    open: bool,
    number: u64,
    release: u64,
    /// Absolute.
    until: u64,
    /// What it executed since the release, ns, without what it did in the background.
    received: u64,
    /// Time that it could have executed in and did not, ns.
    idle: u64,
    pub started: u64,
    completed: u64,
    end: JobEnd,
    ended: bool,
    pub woken_late: bool,
}

impl Track {
    /// Nothing released yet.
    pub fn new(index: u32, spec: &TaskSpec) -> Track {
        Track {
            index,
            assigned: spec.budget,
            period: spec.period,
            deadline: spec.deadline,
            waits: false,
            never_sleeps: matches!(spec.body, Body::Spin(_)),
            open: false,
            number: 0,
            release: 0,
            until: 0,
            received: 0,
            idle: 0,
            started: NEVER,
            completed: NEVER,
            end: JobEnd::Expired,
            ended: false,
            woken_late: false,
        }
    }

    /// Charged since the release, ns.
    pub fn add(&mut self, ran: u64, idle: u64) {
        self.received += ran;
        if !self.ended {
            self.idle += idle;
        }
    }

    /// Its bandwidth, budget / deadline, times what is left until its deadline, ns.
    pub fn bandwidth_until_deadline(&self, now: u64) -> u64 {
        let left = u128::from(self.until.saturating_sub(now)) * u128::from(self.assigned);
        u64::try_from(left / u128::from(self.deadline.max(1))).unwrap_or(u64::MAX)
    }

    /// Its job ended at `at`, or, if it said so itself, at `said`.
    pub fn ended(&mut self, end: End, at: u64, said: Option<u64>) {
        self.ended = true;
        self.end = end.into();
        if end == End::Completed {
            self.completed = said.filter(|s| (self.release..=at).contains(s)).unwrap_or(at);
        }
    }

    /// The next release: the period before it, if there was one.
    pub fn release(&mut self, number: u64, release: u64, deadline: u64) -> Option<Period> {
        let period = self.open.then(|| self.period());
        self.open = true;
        self.number = number;
        self.release = release;
        self.until = deadline;
        self.received = 0;
        self.idle = 0;
        self.started = NEVER;
        self.completed = NEVER;
        self.end = JobEnd::Expired;
        self.ended = false;
        self.woken_late = false;
        period
    }

    /// A release that was never made.
    pub fn lost(&self, number: u64) -> Period {
        let since = number.saturating_sub(self.number).saturating_mul(self.period);
        let release = self.release.saturating_add(since);
        let deadline = release.saturating_add(self.deadline);
        Period::lost(self.index, number, release, deadline, self.assigned)
    }

    fn period(&self) -> Period {
        let slept = !self.never_sleeps && has_slept(self.idle, self.deadline);
        let period = Period {
            task: self.index,
            number: self.number,
            release: self.release,
            deadline: self.until,
            assigned: self.assigned,
            received: self.received,
            started: self.started,
            completed: self.completed,
            end: self.end,
            ready_throughout: false,
            woken_late: self.woken_late,
            miss: false,
            overrun: false,
        };
        period.judged(self.waits, slept)
    }
}
