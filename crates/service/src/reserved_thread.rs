//! A thread with a reservation that waits for its releases.

use std::os::unix::net::UnixStream;
use std::sync::Weak;

use punctual_sys::clock::monotonic_ns;
use punctual_wait_page::{ClientPage, PageRelease, WaitAnswer};
use rustix::event::{poll, PollFd, PollFlags, Timespec};

use crate::ReservationInfo;

/// How long after its next release a thread that waits looks whether the service is still there,
/// and at which intervals from then on, ns. A service that ends wakes it; one that is killed does
/// not.
const PATIENCE: u64 = 100_000_000;

/// A thread with a reservation
/// ([`ServiceClient::reserve_thread`](crate::ServiceClient::reserve_thread)), as its own code sees
/// it. One thread at a time uses it: the one that the reservation is for, to which it can be moved.
///
/// The reservation ends with its connection, or with `release`; dropping this changes nothing.
///
/// All calls are real-time safe: they neither allocate nor lock. A signal's handler may execute
/// while the thread waits, where its CPU has nothing else to do; inside the kernel, at the next
/// release. There sched_yield is the thread's wait, and nothing but `wait_period` should call it.
#[derive(Debug)]
pub struct ReservedThread {
    info: ReservationInfo,
    page: ClientPage,
    /// Shows the end of the service.
    connection: Weak<UnixStream>,
}

impl ReservedThread {
    pub(crate) fn new(
        info: ReservationInfo,
        page: ClientPage,
        connection: Weak<UnixStream>,
    ) -> ReservedThread {
        ReservedThread { info, page, connection }
    }

    /// Its reservation.
    #[must_use]
    pub fn info(&self) -> &ReservationInfo {
        &self.info
    }

    /// The job is done: waits for the next release. The first call waits for the first release.
    /// What was left of the budget is given up.
    ///
    /// A call that comes late, when the release after the job has gone by, does as the overrun
    /// policy says: with `carry`, `signal` and `background` it returns at once and the thread
    /// catches up, one call for each release; with `skip` it waits for the next release and returns
    /// how many were lost.
    ///
    /// `None` when the reservation or the service has ended: nothing is guaranteed any more; the
    /// thread continues as it was before.
    #[must_use = "None says that the reservation is over"]
    pub fn wait_period(&self) -> Option<PageRelease> {
        if self.is_over() {
            return None;
        }
        if self.page.waits_by_yield() {
            return match self.page.wait_by_yield(PATIENCE, || self.is_alone()) {
                WaitAnswer::Released(release) => Some(release),
                WaitAnswer::Over => None,
            };
        }
        let next = self.page.release().release.saturating_add(self.info.period_ns);
        self.page.ask();
        let mut until = next.max(monotonic_ns()).saturating_add(PATIENCE);
        loop {
            match self.page.await_answer(until) {
                Some(WaitAnswer::Released(release)) => return Some(release),
                Some(WaitAnswer::Over) => return None,
                None if self.is_alone() => return None,
                None => until = monotonic_ns().saturating_add(PATIENCE),
            }
        }
    }

    /// Suspends the task by this request, so that its next wait returns when that was resumed
    /// as often, and not before. On the user host that is so by itself.
    ///
    /// # Errors
    /// The request's: it is not suspended.
    pub fn suspend_by<E>(&self, request: impl FnOnce() -> Result<(), E>) -> Result<(), E> {
        let resumption = self.page.next_resumption();
        request()?;
        if self.page.waits_by_yield() {
            self.page.wait_for_resumption(resumption);
        }
        Ok(())
    }

    /// The release whose budget the thread executes on. After an overrun that is a later one than
    /// `wait_period` returned; `lost` counts releases that it has not returned yet.
    #[must_use]
    pub fn current(&self) -> PageRelease {
        self.page.release()
    }

    /// What is left of the budget of this release, ns of execution. The thread's own: any other one
    /// gets a wrong figure. Inside the kernel that is the least that may be left, after an overrun:
    /// others may have executed since the release.
    #[must_use]
    pub fn remaining_budget(&self) -> u64 {
        self.page.remaining_budget()
    }

    /// The reservation has ended. After the service was killed, `wait_period` finds that.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.page.is_over()
    }

    /// The connection has been closed, here or by the service.
    fn is_alone(&self) -> bool {
        let Some(connection) = self.connection.upgrade() else { return true };
        let mut connection = [PollFd::new(&connection, PollFlags::RDHUP)];
        let polled = poll(&mut connection, Some(&Timespec { tv_sec: 0, tv_nsec: 0 }));
        polled.is_ok() && connection[0].revents().intersects(PollFlags::RDHUP | PollFlags::HUP)
    }
}
