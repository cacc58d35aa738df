//! What an analysis says, as plain data. Times are ns.

use punctual_taskset::{fmt_ns, TaskSet};
use serde::Serialize;

use crate::utilization::Ppm;
use crate::verdict::CpuLoad;
use crate::Capacity;

/// The analysis of a whole set.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Analysis {
    /// Each CPU of the set, in the set's order.
    pub cpus: Vec<CpuAnalysis>,
}

impl Analysis {
    /// Gives tasks under `dual` without a promotion the one that this analysis found, so that what
    /// the host takes is in it: the policy would compute one without.
    pub fn promote(&self, set: &mut TaskSet) {
        for task in self.cpus.iter().flat_map(|cpu| &cpu.tasks) {
            if let (Some(promotion), Some(spec)) = (task.promotion, set.tasks.get_mut(task.task)) {
                spec.promotion.get_or_insert(promotion);
            }
        }
    }

    /// Whether everything that is promised on every CPU is kept, and no CPU is fuller than
    /// its host's limit.
    #[must_use]
    pub fn fits(&self) -> bool {
        self.cpus.iter().all(CpuAnalysis::fits)
    }

    /// Whether all deadlines are met, however full the CPUs are.
    #[must_use]
    pub fn schedulable(&self) -> bool {
        self.cpus.iter().all(CpuAnalysis::schedulable)
    }
}

/// One CPU.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct CpuAnalysis {
    /// How much of it is promised.
    pub load: CpuLoad,
    /// How much of it the host takes for its own work at most.
    #[serde(rename = "host_ppm")]
    pub host: Ppm,
    /// By how much that is above the [`capacity`](CpuAnalysis::capacity), of the budgets alone or
    /// with the host's part, whichever is more; `None` when neither is.
    #[serde(rename = "excess_ppm")]
    pub excess: Option<Ppm>,
    /// What the host offers of it.
    #[serde(skip)]
    pub capacity: Capacity,
    /// Its tasks, in file order.
    pub tasks: Vec<TaskResult>,
    /// Its scheduling groups, in file order.
    pub groups: Vec<GroupResult>,
    /// Its budget groups, in file order.
    pub budget_groups: Vec<BudgetGroupResult>,
    /// Some time table is not made, for its periods come again too late: the search for a change is spared.
    #[serde(skip)]
    pub(crate) no_cycle: bool,
}

impl CpuAnalysis {
    /// Whether it keeps what it promises, and is no fuller than its
    /// [`capacity`](CpuAnalysis::capacity).
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

/// Whether somebody gets what is promised.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Fit {
    /// It does, always.
    Fits,
    /// It may not.
    Late,
    /// Nothing is promised to it: an aperiodic task.
    BestEffort,
    /// The analysis was given up before it was known: it counts as late.
    NotComputed,
}

impl Fit {
    /// Whether it may run so.
    #[must_use]
    pub fn admitted(self) -> bool {
        matches!(self, Fit::Fits | Fit::BestEffort)
    }
}

/// How it was found out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Test {
    /// Response-time analysis for fixed priorities (Joseph and Pandya 1986; Audsley et al. 1993).
    ResponseTime,
    /// Processor demand for EDF, by QPA (Zhang and Burns 2009).
    ProcessorDemand,
    /// The execution time within windows of a table.
    Table,
    /// Response-time analysis of what must be done in the high band only (imprecise computation).
    MandatoryPart,
    /// Response-time analysis of the upper band, from the promotion on (Davis and Wellings 1995).
    Promotion,
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
            Test::None => "none",
        }
    }
}

/// One task.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct TaskResult {
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
    /// Whether that test is exact for this set: what it refuses does miss, in the worst case. `false`:
    /// the test is only sufficient, and what it refuses may still be met.
    pub exact: bool,
    /// Its longest response, from its release on; `None` where no bound is known.
    #[serde(rename = "response_ns")]
    pub response: Option<u64>,
    /// Under `dual`: the latest promotion that is in time, where the set has none.
    #[serde(rename = "promotion_ns")]
    pub promotion: Option<u64>,
    /// Whether that response can happen. `false`: it is only never exceeded.
    pub reached: bool,
    /// Its relative deadline.
    #[serde(rename = "deadline_ns")]
    pub deadline: u64,
    /// Deadline less response; `None` where there is no bound, or it is late.
    #[serde(rename = "slack_ns")]
    pub slack: Option<u64>,
    /// Why it does not fit, or is promised nothing.
    pub why: Option<String>,
}

/// One scheduling group.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct GroupResult {
    /// Its index in the set.
    pub group: usize,
    /// Its name.
    pub name: String,
    /// Where it begins in its file, from 1.
    pub line: Option<u32>,
    /// Whether its server gets its budget in its parent.
    pub fit: Fit,
    /// By which test.
    pub test: Test,
    /// Whether that test is exact for this set.
    pub exact: bool,
    /// The longest time from a replenishment until all of the budget is received.
    #[serde(rename = "response_ns")]
    pub response: Option<u64>,
    /// By when the budget is due, after the replenishment.
    #[serde(rename = "deadline_ns")]
    pub deadline: u64,
    /// The longest time that its members can be without any execution.
    #[serde(rename = "blackout_ns")]
    pub blackout: Option<u64>,
    /// Why it does not fit.
    pub why: Option<String>,
}

/// One budget group.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct BudgetGroupResult {
    /// Its index in the set.
    pub budget_group: usize,
    /// Its name.
    pub name: String,
    /// The most that its members can execute in one of its periods.
    #[serde(rename = "wanted_ns")]
    pub wanted: u64,
    /// What they may.
    #[serde(rename = "budget_ns")]
    pub budget: u64,
    /// Its period.
    #[serde(rename = "period_ns")]
    pub period: u64,
    /// Whether it may run dry, so that it holds its members up.
    pub dry: bool,
}

impl TaskResult {
    /// Why it does not fit, or is promised nothing, in one line.
    #[must_use]
    pub fn cause(&self) -> String {
        let place = self.line.map_or(String::new(), |line| format!(" (line {line})"));
        let name = &self.name;
        match (&self.why, self.response, self.fit) {
            (Some(why), ..) => format!("task {name:?}{place}: {why}"),
            (None, _, Fit::NotComputed) => {
                format!("task {name:?}{place}: not computed within the limits of the analysis, so not admitted")
            }
            (None, Some(response), _) => {
                let sure = if self.exact { "" } else { ", by a test that is only sufficient" };
                format!(
                    "task {name:?}{place}: it may need {} to its deadline of {}{sure}",
                    fmt_ns(response),
                    fmt_ns(self.deadline)
                )
            }
            (None, None, _) => {
                let sure = if self.exact { "" } else { " (a test that is only sufficient)" };
                format!("task {name:?}{place}: its deadline of {} is not sure to be met{sure}", fmt_ns(self.deadline))
            }
        }
    }
}

impl GroupResult {
    /// Why its server does not fit, in one line.
    #[must_use]
    pub fn cause(&self) -> String {
        let place = self.line.map_or(String::new(), |line| format!(" (line {line})"));
        let name = &self.name;
        match &self.why {
            Some(why) => format!("group {name:?}{place}: {why}"),
            None if self.fit == Fit::NotComputed => {
                format!("group {name:?}{place}: not computed within the limits of the analysis, so not admitted")
            }
            None => {
                format!("group {name:?}{place}: its budget is not sure to be received within {}", fmt_ns(self.deadline))
            }
        }
    }
}
