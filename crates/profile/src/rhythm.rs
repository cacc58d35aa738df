//! Whether jobs come in a period, and in which.
//!
//! Neither the gap that separates jobs nor the period is known. For each of a series of gaps the
//! commonest distance between releases is looked for, and how many of all distances it explains;
//! the gap is taken that explains most. All arithmetic is in whole numbers.

use crate::activity::Burst;
use crate::jobs::{jobs_of, RecordedJob};

/// Fewer jobs show no period.
pub const LEAST_JOBS: usize = 10;

/// A distance counts as regular within so many percent of the period.
const TOLERANCE: u64 = 20;
/// A distance of so many periods is still regular: releases between them were skipped.
const MOST_PERIODS: u64 = 4;
/// A period explains at least this share of the distances, and of the time; percent.
const LEAST_REGULAR: u64 = 80;
const LEAST_COVERED: u64 = 50;
/// As good as all; a longer gap is not looked for then.
const REGULAR: u64 = 95;

/// A period, and the jobs that come in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rhythm {
    /// Mean time between releases, ns.
    pub period: u64,
    /// Percent of the distances between releases that are the period or a few of it, within a
    /// fifth of it.
    pub regular: u64,
    /// Bursts that are at most so far apart, ns, are one job.
    pub gap: u64,
    /// The jobs.
    pub jobs: Vec<RecordedJob>,
}

/// The period of bursts, if they have one.
#[must_use]
pub fn find(bursts: &[Burst]) -> Option<Rhythm> {
    let mut best: Option<Rhythm> = None;
    for gap in gaps() {
        let jobs = jobs_of(bursts, gap);
        if jobs.len() < LEAST_JOBS {
            break;
        }
        let Some((period, regular)) = period_of(&jobs) else { continue };
        if best.as_ref().is_none_or(|best| regular > best.regular) {
            best = Some(Rhythm { period, regular, gap, jobs });
        }
        if regular >= REGULAR {
            break;
        }
    }
    best
}

/// 0, then 1, 2 and 5 of each power of ten from 10 us to 1 s.
fn gaps() -> impl Iterator<Item = u64> {
    let decades = (4..9).map(|n| 10u64.pow(n));
    let steps = decades.flat_map(|decade| [1, 2, 5].map(|n| n * decade));
    [0].into_iter().chain(steps).chain([1_000_000_000])
}

/// The period of these jobs, and what percent of their distances it explains.
fn period_of(jobs: &[RecordedJob]) -> Option<(u64, u64)> {
    let distances: Vec<u64> = jobs.windows(2).map(|w| w[1].release - w[0].release).collect();
    let middle = commonest(&distances)?;
    // How many periods a distance is; 0: it is not regular.
    let periods_of = |distance: u64| {
        let n = (distance + middle / 2) / middle;
        let near = distance.abs_diff(n * middle) * 100 <= middle * TOLERANCE;
        if near && n <= MOST_PERIODS {
            n
        } else {
            0
        }
    };
    let (mut count, mut covered) = (0u64, 0u64);
    let (mut time, mut periods, mut pending) = (0u64, 0u64, 0u64);
    for &distance in &distances {
        let regular = periods_of(distance);
        if regular > 0 {
            count += 1;
            covered += distance;
            // A late job makes a long distance, and then a short one, which belongs to it. A
            // regular one after a long one belongs to that, and neither says what the period is.
            if pending < middle / 2 {
                time += distance + pending;
                periods += regular;
            }
            pending = 0;
            continue;
        }
        // Several that are a few periods together: a wake-up between two jobs, or a late job.
        pending += distance;
        let together = periods_of(pending);
        if together > 0 {
            time += pending;
            periods += together;
            pending = 0;
        }
    }
    let regular = count * 100 / distances.len() as u64;
    let all = distances.iter().sum::<u64>();
    let share = u128::from(covered) * 100 / u128::from(all.max(1));
    let found = regular >= LEAST_REGULAR && share >= u128::from(LEAST_COVERED);
    found.then(|| (time / periods.max(1), regular))
}

/// The median of the distances in that window, a fifth to either side of its middle, that has most
/// of them; of equal ones the first.
fn commonest(distances: &[u64]) -> Option<u64> {
    let mut sorted: Vec<u64> = distances.iter().copied().filter(|&d| d > 0).collect();
    sorted.sort_unstable();
    let (mut best, mut beyond) = (0..0, 0);
    for first in 0..sorted.len() {
        let limit = sorted[first] * (100 + TOLERANCE) / (100 - TOLERANCE);
        while beyond < sorted.len() && sorted[beyond] <= limit {
            beyond += 1;
        }
        if beyond - first > best.len() {
            best = first..beyond;
        }
    }
    sorted.get(best.start + best.len() / 2).copied()
}

