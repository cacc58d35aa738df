//! How an end waits for the other side, and how it wakes those who wait for it.
//!
//! An end that finds nothing announces the position `p` of the other side beyond which it waits,
//! looks once more, and sleeps on that position. The other side, when it moves from `p`, wakes all
//! that sleep, and writes into the pipe that the descriptors of the waiting side read. Nothing is
//! ever withdrawn: an announcement is good for one move. An end that is killed between moving and
//! notifying has moved; the next end of its side notifies, and sleepers look once a second.
//!
//! The other side looks for announcements only once this side has waited in some way: then each
//! move needs a memory barrier, which takes as long as all the rest.

use std::os::fd::BorrowedFd;
use std::sync::atomic::{fence, Ordering};

use punctual_sys::{clock, futex};

use super::end::FifoEnd;
use super::layout::{POLLS, SLEEPS};
use super::Error;

/// How long a sleeping end relies on the other side, in ns.
const LOOK_AGAIN: u64 = 1_000_000_000;
/// Far longer than any CPU keeps a store to itself, in ns.
const STORE_BUFFER: u64 = 100_000;

impl FifoEnd {
    /// Sleeps until the other side has moved beyond `self.other`, or `until` (CLOCK_MONOTONIC ns).
    /// May return early.
    ///
    /// # Errors
    /// The time is over.
    pub fn sleep(&mut self, until: u64) -> Result<(), Error> {
        let now = clock::monotonic_ns();
        if now >= until {
            return Err(Error::TimedOut);
        }
        if self.begin_to(SLEEPS) || !self.announce() {
            return Ok(());
        }
        let until = until.min(now.saturating_add(LOOK_AGAIN));
        futex::wait_shared(self.peer().position.futex(), self.other as u32, until);
        Ok(())
    }

    /// Has the other side look for announcements, of ends that wait in this way. True: it may have
    /// moved meanwhile.
    fn begin_to(&self, wait: u32) -> bool {
        let waits = &self.peer().attention.waits;
        if waits.load(Ordering::Relaxed) & wait != 0 {
            return false;
        }
        if waits.fetch_or(wait, Ordering::SeqCst) == 0 {
            // A move without a barrier may still be on its way from the store buffer of its CPU.
            clock::sleep_until(clock::monotonic_ns() + STORE_BUFFER);
        }
        true
    }

    /// Has the other side notify this one when it moves from `self.other`. False: it has moved.
    fn announce(&self) -> bool {
        let peer = self.peer();
        peer.attention.at.fetch_max(self.other, Ordering::SeqCst);
        // Pairs with `FifoEnd::advance`.
        fence(Ordering::SeqCst);
        peer.position.0.load(Ordering::Acquire) == self.other
    }

    /// Wakes the other side's threads, and makes its descriptors ready. Real-time safe.
    #[cold]
    #[inline(never)]
    pub fn notify(&self) {
        let own = self.own();
        let waits = own.attention.waits.load(Ordering::Relaxed);
        if waits & SLEEPS != 0 {
            futex::wake_shared(own.position.futex());
        }
        if waits & POLLS != 0 {
            write_to(self.shared.object.pipe(1 - self.peer_number()));
        }
    }

    /// A descriptor for poll, select and epoll, readable when the other side has moved since this
    /// one last found nothing.
    pub fn descriptor(&mut self) -> BorrowedFd<'_> {
        let pipe = self.shared.object.pipe(self.peer_number());
        if self.begin_to(POLLS) {
            write_to(pipe);
        }
        pipe
    }

    /// Whether this side has a descriptor.
    #[inline]
    pub fn is_polled(&self) -> bool {
        self.peer().attention.waits.load(Ordering::Relaxed) & POLLS != 0
    }

    /// This end found nothing beyond `self.other`: the descriptor is ready again when the other
    /// side moves. With the side locked.
    pub fn make_unready(&self) {
        let pipe = self.shared.object.pipe(self.peer_number());
        let mut bytes = [0; 64];
        while matches!(rustix::io::read(pipe, &mut bytes), Ok(n) if n == bytes.len()) {}
        if !self.announce() {
            write_to(pipe);
        }
    }
}

/// Makes the descriptors that read a pipe ready. A full pipe is ready as well.
fn write_to(pipe: BorrowedFd<'_>) {
    let _ = rustix::io::write(pipe, &[1]);
}
