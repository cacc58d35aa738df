//! The figures of one task, and of one group.

use serde::{Deserialize, Serialize};

use super::spread::WHOLE;

/// What a task is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum TaskKind {
    /// Synthetic execution that waits for its next period when done.
    Spin,
    /// Synthetic execution that is never done.
    Forever,
    /// A command that was started.
    Command,
    /// A running process that was adopted.
    Pid,
    /// A thread of a program that uses the library.
    Thread,
}

/// One task's figures, over whole periods only: its first period and one cut off by the end of the
/// run are left out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TaskResult {
    /// Its name in the set.
    pub name: String,
    /// What it is.
    pub kind: TaskKind,
    /// Time between releases, ns.
    pub period_ns: u64,
    /// Execution time assigned per period, ns.
    pub budget_ns: u64,
    /// Relative deadline, ns.
    pub deadline_ns: u64,
    /// Periods counted.
    pub periods: u64,
    /// Of them, those that missed their deadline.
    pub misses: u64,
    /// Misses per period.
    pub misses_ppm: u64,
    /// Periods released that are in no other figure, because the host's reports of them were
    /// dropped (it did not get the CPU for seconds).
    #[serde(default)]
    pub unreported: u64,
    /// Periods in which the budget was used up, or the finish reached, before the task was done.
    pub overruns: u64,
    /// Overruns per period.
    pub overruns_ppm: u64,
    /// Execution time received in all counted periods, ns.
    pub received_ns: u64,
    /// Budget assigned in all counted periods, ns.
    pub assigned_ns: u64,
    /// The budgets of a task whose server is `adaptive`; `null` for any other, and without periods.
    #[serde(default)]
    pub adaptive_budget: Option<AdaptiveBudget>,
    /// What of it a task reclaimed beyond its budgets, in all counted periods, ns; `null` where the
    /// policy does not reclaim.
    #[serde(default)]
    pub reclaimed_ns: Option<u64>,
    /// Periods in which the task did not want its whole budget (it suspended itself, or was done
    /// early): no measure of the enforcer.
    pub not_ready: u64,
    /// Sum received per sum assigned over all periods in which the task was ready throughout;
    /// `null` without any.
    pub long_run_ppm: Option<u64>,
    /// Execution time that the task lacks over these periods beyond the error that is carried from
    /// one to the next: beyond one budget or 1 % of all that was assigned in them, whichever is
    /// more, ns. 0: its budget was kept.
    #[serde(default)]
    pub shortfall_ns: u64,
    /// Budget received over periods in which the task was ready throughout and the enforcer
    /// punctual; `null` without any.
    pub budget_received: Option<BudgetReceived>,
    /// Periods in which the task was ready throughout, but the dispatcher (or observer) itself woke
    /// up late.
    pub late_wakeups: Late,
    /// Release to first execution; `null` where that is not known.
    pub release_latency: Option<TimeSpread>,
    /// Release to completion; `null` where completions are not known.
    pub response_time: Option<TimeSpread>,
}

/// The budgets that an adaptive server assigned in the counted periods, without carried enforcement
/// error. A budget below the task's (`budget_ns`) is one that the task's earlier use predicted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AdaptiveBudget {
    /// The smallest one, ns.
    pub least_ns: u64,
    /// The mean, ns.
    pub mean_ns: u64,
    /// The largest one, ns.
    pub most_ns: u64,
    /// That of the last period, ns.
    pub last_ns: u64,
    /// Periods in which the task used up a budget below `budget_ns` before it was done.
    pub exhausted: u64,
    /// Of the missed deadlines, those of such periods.
    pub misses: u64,
}

/// Which tree a group stands in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum GroupKind {
    /// A scheduling group: its tasks execute on its server's budget, in the order of its policy.
    Group,
    /// A budget group: it limits its tasks, whatever schedules them.
    BudgetGroup,
}

/// One group's share: that of all tasks below it, over the same periods as theirs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct GroupResult {
    /// Its name in the set.
    pub name: String,
    /// What it is.
    pub kind: GroupKind,
    /// The group of the same kind above it; `null` at the top.
    pub parent: Option<String>,
    /// The policy of a scheduling group; `null` for a budget group.
    pub policy: Option<String>,
    /// Time between replenishments, or the cycle of its windows, ns.
    pub period_ns: u64,
    /// Execution time per period, or the length of all windows, ns.
    pub budget_ns: u64,
    /// How many tasks it limits.
    pub tasks: u64,
    /// Its budget as a share of one CPU.
    pub assigned_ppm: u64,
    /// What its tasks received, as a share of one CPU.
    pub received_ppm: u64,
}

/// Received per assigned execution time of single periods. Percentiles are nearest ranks, within 1
/// % of their distance from 1,000,000; counts and worst are exact.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct BudgetReceived {
    /// Periods that these figures are made of.
    pub periods: u64,
    /// One period in a hundred got this or less.
    pub p1_ppm: u64,
    /// The middle one.
    pub median_ppm: u64,
    /// Ninety-nine in a hundred got this or less.
    pub p99_ppm: u64,
    /// The one furthest from 1,000,000.
    pub worst_ppm: u64,
    /// Periods off by more than 1 % of the budget.
    pub off_1_percent: u64,
    /// Their share of the periods.
    pub off_1_percent_ppm: u64,
    /// Periods off by more than 5 % of the budget.
    pub off_5_percent: u64,
    /// Their share of the periods.
    pub off_5_percent_ppm: u64,
}

/// Periods apart: those in which the dispatcher (or observer) itself woke up late.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Late {
    /// How many.
    pub periods: u64,
    /// Of them, those off by more than 5 % of the budget.
    pub off_5_percent: u64,
    /// Their share of these periods.
    pub off_5_percent_ppm: u64,
    /// Of them, the one furthest from 1,000,000 parts of its budget received; `null` without any.
    #[serde(default)]
    pub worst_ppm: Option<u64>,
}

/// A distribution of times, ns. Percentiles are nearest ranks, within 1 %; count and worst are
/// exact.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TimeSpread {
    /// How many were measured.
    pub count: u64,
    /// The middle one.
    pub median_ns: u64,
    /// Ninety-nine in a hundred took this or less.
    pub p99_ns: u64,
    /// The longest.
    pub worst_ns: u64,
}

impl TaskResult {
    /// Periods in which the task was ready throughout: it could have used all of its budget.
    #[must_use]
    pub fn periods_wanting_all(&self) -> u64 {
        self.budget_received.map_or(0, |b| b.periods) + self.late_wakeups.periods
    }

    /// Of these periods the one furthest from 1,000,000 parts of the budget received; `None`
    /// without any.
    #[must_use]
    pub fn worst_received_ppm(&self) -> Option<u64> {
        let both = [self.budget_received.map(|b| b.worst_ppm), self.late_wakeups.worst_ppm];
        both.into_iter().flatten().max_by_key(|worst| worst.abs_diff(WHOLE))
    }
}
