//! Waits of a thread whose dispatcher is inside the kernel. Its sched_yield ends its job there, and
//! returns with the next release; a late one returns at once. Which release that is follows from
//! the clock ([`Schedule`]), so that the dispatcher publishes nothing while the thread executes,
//! and reads nothing that the thread has written.
//!
//! sched_yield also returns at once where the thread is not with its dispatcher: it may not run on
//! that CPU, or the dispatcher is gone. So the client counts the releases that its waits have
//! returned. One that has not come it does not return: it yields once more, since a late wait may
//! have been counted that it did not see, and then sleeps.
//!
//! ```text
//!  first wait:  sleep until the first release ──────────────────────────> return
//!  later ones:  yield ─┬─ the release has come ─────────────────────────> return
//!                      └─ yield again ─ sleep until the release ────────> return
//! ```
//!
//! The dispatcher counts no late waits of a thread that never waited, so before the first yield the
//! client returns them itself.
//!
//! A suspended thread executes in the background: its sched_yield returns, and it sleeps where it
//! waits, until the page says that it is resumed. Its next release then is the one after those that
//! the page says it lost. One that was resumed before it came there has had a release meanwhile for
//! which it did not wait.

use std::cell::Cell;
use std::sync::atomic::Ordering;

use punctual_sys::clock::{monotonic_ns, thread_cpu_ns};
use punctual_sys::futex;
use rustix::thread::sched_yield;

use crate::schedule::Schedule;
use crate::{ClientPage, PageRelease, WaitAnswer};

/// Yields of one wait.
const MOST_YIELDS: u32 = 2;

/// What a thread has had of its releases.
#[derive(Debug, Default)]
pub struct YieldWaits {
    /// Number of the release that the next wait is for; `None` before the first wait.
    next: Cell<Option<u64>>,
    /// It has yielded: its dispatcher counts its late waits.
    is_counted: Cell<bool>,
    /// Lost releases that were returned, of those that the dispatcher did not give it.
    lost: Cell<u32>,
    /// Releases that it had without a wait, and that no wait has returned as lost.
    unseen: Cell<u32>,
    /// `suspensions` of the page when a wait returned last.
    suspensions: Cell<u32>,
    /// A wait returns when that is at least this.
    resumption: Cell<u32>,
    /// The thread's CPU clock when a wait returned right after a release, ns.
    begun: Cell<u64>,
    /// When it last looked whether its service is there, CLOCK_MONOTONIC ns.
    looked: Cell<u64>,
}

/// Whether a thread may execute.
#[derive(Debug, PartialEq, Eq)]
enum Suspension {
    Not,
    /// It is asked for, and not in effect.
    Requested,
    InEffect,
}

/// What a wait does next.
#[derive(Debug, PartialEq, Eq)]
pub enum NextStep {
    /// It returns with the release of this number.
    Return(u64),
    Yield,
    /// Until then, CLOCK_MONOTONIC ns.
    Sleep(u64),
}

impl YieldWaits {
    /// Of a wait that has yielded so often.
    pub fn step(&self, schedule: &Schedule, now: u64, yields: u32) -> NextStep {
        let next = self.next.get();
        let due = self.due(schedule);
        let come = schedule.latest(now).filter(|&latest| latest >= due);
        let must_yield = next.is_some() && yields == 0 && (self.is_counted.get() || schedule.skips);
        match come {
            Some(latest) if !must_yield => NextStep::Return(latest),
            _ if must_yield || next.is_some() && yields < MOST_YIELDS => NextStep::Yield,
            _ => NextStep::Sleep(schedule.release(due).release),
        }
    }

    /// Number of the first release that a wait returns.
    fn due(&self, schedule: &Schedule) -> u64 {
        let lost = if schedule.skips { 0 } else { self.newly_lost(schedule) };
        self.next.get().map_or(0, |next| next.saturating_add(lost.into()))
    }

    fn newly_lost(&self, schedule: &Schedule) -> u32 {
        schedule.first.lost.wrapping_sub(self.lost.get())
    }

    /// By the `suspensions` of the page.
    fn suspension(&self, suspensions: u32) -> Suspension {
        match suspensions {
            odd if odd % 2 == 1 => Suspension::InEffect,
            suspensions if (suspensions.wrapping_sub(self.resumption.get()) as i32) < 0 => {
                Suspension::Requested
            }
            _ => Suspension::Not,
        }
    }

    /// It has had a release without a wait.
    fn had_unseen(&self, skips: bool) {
        if let (Some(next), false) = (self.next.get(), skips) {
            self.next.set(Some(next.saturating_add(1)));
            self.unseen.set(self.unseen.get().saturating_add(1));
        }
    }

    /// A wait returns with the latest release.
    pub fn take(&self, schedule: &Schedule, latest: u64) -> PageRelease {
        let lost = self.not_returned(schedule, latest);
        let next = match self.next.get() {
            Some(_) if !schedule.skips => self.due(schedule),
            _ => latest,
        };
        self.lost.set(schedule.first.lost);
        self.unseen.set(0);
        self.next.set(Some(next.saturating_add(1)));
        PageRelease { lost, ..schedule.release(latest) }
    }

