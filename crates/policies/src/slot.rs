//! A member of a group (a task, or a server), and where its releases are.

use punctual_dispatcher::{
    error_settled, End, JobId, OverrunPolicy, ReservationId, TaskId, TimerId, INFINITE,
};
use punctual_taskset::{Body, ServerKind, Spin, TaskSpec};

use crate::added_jobs::AddedJobs;
use crate::arrival::Stream;
use crate::policy::{MemberParams, Release};
use crate::Gsi;

/// What carries a member's releases.
///
/// ```text
///   EMPTY ──add──> WAITING ──timer──> OPEN ──over──> WAITING      (jobs made by the policy)
///                     │ ^                               │
///                     v └──swap, at the next release──┐ └─ FINISHED (no further arrival)
///                  RESERVED ──────────────────────────┘           (the dispatcher's reservation)
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    /// No task yet, or no more.
    Empty,
    /// Between two releases; `next` is ahead.
    Waiting,
    /// A release is in flight.
    Open,
    /// The dispatcher releases.
    Reserved(ReservationId),
    /// It is never released again.
    Finished,
}

/// One member. Of a server, the dispatcher's reservation makes all releases.
pub(crate) struct Slot {
    pub(crate) member: MemberParams,
    /// Of a server's jobs; a task's reservation has one of its own.
    pub(crate) cookie: Option<u64>,
    pub(crate) overrun: OverrunPolicy,
    /// Of a task, its own: the policy of that kind makes its releases, not that of its group.
    pub(crate) server: Option<ServerKind>,
    pub(crate) stream: Stream,
    /// The origin of its offset and list, ns.
    pub(crate) origin: u64,
    pub(crate) phase: Phase,
    /// The policies of the release in flight and of the next one: indices in `at_work`.
    pub(crate) by: u32,
    pub(crate) next_by: u32,
    /// The release in flight, or the latest.
    pub(crate) release: Release,
    /// When the next one is due, ns; [`INFINITE`] when there is none.
    pub(crate) next: u64,
    /// The number that it gets; under a reservation: what is added to the dispatcher's numbers.
    pub(crate) number: u64,
    pub(crate) timer: Option<TimerId>,
    /// The timer that its policy set, and when it expires, ns.
    pub(crate) policy_timer: Option<(TimerId, u64)>,
    /// The job in flight that the policy made.
    pub(crate) job: Option<JobId>,
    /// Which of the task's jobs that is: its cookie's lower half.
    pub(crate) use_of: u32,
    /// A release was reported and has not ended yet.
    pub(crate) open: bool,
    /// Its policy paces it (`SchedulingPolicy::paces`): set at each arrival.
    pub(crate) paced: bool,
    /// When the arrival that is served, or waits, was due, ns.
    pub(crate) arrival: u64,
    /// Its policy has begun a release that is not reported yet.
    pub(crate) begun: bool,
    /// The release before that one, if it was in flight.
    pub(crate) replenished: Option<Replenished>,
    /// The budget of the release in flight without carried enforcement error, ns.
    pub(crate) assigned: u64,
    /// When the latest job that the policy made ended, ns.
    pub(crate) ended_at: u64,
    /// How the latest job that the policy made ended.
    pub(crate) last_end: End,
    /// The dispatcher has no room for its windows: its jobs are made here.
    pub(crate) no_room: bool,
    /// The wake-up rule has cut the release in flight.
    pub(crate) cut: bool,
    /// Budget that the wake-up rule has cut off the release in flight, ns.
    pub(crate) cut_off: u64,
    /// Idle time that the host charged to the release in flight, ns: in `used`.
    pub(crate) idle: u64,
    /// What its policy has added to the release in flight beyond its budget, ns: in `granted`.
    pub(crate) extended: u64,
    /// Its present reservation has made a release that was reported.
    pub(crate) seen: bool,
    /// Its budget, and its execution in jobs that have ended, ns.
    pub(crate) granted: u64,
    pub(crate) used: u64,
    /// Its execution in all jobs that have ended, ns; kept while it is removed and added again.
    pub(crate) executed: u64,
    /// Enforcement error, ns: executed beyond (+) or short of (-) what was granted, and still to be
    /// settled.
    pub(crate) error: i64,
    /// Waits that are due from releases gone by (design, "Reservation").
    pub(crate) delayed: u32,
    /// Releases that its next return from `wait_period` reports as lost.
    pub(crate) lost: u32,
    /// It has called `wait_period`.
    pub(crate) waits: bool,
    /// Its releases end at once.
    pub(crate) suspended: bool,
    /// Of a task to which the program adds jobs.
    pub(crate) added: AddedJobs,
    /// The job of its reservation was cancelled for that, and its event is still to come.
    pub(crate) cancelled: bool,
}

