//! What one synthetic task executes, job after job.

use crate::spinner::Spinner;
use oorandom::Rand64;
use punctual_taskset::Spin;
use std::sync::atomic::AtomicBool;

/// Execution time of one job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Demand {
    /// So many ns, then done.
    For(u64),
    /// Never done.
    Forever,
}

/// A sequence of demands; the same seed gives the same sequence on every machine.
#[derive(Debug, Clone)]
pub struct Work {
    spin: Spin,
    random: Rand64,
}

impl Work {
    /// Work as a task-set file describes it.
    #[must_use]
    pub fn new(spin: &Spin) -> Work {
        let seed = if let Spin::Uniform { seed, .. } = spin {
            *seed
        } else {
            0
        };
        Work {
            spin: spin.clone(),
            random: Rand64::new(u128::from(seed)),
        }
    }

    /// Whether its jobs never end.
    #[must_use]
    pub fn is_forever(&self) -> bool {
        self.spin == Spin::Forever
    }

    /// The next job's demand. Allocates nothing.
    #[allow(clippy::should_implement_trait)] // never ends, so that an Option would only be in the way
    pub fn next(&mut self) -> Demand {
        match self.spin {
            Spin::For(ns) => Demand::For(ns),
            Spin::Uniform { min, max, .. } if max <= min => Demand::For(min),
            Spin::Uniform { min, max, .. } => {
                Demand::For(self.random.rand_range(min..max.saturating_add(1)))
            }
            Spin::Forever => Demand::Forever,
        }
    }

    /// Executes the next job. Returns whether it was done; `false` means that `stop` became true.
    pub fn run_job(&mut self, spinner: &Spinner, stop: &AtomicBool) -> bool {
        match self.next() {
            Demand::For(ns) => spinner.spin_for_unless(ns, stop),
            Demand::Forever => {
                spinner.spin_forever(stop);
                false
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fixed_is_fixed_and_forever_is_forever() {
        let mut work = Work::new(&Spin::For(7));
        assert_eq!((work.next(), work.next()), (Demand::For(7), Demand::For(7)));
        assert!(!work.is_forever());
        let mut work = Work::new(&Spin::Forever);
        assert_eq!(work.next(), Demand::Forever);
        assert!(work.is_forever());
    }

    #[test]
    fn uniform_stays_within_both_ends_and_repeats_by_seed() {
        let spin = Spin::Uniform {
            min: 10,
            max: 13,
            seed: 5,
        };
        let draw = |spin: &Spin| -> Vec<Demand> {
            let mut work = Work::new(spin);
            (0..400).map(|_| work.next()).collect()
        };
        let first = draw(&spin);
        for ns in 10..=13 {
            assert!(first.contains(&Demand::For(ns)), "{ns} never came");
        }
        assert!(first.iter().all(|d| matches!(d, Demand::For(10..=13))));
        assert_eq!(first, draw(&spin));
        assert_ne!(
            first,
            draw(&Spin::Uniform {
                min: 10,
                max: 13,
                seed: 6
            })
        );
    }

    #[test]
    fn equal_ends_are_a_fixed_demand() {
        assert_eq!(
            Work::new(&Spin::Uniform {
                min: 4,
                max: 4,
                seed: 1
            })
            .next(),
            Demand::For(4)
        );
    }
}
