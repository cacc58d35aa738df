//! How the thread of a task waits: for its next period, suspended, or asleep.
//!
//! ```text
//!               make_periodic                       release k: start + k * period
//!   wait_np ──> Period ─────────── now >= release ──────────────────> returns, the next one is due
//!   suspend ──> Suspended ── wakeup, or the first of new periods ───> returns
//!   sleep ────> Sleep ─────────── now >= until ─────────────────────> returns
//! ```
//!
//! A wake-up ends each of them. One that comes before its wait is kept for a wait that no time
//! ends. A thread that another one has suspended is suspended in its next wait. Releases that go by
//! while it executes end one wait at once, however many they are; the grid stays.

use std::sync::atomic::Ordering;

use punctual_sys::{clock, futex};

use crate::thread::{self, Thread, ThreadIndex, ThreadWait, NEVER};

/// What ended a wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WaitEnd {
    /// The time that was waited for.
    Time,
    /// `pthread_wakeup_np`, or a handler of a signal.
    Wakeup,
    /// The thread was cancelled: it ends where the C library has it end.
    Cancelled,
}

/// CLOCK_MONOTONIC, ns.
pub fn now() -> i64 {
    clock::monotonic_ns() as i64
}

impl Thread {
    /// When the wait ends by itself.
    fn due(&self, until: i64) -> i64 {
        match self.wait {
            _ if self.is_to_suspend => NEVER,
            ThreadWait::Period => self.release,
            ThreadWait::Suspended if self.has_new_periods => self.release,
            ThreadWait::Sleep => until,
            ThreadWait::Suspended | ThreadWait::None => NEVER,
        }
    }

    /// Its wait is over, if it is.
    fn end_wait(&mut self, until: i64, now: i64) -> Option<WaitEnd> {
        let end = if std::mem::take(&mut self.is_cancelled) {
            // Once: a thread that is not cancelled now continues until it can be.
            WaitEnd::Cancelled
        } else if self.is_woken {
            self.is_to_suspend = false;
            WaitEnd::Wakeup
        } else if now >= self.due(until) {
            if self.wait != ThreadWait::Sleep {
                self.pass_release(now);
            }
            WaitEnd::Time
        } else {
            return None;
        };
        self.wait = ThreadWait::None;
        self.is_woken = false;
        self.has_new_periods = false;
        Some(end)
    }

    /// Its next release is the first one after `now`.
    fn pass_release(&mut self, now: i64) {
        self.release = match self.period {
            0 => NEVER,
            period => {
                let [now, release, period] = [now, self.release, period].map(i128::from);
                let next = release + ((now - release) / period + 1) * period;
                i64::try_from(next).unwrap_or(NEVER)
            }
        };
    }

    /// Its periods begin at `start`; `period` is 0 for a single one.
    pub fn set_periods(&mut self, start: i64, period: i64) {
        self.release = start;
        self.period = period;
        self.has_new_periods = true;
        self.is_to_suspend = false;
    }

    /// Ends its wait, or its next one that no time ends.
    pub fn wake_up(&mut self) {
        if self.wait != ThreadWait::None {
            self.is_woken = true;
        } else if self.is_to_suspend {
            self.is_to_suspend = false;
        } else {
            self.woken_early = true;
        }
    }

    /// Begins a wait, unless a wake-up came before it.
    fn begin_wait(&mut self, wait: ThreadWait) {
        self.wait = wait;
        self.has_new_periods &= wait != ThreadWait::Suspended;
        let has_no_end = match wait {
            ThreadWait::Suspended => true,
            ThreadWait::Period => self.release == NEVER,
            ThreadWait::Sleep | ThreadWait::None => false,
        };
        if has_no_end && std::mem::take(&mut self.woken_early) {
            self.is_woken = true;
        }
    }
}

/// Has the calling thread wait, in a sleep until `until`. Real-time safe.
pub fn wait(thread: ThreadIndex, wait: ThreadWait, until: i64) -> WaitEnd {
    let word = thread::wake_word(thread);
    let mut is_begun = false;
    loop {
        let seen = word.load(Ordering::Acquire);
        let looked = thread::with_thread(thread, |slot| {
            if !is_begun {
                slot.begin_wait(wait);
            }
            slot.end_wait(until, now()).ok_or_else(|| slot.due(until))
        });
        is_begun = true;
        match looked {
            Some(Ok(end)) => return end,
            Some(Err(due)) => futex::wait(word, seen, u64::try_from(due).map_or(1, at_most)),
            // A handler of a signal within this library: it cannot wait.
            None => return WaitEnd::Wakeup,
        }
    }
}

