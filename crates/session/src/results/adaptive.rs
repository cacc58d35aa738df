//! What an adaptive server assigned to a task (docs/policies.md, "Adaptive budgets").

use punctual_trace::{JobEnd, Period};

use super::AdaptiveBudget;

/// The budgets of a task's counted periods. Times are ns.
#[derive(Debug)]
pub(super) struct Assigned {
    periods: u64,
    sum: u128,
    least: u64,
    most: u64,
    last: u64,
    exhausted: u64,
    misses: u64,
}

impl Assigned {
    pub fn new() -> Assigned {
        Assigned { periods: 0, sum: 0, least: u64::MAX, most: 0, last: 0, exhausted: 0, misses: 0 }
    }

    /// A counted period of a task with this `budget`.
    pub fn count(&mut self, p: &Period, budget: u64) {
        self.periods += 1;
        self.sum += u128::from(p.assigned);
        self.least = self.least.min(p.assigned);
        self.most = self.most.max(p.assigned);
        self.last = p.assigned;
        if p.end == JobEnd::Exhausted && p.assigned < budget {
            self.exhausted += 1;
            self.misses += u64::from(p.miss);
        }
    }

    /// `None` without periods.
    pub fn result(&self) -> Option<AdaptiveBudget> {
        let mean = self.sum.checked_div(u128::from(self.periods))?;
        Some(AdaptiveBudget {
            least_ns: self.least,
            mean_ns: u64::try_from(mean).unwrap_or(u64::MAX),
            most_ns: self.most,
            last_ns: self.last,
            exhausted: self.exhausted,
            misses: self.misses,
        })
    }
}
