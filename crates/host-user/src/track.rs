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
    /// Budget that the task gave up, ns; idle time charged to its job included.
    unused: u64,
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
            unused: 0,
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

    /// So much of its idle time was charged to its job, ns.
    pub fn charged_idle(&mut self, ns: u64) {
        self.unused += ns;
    }

    /// Its bandwidth, budget / deadline, times what is left until its deadline, ns.
    pub fn bandwidth_until_deadline(&self, now: u64) -> u64 {
        let left = u128::from(self.until.saturating_sub(now)) * u128::from(self.assigned);
        u64::try_from(left / u128::from(self.deadline.max(1))).unwrap_or(u64::MAX)
    }

    /// Its job ended at `at`, or, if it said so itself, at `said`; of its budget the task gave up `unused` ns.
    pub fn ended(&mut self, end: End, at: u64, said: Option<u64>, unused: u64) {
        self.ended = true;
        self.unused += unused;
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
        self.unused = 0;
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
        let slept = (!self.never_sleeps).then(|| has_slept(self.idle, self.deadline));
        let period = Period {
            task: self.index,
            number: self.number,
            release: self.release,
            deadline: self.until,
            assigned: self.assigned,
            received: self.received,
            unused: self.unused,
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

#[cfg(test)]
mod tests {
    use super::*;
    use punctual_taskset::TaskSet;

    const MS: u64 = 1_000_000;

    fn track(body: Body) -> Track {
        let set = TaskSet::single(10 * MS, 4 * MS, body).build().expect("in order");
        Track::new(0, &set.tasks[0])
    }

    /// The period of one release of 4 ms in 10 ms.
    fn period(mut track: Track, story: impl FnOnce(&mut Track)) -> Period {
        track.release(0, 0, 10 * MS);
        story(&mut track);
        track.release(1, 10 * MS, 20 * MS).expect("one was released")
    }

    fn program() -> Track {
        track(Body::Command(vec!["a".to_owned()]))
    }

    #[test]
    fn a_program_that_sleeps_and_whose_job_is_used_up_by_idle_time_was_not_ready() {
        let p = period(program(), |t| {
            t.add(MS, 3 * MS);
            t.charged_idle(3 * MS);
            t.ended(End::Exhausted, 5 * MS, None, 0);
        });
        assert_eq!((p.ready_throughout, p.received, p.unused, p.miss), (false, MS, 3 * MS, false));
    }

    #[test]
    fn a_program_that_was_cut_was_not_ready_however_little_of_its_sleep_was_seen() {
        let p = period(program(), |t| {
            t.add(MS, 0);
            t.ended(End::Exhausted, 5 * MS, None, 3 * MS);
        });
        assert_eq!((p.ready_throughout, p.received, p.unused, p.miss), (false, MS, 3 * MS, false));
    }

    #[test]
    fn a_program_that_uses_up_its_budget_was_ready() {
        let p = period(program(), |t| {
            t.add(4 * MS, 50_000);
            t.ended(End::Exhausted, 5 * MS, None, 0);
        });
        assert_eq!((p.ready_throughout, p.received, p.unused), (true, 4 * MS, 0));
    }

    /// What looked like a sleep can only have been a stall of the machine.
    #[test]
    fn synthetic_execution_that_was_cut_lacks_what_was_cut_off() {
        let p = period(track(Body::Spin(punctual_taskset::Spin::Forever)), |t| {
            t.add(MS, 3 * MS);
            t.ended(End::Exhausted, 5 * MS, None, 3 * MS);
        });
        assert_eq!((p.ready_throughout, p.received, p.unused), (true, MS, 0));
    }
}
