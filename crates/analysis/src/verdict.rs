//! What admission answers: how full each CPU is, or what does not fit and what would help.

use std::fmt;

use punctual_taskset::{fmt_ns, TaskSet};
use serde::Serialize;

use crate::utilization::Ppm;
use crate::Capacity;

/// The set fits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verdict {
    /// Each CPU of the set, in the set's order.
    pub cpus: Vec<CpuLoad>,
}

/// How much of a CPU is promised.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct CpuLoad {
    /// The CPU's number.
    pub cpu: u32,
    /// How many tasks it has.
    pub tasks: usize,
    /// The sum of budget / period over the tasks and servers of group 0, rounded up to a millionth.
    #[serde(rename = "utilization_ppm")]
    pub utilization: Ppm,
}

/// The set does not fit. Prints one line for each CPU on which it does not, with its cure.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub struct Refusal {
    /// Each CPU of the set, in the set's order, those that are not too full as well: what
    /// `--overload` shows.
    pub cpus: Vec<CpuLoad>,
    /// The CPUs that do not keep what they promise, in the set's order; at least one.
    pub over: Vec<Over>,
}

/// One CPU on which the set does not fit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Over {
    /// How full it is.
    pub load: CpuLoad,
    /// How much of it the host takes for its own work at most.
    pub host: Ppm,
    /// By how much that is more than the capacity, rounded up to a millionth; `None` when it is
    /// not, and deadlines are the trouble.
    pub excess: Option<Ppm>,
    /// What the host offers of it.
    pub capacity: Capacity,
    /// What is late, one line each: the first few.
    pub late: Vec<String>,
    /// How many more are late.
    pub more: usize,
    /// The least change that would make it fit.
    pub cure: Cure,
}

/// Who would be changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Whose {
    /// A task.
    Task,
    /// The server of a scheduling group.
    Group,
    /// A budget group.
    BudgetGroup,
}

/// What would be changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Quantity {
    /// The budget.
    Budget,
    /// The period, and the deadline with it where that is the period.
    Period,
    /// The relative deadline.
    Deadline,
}

/// One number of a set, and what it should be.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Change {
    /// Of whom.
    pub whose: Whose,
    /// Its index in the set's tasks, groups or budget groups.
    pub index: usize,
    /// Its name.
    pub name: String,
    /// Where it begins in its file, from 1; `None` when it is from no file.
    pub line: Option<u32>,
    /// Which number.
    pub what: Quantity,
    /// What it is, ns.
    #[serde(rename = "from_ns")]
    pub from: u64,
    /// The nearest value with which it fits, ns, at least 1.
    #[serde(rename = "to_ns")]
    pub to: u64,
}

impl Quantity {
    /// Its name for people.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Quantity::Budget => "budget",
            Quantity::Period => "period",
            Quantity::Deadline => "deadline",
        }
    }
}

impl Change {
    pub(crate) fn new(set: &TaskSet, whose: Whose, index: usize, what: Quantity, from: u64, to: u64) -> Change {
        let (name, line) = match whose {
            Whose::Task => (&set.tasks[index].name, set.tasks[index].line),
            Whose::Group => (&set.groups[index].name, set.groups[index].line),
            Whose::BudgetGroup => (&set.budget_groups[index].name, set.budget_groups[index].line),
        };
        Change { whose, index, name: name.clone(), line, what, from, to }
    }

    /// Whether it changes a smaller part of what it changes than another does.
    pub(crate) fn is_smaller_than(&self, other: &Change) -> bool {
        let (mine, its) = (self.from.abs_diff(self.to), other.from.abs_diff(other.to));
        u128::from(mine) * u128::from(other.from) < u128::from(its) * u128::from(self.from)
    }
}

/// The least change that makes a CPU fit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Cure {
    /// Change one number.
    Change(Change),
    /// No single change that was tried is enough: lower all budgets to this share of what they are,
    /// or use more CPUs.
    Scale {
        /// The share, rounded down to a millionth.
        #[serde(rename = "to_ppm")]
        to: Ppm,
    },
    /// A time table would be too long: no single number gives it a shorter cycle.
    Periods,
    /// Some budget is less than the host enforces: raise it, or use another host.
    LeastBudget {
        /// The least budget, ns.
        #[serde(rename = "least_ns")]
        least: u64,
    },
    /// None was found within the limits of the analysis.
    Unknown,
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

impl Over {
    /// What is wrong, in one line.
    #[must_use]
    pub fn cause(&self) -> String {
        let cpu = self.load.cpu;
        // A budget that is not enforced is the first thing to change, and may change all else.
        let least = matches!(self.cure, Cure::LeastBudget { .. });
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

impl CpuLoad {
    /// By how much it is too full, of what: `62 % of it, 12 % more than the 50 % that can be
    /// promised`.
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

impl fmt::Display for Over {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}; {}", self.cause(), self.cure)
    }
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let verb = match (self.what, self.to < self.from) {
            (Quantity::Budget, true) => "lower",
            (Quantity::Budget, false) => "raise",
            (_, true) => "shorten",
            (_, false) => "lengthen",
        };
        let what = self.what.name();
        let whose = match self.whose {
            Whose::Task => "task",
            Whose::Group => "group",
            Whose::BudgetGroup => "budget group",
        };
        write!(f, "{verb} the {what} of {whose} {:?}", self.name)?;
        if let Some(line) = self.line {
            write!(f, " (line {line})")?;
        }
        write!(f, " from {} to {}", fmt_ns(self.from), fmt_ns(self.to))
    }
}

impl fmt::Display for Cure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Cure::Change(change) => change.fmt(f),
            Cure::Scale { to } => {
                write!(f, "lower every budget to {to} of what it is, or give some of the tasks another CPU")
            }
            Cure::LeastBudget { least } => write!(
                f,
                "give each task and server a budget of at least {}, with a longer period where the CPU is too full",
                fmt_ns(*least)
            ),
            Cure::Periods => f.write_str("choose periods that are multiples of each other, or another policy than td"),
            Cure::Unknown => {
                f.write_str("lower budgets, lengthen periods or deadlines, or give some of the tasks another CPU")
            }
        }
    }
}
