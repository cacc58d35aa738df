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
    /// Lost releases that were returned, of those that the dispatcher could not make.
    lost: Cell<u32>,
    /// The thread's CPU clock when a wait returned right after a release, ns.
    begun: Cell<u64>,
    /// When it last looked whether its service is there, CLOCK_MONOTONIC ns.
    looked: Cell<u64>,
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
        let due = next.unwrap_or(0);
        let come = schedule.latest(now).filter(|&latest| latest >= due);
        let must_yield = next.is_some() && yields == 0 && (self.is_counted.get() || schedule.skips);
        match come {
            Some(latest) if !must_yield => NextStep::Return(latest),
            _ if must_yield || next.is_some() && yields < MOST_YIELDS => NextStep::Yield,
            _ => NextStep::Sleep(schedule.release(due).release),
        }
    }

    /// A wait returns with the latest release.
    pub fn take(&self, schedule: &Schedule, latest: u64) -> PageRelease {
        let all_lost = schedule.first.lost;
        let lost = match self.next.get() {
            None => 0,
            Some(next) if schedule.skips => latest.saturating_sub(next),
            Some(_) => all_lost.wrapping_sub(self.lost.get()).into(),
        };
        self.lost.set(all_lost);
        let next = match self.next.get() {
            Some(next) if !schedule.skips => next.saturating_add(lost),
            _ => latest,
        };
        self.next.set(Some(next.saturating_add(1)));
        let lost = u32::try_from(lost).unwrap_or(u32::MAX);
        PageRelease { lost, ..schedule.release(latest) }
    }

    /// The latest release; `lost` is what no wait has returned yet.
    pub fn current(&self, schedule: &Schedule, now: u64) -> PageRelease {
        let latest = schedule.latest(now).unwrap_or(0);
        let lost = match self.next.get() {
            Some(next) if schedule.skips => {
                u32::try_from(latest.saturating_sub(next)).unwrap_or(u32::MAX)
            }
            _ => schedule.first.lost.wrapping_sub(self.lost.get()),
        };
        PageRelease { lost, ..schedule.release(latest) }
    }

    /// What is left of the latest release's budget, or less: what was executed since the thread's
    /// last return is not more than the time since the release. `clock`: the thread's CPU clock.
    pub fn remaining_budget(&self, schedule: &Schedule, now: u64, clock: u64) -> u64 {
        let Some(latest) = schedule.latest(now) else { return 0 };
        let PageRelease { release, budget, .. } = schedule.release(latest);
        let executed = clock.saturating_sub(self.begun.get()).min(now.saturating_sub(release));
        budget.saturating_sub(executed)
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
        loop {
            let now = monotonic_ns();
            if self.is_over() || waits.must_look(now, patience) && is_alone() {
                return WaitAnswer::Over;
            }
            // Its client has damaged it.
            let Some(schedule) = self.schedule() else { return WaitAnswer::Over };
            match waits.step(&schedule, now, yields) {
                NextStep::Return(latest) => {
                    if waits.next.get().is_some() && schedule.latest(began) < Some(latest) {
                        waits.begun.set(thread_cpu_ns());
                    }
                    return WaitAnswer::Released(waits.take(&schedule, latest));
                }
                NextStep::Yield => {
                    yields += 1;
                    waits.is_counted.set(true);
                    sched_yield();
                }
                NextStep::Sleep(_) if is_alone() => return WaitAnswer::Over,
                NextStep::Sleep(until) => self.sleep(until.min(now.saturating_add(patience))),
            }
        }
    }

    /// Until then, CLOCK_MONOTONIC ns, or the end of the reservation.
    fn sleep(&self, until: u64) {
        let answered = &self.words().service.answered;
        let before = answered.load(Ordering::SeqCst);
        if !self.is_over() {
            futex::wait_shared(answered, before, until);
        }
    }
}

#[cfg(test)]
mod tests;
