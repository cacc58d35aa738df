//! Wakes a domain's allocator thread: for requests and commands of this program, and for events of
//! the dispatcher, which the kernel's ring buffer reports.

use std::os::fd::BorrowedFd;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::time::Duration;

use libbpf_rs::RingBuffer;
use punctual_diagnostic::Diagnostic;
use punctual_program_jobs::JobDoorbell;
use punctual_sys::event_count::EventCount;

/// What the program's threads ring.
#[derive(Debug)]
pub(crate) struct RequestDoorbell {
    count: EventCount,
    /// It counts, or is about to: further requests need not.
    pending: AtomicBool,
    /// The thread has ended, or is to.
    over: AtomicBool,
}

impl RequestDoorbell {
    /// # Errors
    /// There is no descriptor left.
    pub fn new() -> Result<RequestDoorbell, Diagnostic> {
        let count = EventCount::new().map_err(|e| {
            let cause = format!("no descriptor for requests to the dispatcher: {e}");
            Diagnostic::machine(cause, "raise RLIMIT_NOFILE")
        })?;
        Ok(RequestDoorbell { count, pending: AtomicBool::new(false), over: AtomicBool::new(false) })
    }

    /// Wakes the thread.
    pub fn ring(&self) {
        if !self.pending.swap(true, SeqCst) {
            self.count.add(1);
        }
    }

    /// Whether it rang since the last call. Requests that were made before it are there. One that
    /// comes between the two steps counts once more, for nothing.
    pub fn take(&self) -> bool {
        self.count.take();
        self.pending.swap(false, SeqCst)
    }

    /// The thread takes no request any more.
    pub fn end(&self) {
        self.over.store(true, SeqCst);
    }

    /// Waits until it rings, `bell` does, or that time has passed, or for any other reason. Takes
    /// what `bell` has.
    pub fn wait(&self, bell: &RingBuffer<'_>, time: Duration) {
        use rustix::event::{poll, PollFd, PollFlags, Timespec};
        // SAFETY: the ring buffer's descriptor is open as long as that.
        let of_kernel = unsafe { BorrowedFd::borrow_raw(bell.epoll_fd()) };
        let mut both = [
            PollFd::from_borrowed_fd(of_kernel, PollFlags::IN),
            PollFd::new(&self.count, PollFlags::IN),
        ];
        let timeout = Timespec {
            tv_sec: time.as_secs() as i64,
            tv_nsec: i64::from(time.subsec_nanos()) as _,
        };
        // A signal is no error.
        let _ = poll(&mut both, Some(&timeout));
        let _ = bell.consume();
    }
}

impl JobDoorbell for RequestDoorbell {
    fn note_jobs(&self) {
        self.ring();
    }

    fn is_over(&self) -> bool {
        self.over.load(SeqCst)
    }
}

#[cfg(test)]
mod tests {
    use super::RequestDoorbell;
    use punctual_program_jobs::JobDoorbell;

    #[test]
    fn requests_ring_once_until_they_are_taken() {
        let doorbell = RequestDoorbell::new().expect("there are descriptors");
        assert!(!doorbell.take());
        for _ in 0..1000 {
            doorbell.note_jobs();
        }
        assert!(doorbell.take());
        assert!(!doorbell.take() && !doorbell.count.take(), "nothing is left that would wake");
        doorbell.ring();
        assert!(doorbell.take() && !doorbell.is_over());
        doorbell.end();
        assert!(doorbell.is_over());
    }
}
