//! What only system calls show.

use std::thread;
use std::time::Duration;

use punctual_sys::sched;

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
    /// Granted, and given back at once.
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
        Calls {
            fifo_lowest,
            fifo_highest,
            resolution: resolution(),
            clock_cost: cost(libc::CLOCK_MONOTONIC),
            cpu_clock_cost: cost(libc::CLOCK_THREAD_CPUTIME_ID),
            timer_slack: timer_slack(),
            discipline: discipline(),
        }
    }
}

/// In a thread of its own, which ends: whatever happens, nothing lasts.
fn try_fifo() -> (FifoAttempt, FifoAttempt) {
    thread::Builder::new()
        .name("doctor-fifo".into())
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

fn zeroed<T: PlainData>() -> T {
    // SAFETY: PlainData is implemented only for C structures of integers.
    unsafe { std::mem::zeroed() }
}

/// C structures of integers, for which all zeroes is a value.
trait PlainData {}
impl PlainData for libc::timespec {}
impl PlainData for libc::timex {}

fn resolution() -> Option<Duration> {
    let mut ts: libc::timespec = zeroed();
    // SAFETY: `ts` is a valid timespec to write to.
    let rc = unsafe { libc::clock_getres(libc::CLOCK_MONOTONIC, &mut ts) };
    (rc == 0).then(|| Duration::new(ts.tv_sec as u64, ts.tv_nsec as u32))
}

fn now(clock: libc::clockid_t) -> Option<u64> {
    let mut ts: libc::timespec = zeroed();
    // SAFETY: `ts` is a valid timespec to write to.
    let rc = unsafe { libc::clock_gettime(clock, &mut ts) };
    (rc == 0).then_some(ts.tv_sec as u64 * 1_000_000_000 + ts.tv_nsec as u64)
}

/// The median of 41 batches of 50 calls: 2,050 calls, well under 10 ms on any clock.
fn cost(clock: libc::clockid_t) -> Option<u64> {
    const BATCH: u64 = 50;
    let mut batches = [0u64; 41];
    for batch in &mut batches {
        let begin = now(libc::CLOCK_MONOTONIC)?;
        for _ in 0..BATCH {
            std::hint::black_box(now(clock)?);
        }
        *batch = now(libc::CLOCK_MONOTONIC)?.saturating_sub(begin) / BATCH;
    }
    batches.sort_unstable();
    Some(batches[batches.len() / 2])
}

fn timer_slack() -> Option<u64> {
    // SAFETY: PR_GET_TIMERSLACK takes no further argument.
    let ns = unsafe { libc::prctl(libc::PR_GET_TIMERSLACK, 0, 0, 0, 0) };
    u64::try_from(ns).ok()
}

#[allow(clippy::useless_conversion)] // c_long is shorter on 32 bits
fn discipline() -> Option<ClockDiscipline> {
    let mut tx: libc::timex = zeroed();
    // SAFETY: modes = 0 reads only; `tx` is a valid timex.
    let state = unsafe { libc::adjtimex(&mut tx) };
    (state >= 0).then_some(ClockDiscipline {
        synchronised: tx.status & libc::STA_UNSYNC == 0,
        // `freq` counts in 2^-16 millionths.
        frequency_ppb: i64::from(tx.freq) * 1000 / 65536,
        tick_us: i64::from(tx.tick),
    })
}
