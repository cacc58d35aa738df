//! Bounds from the slack of the demand under EDF: t - h(t), the time within t that is not demanded.

use crate::analysed_task::AnalysedTask;
use crate::demand::{Crossover, Demand};
use crate::demand_shape::DemandShape;
use crate::step_limit::{Exhausted, StepLimit};
use crate::supply::Supply;

/// The state of a search for the least slack, from long to short lengths.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SlackSearch {
    /// The next bend; `None`: none is left.
    next: Option<u64>,
    /// The least slack so far.
    least: u64,
}

impl Demand {
    /// Bounds of the responses of all members, of a set that fits; `None` where demand rises
    /// between bends, or the step limit is reached.
    ///
    /// A job with deadline d that completes at f executes in a busy interval [x, f] only with
    /// execution that is due by d: f - x is at most the time that supplies h(d - x). So it
    /// completes before its deadline by at least the least of t - that time over all t from its
    /// relative deadline on.
    pub(crate) fn responses(
        &self,
        members: &[AnalysedTask],
        supply: &Supply,
        steps: &mut StepLimit,
    ) -> Option<Vec<u64>> {
        let Crossover::At(length) = self.crossover(supply, self.longest) else { return None };
        if self.rises {
            return None;
        }
        let due = |n: usize| members[n].deadline.saturating_sub(members[n].jitter);
        let mut order: Vec<usize> = (0..members.len()).collect();
        order.sort_by_key(|&n| due(n));
        let mut bounds: Vec<u64> = members.iter().map(|m| m.deadline).collect();
        let mut before = self.longest;
        let mut at = self.bend_below(length.saturating_add(1));
        while let Some(t) = at {
            steps.spend(2 * self.parts.len() + supply.terms()).ok()?;
            while let Some(&n) = order.last().filter(|&&n| due(n) > t) {
                order.pop();
                bounds[n] = bounds[n].saturating_sub(before).max(members[n].budget);
            }
            before = before.min(t.checked_sub(supply.time_for(self.within(t)))?);
            at = self.bend_below(t);
        }
        for n in order {
            bounds[n] = bounds[n].saturating_sub(before).max(members[n].budget);
        }
        Some(bounds)
    }

    /// The start of a search for the least slack on a whole CPU; `None`: no length bounds it.
    pub(crate) fn slack_search(&self) -> Option<SlackSearch> {
        let Crossover::At(length) = self.crossover(&Supply::Whole, self.longest) else {
            return None;
        };
        Some(SlackSearch { next: self.bend_below(length.saturating_add(1)), least: self.longest })
    }

    /// The least of t - h(t) over all t from `from` on, rounded down; at most the longest deadline.
    /// Values of `from` may only decrease from call to call.
    pub(crate) fn least_slack(
        &self,
        search: &mut SlackSearch,
        from: u64,
        steps: &mut StepLimit,
    ) -> Result<u64, Exhausted> {
        let slack = |t: u64| {
            u64::try_from(u128::from(t).saturating_sub(self.within_from(t, 0))).unwrap_or(u64::MAX)
        };
        while let Some(t) = search.next.filter(|&t| t >= from) {
            steps.spend(2 * self.parts.len())?;
            search.least = search.least.min(slack(t));
            search.next = self.bend_below(t);
        }
        steps.spend(self.parts.len())?;
        // Between bends the slack is linear, but for the rounding of each slope.
        let rounding =
            self.parts.keys().filter(|shape| matches!(shape, DemandShape::Slope { .. })).count()
                as u64;
        Ok(search.least.min(slack(from)).saturating_sub(rounding))
    }
}