    /// The latest release; `lost` is what no wait has returned yet.
    pub fn current(&self, schedule: &Schedule, now: u64) -> PageRelease {
        let latest = schedule.latest(now).unwrap_or(0);
        PageRelease { lost: self.not_returned(schedule, latest), ..schedule.release(latest) }
    }

    /// Lost releases that no wait has returned.
    fn not_returned(&self, schedule: &Schedule, latest: u64) -> u32 {
        match self.next.get() {
            None => 0,
            Some(next) if schedule.skips => {
                u32::try_from(latest.saturating_sub(next)).unwrap_or(u32::MAX)
            }
            Some(_) => self.newly_lost(schedule).saturating_add(self.unseen.get()),
        }
    }

    /// What is left of the latest release's budget, or less: what was executed since the thread's
    /// last return is not more than the time since the release. `clock`: the thread's CPU clock.
    pub fn remaining_budget(&self, schedule: &Schedule, now: u64, clock: u64) -> u64 {
        let Some(latest) = schedule.latest(now) else { return 0 };
        let PageRelease { release, budget, .. } = schedule.release(latest);
        let executed = clock.saturating_sub(self.begun.get()).min(now.saturating_sub(release));
        budget.saturating_sub(executed)
    }

    fn yield_now(&self) {
        self.is_counted.set(true);
        sched_yield();
    }

    fn must_look(&self, now: u64, patience: u64) -> bool {
        let must_look = now.saturating_sub(self.looked.get()) >= patience;
        if must_look {
            self.looked.set(now);
        }
        must_look
    }
}

impl ClientPage {
    /// Waits by sched_yield. `is_alone`: the service is gone; asked at intervals of `patience` ns.
    pub fn wait_by_yield(&self, patience: u64, is_alone: impl Fn() -> bool) -> WaitAnswer {
        let waits = &self.yields;
        let began = monotonic_ns();
        let mut yields = 0;
        let mut suspensions = self.suspensions();
        if suspensions != waits.suspensions.get() && suspensions % 2 == 0 {
            self.schedule().into_iter().for_each(|schedule| waits.had_unseen(schedule.skips));
        }
        loop {
            let now = monotonic_ns();
            if self.is_over() || waits.must_look(now, patience) && is_alone() {
                return WaitAnswer::Over;
            }
            // Its client has damaged it.
            let Some(schedule) = self.schedule() else { return WaitAnswer::Over };
            let (suspension, step) =
                (waits.suspension(suspensions), waits.step(&schedule, now, yields));
            match (suspension, step) {
                (Suspension::Not, NextStep::Return(latest)) => {
                    if waits.next.get().is_some() && schedule.latest(began) < Some(latest) {
                        waits.begun.set(thread_cpu_ns());
                    }
                    waits.suspensions.set(suspensions);
                    // Never so far from `suspensions` that the difference changes its sign.
                    waits.resumption.set(suspensions);
                    return WaitAnswer::Released(waits.take(&schedule, latest));
                }
                (Suspension::Not, NextStep::Yield) => {
                    yields += 1;
                    waits.yield_now();
                }
                (Suspension::Requested, _) if yields == 0 => {
                    yields += 1;
                    waits.yield_now();
                }
                (Suspension::Not, NextStep::Sleep(_)) if is_alone() => return WaitAnswer::Over,
                (Suspension::Not, NextStep::Sleep(until)) => {
                    self.sleep(suspensions, until.min(now.saturating_add(patience)));
                }
                (suspension, step) => {
                    if suspension == Suspension::Requested && matches!(step, NextStep::Return(_)) {
                        waits.had_unseen(schedule.skips);
                    }
                    // Its job is over: it does not end another one.
                    yields = yields.max(1);
                    self.sleep(suspensions, now.saturating_add(patience));
                }
            }
            suspensions = self.suspensions();
        }
    }

    fn suspensions(&self) -> u32 {
        self.words().service.suspensions.load(Ordering::SeqCst)
    }

    /// What [`wait_for_resumption`](ClientPage::wait_for_resumption) takes, before the thread asks
    /// to be suspended.
    pub fn next_resumption(&self) -> u32 {
        let suspensions = self.suspensions();
        suspensions.wrapping_add(2 - suspensions % 2)
    }

    /// The thread will be suspended, as it asked: its next wait by sched_yield returns after the
    /// resumption from that.
    pub fn wait_for_resumption(&self, resumption: u32) {
        self.yields.resumption.set(resumption);
    }

    /// Until then, CLOCK_MONOTONIC ns, the end of the reservation, or another state of suspension.
    fn sleep(&self, suspensions: u32, until: u64) {
        let answered = &self.words().service.answered;
        let before = answered.load(Ordering::SeqCst);
        if !self.is_over() && self.suspensions() == suspensions {
            futex::wait_shared(answered, before, until);
        }
    }
}

#[cfg(test)]
mod tests;
