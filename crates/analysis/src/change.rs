//! Changes of a set that make it fit.

use std::fmt;

use punctual_taskset::{fmt_ns, TaskSet};
use serde::Serialize;

use crate::utilization::Ppm;

/// What has the number that a change replaces.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum ChangeTarget {
    /// A task.
    Task,
    /// The server of a scheduling group.
    Group,
    /// A budget group.
    BudgetGroup,
}

/// Which number a change replaces.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Quantity {
    /// The budget.
    Budget,
    /// The period, and the deadline with it where that is the period.
    Period,
    /// The relative deadline.
    Deadline,
}

/// A change of one number of a set.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Change {
    /// Of what.
    pub target: ChangeTarget,
    /// Its index in the set's tasks, groups or budget groups.
    pub index: usize,
    /// Its name.
    pub name: String,
    /// Its first line in the file, from 1; `None` where the set is from no file.
    pub line: Option<u32>,
    /// Which number.
    pub quantity: Quantity,
    /// The present value, ns.
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
    pub(crate) fn new(
        set: &TaskSet,
        target: ChangeTarget,
        index: usize,
        quantity: Quantity,
        from: u64,
        to: u64,
    ) -> Change {
        let (name, line) = match target {
            ChangeTarget::Task => (&set.tasks[index].name, set.tasks[index].line),
            ChangeTarget::Group => (&set.groups[index].name, set.groups[index].line),
            ChangeTarget::BudgetGroup => {
                (&set.budget_groups[index].name, set.budget_groups[index].line)
            }
        };
        Change { target, index, name: name.clone(), line, quantity, from, to }
    }

    /// Whether its relative change is smaller than that of `other`.
    pub(crate) fn is_smaller_than(&self, other: &Change) -> bool {
        let (own, others) = (self.from.abs_diff(self.to), other.from.abs_diff(other.to));
        u128::from(own) * u128::from(other.from) < u128::from(others) * u128::from(self.from)
    }
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let verb = match (self.quantity, self.to < self.from) {
            (Quantity::Budget, true) => "lower",
            (Quantity::Budget, false) => "raise",
            (_, true) => "shorten",
            (_, false) => "lengthen",
        };
        let quantity = self.quantity.name();
        let target = match self.target {
            ChangeTarget::Task => "task",
            ChangeTarget::Group => "group",
            ChangeTarget::BudgetGroup => "budget group",
        };
        write!(f, "{verb} the {quantity} of {target} {:?}", self.name)?;
        if let Some(line) = self.line {
            write!(f, " (line {line})")?;
        }
        write!(f, " from {} to {}", fmt_ns(self.from), fmt_ns(self.to))
    }
}

/// The least change that makes a domain fit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Help {
    /// Change one number.
    Change(Change),
    /// No single change that was tried is sufficient: lower all budgets to this share, or use more
    /// CPUs.
    Scale {
        /// The share, rounded down to a millionth.
        #[serde(rename = "to_ppm")]
        to: Ppm,
    },
    /// A time table would be too long; no change of a single number shortens its cycle.
    Periods,
    /// Some budget is less than the host enforces.
    LeastBudget {
        /// The least budget, ns.
        #[serde(rename = "least_ns")]
        least: u64,
    },
    /// Admission has no test for the policy of a group, or for its order.
    NoTest,
    /// The host's own work between short quanta is what does not fit.
    Quantum,
    /// No change was found within the step limit.
    Unknown,
}

impl fmt::Display for Help {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Help::Change(change) => change.fmt(f),
            Help::Scale { to } => {
                write!(
                    f,
                    "lower every budget to {to} of its value, or give some of the tasks another \
                     CPU"
                )
            }
            Help::LeastBudget { least } => write!(
                f,
                "give each task and server a budget of at least {}, with a longer period where the \
                 CPU is too full",
                fmt_ns(*least)
            ),
            Help::Periods => f.write_str(
                "choose periods that are multiples of each other, or another policy than td",
            ),
            Help::Quantum => f.write_str(
                "give the policy a longer quantum: the host works at the end of each one",
            ),
            Help::NoTest => f.write_str(
                "use a policy with a test (docs/check.md), or run it with --overload and measure",
            ),
            Help::Unknown => f.write_str(
                "lower budgets, lengthen periods or deadlines, or give some of the tasks another \
                 CPU",
            ),
        }
    }
}
