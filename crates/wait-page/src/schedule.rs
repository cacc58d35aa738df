//! Releases that follow from the clock.

use crate::PageRelease;

/// The releases of a thread that waits by sched_yield, as its page has them.
#[derive(Debug, Clone, Copy)]
pub struct Schedule {
    /// The first release; `lost` are all that its dispatcher could not make, modulo 2^32.
    pub first: PageRelease,
    /// The others follow at this distance, ns.
    pub period: u64,
    /// A release that overruns loses those that come meanwhile; else late waits return at once.
    pub skips: bool,
}

impl Schedule {
    /// Number of the latest release at `now`, CLOCK_MONOTONIC ns; `None` before the first one.
    pub fn latest(&self, now: u64) -> Option<u64> {
        // A page that its client has damaged may have no period.
        now.checked_sub(self.first.release).map(|after| after / self.period.max(1))
    }

    /// The release of this number, without lost ones.
    pub fn release(&self, number: u64) -> PageRelease {
        let PageRelease { release, deadline, budget, .. } = self.first;
        let after = number.saturating_mul(self.period);
        PageRelease {
            number,
            release: release.saturating_add(after),
            deadline: deadline.saturating_add(after),
            budget,
            lost: 0,
        }
    }
}
