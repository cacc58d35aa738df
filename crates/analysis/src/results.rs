//! The results of an analysis, as plain data. Times are ns.

use punctual_taskset::{fmt_ns, TaskSet};
use serde::Serialize;

use crate::cap::CapAnalysis;
use crate::capacity::Capacity;
use crate::interference::TableLoad;
use crate::utilization::Ppm;
use crate::verdict::DomainLoad;

/// The analysis of a whole set.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Analysis {
    /// Each domain of the set, in the set's order.
    pub domains: Vec<DomainAnalysis>,
}

impl Analysis {
    /// Sets the promotion of tasks under `dual` that have none, with what the host takes included:
    /// the policy computes one without it.
    pub fn promote(&self, set: &mut TaskSet) {
        for task in self.domains.iter().flat_map(|domain| &domain.tasks) {
            if let (Some(promotion), Some(spec)) = (task.promotion, set.tasks.get_mut(task.task)) {
                spec.promotion.get_or_insert(promotion);
            }
        }
    }

    /// Whether all deadlines are met, and no domain is fuller than its capacity.
    #[must_use]
    pub fn fits(&self) -> bool {
        self.domains.iter().all(DomainAnalysis::fits)
    }

    /// Whether all deadlines are met, however full the domains are.
    #[must_use]
    pub fn schedulable(&self) -> bool {
        self.domains.iter().all(DomainAnalysis::schedulable)
    }
}

/// One domain.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DomainAnalysis {
    /// How much of it is reserved.
    pub load: DomainLoad,
    /// The most that the host takes of it for its own work.
    #[serde(rename = "host_ppm")]
    pub host: Ppm,
    /// The excess over the [`capacity`](DomainAnalysis::capacity), of the budgets alone or together
    /// with the host's part, whichever is more; `None` where there is none.
    #[serde(rename = "excess_ppm")]
    pub excess: Option<Ppm>,
    /// Whether the host's cap on jobs delays them; `None` where it has none.
    pub cap: Option<CapAnalysis>,
    /// What the host offers of it.
    #[serde(skip)]
    pub capacity: Capacity,
    /// Its tasks, in file order.
    pub tasks: Vec<TaskAnalysis>,
    /// Its scheduling groups, in file order.
    pub groups: Vec<GroupAnalysis>,
    /// Its budget groups, in file order.
    pub budget_groups: Vec<BudgetGroupResult>,
    /// Some time table is not made because its cycle is too long: no change is searched for.
    #[serde(skip)]
    pub(crate) no_cycle: bool,
    /// The time tables that were synthesised.
    #[serde(skip)]
    pub(crate) tables: Vec<TableLoad>,
}

impl DomainAnalysis {
    /// Whether all its deadlines are met, and it is no fuller than its
    /// [`capacity`](DomainAnalysis::capacity).
    #[must_use]
    pub fn fits(&self) -> bool {
        self.excess.is_none() && self.schedulable()
    }

    /// Whether all its deadlines are met.
    #[must_use]
    pub fn schedulable(&self) -> bool {
        self.tasks.iter().all(|t| t.fit.admitted()) && self.groups.iter().all(|g| g.fit.admitted())
    }
}

/// Whether a task meets its deadlines, or a server receives its budget in time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Fit {
    /// Always.
    Fits,
    /// Not always.
    Late,
    /// Nothing is guaranteed: an aperiodic task.
    BestEffort,
    /// The step limit of the analysis was reached: it counts as late.
    NotComputed,
}

impl Fit {
    /// Whether the set is admitted here.
    #[must_use]
    pub fn admitted(self) -> bool {
        matches!(self, Fit::Fits | Fit::BestEffort)
    }
}

/// The test that decided.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Test {
    /// Response-time analysis for fixed priorities (Joseph and Pandya 1986; Audsley et al. 1993).
    ResponseTime,
    /// Processor demand for EDF, by QPA (Zhang and Burns 2009).
    ProcessorDemand,
    /// The execution time within windows of a table.
    Table,
    /// Response-time analysis of the mandatory parts, in the upper band (imprecise computation).
    MandatoryPart,
    /// Response-time analysis of the upper band, from the promotion on (Davis and Wellings 1995).
    Promotion,
    /// The delay bound of fair queueing (Parekh and Gallager 1993; Goyal, Vin and Cheng 1996).
    FairShare,
    /// That of a policy of the program.
    Own,
    /// None.
    None,
}