/// As [`futex::wait`] has it: the largest number has no end.
fn at_most(due: u64) -> u64 {
    match i64::try_from(due) {
        Ok(NEVER) => u64::MAX,
        _ => due,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn periodic(release: i64, period: i64) -> Thread {
        let mut thread = Thread::default();
        thread.set_periods(release, period);
        thread
    }

    #[test]
    fn releases_gone_by_end_one_wait_and_the_grid_stays() {
        let mut thread = periodic(100, 10);
        thread.begin_wait(ThreadWait::Period);
        assert_eq!(thread.end_wait(NEVER, 99), None);
        assert_eq!(thread.end_wait(NEVER, 100), Some(WaitEnd::Time));
        assert_eq!(thread.release, 110);
        thread.begin_wait(ThreadWait::Period);
        assert_eq!(thread.end_wait(NEVER, 145), Some(WaitEnd::Time));
        assert_eq!(thread.release, 150);
        thread.begin_wait(ThreadWait::Period);
        assert_eq!(thread.end_wait(NEVER, 149), None);
        // A single release.
        let mut thread = periodic(5, 0);
        thread.begin_wait(ThreadWait::Period);
        assert_eq!(thread.end_wait(NEVER, 5), Some(WaitEnd::Time));
        assert_eq!(thread.release, NEVER);
    }

    #[test]
    fn periods_from_the_beginning_of_all_time_end_with_it() {
        let mut thread = periodic(i64::MIN, 1);
        thread.begin_wait(ThreadWait::Period);
        assert_eq!(thread.end_wait(NEVER, i64::MAX), Some(WaitEnd::Time));
        assert_eq!(thread.release, NEVER);
    }

    #[test]
    fn an_early_wakeup_is_kept_for_a_wait_that_no_time_ends() {
        let mut thread = periodic(100, 10);
        thread.wake_up();
        thread.begin_wait(ThreadWait::Period);
        assert_eq!(thread.end_wait(NEVER, 50), None, "its release ends it");
        assert_eq!(thread.end_wait(NEVER, 100), Some(WaitEnd::Time));
        thread.begin_wait(ThreadWait::Suspended);
        assert_eq!(thread.end_wait(NEVER, 101), Some(WaitEnd::Wakeup));
        thread.begin_wait(ThreadWait::Suspended);
        assert_eq!(thread.end_wait(NEVER, 500), None, "once");
        thread.wake_up();
        assert_eq!(thread.end_wait(NEVER, 501), Some(WaitEnd::Wakeup));
    }

    #[test]
    fn a_suspended_thread_waits_for_a_wakeup_or_for_new_periods() {
        let mut thread = periodic(100, 10);
        thread.begin_wait(ThreadWait::Suspended);
        assert_eq!(thread.end_wait(NEVER, 1000), None, "its old periods do not wake it");
        thread.set_periods(2000, 10);
        assert_eq!(thread.end_wait(NEVER, 1999), None);
        assert_eq!(thread.end_wait(NEVER, 2000), Some(WaitEnd::Time));
        assert_eq!(thread.release, 2010);
    }

    #[test]
    fn another_thread_suspends_it_in_its_next_wait() {
        let mut thread = periodic(100, 10);
        thread.is_to_suspend = true;
        thread.begin_wait(ThreadWait::Sleep);
        assert_eq!(thread.end_wait(50, 1000), None);
        thread.wake_up();
        assert_eq!(thread.end_wait(50, 1000), Some(WaitEnd::Wakeup));
        assert!(!thread.is_to_suspend);
        // One that was resumed before its wait does not wait longer.
        thread.is_to_suspend = true;
        thread.wake_up();
        thread.begin_wait(ThreadWait::Sleep);
        assert_eq!(thread.end_wait(50, 1000), Some(WaitEnd::Time));
    }

    #[test]
    fn cancellation_ends_any_wait() {
        for wait in [ThreadWait::Period, ThreadWait::Suspended, ThreadWait::Sleep] {
            let mut thread = Thread::default();
            thread.is_to_suspend = true;
            thread.begin_wait(wait);
            assert_eq!(thread.end_wait(NEVER, 0), None);
            thread.is_cancelled = true;
            assert_eq!(thread.end_wait(NEVER, 0), Some(WaitEnd::Cancelled));
        }
    }
}
