//! When a task is released: periodic, sporadic, aperiodic, or at given times.
//!
//! The same seed gives the same arrivals on every machine and every host ([`ArrivalGaps`]).

use oorandom::Rand64;
use punctual_dispatcher::INFINITE;
use punctual_taskset::{Arrival, ArrivalGaps, TaskSpec};

/// A task's releases, one after the other. Times are ns.
pub(crate) enum Stream {
    /// Each period.
    Periodic,
    /// As soon as the one before has ended.
    Continual,
    /// At least a period apart, at most `longest`.
    Sporadic { longest: u64, random: Rand64 },
    /// At any time.
    Aperiodic(ArrivalGaps),
    /// At these times after the origin; the place of the next one.
    List(Box<[u64]>, usize),
}

impl Stream {
    pub(crate) fn of(task: &TaskSpec) -> Stream {
        match &task.arrival {
            Arrival::Periodic if task.weight.is_some() => Stream::Continual,
            Arrival::Periodic => Stream::Periodic,
            Arrival::Sporadic { longest, seed } => {
                Stream::Sporadic { longest: *longest, random: ArrivalGaps::numbers(*seed) }
            }
            Arrival::Aperiodic { mean, seed } => Stream::Aperiodic(ArrivalGaps::new(*mean, *seed)),
            Arrival::List(times) => Stream::List(times.clone().into_boxed_slice(), 0),
        }
    }

    /// Whether a reservation could make these releases.
    pub(crate) fn is_periodic(&self) -> bool {
        matches!(self, Stream::Periodic)
    }

    /// Whether each release follows the end of the one before.
    pub(crate) fn is_continual(&self) -> bool {
        matches!(self, Stream::Continual)
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
            Stream::Continual | Stream::Sporadic { .. } => (begin.max(now), 0),
            Stream::Aperiodic(_) => (self.after(begin.max(now), origin, period), 0),
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
            Stream::Continual => at,
            Stream::Sporadic { longest, random } => at.saturating_add(
                random.rand_range(period..longest.saturating_add(1).max(period + 1)),
            ),
            Stream::Aperiodic(gaps) => at.saturating_add(gaps.draw()),
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

#[cfg(test)]
mod tests {
    use punctual_taskset::{Body, Spin};

    use super::*;

    fn stream(arrival: Arrival) -> Stream {
        Stream::of(&TaskSpec { arrival, ..TaskSpec::new("t", 10, 1, Body::Spin(Spin::Forever)) })
    }

    fn take(arrival: &Arrival, period: u64, n: usize) -> Vec<u64> {
        let mut stream = stream(arrival.clone());
        let mut at = stream.first(1_000, 0, period, 0).0;
        let mut all = Vec::new();
        while all.len() < n && at != INFINITE {
            all.push(at);
            at = stream.after(at, 1_000, period);
        }
        all
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
    fn who_comes_late_continues_with_the_next_release_of_its_grid() {
        let mut periodic = stream(Arrival::Periodic);
        assert_eq!(periodic.first(100, 5, 10, 0), (105, 0));
        assert_eq!(periodic.first(100, 5, 10, 105), (105, 0));
        assert_eq!(periodic.first(100, 5, 10, 106), (115, 1));
        let mut list = stream(Arrival::List(vec![0, 4, 9]));
        assert_eq!(list.first(100, 0, 10, 101), (104, 1));
        assert_eq!(list.after(104, 100, 10), 109);
        assert_eq!(list.after(109, 100, 10), INFINITE);
    }
}
