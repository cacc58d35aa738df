//! The results of a run, as `--json` prints them in its envelope. Schema: docs/run.schema.json;
//! what its words mean: docs/results.md.
//!
//! All of it is integers: ns, counts, and parts per million (`_ppm`; 1,000,000 is all of it).
//!
//! ```
//! use punctual_session::results::{Collector, Run, TaskInfo};
//! use punctual_session::HostKind;
//!
//! let tasks = vec![TaskInfo::new("servo", 1_000_000, 250_000, 1_000_000)];
//! let mut collector = Collector::new(Run::new(HostKind::User, "edf", &[1]), tasks);
//! // for each period: collector.record(&period);
//! collector.finish(10_000_000_000); // when the run ended, CLOCK_MONOTONIC
//! assert_eq!(collector.snapshot().exit_code(), 0);
//! ```

mod balance;
mod collector;
mod groups;
mod spread;
#[cfg(test)]
mod tests;

use punctual_taskset::{CostBasis, Costs};
use serde::{Deserialize, Serialize};

use spread::WHOLE;

pub use collector::{Collector, Run, TaskInfo};
pub use punctual_doctor::Machine;
pub use spread::ppm;

/// One run of one task set under one host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Results {
    /// What executed the schedule.
    pub host: HostKind,
    /// What to call this run where several stand side by side; `null`: the host's name.
    pub label: Option<String>,
    /// The policy's name, as in the task-set file.
    pub policy: String,
    /// The CPUs used.
    pub cpus: Vec<u32>,
    /// How long it ran, ns.
    pub duration_ns: u64,
    /// Sum of budget / period over all tasks and scheduling groups of the top level, to a group no
    /// more than its members may execute: parts per million of one CPU.
    pub utilization_ppm: u64,
    /// Admission was overridden (`--overload`): the budgets may add up to more than is guaranteed.
    pub overload: bool,
    /// The run was ended before its time (Ctrl-C).
    pub interrupted: bool,
    /// What it ran on.
    pub machine: Machine,
    /// Of all tasks together.
    pub totals: Totals,
    /// One entry per task, in file order.
    pub tasks: Vec<TaskResult>,
    /// One entry per scheduling group, then per budget group, in file order.
    #[serde(default)]
    pub groups: Vec<GroupResult>,
    /// The dispatcher's own cost and punctuality; `null` where there is none.
    pub dispatcher: Option<DispatcherStats>,
    /// What the host took each job to cost when the set was admitted; `null` where nothing was
    /// taken into account.
    #[serde(default)]
    pub costs: Option<HostCosts>,
    /// The same of a dispatcher inside the kernel; `null` elsewhere.
    #[serde(default)]
    pub kernel_dispatcher: Option<KernelDispatcherStats>,
    /// What the background process of `--load` received; `null` without one.
    pub load: Option<LoadResult>,
    /// Why this run could not take place; then there are no figures.
    pub not_possible: Option<NotPossible>,
    /// What a reader should know beside the figures.
    pub notes: Vec<String>,
}

/// What executed the schedule.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum HostKind {
    /// Punctual's user host.
    User,
    /// Punctual's kernel host.
    Kernel,
    /// Punctual's simulator.
    Sim,
    /// The kernel's SCHED_FIFO, for comparison: no budgets.
    Fifo,
    /// The kernel's SCHED_DEADLINE, for comparison.
    Deadline,
    /// The kernel's SCHED_OTHER, for comparison: no budgets, no priorities.
    Other,
}

/// What a host takes of a CPU for its own work (`docs/check.md`, "What the host takes").
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct HostCosts {
    /// For each release.
    pub release_ns: u64,
    /// Each time that another task gets the CPU.
    pub switch_ns: u64,
    /// For each timer that ends a budget.
    pub timer_ns: u64,
    /// For each command of a task.
    pub command_ns: u64,
    /// The least budget that the host enforces.
    pub least_budget_ns: u64,
    /// Where the numbers are from.
    pub basis: HostCostBasis,
}

/// Where the numbers of a host's costs are from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum HostCostBasis {
    /// Named by the caller.
    Given,
    /// Counted in a virtual machine whose clock counts instructions.
    Counted,
}

