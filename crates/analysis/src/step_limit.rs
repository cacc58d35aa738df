//! Bounds of the work that an analysis does, so that it always ends soon.
//!
//! Work is counted in steps: one step evaluates one task or server for one length of time, some
//! nanoseconds of execution. Steps are counted, not timed, so that a set gets the same answer on
//! every machine.

/// Steps that the tests of one CPU may take, about two seconds. What would take more is not
/// computed, and so not admitted.
pub(crate) const TESTS: u64 = 300_000_000;

/// Steps that the bounds of response times may take in one group under EDF.
pub(crate) const BOUNDS: u64 = 1_000_000;

/// Steps, per CPU, for exact response times under EDF, on which no decision depends.
pub(crate) const FIGURES: u64 = 1_000_000;

/// Steps, per CPU, to search for a change that helps.
pub(crate) const ADVICE: u64 = 2_000_000;

/// Steps that the promotion times of one group may take, a fraction of a second.
pub(crate) const PROMOTIONS: u64 = 1 << 26;

/// The limit was reached: the answer is not known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Exhausted;

/// The least w from `first` on with `next(w) <= w`, of a function that never decreases; `None`
/// above `limit`. `cost`: the steps of one iteration.
pub(crate) fn fixed_point(
    first: u64,
    limit: u64,
    cost: usize,
    steps: &mut StepLimit,
    next: impl Fn(u64) -> u64,
) -> Result<Option<u64>, Exhausted> {
    let mut w = first;
    loop {
        if w > limit || w == u64::MAX {
            return Ok(None);
        }
        steps.spend(cost)?;
        let then = next(w);
        if then <= w {
            return Ok(Some(w));
        }
        w = then;
    }
}

/// The remaining steps.
#[derive(Debug)]
pub(crate) struct StepLimit {
    left: u64,
}

impl StepLimit {
    pub(crate) fn new(steps: u64) -> StepLimit {
        StepLimit { left: steps }
    }

    pub(crate) fn left(&self) -> u64 {
        self.left
    }

    /// Subtracts `steps`.
    ///
    /// # Errors
    /// Fewer are left; none remain then.
    pub(crate) fn spend(&mut self, steps: usize) -> Result<(), Exhausted> {
        let left = self.left.checked_sub(steps as u64);
        self.left = left.unwrap_or(0);
        left.map(|_| ()).ok_or(Exhausted)
    }
}
