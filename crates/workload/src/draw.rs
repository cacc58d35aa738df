//! Which execution times a task draws, job after job: one generator for every host, so that the
//! same seed gives the same numbers in a simulation and on a machine.

use oorandom::Rand64;
use punctual_taskset::{Body, Spin, Step};

/// Execution time of one job, or of a part of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Demand {
    /// So many ns, then done.
    For(u64),
    /// Never done.
    Forever,
}

/// A sequence of demands that never ends; the same description gives the same sequence on every
/// machine.
#[derive(Debug, Clone)]
pub struct Draw {
    source: Source,
    random: Rand64,
}

#[derive(Debug, Clone)]
enum Source {
    Fixed(Demand),
    Uniform {
        min: u64,
        beyond: u64,
    },
    /// Execution time, and the sum of the weights up to its own.
    Histogram {
        bins: Vec<(u64, u64)>,
        total: u64,
    },
    Recorded {
        times: Vec<u64>,
        next: usize,
    },
}

impl Draw {
    /// Execution times as a task-set file describes them.
    #[must_use]
    pub fn new(spin: &Spin) -> Draw {
        Draw::nth(spin, 0)
    }

    /// For the n-th step of a job: two steps with one seed do not draw alike.
    fn nth(spin: &Spin, n: usize) -> Draw {
        let (source, seed) = match spin {
            Spin::For(ns) => (Source::Fixed(Demand::For(*ns)), 0),
            Spin::Forever => (Source::Fixed(Demand::Forever), 0),
            Spin::Uniform { min, max, seed } if max <= min => {
                (Source::Fixed(Demand::For(*min)), *seed)
            }
            Spin::Uniform { min, max, seed } => {
                (Source::Uniform { min: *min, beyond: max.saturating_add(1) }, *seed)
            }
            Spin::Histogram { bins, seed } => {
                let mut total = 0u64;
                let sums = |&(ns, weight): &(u64, u64)| {
                    total = total.saturating_add(weight);
                    (ns, total)
                };
                let bins: Vec<(u64, u64)> = bins.iter().map(sums).collect();
                (Source::Histogram { bins, total }, *seed)
            }
            Spin::Recorded(times) => (Source::Recorded { times: times.clone(), next: 0 }, 0),
        };
        Draw { source, random: Rand64::new(u128::from(seed) | (n as u128) << 64) }
    }

    /// The next demand. Allocates nothing.
    // Demands never end: an iterator's Option would carry no information.
    #[allow(clippy::should_implement_trait)]
    pub fn next(&mut self) -> Demand {
        match &mut self.source {
            Source::Fixed(demand) => *demand,
            Source::Uniform { min, beyond } => Demand::For(self.random.rand_range(*min..*beyond)),
            Source::Histogram { total: 0, bins } => Demand::For(bins.first().map_or(0, |b| b.0)),
            Source::Histogram { total, bins } => {
                let drawn = self.random.rand_range(0..*total);
                let bin = bins.partition_point(|&(_, sum)| sum <= drawn);
                Demand::For(bins.get(bin).map_or(0, |b| b.0))
            }
            Source::Recorded { times, next } => {
                let time = times.get(*next).copied().unwrap_or(0);
                *next = if *next + 1 < times.len() { *next + 1 } else { 0 };
                Demand::For(time)
            }
        }
    }
}

/// What a task does next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Act {
    /// Executes.
    Execute(Demand),
    /// Sleeps for this time, ns.
    Sleep(u64),
    /// The job is done; what comes next is the next job's.
    Done,
}

/// What a synthetic task does, job after job.
#[derive(Debug, Clone)]
pub struct Script {
    parts: Vec<Part>,
    at: usize,
}

#[derive(Debug, Clone)]
enum Part {
    Execute(Draw),
    Sleep(u64),
}

impl Script {
    /// What a task's body says; `None` for a program, which does what it likes.
    #[must_use]
    pub fn of(body: &Body) -> Option<Script> {
        let parts = match body {
            Body::Spin(spin) => vec![Part::Execute(Draw::new(spin))],
            Body::Steps(steps) => steps
                .iter()
                .enumerate()
                .map(|(n, step)| match step {
                    Step::Spin(spin) => Part::Execute(Draw::nth(spin, n)),
                    Step::Sleep(ns) => Part::Sleep(*ns),
                })
                .collect(),
            Body::Command(_) | Body::Pid(_) => return None,
        };
        Some(Script { parts, at: 0 })
    }

