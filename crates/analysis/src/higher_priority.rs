//! The recurrence of response-time analysis (Joseph and Pandya 1986; Audsley et al. 1993 with
//! jitter), used by the test of fixed priorities and for promotion times.
//!
//! The completion of `own` execution below a set of tasks is the least w with
//!
//! ```text
//! supply(w) >= own + sum over the tasks j of ceil((w + jitter_j) / T_j) * C_j
//! ```

use std::collections::HashMap;

use crate::analysed_task::{AnalysedTask, Deferral};
use crate::interference::Interference;
use crate::step_limit::{Exhausted, StepLimit};
use crate::supply::{Supply, NEVER};

/// The tasks that preempt the one under test. Costs are summed by period and jitter, of which a set
/// has few different ones.
#[derive(Default, Clone)]
pub(crate) struct HigherPriority {
    /// Period, jitter, execution time; ns.
    terms: Vec<(u64, u64, u128)>,
    /// Index in `terms` by period and jitter.
    index: HashMap<(u64, u64), usize>,
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
        let terms = host.terms.iter().map(|t| (t.period, t.jitter, t.amount)).collect::<Vec<_>>();
        let index = terms.iter().enumerate().map(|(n, t)| ((t.0, t.1), n)).collect();
        HigherPriority { terms, index, ..HigherPriority::default() }
    }

    pub(crate) fn add(&mut self, task: &AnalysedTask) {
        self.estimated |= task.deferral != Deferral::Never;
        let Some(period) = task.period else {
            self.unbounded = true;
            return;
        };
        let key = (period, task.effective_jitter());
        let at = *self.index.entry(key).or_insert_with(|| {
            self.terms.push((key.0, key.1, 0));
            self.terms.len() - 1
        });
        self.terms[at].2 += u128::from(task.cost());
    }

    /// How many terms the recurrence sums.
    pub(crate) fn terms(&self) -> usize {
        self.terms.len()
    }

    /// The greatest preemption within `w`, in ns. Saturates, beyond every period.
    pub(crate) fn demand(&self, w: u64) -> u128 {
        let terms = self.terms.iter().map(|&(period, jitter, cost)| demand(w, period, jitter, cost));
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

/// The least w from `first` on with `next(w) <= w`, of a function that never decreases; `None`
/// above `limit`. `cost`: the steps of one iteration.
fn fixed_point(
    first: u64,
    limit: u64,
    cost: usize,
    steps: &mut StepLimit,
    next: impl Fn(u64) -> u64,
) -> Result<Option<u64>, Exhausted> {
    let mut w = first;
    loop {
        if w > limit || w == NEVER {
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

fn own_demand(task: &AnalysedTask, w: u64) -> u128 {
    let cost = u128::from(task.cost());
    task.period.map_or(0, |period| demand(w, period, task.effective_jitter(), cost))
}

fn demand(w: u64, period: u64, jitter: u64, cost: u128) -> u128 {
    u128::from(w.saturating_add(jitter).div_ceil(period)).saturating_mul(cost)
}
