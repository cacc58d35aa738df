//! The demand-bound function of one kind of task. Times are ns.

use crate::analysed_task::{AnalysedTask, Deferral};

/// How the demand of a task grows with the length of an interval.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum DemandShape {
    /// All of the budget at the deadline, `first` after the release, then each period.
    Step { first: u64, period: u64 },
    /// In proportion to the time up to the deadline.
    Slope { deadline: u64, period: u64, budget: u64 },
    /// 1 ns per ns until the budget is used, then each period.
    Burst { period: u64, budget: u64 },
    /// The host's own execution: at most `jitter` late, then each period.
    Host { period: u64, jitter: u64 },
}

impl DemandShape {
    /// Of a task with this period.
    pub(crate) fn of(task: &AnalysedTask, period: u64) -> DemandShape {
        match task.deferral {
            Deferral::Never => {
                DemandShape::Step { first: task.deadline.saturating_sub(task.jitter), period }
            }
            Deferral::CutToBandwidth if task.jitter == 0 => {
                DemandShape::Slope { deadline: task.deadline, period, budget: task.cost() }
            }
            Deferral::CutToBandwidth | Deferral::KeepsBudget => {
                DemandShape::Burst { period, budget: task.cost() }
            }
        }
    }

    /// The demand within t of tasks whose budgets add up to `sum`.
    pub(crate) fn within(&self, sum: u128, t: u64) -> u128 {
        match *self {
            DemandShape::Step { first, period } if t >= first => {
                u128::from((t - first) / period + 1) * sum
            }
            DemandShape::Step { .. } => 0,
            DemandShape::Slope { deadline, period, .. } => {
                let part = sum * u128::from((t % period).min(deadline));
                // The dispatcher rounds what it allows down.
                u128::from(t / period) * sum + part / u128::from(deadline)
            }
            // Each of the `sum / budget` equal tasks adds 1 ns per ns.
            DemandShape::Burst { period, budget } => {
                let each = u128::from(budget.max(1));
                u128::from(t / period) * sum + u128::from(t % period).min(each) * (sum / each)
            }
            DemandShape::Host { period, jitter } => {
                u128::from(t.saturating_add(jitter).div_ceil(period)) * sum
            }
        }
    }

    /// The last length below t at which the demand jumps or bends.
    pub(crate) fn bend_below(&self, t: u64) -> Option<u64> {
        let last = t.checked_sub(1)?;
        let from =
            |first: u64, period: u64| Some(last.checked_sub(first)? / period * period + first);
        match *self {
            DemandShape::Step { first, period } => from(first, period),
            DemandShape::Slope { deadline, period, .. } => {
                from(0, period).max(from(deadline.min(period), period))
            }
            DemandShape::Burst { period, budget } => {
                from(0, period).max(from(budget.min(period), period))
            }
            DemandShape::Host { period, jitter } => {
                from((period + 1 - jitter % period) % period, period)
            }
        }
    }

    /// By how much the demand may exceed utilization times t.
    pub(crate) fn excess(&self, sum: u128) -> u128 {
        let part = |of: u64, whole: u64| (sum * u128::from(of)).div_ceil(u128::from(whole.max(1)));
        match *self {
            DemandShape::Step { first, period } => part(period.saturating_sub(first), period),
            DemandShape::Slope { deadline, period, .. } => {
                part(period.saturating_sub(deadline), period) + 1
            }
            DemandShape::Burst { period, budget } => part(period.saturating_sub(budget), period),
            DemandShape::Host { period, jitter } => sum + part(jitter, period),
        }
    }

    /// Whether the demand never exceeds utilization times t.
    pub(crate) fn is_bounded_by_utilization(&self) -> bool {
        match *self {
            DemandShape::Step { first, period } => first >= period,
            DemandShape::Slope { deadline, period, .. } => deadline >= period,
            DemandShape::Burst { .. } | DemandShape::Host { .. } => false,
        }
    }

    /// After which the demand repeats.
    pub(crate) fn period(&self) -> u64 {
        match *self {
            DemandShape::Step { period, .. }
            | DemandShape::Slope { period, .. }
            | DemandShape::Burst { period, .. }
            | DemandShape::Host { period, .. } => period,
        }
    }
}
