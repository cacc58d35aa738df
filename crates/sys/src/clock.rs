//! Clocks, in ns. All real-time safe.

use std::sync::atomic::{AtomicBool, Ordering};

/// CLOCK_MONOTONIC.
#[must_use]
pub fn monotonic_ns() -> u64 {
    read(libc::CLOCK_MONOTONIC).unwrap_or(0)
}

/// CLOCK_REALTIME.
#[must_use]
pub fn realtime_ns() -> u64 {
    read(libc::CLOCK_REALTIME).unwrap_or(0)
}

/// Execution time of the calling thread: preemption and sleep do not count.
#[must_use]
pub fn thread_cpu_ns() -> u64 {
    read(libc::CLOCK_THREAD_CPUTIME_ID).unwrap_or(0)
}

/// The execution-time clock of a thread or a process, by its number, in the kernel's own encoding
/// (clock_getres(2)), which pthread_getcpuclockid returns too.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CpuClock(libc::clockid_t);

impl CpuClock {
    const PER_THREAD: i32 = 4;
    /// What the scheduler counts, with the resolution of its clock.
    const SCHED: i32 = 2;

    /// Of a thread of this process.
    #[must_use]
    pub const fn of_thread(tid: i32) -> Self {
        Self((!tid << 3) | Self::PER_THREAD | Self::SCHED)
    }

    /// Of a whole process: its threads, dead ones too.
    #[must_use]
    pub const fn of_process(pid: i32) -> Self {
        Self((!pid << 3) | Self::SCHED)
    }

    /// `None` when the thread or process is gone.
    #[must_use]
    pub fn read(self) -> Option<u64> {
        read(self.0)
    }
}

/// Sleeps until an instant on CLOCK_MONOTONIC; a signal may end it early.
pub fn sleep_until(instant: u64) {
    let t = timespec(instant);
    // SAFETY: `t` is a valid timespec; no remaining time is requested.
    unsafe {
        libc::clock_nanosleep(libc::CLOCK_MONOTONIC, libc::TIMER_ABSTIME, &t, std::ptr::null_mut())
    };
}

/// Longest sleep of [`sleep_until_unless`] between two reads of its flag, ns.
const LONGEST_SLEEP_NS: u64 = 50_000_000;

/// Sleeps until an instant on CLOCK_MONOTONIC, in pieces of at most 50 ms, so that `stop` ends it
/// without a signal. Returns whether the instant came before `stop` was set.
#[must_use]
pub fn sleep_until_unless(instant: u64, stop: &AtomicBool) -> bool {
    loop {
        if stop.load(Ordering::Acquire) {
            return false;
        }
        let now = monotonic_ns();
        if now >= instant {
            return true;
        }
        sleep_until(instant.min(now.saturating_add(LONGEST_SLEEP_NS)));
    }
}

/// So many ns as a timespec.
pub(crate) const fn timespec(ns: u64) -> libc::timespec {
    libc::timespec {
        tv_sec: (ns / 1_000_000_000) as libc::time_t,
        tv_nsec: (ns % 1_000_000_000) as libc::c_long,
    }
}

fn read(clock: libc::clockid_t) -> Option<u64> {
    let mut t = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `t` is a valid, writable timespec.
    let failed = unsafe { libc::clock_gettime(clock, &mut t) } != 0;
    (!failed).then_some(t.tv_sec as u64 * 1_000_000_000 + t.tv_nsec as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_clock_of_a_thread_counts_its_execution_alone() {
        let tid = crate::sched::thread_id();
        let (begin, executed) =
            (monotonic_ns(), CpuClock::of_thread(tid).read().expect("it lives"));
        sleep_until(begin + 20_000_000);
        assert!(monotonic_ns() >= begin + 20_000_000);
        let executed = CpuClock::of_thread(tid).read().expect("it lives") - executed;
        assert!(executed < 20_000_000, "{executed} ns");
        assert!(
            CpuClock::of_process(std::process::id() as i32).read()
                >= CpuClock::of_thread(tid).read()
        );
    }

    #[test]
    fn a_thread_that_is_gone_has_no_clock() {
        let tid = std::thread::spawn(crate::sched::thread_id).join().expect("it does not panic");
        // The kernel may take a moment longer than join.
        let end = monotonic_ns() + 60_000_000_000;
        while CpuClock::of_thread(tid).read().is_some() {
            assert!(monotonic_ns() < end);
            sleep_until(monotonic_ns() + 1_000_000);
        }
    }
}
