//! The client's end of a page.

use std::cell::Cell;
use std::io;
use std::os::fd::BorrowedFd;
use std::sync::atomic::{fence, Ordering};

use punctual_sys::clock::{monotonic_ns, thread_cpu_ns};
use punctual_sys::futex;

use crate::memory::PageMapping;
use crate::schedule::Schedule;
use crate::words::{Words, BY_PAGE, BY_YIELD_AND_SKIPS, VERSION};
use crate::yield_wait::YieldWaits;

/// Attempts to read a release that changes meanwhile: no task preempts the dispatcher. More of them
/// find no end where the process itself has damaged the page, or the service was killed.
const ATTEMPTS: u32 = 1_000_000;

/// One release of a thread. Times are CLOCK_MONOTONIC ns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PageRelease {
    /// Its number, from 0.
    pub number: u64,
    /// When it was due.
    pub release: u64,
    /// Its absolute deadline.
    pub deadline: u64,
    /// Execution time that it may use, ns; on the user host with what it settles of the enforcement
    /// error.
    pub budget: u64,
    /// Releases that the thread did not see since it last saw one.
    pub lost: u32,
}

/// Why a wait returned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WaitAnswer {
    /// This is the release that the thread is in.
    Released(PageRelease),
    /// The reservation has ended.
    Over,
}

/// A page as its client uses it: the thread with the reservation. Real-time safe.
#[derive(Debug)]
pub struct ClientPage {
    mapping: PageMapping,
    asked: Cell<u32>,
    /// Lost releases that were returned.
    lost: Cell<u32>,
    pub(crate) yields: YieldWaits,
}

impl ClientPage {
    /// Maps the page of this descriptor, which is not needed any more then.
    ///
    /// # Errors
    /// [`io::ErrorKind::Unsupported`]: it is of another version. It is sealed, or no page.
    pub fn open(memory: BorrowedFd<'_>) -> io::Result<ClientPage> {
        let mapping = PageMapping::of(memory)?;
        match mapping.words().service.version.load(Ordering::Relaxed) {
            VERSION => Ok(ClientPage {
                mapping,
                asked: Cell::new(0),
                lost: Cell::new(0),
                yields: YieldWaits::default(),
            }),
            _ => Err(io::ErrorKind::Unsupported.into()),
        }
    }

    pub(crate) fn words(&self) -> &Words {
        self.mapping.words()
    }

    /// The thread begins to wait: its job is done.
    pub fn ask(&self) {
        let words = &self.words().client;
        words.asked_at.store(monotonic_ns(), Ordering::Relaxed);
        self.asked.set(self.asked.get().wrapping_add(1));
        words.asked.store(self.asked.get(), Ordering::SeqCst);
    }

    /// Waits for the end of the wait that was last begun, or until `until` (CLOCK_MONOTONIC ns);
    /// `None`: the time has come.
    pub fn await_answer(&self, until: u64) -> Option<WaitAnswer> {
        let words = &self.words().service;
        loop {
            let answered = words.answered.load(Ordering::SeqCst);
            if self.is_over() {
                return Some(WaitAnswer::Over);
            }
            if answered.wrapping_sub(self.asked.get()) as i32 >= 0 {
                let release = self.release();
                self.lost.set(self.lost.get().wrapping_add(release.lost));
                return Some(WaitAnswer::Released(release));
            }
            if monotonic_ns() >= until {
                return None;
            }
            futex::wait_shared(&words.answered, answered, until);
        }
    }

    /// The release whose budget the thread executes on; `lost` is what no wait has returned yet.
    pub fn release(&self) -> PageRelease {
        if let Some(schedule) = self.schedule() {
            return self.yields.current(&schedule, monotonic_ns());
        }
        let release = self.published();
        PageRelease { lost: release.lost.wrapping_sub(self.lost.get()), ..release }
    }

    /// What stands in the page, with all lost releases.
    fn published(&self) -> PageRelease {
        let words = &self.words().service;
        let mut attempts = 0;
        loop {
            let sequence = words.sequence.load(Ordering::Acquire);
            let release = PageRelease {
                number: words.number.load(Ordering::Relaxed),
                release: words.release.load(Ordering::Relaxed),
                deadline: words.deadline.load(Ordering::Relaxed),
                budget: words.budget.load(Ordering::Relaxed),
                lost: words.lost.load(Ordering::Relaxed),
            };
            // Pairs with that of `DispatcherPage::publish`.
            fence(Ordering::Acquire);
            let is_whole = sequence % 2 == 0 && words.sequence.load(Ordering::Relaxed) == sequence;
            attempts += 1;
            if is_whole || attempts == ATTEMPTS {
                return release;
            }
            std::hint::spin_loop();
        }
    }

    /// The releases of a thread that waits by sched_yield; `None`: it waits by the page.
    pub(crate) fn schedule(&self) -> Option<Schedule> {
        let words = &self.words().service;
        let waits_by = words.waits_by.load(Ordering::Acquire);
        (waits_by != BY_PAGE).then(|| Schedule {
            first: self.published(),
            period: words.period.load(Ordering::Relaxed),
            skips: waits_by == BY_YIELD_AND_SKIPS,
        })
    }

    /// The thread waits by [`wait_by_yield`](ClientPage::wait_by_yield), and not by the page.
    pub fn waits_by_yield(&self) -> bool {
        self.words().service.waits_by.load(Ordering::Acquire) != BY_PAGE
    }

    /// What is left of the budget of this release, ns of execution. For the thread itself. Where it
    /// waits by sched_yield, no more than that: time in which others executed may count too, until
    /// its next wait returns.
    pub fn remaining_budget(&self) -> u64 {
        if let Some(schedule) = self.schedule() {
            return self.yields.remaining_budget(&schedule, monotonic_ns(), thread_cpu_ns());
        }
        let exhausted_at = self.words().service.exhausted_at.load(Ordering::Relaxed);
        exhausted_at.saturating_sub(thread_cpu_ns())
    }

    /// The reservation has ended.
    pub fn is_over(&self) -> bool {
        self.words().service.over.load(Ordering::SeqCst) != 0
    }
}

#[cfg(test)]
impl ClientPage {
    pub(crate) fn set_asked(&self, asked: u32) {
        self.asked.set(asked);
    }
}
