//! How much work an analysis may do, so that none can hang, whatever the set.
//!
//! Work is counted in terms: one term is one task or server looked at for one length of time, some
//! nanoseconds of execution. A count, and not a clock: the same set gets the same answer everywhere.

/// Terms that the tests of one CPU may cost, about two seconds. What would cost more is not computed,
/// and so not admitted.
pub(crate) const TESTS: u64 = 300_000_000;

/// Terms that the bounds of response times may cost in one group under EDF.
pub(crate) const BOUNDS: u64 = 1_000_000;

/// Terms that may be spent on figures that decide nothing (exact response times under EDF), per CPU.
pub(crate) const FIGURES: u64 = 1_000_000;

/// Terms that may be spent on looking for a change that helps, per CPU.
pub(crate) const ADVICE: u64 = 2_000_000;

/// The effort is used up: the answer is not known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Exhausted;

/// What is left.
#[derive(Debug)]
pub(crate) struct Effort {
    left: u64,
}

impl Effort {
    pub(crate) fn new(terms: u64) -> Effort {
        Effort { left: terms }
    }

    pub(crate) fn left(&self) -> u64 {
        self.left
    }

    /// Takes `terms` off; with too few left, all of them.
    pub(crate) fn spend(&mut self, terms: usize) -> Result<(), Exhausted> {
        let terms = terms as u64;
        if terms > self.left {
            self.left = 0;
            return Err(Exhausted);
        }
        self.left -= terms;
        Ok(())
    }
}
