//! Spinning for so much *execution* time, exact to about a microsecond.
//!
//! Reading the thread's CPU clock is a system call of some 200 ns, so it is not read all the time:
//! of what is left 7/8 are spun through by counting, then the clock is read again. Counting uses
//! the fastest speed that calibration saw; should the CPU have become faster still, 1/8 is the room
//! for it. 1 ms takes about six readings.

use punctual_sys::clock::{monotonic_ns, thread_cpu_ns};
use std::sync::atomic::{AtomicBool, Ordering};

/// Under this much left, ns, the clock alone decides.
const BY_CLOCK: u64 = 2_000;
/// Longest stretch of counting between two looks at the stop flag, ns.
const STRETCH: u64 = 20_000;
/// Iterations are counted per 1,024 ns, which divides without a division.
const UNIT_SHIFT: u32 = 10;

/// A calibrated loop. Copy it to every thread; it holds one number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Spinner {
    /// Iterations in 1,024 ns at the fastest speed seen, at least 1.
    per_unit: u64,
}

impl Spinner {
    /// Measures this machine's speed: about 2 ms, never more than 20 ms of wall time. The fastest
    /// of several runs counts, because everything that disturbs a run makes it slower.
    #[must_use]
    pub fn calibrate() -> Spinner {
        let give_up = monotonic_ns() + 15_000_000;
        // Enough iterations that the two clock readings around them do not matter.
        let mut block = 1_000u64;
        while timed(block) < 100_000 && block < 1 << 30 && monotonic_ns() < give_up {
            block *= 2;
        }
        let mut best = u64::MAX;
        for _ in 0..16 {
            best = best.min(timed(block));
            if monotonic_ns() >= give_up {
                break;
            }
        }
        Spinner { per_unit: ((block << UNIT_SHIFT) / best.max(1)).max(1) }
    }

    /// Iterations of the inner loop per microsecond, for a description of the machine.
    #[must_use]
    pub fn iterations_per_us(&self) -> u64 {
        (self.per_unit * 1_000) >> UNIT_SHIFT
    }

    /// Executes for `ns` nanoseconds of the calling thread's own CPU time.
    pub fn spin_for(&self, ns: u64) {
        static NEVER: AtomicBool = AtomicBool::new(false);
        self.spin_for_unless(ns, &NEVER);
    }

    /// As [`spin_for`](Self::spin_for), but ends early when `stop` becomes true, which is seen
    /// within about 20 us of execution. Returns whether it executed to the end.
    pub fn spin_for_unless(&self, ns: u64, stop: &AtomicBool) -> bool {
        let end = thread_cpu_ns().saturating_add(ns);
        loop {
            if stop.load(Ordering::Relaxed) {
                return false;
            }
            let left = end.saturating_sub(thread_cpu_ns());
            if left == 0 {
                return true;
            }
            if left > BY_CLOCK {
                self.count(left - left / 8, stop);
            }
        }
    }

    /// Executes about 20 us without reading any clock: the grain in which a runaway looks at its
    /// stop flag.
    pub fn spin_chunk(&self) {
        iterate(self.iterations(STRETCH));
    }

    /// Executes until `stop` becomes true.
    pub fn spin_forever(&self, stop: &AtomicBool) {
        while !stop.load(Ordering::Relaxed) {
            self.spin_chunk();
        }
    }

    /// Counts through about `ns`, in stretches after each of which the stop flag is looked at.
    fn count(&self, mut ns: u64, stop: &AtomicBool) {
        while ns > 0 && !stop.load(Ordering::Relaxed) {
            let stretch = ns.min(STRETCH);
            iterate(self.iterations(stretch));
            ns -= stretch;
        }
    }

    fn iterations(&self, ns: u64) -> u64 {
        (ns * self.per_unit) >> UNIT_SHIFT
    }
}

/// Execution time of so many iterations, ns.
fn timed(iterations: u64) -> u64 {
    let begin = thread_cpu_ns();
    iterate(iterations);
    thread_cpu_ns() - begin
}

/// A chain in which each step needs the one before, so that no compiler shortens it and no CPU
/// overlaps it.
#[inline(never)]
fn iterate(n: u64) {
    let mut x = std::hint::black_box(0x9E37_79B9_7F4A_7C15u64);
    for _ in 0..n {
        x = x.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    }
    std::hint::black_box(x);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calibration_is_bounded_and_sane() {
        let begin = thread_cpu_ns();
        let spinner = Spinner::calibrate();
        assert!(thread_cpu_ns() - begin < 20_000_000);
        assert!(spinner.iterations_per_us() > 10, "{spinner:?}");
    }

    /// Other work on the same processor may slow this CPU down by more than the eighth that is left
    /// to the clock: then the spinner is calibrated again, and that time is not judged.
    #[test]
    fn spins_for_the_time_asked_by_its_own_clock() {
        let mut spinner = Spinner::calibrate();
        let mut over = Vec::new();
        for i in 0..5_000 {
            let want = 20_000 * (1 + i % 25);
            let begin = thread_cpu_ns();
            spinner.spin_for(want);
            let got = thread_cpu_ns() - begin;
            assert!(got >= want, "{got} of {want}");
            if timed(spinner.iterations(STRETCH)) > STRETCH * 8 / 7 {
                spinner = Spinner::calibrate();
                continue;
            }
            over.push(got - want);
            if over.len() == 50 {
                break;
            }
        }
        over.sort_unstable();
        assert_eq!(over.len(), 50, "this machine's speed never lasts");
        // Typically 0.5 us; an order of magnitude for a busy machine.
        assert!(over[25] < 10_000, "median excess {} ns", over[25]);
    }

    #[test]
    fn a_stop_ends_both_kinds() {
        let spinner = Spinner::calibrate();
        let stop = AtomicBool::new(true);
        assert!(!spinner.spin_for_unless(u64::MAX, &stop));
        spinner.spin_forever(&stop);
    }

    #[test]
    fn nothing_to_do_is_done() {
        assert!(Spinner { per_unit: 1 }.spin_for_unless(0, &AtomicBool::new(false)));
    }
}
