//! What only system calls show.

use std::thread;
use std::time::Duration;

use punctual_sys::{sched, thread_name};
use rustix::time::{clock_getres, clock_gettime, ClockId};

/// The answers of the system calls that an examination makes.
#[derive(Clone, Debug, Default)]
pub struct Calls {
    /// SCHED_FIFO at priority 1.
    pub fifo_lowest: FifoAttempt,
    /// SCHED_FIFO at priority 99, which a dispatcher needs.
    pub fifo_highest: FifoAttempt,
    /// `clock_getres(CLOCK_MONOTONIC)`.
    pub resolution: Option<Duration>,
    /// Median nanoseconds of `clock_gettime(CLOCK_MONOTONIC)`.
    pub clock_cost: Option<u64>,
    /// Median nanoseconds of `clock_gettime(CLOCK_THREAD_CPUTIME_ID)`.
    pub cpu_clock_cost: Option<u64>,
    /// `prctl(PR_GET_TIMERSLACK)`, in nanoseconds.
    pub timer_slack: Option<u64>,
    /// `adjtimex` with nothing to change.
    pub discipline: Option<ClockDiscipline>,
}

/// What became of an attempt to get SCHED_FIFO.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FifoAttempt {
    /// Granted, and reverted at once.
    Granted,
    /// Refused, with this errno.
    Refused(i32),
    /// Not tried.
    #[default]
    Untried,
}

/// How the kernel's clock is being steered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClockDiscipline {
    /// `STA_UNSYNC` is not set.
    pub synchronised: bool,
    /// Frequency correction, in billionths.
    pub frequency_ppb: i64,
    /// Nominal length of a tick, in microseconds.
    pub tick_us: i64,
}

impl Calls {
    /// Makes them all.
    pub fn make() -> Self {
        let (fifo_lowest, fifo_highest) = try_fifo();
        let resolution = clock_getres(ClockId::Monotonic);
        Calls {
            fifo_lowest,
            fifo_highest,
            resolution: Some(Duration::new(resolution.tv_sec as u64, resolution.tv_nsec as u32)),
            clock_cost: Some(cost(ClockId::Monotonic)),
            cpu_clock_cost: Some(cost(ClockId::ThreadCPUTime)),
            timer_slack: timer_slack(),
            discipline: discipline(),
        }
    }
}

/// In a thread of its own, which ends: whatever happens, nothing lasts.
fn try_fifo() -> (FifoAttempt, FifoAttempt) {
    thread::Builder::new()
        .name(thread_name::PROBE.into())
        .spawn(|| {
            let lowest = take_fifo(1);
            let highest = match lowest {
                FifoAttempt::Granted => take_fifo(99),
                _ => FifoAttempt::Untried,
            };
            (lowest, highest)
        })
        .ok()
        .and_then(|t| t.join().ok())
        .unwrap_or((FifoAttempt::Untried, FifoAttempt::Untried))
}

fn take_fifo(priority: i32) -> FifoAttempt {
    let Ok(before) = sched::Attributes::of(0) else { return FifoAttempt::Untried };
    match sched::set_fifo(0, priority) {
        Ok(()) => {
            let _ = before.give(0);
            FifoAttempt::Granted
        }
        Err(e) => FifoAttempt::Refused(e.raw_os_error().unwrap_or(0)),
    }
}

fn now(clock: ClockId) -> u64 {
    let now = clock_gettime(clock);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

/// The median of 41 batches of 50 calls: 2,050 calls, well under 10 ms on any clock.
fn cost(clock: ClockId) -> u64 {
    const BATCH: u64 = 50;
    let mut batches = [0u64; 41];
    for batch in &mut batches {
        let begin = now(ClockId::Monotonic);
        for _ in 0..BATCH {
            std::hint::black_box(now(clock));
        }
        *batch = now(ClockId::Monotonic).saturating_sub(begin) / BATCH;
    }
    batches.sort_unstable();
    batches[batches.len() / 2]
}

fn timer_slack() -> Option<u64> {
    // SAFETY: PR_GET_TIMERSLACK takes no further argument.
    let ns = unsafe { libc::prctl(libc::PR_GET_TIMERSLACK, 0, 0, 0, 0) };
    u64::try_from(ns).ok()
}

#[allow(clippy::useless_conversion)] // c_long is shorter on 32 bits
fn discipline() -> Option<ClockDiscipline> {
    // SAFETY: all zeroes is a value of timex, a structure of integers.
    let mut tx: libc::timex = unsafe { std::mem::zeroed() };
    // SAFETY: modes = 0 reads only; `tx` is a valid timex.
    let state = unsafe { libc::adjtimex(&mut tx) };
    (state >= 0).then_some(ClockDiscipline {
        synchronised: tx.status & libc::STA_UNSYNC == 0,
        // `freq` counts in 2^-16 millionths.
        frequency_ppb: i64::from(tx.freq) * 1000 / 65536,
        tick_us: i64::from(tx.tick),
    })
}
