//! Finds threads of one task that wait for a mutex with priority inheritance: the kernel has
//! the mutex's owner execute at their level, whichever program it is of.
//!
//! The housekeeper finds new threads later than they may wait. While it finds some that do, each
//! sample counts as having found one.
//!
//! A sample reads a bounded number of threads; those of a large program take several. A thread
//! whose file would be one too many counts as one that waits.

use std::sync::atomic::Ordering::Relaxed;

use crate::threads::{Threads, TOO_MANY};
use crate::wait_place::{self, ObservedWait};

/// Threads that one sample reads: each takes some 1.5 us.
const AT_ONCE: usize = 16;

/// Calls of [`Threads::rescan`] for which new threads count as waiting ones, after one that was.
const SCANS: usize = 16;

/// What a sample found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WaitSample {
    /// Of the threads that it read, what counts most.
    pub wait: ObservedWait,
    /// The slot at which the next sample begins; 0: all the others have been read.
    pub next: usize,
}

impl Threads {
    /// Reads what threads do, from this slot on. Real-time safe: one system call for each of
    /// sixteen at most. Only the dispatcher calls it.
    pub fn sample_waits(&self, from: usize) -> WaitSample {
        if self.new_waiters.load(Relaxed) > 0 {
            return WaitSample { wait: ObservedWait::Inherits, next: 0 };
        }
        let (mut wait, mut read) = (ObservedWait::Asleep, 0);
        for n in from..self.used() {
            let slot = &self.slots[n];
            if slot.tid().is_none() {
                continue;
            }
            if read == AT_ONCE {
                return WaitSample { wait, next: n };
            }
            read += 1;
            wait = wait.max(match slot.wait_place.load(Relaxed) {
                TOO_MANY => ObservedWait::Inherits,
                fd => wait_place::read(fd),
            });
        }
        WaitSample { wait, next: 0 }
    }

    /// Housekeeping: whether a thread that was found now waits with inheritance.
    pub(crate) fn note_new_waiters(&self, some_wait: bool) {
        let before = self.new_waiters.load(Relaxed);
        let after = if some_wait { SCANS } else { before.saturating_sub(1) };
        self.new_waiters.store(after, Relaxed);
    }
}
