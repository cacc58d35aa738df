//! When a task is released: periodic, sporadic, aperiodic, or at given times.
//!
//! The generators belong to what a task set means: the same seed gives the same arrivals on every
//! machine and every host. They use integers only.

use oorandom::Rand64;
use punctual_dispatcher::INFINITE;
use punctual_taskset::Arrival;

/// A task's releases, one after the other. Times are ns.
pub(crate) enum Stream {
    /// Each period.
    Periodic,
    /// At least a period apart, at most `longest`.
    Sporadic { longest: u64, random: Rand64 },
    /// Exponentially distributed distances of this mean.
    Aperiodic { mean: u64, random: Rand64 },
    /// At these times after the origin; the place of the next one.
    List(Box<[u64]>, usize),
}

/// Not the numbers that execution times of the same seed are drawn from.
const ARRIVALS: u128 = 1 << 96;

impl Stream {
    pub(crate) fn of(arrival: &Arrival) -> Stream {
        let random = |seed: u64| Rand64::new(u128::from(seed) | ARRIVALS);
        match arrival {
            Arrival::Periodic => Stream::Periodic,
            Arrival::Sporadic { longest, seed } => {
                Stream::Sporadic { longest: *longest, random: random(*seed) }
            }
            Arrival::Aperiodic { mean, seed } => {
                Stream::Aperiodic { mean: *mean, random: random(*seed) }
            }
            Arrival::List(times) => Stream::List(times.clone().into_boxed_slice(), 0),
        }
    }

    /// Whether a reservation could make these releases.
    pub(crate) fn is_periodic(&self) -> bool {
        matches!(self, Stream::Periodic)
    }

    /// The first release at or after `now`, and how many of its grid or list are past; `start` is
    /// the task's offset. What is random begins with `now`.
    pub(crate) fn first(&mut self, origin: u64, start: u64, period: u64, now: u64) -> (u64, u64) {
        let begin = origin.saturating_add(start);
        match self {
            Stream::Periodic => {
                let past = now.saturating_sub(begin).div_ceil(period);
                (begin.saturating_add(past.saturating_mul(period)), past)
            }
            Stream::Sporadic { .. } => (begin.max(now), 0),
            Stream::Aperiodic { .. } => (self.after(begin.max(now), origin, period), 0),
            Stream::List(times, place) => {
                *place = times.partition_point(|&t| origin.saturating_add(t) < now);
                let past = *place as u64;
                (self.after(now, origin, period), past)
            }
        }
    }

    /// The release that follows the one at `at`; [`INFINITE`] when there is none.
    pub(crate) fn after(&mut self, at: u64, origin: u64, period: u64) -> u64 {
        match self {
            Stream::Periodic => at.saturating_add(period),
            Stream::Sporadic { longest, random } => at.saturating_add(
                random.rand_range(period..longest.saturating_add(1).max(period + 1)),
            ),
            Stream::Aperiodic { mean, random } => {
                at.saturating_add(exponential(*mean, random.rand_u64()))
            }
            Stream::List(times, place) => match times.get(*place) {
                Some(&time) => {
                    *place += 1;
                    origin.saturating_add(time)
                }
                None => INFINITE,
            },
        }
    }
}

/// `mean * -ln(x / 2^64)`, rounded down: exponentially distributed for an evenly distributed `x`
/// (0 counts as 1). The logarithm has 32 binary digits after the point.
fn exponential(mean: u64, x: u64) -> u64 {
    /// ln 2 in 64 binary digits.
    const LN_2: u128 = 0xB172_17F7_D1CF_79AB;
    let x = x.max(1);
    let zeros = x.leading_zeros();
    let mut mantissa = u128::from(x << zeros);
    let mut log = u64::from(63 - zeros);
    for _ in 0..32 {
        // The square of a number in 1 .. 2 tells the next digit of its logarithm.
        mantissa = (mantissa * mantissa) >> 63;
        let digit = (mantissa >> 64) as u64;
        mantissa >>= digit;
        log = log << 1 | digit;
    }
    let bits = (64u128 << 32) - u128::from(log);
    let doublings = ((u128::from(mean) * bits) >> 32).min(u64::MAX.into());
    ((doublings * LN_2) >> 64) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn take(arrival: &Arrival, period: u64, n: usize) -> Vec<u64> {
        let mut stream = Stream::of(arrival);
        let mut at = stream.first(1_000, 0, period, 0).0;
        let mut all = Vec::new();
        while all.len() < n && at != INFINITE {
            all.push(at);
            at = stream.after(at, 1_000, period);
        }
        all
    }

    #[test]
    fn a_logarithm_is_exact_at_powers_of_two_and_close_between() {
        assert_eq!(exponential(1_000_000, 1 << 63), 693_147); // ln 2
        assert_eq!(exponential(1_000_000, 1 << 62), 1_386_294); // 2 ln 2
        assert_eq!(exponential(1_000_000, u64::MAX), 0);
        assert_eq!(exponential(1_000_000, 0), 44_361_419); // 64 ln 2
        assert_eq!(exponential(1_000_000, 0x5E2D_58D8_B3BC_DF1B), 1_000_000 - 1);
        // 1/e, rounded down
    }

    #[test]
    fn sporadic_releases_are_at_least_a_period_and_at_most_the_longest_apart() {
        let all = take(&Arrival::Sporadic { longest: 15, seed: 7 }, 10, 1_000);
        assert_eq!(all[0], 1_000);
        let gaps: Vec<u64> = all.windows(2).map(|w| w[1] - w[0]).collect();
        for gap in 10..=15 {
            assert!(gaps.contains(&gap), "{gap} never came");
        }
        assert!(gaps.iter().all(|gap| (10..=15).contains(gap)));
    }

    #[test]
    fn aperiodic_releases_have_the_mean_distance_that_was_asked_for() {
        let all = take(&Arrival::Aperiodic { mean: 1_000, seed: 3 }, 10, 10_001);
        let mean = (all[10_000] - all[0]) / 10_000;
        assert!((970..=1_030).contains(&mean), "{mean}"); // three standard deviations
    }

    #[test]
    fn the_same_seed_gives_the_same_arrivals_and_another_does_not() {
        let with = |seed| take(&Arrival::Aperiodic { mean: 1_000, seed }, 10, 20);
        assert_eq!(with(5), with(5));
        assert_ne!(with(5), with(6));
    }

    #[test]
    fn who_comes_late_goes_on_with_the_next_release_of_its_grid() {
        let mut periodic = Stream::of(&Arrival::Periodic);
        assert_eq!(periodic.first(100, 5, 10, 0), (105, 0));
        assert_eq!(periodic.first(100, 5, 10, 105), (105, 0));
        assert_eq!(periodic.first(100, 5, 10, 106), (115, 1));
        let mut list = Stream::of(&Arrival::List(vec![0, 4, 9]));
        assert_eq!(list.first(100, 0, 10, 101), (104, 1));
        assert_eq!(list.after(104, 100, 10), 109);
        assert_eq!(list.after(109, 100, 10), INFINITE);
    }
}
