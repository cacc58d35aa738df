//! Times as cycles, so that machines of different decades compare: ticks of the time-stamp counter,
//! at the frequency that is measured here.

use serde::{Deserialize, Serialize};

use punctual_sys::clock::{monotonic_ns, sleep_until};

/// A time, and what it is in cycles.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct MeasuredTime {
    /// The time, ns.
    pub ns: u64,
    /// The same in cycles: ticks of the time-stamp counter here, and of the processor's clock in a
    /// paper; `null` where the frequency is not known.
    pub cycles: Option<u64>,
}

/// How fast the counter of this machine counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CycleRate {
    /// kHz; `None`: there is no counter, and no frequency is shown.
    pub khz: Option<u64>,
}

/// For how long the counter is watched, ns: an error of 100 ns at either end is 4 ppm.
const WATCH_NS: u64 = 50_000_000;
/// Attempts at reading clock and counter together, of which the shortest counts.
const ATTEMPTS: usize = 20;

impl CycleRate {
    /// At a frequency that is known, kHz.
    #[must_use]
    pub fn of(khz: u64) -> CycleRate {
        CycleRate { khz: Some(khz) }
    }

    /// Measures the time-stamp counter against CLOCK_MONOTONIC, for 50 ms; without one, `shown`.
    #[must_use]
    pub fn measure(shown: Option<u64>) -> CycleRate {
        let Some(begin) = both() else { return CycleRate { khz: shown } };
        sleep_until(monotonic_ns() + WATCH_NS);
        let khz = both().and_then(|end| {
            let (ticks, ns) = (end.0.checked_sub(begin.0)?, end.1.checked_sub(begin.1)?);
            u64::try_from(u128::from(ticks) * 1_000_000 / u128::from(ns.max(1))).ok()
        });
        CycleRate { khz: khz.filter(|&khz| khz > 0).or(shown) }
    }

    /// A time with its cycles.
    #[must_use]
    pub fn time(&self, ns: u64) -> MeasuredTime {
        let cycles = self.khz.map(|khz| scaled(ns, khz, 1_000_000));
        MeasuredTime { ns, cycles }
    }

    /// What [`ticks`] counted, as a time.
    #[must_use]
    pub fn ticked(&self, ticks: u64) -> MeasuredTime {
        match self.khz {
            Some(khz) if has_counter() => {
                MeasuredTime { ns: scaled(ticks, 1_000_000, khz), cycles: Some(ticks) }
            }
            _ => self.time(ticks),
        }
    }
}

/// Rounded to the nearest.
fn scaled(value: u64, by: u64, per: u64) -> u64 {
    let per = u128::from(per.max(1));
    u64::try_from((u128::from(value) * u128::from(by) + per / 2) / per).unwrap_or(u64::MAX)
}

/// Counter and clock at one instant, as near as can be read; `None` without a counter.
fn both() -> Option<(u64, u64)> {
    if !has_counter() {
        return None;
    }
    let read = || {
        let (before, ticks, after) = (monotonic_ns(), ticks(), monotonic_ns());
        (after - before, ticks, before + (after - before) / 2)
    };
    (0..ATTEMPTS).map(|_| read()).min().map(|(_, ticks, ns)| (ticks, ns))
}

const fn has_counter() -> bool {
    cfg!(target_arch = "x86_64")
}

/// The time-stamp counter now; where there is none, the time, ns.
#[must_use]
pub fn ticks() -> u64 {
    #[cfg(target_arch = "x86_64")]
    {
        // SAFETY: the instruction is in every processor of this architecture.
        unsafe { core::arch::x86_64::_rdtsc() }
    }
    #[cfg(not(target_arch = "x86_64"))]
    {
        monotonic_ns()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_and_its_cycles_are_of_one_frequency() {
        let rate = CycleRate::of(266_670);
        assert_eq!(rate.time(10_000), MeasuredTime { ns: 10_000, cycles: Some(2_667) });
        assert_eq!(CycleRate { khz: None }.time(5), MeasuredTime { ns: 5, cycles: None });
        let known = CycleRate::of(2_000_000);
        if has_counter() {
            assert_eq!(known.ticked(300), MeasuredTime { ns: 150, cycles: Some(300) });
        }
        assert_eq!(CycleRate::of(u64::MAX).time(u64::MAX).cycles, Some(u64::MAX), "it saturates");
    }

    #[test]
    fn the_counter_counts() {
        let rate = CycleRate::measure(None);
        assert_eq!(rate.khz.is_some(), has_counter());
        let (before, after) = (ticks(), ticks());
        assert!(after >= before);
    }
}
