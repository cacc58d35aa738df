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

mod adaptive;
mod balance;
mod collector;
mod figures;
mod groups;
mod spread;
mod tasks;
#[cfg(test)]
mod tests;

use punctual_taskset::{CostBasis, Costs};
use serde::{Deserialize, Serialize};

pub use collector::{Collector, Run, TaskInfo};
pub use punctual_doctor::Machine;
pub use spread::ppm;
pub use tasks::{
    AdaptiveBudget, BudgetReceived, GroupKind, GroupResult, Late, TaskKind, TaskResult, TimeSpread,
};

/// One run of one task set under one host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Results {
    /// What executed the schedule.
    pub host: HostKind,
    /// What to call this run where several stand side by side; `null`: the host's name.
    pub label: Option<String>,
    /// The policy's name, as in the task-set file; after a reload, the latest one.
    pub policy: String,
    /// Policies that were swapped while it ran, in order of time.
    #[serde(default)]
    pub policy_changes: Vec<PolicyChange>,
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

/// A group that got another policy while its tasks ran.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PolicyChange {
    /// When, from the first release of the run, ns.
    pub at_ns: u64,
    /// The group's name; `null`: the top.
    pub group: Option<String>,
    /// The policy before: its name, and its order in parentheses if it has one.
    pub from: String,
    /// The policy since then, likewise.
    pub to: String,
    /// What the policy before did, so that it was stopped: `has panicked: ...`, with the message
    /// and the place in its source, or `took ...`, too long for an answer. `null`: the user swapped
    /// it.
    #[serde(default)]
    pub cause: Option<String>,
}

impl PolicyChange {
    /// Why the policy before was stopped, in a sentence; `None`: the user swapped it.
    #[must_use]
    pub fn stopped(&self) -> Option<String> {
        let (cause, from, to) = (self.cause.as_ref()?, &self.from, &self.to);
        Some(format!("the policy \"{from}\" {cause}; {to} has taken its place"))
    }
}

/// Without the time: `group "media" edf -> rm`.
impl std::fmt::Display for PolicyChange {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.group {
            Some(group) => write!(f, "group \"{group}\" {} -> {}", self.from, self.to),
            None => write!(f, "policy {} -> {}", self.from, self.to),
        }
    }
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
    /// A dispatcher of punctuald.
    Service,
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
    /// No counted period missed its deadline, none is unreported, every task received its budgets,
    /// and no policy was stopped.
    pub met: bool,
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
    /// Time in which it enforced no budget and made no release, because Punctual was stopped
    /// (Ctrl-Z, SIGSTOP) or its thread hung, ns; of several dispatchers the longest.
    #[serde(default)]
    pub stopped_ns: u64,
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
    /// not, or periods are unreported, or a policy was stopped.
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
            HostKind::Service => "punctual (service)",
            HostKind::Sim => "simulated",
            HostKind::Fifo => "fifo",
            HostKind::Deadline => "deadline",
            HostKind::Other => "other",
        }
    }
}

/// As [`HostKind::title`].
impl std::fmt::Display for HostKind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.title())
    }
}
