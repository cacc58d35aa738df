//! The verdict on a set: how full each CPU is, or what does not fit and what would help.

use std::fmt;

use punctual_taskset::TaskSet;
use serde::Serialize;

use crate::advice::advise;
use crate::capacity::Capacity;
use crate::change::Help;
use crate::results::{Analysis, CpuAnalysis, GroupResult, TaskResult};
use crate::utilization::Ppm;

/// The set fits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verdict {
    /// Each CPU of the set, in the set's order.
    pub cpus: Vec<CpuLoad>,
}

/// How much of a CPU is reserved.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CpuLoad {
    /// The CPU's number.
    pub cpu: u32,
    /// How many tasks it has.
    pub tasks: usize,
    /// The sum of budget / period over the tasks and servers of group 0, rounded up to a millionth.
    #[serde(rename = "utilization_ppm")]
    pub utilization: Ppm,
}

/// The set does not fit. Displays one line for each CPU on which it does not, with help.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub struct Refusal {
    /// Each CPU of the set, in the set's order, also those on which it fits.
    pub cpus: Vec<CpuLoad>,
    /// The CPUs on which it does not fit, in the set's order; at least one.
    pub over: Vec<CpuRefusal>,
}

/// One CPU on which the set does not fit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CpuRefusal {
    /// How full it is.
    pub load: CpuLoad,
    /// The most that the host takes of it for its own work.
    pub host: Ppm,
    /// The excess over the capacity, rounded up to a millionth; `None` where there is none, and
    /// deadlines are missed.
    pub excess: Option<Ppm>,
    /// What the host offers of it.
    pub capacity: Capacity,
    /// The first few late tasks and groups, with reasons.
    pub late: Vec<String>,
    /// How many more are late.
    pub more: usize,
    /// The least change that would make it fit.
    pub help: Help,
}

impl Refusal {
    /// What is wrong on each CPU, in one line.
    #[must_use]
    pub fn cause(&self) -> String {
        self.over.iter().map(CpuRefusal::cause).collect::<Vec<_>>().join("; ")
    }

    /// What would make it fit on each CPU, in one line.
    #[must_use]
    pub fn help(&self) -> String {
        self.over.iter().map(|over| over.help.to_string()).collect::<Vec<_>>().join("; ")
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, over) in self.over.iter().enumerate() {
            if index > 0 {
                f.write_str("\n")?;
            }
            write!(f, "{over}")?;
        }
        Ok(())
    }
}

impl CpuRefusal {
    /// What is wrong, in one line.
    #[must_use]
    pub fn cause(&self) -> String {
        let cpu = self.load.cpu;
        // A budget that cannot be enforced comes first: its change affects everything else.
        let least = matches!(self.help, Help::LeastBudget { .. });
        if let Some(excess) = self.excess.filter(|_| !least) {
            return format!("CPU {cpu}: the budgets are {}", self.load.over(self.host, excess, &self.capacity));
        }
        let more = match self.more {
            0 => String::new(),
            n => format!("; and {n} more"),
        };
        format!("CPU {cpu}: {}{more}", self.late.join("; "))
    }
}

impl CpuRefusal {
    /// The most late tasks and groups that it names.
    const MOST_NAMED: usize = 3;

    /// Of a CPU on which a set does not fit.
    pub(crate) fn new(set: &TaskSet, cpu: &CpuAnalysis) -> CpuRefusal {
        let least = cpu.capacity.costs.least_budget;
        let mut tasks: Vec<&TaskResult> = cpu.tasks.iter().filter(|t| !t.fit.admitted()).collect();
        // Budgets that cannot be enforced come first.
        tasks.sort_by_key(|t| set.tasks[t.task].budget >= least);
        let tasks = tasks.into_iter().map(TaskResult::cause);
        let groups = cpu.groups.iter().filter(|g| !g.fit.admitted()).map(GroupResult::cause);
        let mut late: Vec<String> = groups.chain(tasks).collect();
        let more = late.len().saturating_sub(Self::MOST_NAMED);
        late.truncate(Self::MOST_NAMED);
        let help = advise(set, cpu).help;
        CpuRefusal { load: cpu.load, host: cpu.host, excess: cpu.excess, capacity: cpu.capacity, late, more, help }
    }
}

/// The verdict from an analysis of the set.
///
/// # Errors
/// On one or more CPUs the budgets exceed the capacity, or a deadline may be missed: all such CPUs,
/// each with the least change that makes the set fit.
pub fn verdict(set: &TaskSet, analysis: &Analysis) -> Result<Verdict, Refusal> {
    let cpus = analysis.cpus.iter().map(|cpu| cpu.load).collect();
    if analysis.fits() {
        return Ok(Verdict { cpus });
    }
    let over = analysis.cpus.iter().filter(|cpu| !cpu.fits());
    Err(Refusal { cpus, over: over.map(|cpu| CpuRefusal::new(set, cpu)).collect() })
}

impl CpuLoad {
    /// How full it is, and of what it is too full: `62 % of it, 12 % more than the 50 % that can
    /// be promised`.
    pub(crate) fn over(&self, host: Ppm, excess: Ppm, capacity: &Capacity) -> String {
        let Capacity { limit, total, .. } = *capacity;
        let is = self.utilization;
        if is.0.saturating_sub(limit.0) >= excess.0 {
            return format!("{is} of it, {excess} more than the {limit} that can be promised");
        }
        format!(
            "{is} of it and the host takes up to {host} for its own work, together {excess} more than the {total} \
             that there is"
        )
    }
}

impl fmt::Display for CpuRefusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}; {}", self.cause(), self.help)
    }
}
