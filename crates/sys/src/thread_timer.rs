//! Timers that send a signal to one thread (timer_create(2)).

use std::io;
use std::ptr;

use crate::clock::timespec;
use crate::sched::thread_id;

/// On which clock a timer counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TimerClock {
    /// CLOCK_MONOTONIC.
    Monotonic,
    /// The execution time of the thread that makes the timer, as far as the kernel's tick sees it.
    ThreadCpu,
}

/// A timer of a thread; dropping it deletes it. Any thread may set it. When the thread has ended,
/// no signal is sent.
#[derive(Debug)]
pub struct ThreadTimer(libc::timer_t);

// SAFETY: the kernel's name of the timer, for system calls of any thread of the process.
unsafe impl Send for ThreadTimer {}
// SAFETY: as above.
unsafe impl Sync for ThreadTimer {}

impl ThreadTimer {
    /// Sends this signal to the calling thread, once it is set.
    ///
    /// # Errors
    /// EAGAIN: RLIMIT_SIGPENDING.
    pub fn of_this_thread(clock: TimerClock, signal: i32) -> io::Result<ThreadTimer> {
        let clock = match clock {
            TimerClock::Monotonic => libc::CLOCK_MONOTONIC,
            TimerClock::ThreadCpu => libc::CLOCK_THREAD_CPUTIME_ID,
        };
        let mut timer: libc::timer_t = ptr::null_mut();
        // SAFETY: zeroed values of this type are valid; all pointers are to values on the stack.
        let result = unsafe {
            let mut event: libc::sigevent = std::mem::zeroed();
            event.sigev_notify = libc::SIGEV_THREAD_ID;
            event.sigev_signo = signal;
            event.sigev_notify_thread_id = thread_id();
            libc::timer_create(clock, &mut event, &mut timer)
        };
        // No `then_some`: dropping a timer that was not made would delete another one.
        if result != 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(ThreadTimer(timer))
    }

    /// Sends the signal at this time on its clock, ns, or as soon as that has passed; `None`: not
    /// at all. Real-time safe.
    ///
    /// # Errors
    /// None that the kernel documents for such a timer.
    pub fn set(&self, at: Option<u64>) -> io::Result<()> {
        // Zero would stop it.
        self.set_time(libc::TIMER_ABSTIME, at.map_or(0, |at| at.max(1)), 0)
    }

    /// Sends the signal each time that so many ns have passed.
    ///
    /// # Errors
    /// As [`ThreadTimer::set`].
    pub fn set_interval(&self, every: u64) -> io::Result<()> {
        self.set_time(0, every, every)
    }

    fn set_time(&self, flags: libc::c_int, first: u64, every: u64) -> io::Result<()> {
        let times = libc::itimerspec { it_interval: timespec(every), it_value: timespec(first) };
        // SAFETY: a timer of this process, and a value on the stack.
        let result = unsafe { libc::timer_settime(self.0, flags, &times, ptr::null_mut()) };
        (result == 0).then_some(()).ok_or_else(io::Error::last_os_error)
    }
}

impl Drop for ThreadTimer {
    fn drop(&mut self) {
        // SAFETY: a timer of this process, which nothing names any more.
        unsafe { libc::timer_delete(self.0) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limit_pending_signals(limit: libc::rlimit) {
        // SAFETY: a value on the stack.
        assert_eq!(unsafe { libc::setrlimit(libc::RLIMIT_SIGPENDING, &limit) }, 0);
    }

    #[test]
    fn a_timer_that_is_refused_costs_no_other_one() {
        let make = || ThreadTimer::of_this_thread(TimerClock::Monotonic, libc::SIGRTMAX());
        let first = make().expect("a timer");
        let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
        // SAFETY: a value on the stack.
        assert_eq!(unsafe { libc::getrlimit(libc::RLIMIT_SIGPENDING, &mut limit) }, 0);
        limit_pending_signals(libc::rlimit { rlim_cur: 0, ..limit });
        let refused = make().map(drop).map_err(|e| e.raw_os_error());
        limit_pending_signals(limit);
        assert_eq!(refused, Err(Some(libc::EAGAIN)));
        first.set(None).expect("it is there still");
    }
}