impl HostCosts {
    /// `None` for no costs at all.
    #[must_use]
    pub fn of(costs: &Costs) -> Option<HostCosts> {
        let basis = match costs.basis {
            CostBasis::None => return None,
            CostBasis::Given => HostCostBasis::Given,
            CostBasis::Counted => HostCostBasis::Counted,
        };
        Some(HostCosts {
            release_ns: costs.release,
            switch_ns: costs.switch,
            timer_ns: costs.timer,
            command_ns: costs.command,
            least_budget_ns: costs.least_budget,
            basis,
        })
    }
}

/// The figures of all tasks together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Totals {
    /// Periods counted, of all tasks.
    pub periods: u64,
    /// Of them, those that missed their deadline.
    pub missed: u64,
    /// Periods released that are in no other figure, because the host's reports of them were
    /// dropped: whether they met their deadlines is not known.
    #[serde(default)]
    pub unreported: u64,
    /// Tasks that did not receive their budgets (`shortfall_ns` is not 0).
    #[serde(default)]
    pub short: u64,
    /// No counted period missed its deadline, none is unreported, and every task received its
    /// budgets.
    pub met: bool,
}

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

/// A dispatcher's own cost and punctuality.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DispatcherStats {
    /// Events handled.
    pub events: u64,
    /// Mean time in the handler per event, ns.
    pub handler_mean_ns: u64,
    /// Longest time in the handler, ns.
    pub handler_max_ns: u64,
    /// From the time that its timer was due until it executed, median, ns.
    pub wakeup_latency_p50_ns: u64,
    /// The same, 99th percentile, ns.
    pub wakeup_latency_p99_ns: u64,
    /// The same, longest, ns.
    pub wakeup_latency_max_ns: u64,
    /// Writes to the cgroup freezer that took over 50 us: another process held a kernel lock.
    pub freezer_waits: u64,
    /// The longest of them, from the dispatcher's request on, ns.
    pub freezer_wait_max_ns: u64,
    /// CPU time of the dispatcher and its freezer thread, wake-ups included, ns.
    pub cpu_ns: u64,
}

/// A dispatcher inside the kernel. Its release latency: from the time that a release was due until
/// the kernel ran a thread of its task, over the releases that were selected at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct KernelDispatcherStats {
    /// Events of the dispatcher: releases, ends of jobs, and so on.
    pub events: u64,
    /// Releases that were selected at once.
    pub releases: u64,
    /// Their release latency, median, ns.
    pub release_latency_p50_ns: u64,
    /// The same, 99th percentile, ns.
    pub release_latency_p99_ns: u64,
    /// The same, longest, ns.
    pub release_latency_max_ns: u64,
}

/// A CPU-bound ordinary process beside the tasks, on the first of their CPUs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LoadResult {
    /// Its share of one CPU.
    pub share_ppm: u64,
}

/// Why a run could not take place, and what would allow it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct NotPossible {
    /// The cause.
    pub reason: String,
    /// The help: one step or command per line.
    pub help: Vec<String>,
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

impl Totals {
    /// Of all tasks together.
    #[must_use]
    pub fn of(tasks: &[TaskResult]) -> Totals {
        let (missed, unreported) =
            (tasks.iter().map(|t| t.misses).sum(), tasks.iter().map(|t| t.unreported).sum());
        let periods = tasks.iter().map(|t| t.periods).sum();
        let short = tasks.iter().filter(|t| t.shortfall_ns > 0).count() as u64;
        Totals {
            periods,
            missed,
            unreported,
            short,
            met: missed == 0 && unreported == 0 && short == 0,
        }
    }
}

impl Results {
    /// 0: every counted period met its deadline and every task received its budgets; 1: some did
    /// not, or periods are unreported.
    #[must_use]
    pub fn exit_code(&self) -> i32 {
        i32::from(!self.totals.met)
    }

    /// Adds unreported periods that cannot be attributed to a task.
    pub fn add_unreported(&mut self, periods: u64) {
        self.totals.unreported += periods;
        self.totals.met &= periods == 0;
    }

    /// What to call this run in a column.
    #[must_use]
    pub fn title(&self) -> &str {
        self.label.as_deref().unwrap_or(self.host.title())
    }
}

impl HostKind {
    /// What to call a run on it in a column.
    #[must_use]
    pub fn title(self) -> &'static str {
        match self {
            HostKind::User => "punctual",
            HostKind::Kernel => "punctual (kernel)",
            HostKind::Sim => "simulated",
            HostKind::Fifo => "fifo",
            HostKind::Deadline => "deadline",
            HostKind::Other => "other",
        }
    }
}