impl Test {
    /// Its name for people.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Test::ResponseTime => "response time",
            Test::ProcessorDemand => "processor demand",
            Test::Table => "table",
            Test::MandatoryPart => "mandatory part",
            Test::Promotion => "promotion",
            Test::FairShare => "fair share",
            Test::Own => "the policy's own",
            Test::None => "none",
        }
    }
}

/// One task.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TaskAnalysis {
    /// Its index in the set.
    pub task: usize,
    /// Its name.
    pub name: String,
    /// Where it begins in its file, from 1.
    pub line: Option<u32>,
    /// Whether it fits.
    pub fit: Fit,
    /// By which test.
    pub test: Test,
    /// Whether that test is exact for this set: what it refuses misses a deadline in the worst
    /// case. `false`: the test is only sufficient, and what it refuses may still be in time.
    pub exact: bool,
    /// The longest time from a release to its completion; `None` where no bound is known.
    #[serde(rename = "response_ns")]
    pub response: Option<u64>,
    /// Under `dual`: the latest promotion that is in time, where the set has none.
    #[serde(rename = "promotion_ns")]
    pub promotion: Option<u64>,
    /// Whether that response occurs. `false`: it is a bound.
    pub reached: bool,
    /// Its relative deadline.
    #[serde(rename = "deadline_ns")]
    pub deadline: u64,
    /// Deadline less response; `None` where there is no bound, or the task is late.
    #[serde(rename = "slack_ns")]
    pub slack: Option<u64>,
    /// Why it does not fit, or nothing is guaranteed.
    pub why: Option<String>,
}

/// One scheduling group.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct GroupAnalysis {
    /// Its index in the set.
    pub group: usize,
    /// Its name.
    pub name: String,
    /// Where it begins in its file, from 1.
    pub line: Option<u32>,
    /// Whether its server receives its budget in its parent.
    pub fit: Fit,
    /// By which test.
    pub test: Test,
    /// Whether that test is exact for this set.
    pub exact: bool,
    /// The longest time from a replenishment until all of the budget is received.
    #[serde(rename = "response_ns")]
    pub response: Option<u64>,
    /// From a replenishment until the budget is due.
    #[serde(rename = "deadline_ns")]
    pub deadline: u64,
    /// The longest time for which its members can be without any execution.
    #[serde(rename = "blackout_ns")]
    pub blackout: Option<u64>,
    /// Why it does not fit.
    pub why: Option<String>,
}

/// One budget group.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct BudgetGroupResult {
    /// Its index in the set.
    pub budget_group: usize,
    /// Its name.
    pub name: String,
    /// The most that its members can execute in one of its periods.
    #[serde(rename = "demand_ns")]
    pub demand: u64,
    /// The budget.
    #[serde(rename = "budget_ns")]
    pub budget: u64,
    /// The period.
    #[serde(rename = "period_ns")]
    pub period: u64,
    /// Whether it can be exhausted, so that it throttles its members.
    pub exhaustible: bool,
}

impl TaskAnalysis {
    /// Why it does not fit, or nothing is guaranteed, in one line.
    #[must_use]
    pub fn cause(&self) -> String {
        let deadline = fmt_ns(self.deadline);
        let late = match self.response.map(fmt_ns) {
            Some(response) => {
                let sure = if self.exact { "" } else { ", by a test that is only sufficient" };
                format!("it may need {response} to its deadline of {deadline}{sure}")
            }
            None => {
                let sure = if self.exact { "" } else { " (a test that is only sufficient)" };
                format!("its deadline of {deadline} is not sure to be met{sure}")
            }
        };
        cause("task", &self.name, self.line, self.why.as_deref(), self.fit, late)
    }
}

impl GroupAnalysis {
    /// Why its server does not fit, in one line.
    #[must_use]
    pub fn cause(&self) -> String {
        let late =
            format!("its budget is not sure to be received within {}", fmt_ns(self.deadline));
        cause("group", &self.name, self.line, self.why.as_deref(), self.fit, late)
    }
}

fn cause(
    kind: &str,
    name: &str,
    line: Option<u32>,
    why: Option<&str>,
    fit: Fit,
    late: String,
) -> String {
    let place = line.map_or(String::new(), |line| format!(" (line {line})"));
    let why = why.unwrap_or(match fit {
        Fit::NotComputed => "not computed within the limits of the analysis, so not admitted",
        _ => &late,
    });
    format!("{kind} {name:?}{place}: {why}")
}