/// A period for a reservation: at most the rhythm's, or jobs would come faster than budgets; a
/// round number within 0.2 %, or else the first three digits.
#[must_use]
pub fn rounded(period: u64) -> u64 {
    let digits = |n: u32| 10u64.pow((period.max(1).ilog10() + 1).saturating_sub(n));
    let two = (period + digits(2) / 2) / digits(2) * digits(2);
    match two.abs_diff(period) * 500 <= period {
        true => two,
        false => period / digits(3) * digits(3),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const US: u64 = 1_000;
    const MS: u64 = 1_000_000;

    /// Bursts of 100 us at these times.
    fn bursts(wakes: impl IntoIterator<Item = u64>) -> Vec<Burst> {
        let burst = |wake| Burst { wake, end: wake + 100 * US, executed: 100 * US };
        wakes.into_iter().map(burst).collect()
    }

    fn found(wakes: impl IntoIterator<Item = u64>) -> Option<(u64, u64, usize)> {
        find(&bursts(wakes)).map(|rhythm| (rhythm.period, rhythm.regular, rhythm.jobs.len()))
    }

    #[test]
    fn a_clock_has_its_period_also_if_it_is_late_or_skips() {
        assert_eq!(found((0..50).map(|n| n * 10 * MS)), Some((10 * MS, 100, 50)));
        // Late by up to 1.2 ms: the mean is still exact where the ends are not late.
        let late = |n: u64| n * 10 * MS + n % 7 * 200 * US;
        assert_eq!(found((0..50).map(late)), Some((10 * MS, 100, 50)));
        // One in ten is 900 us late, and the next one joins it.
        let late = |n: u64| n * MS + if n % 10 == 5 { 900 * US } else { 0 };
        assert_eq!(found((0..51).map(late)), Some((MS, 100, 46)));
        // Every other one is 50 us late, one in ten 880 us.
        let late = |n: u64| n * MS + n % 2 * 50 * US + if n % 10 == 5 { 830 * US } else { 0 };
        let quick = |wake| Burst { wake, end: wake + US, executed: US };
        let rhythm = find(&(0..51).map(late).map(quick).collect::<Vec<_>>()).unwrap();
        assert_eq!((rhythm.period, rhythm.regular), (992_857, 88), "within 1 %");
        // Each tenth is left out.
        let some = (0..50).filter(|n| n % 10 != 5).map(|n| n * 10 * MS);
        assert_eq!(found(some), Some((10 * MS, 100, 45)));
    }

    #[test]
    fn several_wake_ups_in_each_period_are_one_job() {
        let at = |n: u64| [0, 1_000, 2_000].map(|us| n * 20 * MS + us * US);
        assert_eq!(found((0..40).flat_map(at)), Some((20 * MS, 100, 40)));
        // Thirty of them, one each millisecond, and then 71 ms of silence: the milliseconds explain
        // the wake-ups, and not the time.
        let at = |n: u64| (0..30).map(move |k| n * 100 * MS + k * MS);
        assert_eq!(found((0..40).flat_map(at)), Some((100 * MS, 100, 40)));
    }

    #[test]
    fn what_comes_at_random_has_no_period() {
        // Distances from 1 to 40 ms, each equally often, in a scattered order.
        let mut time = 0;
        let wakes = (0..400u64).map(|n| {
            time += (1 + n * 17 % 40) * MS;
            time
        });
        assert_eq!(found(wakes.collect::<Vec<_>>()), None);
        assert_eq!(found((0..9).map(|n| n * MS)), None, "too few");
        assert_eq!(found([]), None);
    }

    #[test]
    fn a_reservation_gets_a_round_period_that_is_not_longer() {
        for (period, want) in [
            (10_000_300, 10 * MS),
            (9_990_000, 10 * MS),
            (33_366_700, 33_300 * US),
            (16_683_000, 16_600 * US),
            (1_000_150, MS),
            (41_708_333, 41_700 * US),
            (7, 7),
            (0, 0),
        ] {
            assert_eq!(rounded(period), want, "{period}");
        }
    }
}