    /// What it does next. Allocates nothing.
    #[allow(clippy::should_implement_trait)] // as above
    pub fn next(&mut self) -> Act {
        let part = self.parts.get_mut(self.at);
        self.at = if part.is_some() { self.at + 1 } else { 0 };
        match part {
            Some(Part::Execute(draw)) => Act::Execute(draw.next()),
            Some(Part::Sleep(ns)) => Act::Sleep(*ns),
            None => Act::Done,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn take(spin: &Spin, n: usize) -> Vec<Demand> {
        let mut draw = Draw::new(spin);
        (0..n).map(|_| draw.next()).collect()
    }

    #[test]
    fn fixed_is_fixed_and_forever_is_forever() {
        assert_eq!(take(&Spin::For(7), 2), [Demand::For(7); 2]);
        assert_eq!(take(&Spin::Forever, 2), [Demand::Forever; 2]);
    }

    #[test]
    fn uniform_stays_within_both_ends_and_repeats_by_seed() {
        let spin = |seed| Spin::Uniform { min: 10, max: 13, seed };
        let first = take(&spin(5), 400);
        for ns in 10..=13 {
            assert!(first.contains(&Demand::For(ns)), "{ns} never came");
        }
        assert!(first.iter().all(|d| matches!(d, Demand::For(10..=13))));
        assert_eq!(first, take(&spin(5), 400));
        assert_ne!(first, take(&spin(6), 400));
    }

    #[test]
    fn equal_ends_are_a_fixed_demand() {
        assert_eq!(take(&Spin::Uniform { min: 4, max: 4, seed: 1 }, 1), [Demand::For(4)]);
    }

    #[test]
    fn a_histogram_draws_each_time_as_often_as_its_weight_says() {
        let spin = Spin::Histogram { bins: vec![(100, 1), (200, 0), (300, 3)], seed: 2 };
        let drawn = take(&spin, 10_000);
        let count = |ns| drawn.iter().filter(|&&d| d == Demand::For(ns)).count();
        assert_eq!((count(200), count(100) + count(300)), (0, 10_000));
        // 2,500 expected; 200 are more than four standard deviations.
        assert!(count(100).abs_diff(2_500) < 200, "{}", count(100));
    }

    #[test]
    fn recorded_times_come_in_order_and_over_and_over() {
        let spin = Spin::Recorded(vec![3, 1, 1]);
        assert_eq!(take(&spin, 7), [3, 1, 1, 3, 1, 1, 3].map(Demand::For));
    }

    #[test]
    fn descriptions_without_anything_in_them_want_nothing() {
        assert_eq!(take(&Spin::Recorded(vec![]), 2), [Demand::For(0); 2]);
        assert_eq!(take(&Spin::Histogram { bins: vec![], seed: 1 }, 2), [Demand::For(0); 2]);
        assert_eq!(take(&Spin::Histogram { bins: vec![(5, 0)], seed: 1 }, 1), [Demand::For(5)]);
    }

    #[test]
    fn steps_come_in_order_and_end_each_job() {
        let body =
            Body::Steps(vec![Step::Spin(Spin::For(2)), Step::Sleep(5), Step::Spin(Spin::For(1))]);
        let mut script = Script::of(&body).expect("it is synthetic");
        for _ in 0..2 {
            assert_eq!(script.next(), Act::Execute(Demand::For(2)));
            assert_eq!(script.next(), Act::Sleep(5));
            assert_eq!(script.next(), Act::Execute(Demand::For(1)));
            assert_eq!(script.next(), Act::Done);
        }
    }

    #[test]
    fn two_steps_with_one_seed_draw_apart() {
        let spin = Spin::Uniform { min: 0, max: 1 << 40, seed: 1 };
        let body = Body::Steps(vec![Step::Spin(spin.clone()), Step::Spin(spin)]);
        let mut script = Script::of(&body).expect("it is synthetic");
        assert_ne!(script.next(), script.next());
    }

    #[test]
    fn a_program_has_no_script() {
        assert!(Script::of(&Body::Pid(1)).is_none());
    }
}
