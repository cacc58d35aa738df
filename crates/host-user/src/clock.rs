//! Clocks, as system calls that allocate nothing.

/// CLOCK_MONOTONIC, ns.
pub fn now() -> u64 {
    read(libc::CLOCK_MONOTONIC).unwrap_or(0)
}

/// A clock, ns; `None` when whose clock it is has gone.
pub fn read(clock: libc::clockid_t) -> Option<u64> {
    let mut t = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `t` is valid for the call.
    let code = unsafe { libc::clock_gettime(clock, &mut t) };
    (code == 0).then_some(t.tv_sec as u64 * 1_000_000_000 + t.tv_nsec as u64)
}

/// The CPU clock of a thread of this process, by its tid (see clock_getres(2): the kernel's own
/// encoding, which pthread_getcpuclockid hands out too).
pub fn of_thread(tid: i32) -> libc::clockid_t {
    const PER_THREAD: i32 = 4;
    const SCHED: i32 = 2;
    (!tid << 3) | PER_THREAD | SCHED
}

/// As a timespec.
pub fn timespec(ns: u64) -> libc::timespec {
    libc::timespec { tv_sec: (ns / 1_000_000_000) as libc::time_t, tv_nsec: (ns % 1_000_000_000) as libc::c_long }
}
