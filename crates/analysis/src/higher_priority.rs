//! The recurrence of response-time analysis (Joseph and Pandya 1986; Audsley et al. 1993 with
//! jitter), used by the test of fixed priorities and for promotion times.
//!
//! The completion of `own` execution below a set of tasks is the least w with
//!
//! ```text
//! supply(w) >= own + sum over the tasks j of ceil((w + jitter_j) / T_j) * C_j
//! ```

use crate::analysed_task::{AnalysedTask, Deferral};
use crate::interference::{jobs_within, Interference, Terms};
use crate::step_limit::{fixed_point, Exhausted, StepLimit};
use crate::supply::Supply;

/// The tasks that preempt the one under test.
#[derive(Default, Clone)]
pub(crate) struct HigherPriority {
    terms: Terms,
    /// Some task's releases are unbounded.
    pub(crate) unbounded: bool,
    /// Some task can be deferred, so that its jitter is an estimate.
    pub(crate) estimated: bool,
}

/// A lower bound of a completion, and the preemption within it.
#[derive(Clone, Copy, Default)]
pub(crate) struct LowerBound {
    pub(crate) w: u64,
    pub(crate) demand: u128,
}

impl HigherPriority {
    /// The host's own execution, which preempts all tasks.
    pub(crate) fn new(host: &Interference) -> HigherPriority {
        HigherPriority { terms: host.terms.clone(), ..HigherPriority::default() }
    }

    pub(crate) fn add(&mut self, task: &AnalysedTask) {
        self.estimated |= task.deferral != Deferral::Never;
        let Some(period) = task.period else {
            self.unbounded = true;
            return;
        };
        let sum = self.terms.entry((period, task.effective_jitter())).or_default();
        *sum += u128::from(task.cost());
    }

    /// How many terms the recurrence sums.
    pub(crate) fn terms(&self) -> usize {
        self.terms.len()
    }

    /// The greatest preemption within `w`, in ns. Saturates, beyond every period.
    pub(crate) fn demand(&self, w: u64) -> u128 {
        let terms = self.terms.iter().map(|(&term, &cost)| demand(w, term, cost));
        terms.fold(0, u128::saturating_add)
    }

    /// The completion of `own` ns below these tasks on a supply, leaving out the execution of
    /// `except`, which is one of them; `None` above `limit`. `from`: a lower bound of it. Takes one
    /// step per term and iteration, and those of the supply.
    pub(crate) fn completion(
        &self,
        own: u128,
        except: Option<&AnalysedTask>,
        supply: &Supply,
        (from, limit): (LowerBound, u64),
        steps: &mut StepLimit,
    ) -> Result<Option<u64>, Exhausted> {
        if self.unbounded {
            return Ok(None);
        }
        let excepted = except.map_or(0, |task| own_demand(task, from.w));
        let first = supply.time_for(own + from.demand.saturating_sub(excepted)).max(from.w);
        let next = |w| {
            let excepted = except.map_or(0, |task| own_demand(task, w));
            supply.time_for(own.saturating_add(self.demand(w)).saturating_sub(excepted))
        };
        fixed_point(first, limit, self.terms.len() + supply.terms(), steps, next)
    }

    /// As [`completion`](HigherPriority::completion), of a task that is one of these, on all of a
    /// CPU. Takes one step per term and iteration.
    pub(crate) fn completion_of(
        &self,
        task: &AnalysedTask,
        own: u128,
        limit: u64,
        steps: &mut StepLimit,
    ) -> Result<Option<u64>, Exhausted> {
        let next = |w| {
            let others = self.demand(w).saturating_sub(own_demand(task, w));
            Supply::Whole.time_for(own.saturating_add(others))
        };
        fixed_point(Supply::Whole.time_for(own), limit, self.terms.len(), steps, next)
    }
}

fn own_demand(task: &AnalysedTask, w: u64) -> u128 {
    let cost = u128::from(task.cost());
    task.period.map_or(0, |period| demand(w, (period, task.effective_jitter()), cost))
}

fn demand(w: u64, term: (u64, u64), cost: u128) -> u128 {
    u128::from(jobs_within(w, term)).saturating_mul(cost)
}
