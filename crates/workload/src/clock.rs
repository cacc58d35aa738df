//! The two clocks that a workload reads. Raw calls: they may be made from a real-time thread.

/// Time on CLOCK_MONOTONIC, ns.
#[must_use]
pub fn monotonic_ns() -> u64 {
    read(libc::CLOCK_MONOTONIC)
}

/// Execution time of the calling thread, ns: preemption and sleep do not count.
#[must_use]
pub fn thread_cpu_ns() -> u64 {
    read(libc::CLOCK_THREAD_CPUTIME_ID)
}

/// These two clocks always exist, so that a failure is impossible; it would read as 0.
fn read(clock: libc::clockid_t) -> u64 {
    let mut t = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `t` is a valid, writable timespec for the length of the call.
    unsafe { libc::clock_gettime(clock, &mut t) };
    (t.tv_sec as u64).wrapping_mul(1_000_000_000).wrapping_add(t.tv_nsec as u64)
}
