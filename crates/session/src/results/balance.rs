//! Whether a task received its budgets (docs/results.md, "Whether a budget was kept").
//!
//! The dispatcher carries enforcement error from one release to the next, at most one budget
//! either way (docs/model.md, "Enforcement error"), so a release may receive less because the one
//! before it received more. What a task lacks beyond one budget in the long run was not carried
//! but lost.

use punctual_trace::Period;

/// What a task was assigned and what it received, ns.
#[derive(Debug, Default)]
pub(crate) struct Balance {
    // Over the periods in which it was ready throughout.
    assigned: u128,
    received: u128,
    /// What it executed in its other periods beyond the budget that it did not give up (negative:
    /// short of it). Later releases settle this, including those in which it is ready throughout.
    elsewhere: i128,
}

impl Balance {
    /// A counted period.
    pub fn count(&mut self, p: &Period) {
        if p.ready_throughout {
            self.assigned += u128::from(p.assigned);
            self.received += u128::from(p.received);
        } else {
            self.elsewhere += beyond(p);
        }
    }

    /// A task's first period, if it is left out of the figures: later ones settle what was executed
    /// beyond its budget.
    pub fn left_out(&mut self, p: &Period) {
        self.elsewhere += beyond(p).max(0);
    }

    /// Received per assigned over the periods in which the task was ready throughout; `None`
    /// without any.
    pub fn long_run(&self) -> Option<(u128, u128)> {
        (self.assigned > 0).then_some((self.received, self.assigned))
    }

    /// Execution time, ns, that the task lacks beyond the tolerance: one `budget` or 1 % of all
    /// that was assigned, whichever is more. 0: its budget was kept.
    pub fn shortfall(&self, budget: u64) -> u128 {
        // Other periods reduce a shortfall, but do not cause one: what the task lacks there is
        // known only as well as the host sees suspensions.
        let had = self.received + self.elsewhere.max(0).unsigned_abs();
        let tolerance = u128::from(budget).max(self.assigned / 100);
        self.assigned.saturating_sub(had + tolerance)
    }
}

/// What was executed in a period beyond the part of the budget that the task did not give up. The
/// error that one period adds is at most one budget either way.
fn beyond(p: &Period) -> i128 {
    let most = i128::from(p.assigned);
    (i128::from(p.received) + i128::from(p.unused) - most).clamp(-most, most)
}
