//! The dispatcher's end of a page. All but `drop` is real-time safe.

use std::sync::atomic::{fence, Ordering};

use punctual_sys::futex;

use crate::words::{BY_YIELD, BY_YIELD_AND_SKIPS};
use crate::{PageRelease, SealedPage};

/// Late waits that are answered in advance with one release. More of them in one period return at
/// the dispatcher's events.
const IN_ADVANCE: u32 = 64;

/// A page as its dispatcher uses it. When it is dropped, the client finds that the reservation has
/// ended; that wakes all that wait.
#[derive(Debug)]
pub struct DispatcherPage {
    page: SealedPage,
    /// Waits that were handled, the one for the first release included.
    served: u32,
    /// As in the page.
    answered: u32,
    lost: u32,
    sequence: u32,
    suspensions: u32,
    /// The next call of `wake` wakes the client.
    wakes: bool,
}

impl DispatcherPage {
    /// Of a thread that has not had its first release.
    pub fn of(page: &SealedPage) -> DispatcherPage {
        let page = page.clone();
        let (answered, lost, sequence, suspensions) = (0, 0, 0, 0);
        DispatcherPage { page, served: 1, answered, lost, sequence, suspensions, wakes: false }
    }

    /// Of a thread that waits by sched_yield, which its dispatcher sees without the page: the first
    /// release is this one, and others follow it at a distance of `period` ns. `skips`: a release
    /// that overruns loses those that come meanwhile; else late waits return at once. `publish`
    /// changes the budget, the deadline, and how many releases were lost besides.
    pub fn by_yield(
        page: &SealedPage,
        first: &PageRelease,
        period: u64,
        skips: bool,
    ) -> DispatcherPage {
        let mut page = DispatcherPage::of(page);
        page.publish(first, 0);
        let words = &page.page.words().service;
        words.period.store(period, Ordering::Relaxed);
        let waits_by = if skips { BY_YIELD_AND_SKIPS } else { BY_YIELD };
        words.waits_by.store(waits_by, Ordering::Release);
        page
    }

    /// Whether the thread has begun a wait that was not served.
    pub fn has_asked(&self) -> bool {
        let asked = self.page.words().client.asked.load(Ordering::Acquire);
        asked.wrapping_sub(self.served) as i32 > 0
    }

    /// When it began the latest one, as the client says: CLOCK_MONOTONIC ns, or anything.
    pub fn asked_at(&self) -> u64 {
        self.page.words().client.asked_at.load(Ordering::Relaxed)
    }

    /// One wait more is handled.
    pub fn serve(&mut self) {
        self.served = self.served.wrapping_add(1);
    }

    /// The waits that were served return, and the next `late` ones, in part.
    /// [`wake`](DispatcherPage::wake) is to follow.
    pub fn answer(&mut self, late: u32) {
        let answered = self.served.wrapping_add(late.min(IN_ADVANCE));
        if answered.wrapping_sub(self.answered) as i32 > 0 {
            self.answered = answered;
            self.page.words().service.answered.store(answered, Ordering::SeqCst);
            self.wakes = true;
        }
    }

    /// Wakes one thread that waits, if `answer` was called since. The client's other threads can
    /// take the place of that one; so that their number costs nothing, there is no more than one.
    pub fn wake(&mut self) {
        if std::mem::take(&mut self.wakes) {
            futex::wake_one_shared(&self.page.words().service.answered);
        }
    }

    /// Publishes a release; `release.lost` are those since the last one.
    pub fn publish(&mut self, release: &PageRelease, exhausted_at: u64) {
        let words = &self.page.words().service;
        let PageRelease { number, release, deadline, budget, lost } = *release;
        self.lost = self.lost.wrapping_add(lost);
        words.sequence.store(self.sequence.wrapping_add(1), Ordering::Relaxed);
        // Pairs with that of `ClientPage::release`.
        fence(Ordering::Release);
        words.number.store(number, Ordering::Relaxed);
        words.release.store(release, Ordering::Relaxed);
        words.deadline.store(deadline, Ordering::Relaxed);
        words.budget.store(budget, Ordering::Relaxed);
        words.exhausted_at.store(exhausted_at, Ordering::Relaxed);
        words.lost.store(self.lost, Ordering::Relaxed);
        self.sequence = self.sequence.wrapping_add(2);
        words.sequence.store(self.sequence, Ordering::Release);
    }

    /// A thread that waits by sched_yield is suspended, or resumed. One that sleeps finds it.
    pub fn toggle_suspension(&mut self) {
        let words = &self.page.words().service;
        self.suspensions = self.suspensions.wrapping_add(1);
        words.suspensions.store(self.suspensions, Ordering::SeqCst);
        self.answered = self.answered.wrapping_add(1);
        words.answered.store(self.answered, Ordering::SeqCst);
        futex::wake_one_shared(&words.answered);
    }
}

impl Drop for DispatcherPage {
    fn drop(&mut self) {
        let words = &self.page.words().service;
        words.over.store(1, Ordering::SeqCst);
        // Another value, so that a thread on its way to sleep returns.
        words.answered.store(self.answered.wrapping_sub(1 << 31), Ordering::SeqCst);
        futex::wake_shared(&words.answered);
    }
}

#[cfg(test)]
impl DispatcherPage {
    pub(crate) fn served(&self) -> u32 {
        self.served
    }

    pub(crate) fn set_counts(&mut self, count: u32) {
        (self.served, self.answered) = (count, count);
        self.page.words().service.answered.store(count, Ordering::SeqCst);
    }
}