/// A release that its policy ended by beginning another one.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Replenished {
    pub(crate) at: u64,
    pub(crate) number: u64,
    pub(crate) used: u64,
    pub(crate) remaining: u64,
    pub(crate) unused: u64,
}

impl Slot {
    pub(crate) fn new(member: MemberParams, overrun: OverrunPolicy) -> Slot {
        Slot {
            member,
            cookie: None,
            overrun,
            server: None,
            stream: Stream::Periodic,
            origin: 0,
            phase: Phase::Empty,
            by: 0,
            next_by: 0,
            release: Release { number: 0, at: 0, deadline: 0, left: 0, part: 0 },
            next: INFINITE,
            number: 0,
            timer: None,
            policy_timer: None,
            job: None,
            use_of: 0,
            open: false,
            paced: false,
            arrival: 0,
            begun: false,
            replenished: None,
            assigned: member.budget,
            ended_at: 0,
            last_end: End::Cancelled,
            no_room: false,
            cut: false,
            cut_off: 0,
            idle: 0,
            extended: 0,
            seen: false,
            granted: 0,
            used: 0,
            executed: 0,
            error: 0,
            delayed: 0,
            lost: 0,
            waits: false,
            suspended: false,
            added: AddedJobs::default(),
            cancelled: false,
        }
    }

    /// Room for a task that is not in the set.
    pub(crate) fn unused() -> Slot {
        let spec = TaskSpec::new("", 1, 1, Body::Spin(Spin::Forever));
        Slot::new(MemberParams::of(&spec, 0, TaskId::NONE), OverrunPolicy::Carry)
    }

    /// The job in flight, a reservation's too.
    pub(crate) fn current_job(&self, gsi: &dyn Gsi) -> Option<JobId> {
        match self.phase {
            Phase::Reserved(r) => gsi.job_of(r),
            _ => self.job,
        }
    }

    /// Whether the release in flight has a job, or a timer at which its policy may add one.
    pub(crate) fn release_continues(&self) -> bool {
        self.job.is_some() || self.policy_timer.is_some()
    }

    /// Begins the next release, due at `at` with the absolute `deadline`: its budget less what is
    /// settled of the enforcement error, which is returned, ns.
    pub(crate) fn begin_release(&mut self, at: u64, deadline: u64, budget: u64) -> i64 {
        let settled = error_settled(budget, self.error);
        self.error -= settled;
        self.assigned = budget;
        self.granted = (budget as i64).saturating_sub(settled).max(0) as u64;
        (self.used, self.cut_off, self.idle, self.extended) = (0, 0, 0, 0);
        self.release = Release { number: self.number, at, deadline, left: self.granted, part: 0 };
        self.number += 1;
        settled
    }

    /// Limits the carried enforcement error to one budget, of `budget` ns, either way: that of a
    /// release whose budget is less than the member's.
    pub(crate) fn limit_error(&mut self, budget: u64) {
        let most = i64::try_from(budget).unwrap_or(i64::MAX);
        self.error = self.error.clamp(-most, most);
    }

    /// Ends the release in flight, at `at`, because another one begins. What an exhausted job left
    /// (at most the granularity) is carried, not given up.
    pub(crate) fn replenish(&mut self, at: u64, exhausted: bool) -> Replenished {
        let remaining = self.granted.saturating_sub(self.used);
        if exhausted || self.used > self.granted {
            self.carry_error(self.used as i64 - self.granted as i64);
        }
        let left = if exhausted { 0 } else { remaining };
        let unused = self.cut_off + left;
        Replenished { at, number: self.release.number, used: self.used, remaining, unused }
    }

    /// The release in flight is over: takes back what was added to it and was not executed, so that
    /// what is left, and what was cut off, is of its own budget. Whether something was added.
    pub(crate) fn take_back_extension(&mut self) -> bool {
        if self.extended == 0 {
            return false;
        }
        let own = self.granted + self.cut_off - self.extended;
        self.extended = self.extended.min(self.used.saturating_sub(own));
        self.cut_off = self.cut_off.min(own.saturating_sub(self.used));
        self.granted = own - self.cut_off + self.extended;
        true
    }

    /// The release in flight has executed `ns` in a job that is over.
    pub(crate) fn charge(&mut self, ns: u64) {
        self.used += ns;
        self.executed = self.executed.saturating_add(ns);
        self.release.left = self.granted.saturating_sub(self.used);
    }

    /// Adds to the enforcement error, within one budget either way.
    pub(crate) fn carry_error(&mut self, by: i64) {
        let most = i64::try_from(self.member.budget).unwrap_or(i64::MAX);
        self.error = self.error.saturating_add(by).clamp(-most, most);
    }
}
