//! Counts that threads wait for, as descriptors that `poll` accepts: eventfd(2), as a semaphore.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::event::{eventfd, poll, EventfdFlags, PollFd, PollFlags, Timespec};

use crate::clock::monotonic_ns;

/// A count; its descriptor is readable while it is not 0. Closed on exec.
#[derive(Debug)]
pub struct EventCount(OwnedFd);

impl EventCount {
    /// At 0.
    ///
    /// # Errors
    /// EMFILE, ENFILE, ENOMEM.
    pub fn new() -> io::Result<EventCount> {
        let flags = EventfdFlags::SEMAPHORE | EventfdFlags::NONBLOCK | EventfdFlags::CLOEXEC;
        Ok(EventCount(eventfd(0, flags)?))
    }

    /// Counts up, and wakes a thread that waits. Less than 2^64 - 1 in all. Real-time safe.
    pub fn add(&self, count: u64) {
        // The counter does not overflow, which is the only error.
        let _ = rustix::io::write(&self.0, &count.to_ne_bytes());
    }

    /// Counts down by one, if it is not 0; whether it was not. Real-time safe.
    pub fn take(&self) -> bool {
        rustix::io::read(&self.0, &mut [0; 8]) == Ok(8)
    }

    /// Waits until it is not 0, or until `until` (CLOCK_MONOTONIC ns; `u64::MAX` for ever).
    /// Returns for any reason: try again. Real-time safe.
    pub fn wait(&self, until: u64) {
        let left = until.saturating_sub(monotonic_ns());
        let left = Timespec {
            tv_sec: (left / 1_000_000_000) as i64,
            tv_nsec: (left % 1_000_000_000) as _,
        };
        let timeout = (until != u64::MAX).then_some(&left);
        let _ = poll(&mut [PollFd::new(&self.0, PollFlags::IN)], timeout);
    }
}

impl AsFd for EventCount {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_count_is_taken_once_and_a_thread_that_waits_is_woken() {
        let count = EventCount::new().expect("there are descriptors");
        assert!(!count.take());
        count.add(2);
        assert_eq!([count.take(), count.take(), count.take()], [true, true, false]);
        std::thread::scope(|scope| {
            let waits = scope.spawn(|| {
                while !count.take() {
                    count.wait(u64::MAX);
                }
            });
            count.add(1);
            waits.join().expect("it does not panic");
        });
        // A time gone by.
        count.wait(1);
        assert!(!count.take());
    }
}
