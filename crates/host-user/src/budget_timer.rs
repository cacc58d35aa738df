//! The timer that wakes a dispatcher when a budget is used up.
//!
//! A dispatcher sleeps in one system call, which ends at its own next time (a release, a deadline)
//! or when its doorbell rings. The end of a budget comes before that in most periods, and in most
//! of those the task waits for its next release before its budget ends. So that the dispatcher need
//! not wake for either, this timer has the ends of budgets, and a task that waits moves it to where
//! the dispatcher will want it next ([`silent_waits`](crate::silent_waits)):
//!
//! ```text
//!   task        executes, moves the timer, waits              executes
//!   timer       |<-- set: end of its budget                   |<-- set already: end of the next
//!   dispatcher  release ............... sleeps .............. release
//! ```
//!
//! It sends the dispatcher's thread the gate signal, whose handler notes it in the doorbell.
//!
//! # Invariant
//!
//! While the dispatcher sleeps beyond the end of a budget, the timer is set to that end or before
//! it. A task moves it only as long as the dispatcher has not woken since it permitted that. A
//! dispatcher that wakes while a task moves it does not count on the timer until its next event,
//! which that task rings for.

use std::io;
use std::sync::atomic::Ordering::SeqCst;
use std::sync::atomic::{AtomicU32, AtomicU64};

use punctual_sys::kernel;
use punctual_sys::thread_timer::{ThreadTimer, TimerClock};

use crate::signal;

/// The timer is off.
pub const OFF: u64 = u64::MAX;
/// Some thread sets it at present.
const UNKNOWN: u64 = 0;

/// The timer of one dispatcher, which it shares with the tasks of its process.
#[derive(Debug)]
pub struct BudgetTimer {
    timer: ThreadTimer,
    /// CLOCK_MONOTONIC ns, [`OFF`] or [`UNKNOWN`].
    set_to: AtomicU64,
    /// Tasks that may be about to move it.
    movers: AtomicU32,
}

impl BudgetTimer {
    /// Of the calling thread, a dispatcher's, whose doorbell notes the gate signal.
    ///
    /// # Errors
    /// Under PREEMPT_RT such a timer expires in a thread of the lowest level, below all tasks.
    /// EAGAIN: RLIMIT_SIGPENDING.
    pub fn of_this_thread() -> io::Result<BudgetTimer> {
        if kernel::is_preempt_rt() {
            return Err(io::ErrorKind::Unsupported.into());
        }
        let timer = ThreadTimer::of_this_thread(TimerClock::Monotonic, signal::gate())?;
        signal::unblock(signal::gate());
        Ok(BudgetTimer { timer, set_to: AtomicU64::new(OFF), movers: AtomicU32::new(0) })
    }

    /// No task is about to move it.
    pub fn is_still(&self) -> bool {
        self.movers.load(SeqCst) == 0
    }

    /// The dispatcher's, while it is still: has it expire at `latest`, or where it is set to
    /// already if that is not before `earliest`. False: it cannot be set.
    pub fn cover(&self, earliest: u64, latest: u64) -> bool {
        let set_to = self.set_to.load(SeqCst);
        (earliest..=latest).contains(&set_to) || self.set(latest)
    }

    /// The dispatcher's: it shall not expire before its own next time, for which it wakes anyway.
    pub fn be_quiet_until(&self, time: u64) {
        if self.is_still() && self.set_to.load(SeqCst) < time {
            let _ = self.set(OFF);
        }
    }

    /// The dispatcher's: the time at which it expired, if it did since it was set; else [`OFF`].
    pub fn take_expired(&self, now: u64) -> u64 {
        let set_to = self.set_to.load(SeqCst);
        let expired = set_to != UNKNOWN && set_to <= now;
        let is_off = expired && self.set_to.compare_exchange(set_to, OFF, SeqCst, SeqCst).is_ok();
        if is_off {
            set_to
        } else {
            OFF
        }
    }

    /// A task's: moves it to the time in `permitted`; true: it is there, and the dispatcher has not
    /// taken the permission back meanwhile.
    pub fn move_if_permitted(&self, permitted: &AtomicU64) -> bool {
        self.movers.fetch_add(1, SeqCst);
        let to = permitted.load(SeqCst);
        let moved = to != 0 && self.set(to) && permitted.load(SeqCst) == to;
        self.movers.fetch_sub(1, SeqCst);
        moved
    }

    fn set(&self, to: u64) -> bool {
        self.set_to.store(UNKNOWN, SeqCst);
        let is_set = self.timer.set((to != OFF).then_some(to)).is_ok();
        self.set_to.store(if is_set { to } else { UNKNOWN }, SeqCst);
        is_set
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doorbell::Doorbell;
    use crate::park_signal;
    use punctual_sys::clock::monotonic_ns;
    use punctual_test_support::LIVENESS;

    const IN_AN_HOUR: u64 = 3_600_000_000_000;

    /// `judge` of the timer of a thread that is a dispatcher's.
    fn with_timer(judge: impl FnOnce(&Doorbell, &BudgetTimer) + Send + 'static) {
        let dispatcher = std::thread::spawn(|| {
            park_signal::install().expect("no other handler");
            let doorbell = Doorbell::new();
            doorbell.enter();
            match doorbell.budget_timer.get() {
                Some(timer) => judge(&doorbell, timer),
                None => punctual_test_support::missing("PREEMPT_RT has no such timer"),
            }
        });
        dispatcher.join().expect("it does not panic");
    }

    #[test]
    fn it_ends_the_dispatchers_sleep_and_names_its_time() {
        with_timer(|doorbell, timer| {
            let seen = doorbell.rings();
            let at = monotonic_ns() + 2_000_000;
            assert!(timer.cover(at, at));
            assert_eq!(timer.take_expired(at - 1), OFF);
            let end = monotonic_ns() + LIVENESS.as_nanos() as u64;
            while doorbell.rings() == seen && monotonic_ns() < end {
                doorbell.sleep(seen, end);
            }
            assert_ne!(doorbell.rings(), seen);
            let now = monotonic_ns();
            assert!(now >= at);
            assert_eq!(timer.take_expired(now), at);
            assert_eq!(timer.take_expired(now), OFF, "only once");
        });
    }

    #[test]
    fn it_stays_where_it_is_early_by_little_and_is_never_late() {
        with_timer(|_, timer| {
            let at = monotonic_ns() + IN_AN_HOUR;
            let set_to = || timer.set_to.load(SeqCst);
            assert!(timer.cover(at, at) && timer.cover(at - 10, at + 10));
            assert_eq!(set_to(), at);
            assert!(timer.cover(at - 10, at - 5));
            assert_eq!(set_to(), at - 5);
            timer.be_quiet_until(at - 5);
            assert_eq!(set_to(), at - 5);
            timer.be_quiet_until(at);
            assert_eq!(set_to(), OFF);
        });
    }

    #[test]
    fn a_task_moves_it_as_long_as_that_is_permitted() {
        with_timer(|_, timer| {
            let at = monotonic_ns() + IN_AN_HOUR;
            let permitted = AtomicU64::new(0);
            assert!(timer.cover(at, at));
            assert!(!timer.move_if_permitted(&permitted));
            assert_eq!(timer.set_to.load(SeqCst), at);
            permitted.store(at + 5, SeqCst);
            assert!(timer.move_if_permitted(&permitted));
            assert_eq!(timer.set_to.load(SeqCst), at + 5);
            permitted.store(OFF, SeqCst);
            assert!(timer.move_if_permitted(&permitted));
            assert_eq!(timer.take_expired(at + 10), OFF);
            assert!(timer.is_still());
        });
    }
}
