//! What admission answers: how full each CPU is, or which are too full and what would help.

use std::fmt;

use punctual_taskset::fmt_ns;

use crate::utilization::Ppm;
use crate::LIMIT;

/// The set fits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verdict {
    /// Each CPU of the set, in the set's order.
    pub cpus: Vec<CpuLoad>,
}

/// How much of a CPU is promised.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CpuLoad {
    /// The CPU's number.
    pub cpu: u32,
    /// How many tasks it has.
    pub tasks: usize,
    /// The sum of budget / period, rounded up to a millionth.
    pub utilization: Ppm,
}

/// The set does not fit. Prints one line for each CPU that is too full, with its cure.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub struct Refusal {
    /// Each CPU of the set, in the set's order, those that are not too full as well: what
    /// `--overload` shows.
    pub cpus: Vec<CpuLoad>,
    /// The CPUs that are too full, in the set's order; at least one.
    pub over: Vec<Over>,
}

/// One CPU that is too full.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Over {
    /// How full it is.
    pub load: CpuLoad,
    /// By how much that is more than [`LIMIT`], rounded up to a millionth.
    pub excess: Ppm,
    /// The least change that would make it fit.
    pub cure: Cure,
}

/// The least change that makes the tasks of a CPU fit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Cure {
    /// Lower one budget.
    Lower {
        /// The task, as an index into the set.
        task: usize,
        /// Its name.
        name: String,
        /// Where it begins in its file, from 1; `None` when it is from no file.
        line: Option<u32>,
        /// Its budget, ns.
        from: u64,
        /// The largest budget with which the CPU fits, ns, at least 1.
        to: u64,
    },
    /// No single budget is enough: lower all of them to this share of what they are, or use more CPUs.
    Scale {
        /// The share, rounded down to a millionth.
        to: Ppm,
    },
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
        format!(
            "CPU {}: the budgets are {} of it, {} more than the {LIMIT} that can be promised",
            self.load.cpu, self.load.utilization, self.excess
        )
    }
}

impl fmt::Display for Over {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}; {}", self.cause(), self.cure)
    }
}

impl fmt::Display for Cure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Cure::Lower {
                name,
                line,
                from,
                to,
                ..
            } => {
                write!(f, "lower the budget of task {name:?}")?;
                if let Some(line) = line {
                    write!(f, " (line {line})")?;
                }
                write!(f, " from {} to {}", fmt_ns(*from), fmt_ns(*to))
            }
            Cure::Scale { to } => write!(
                f,
                "lower every budget to {to} of what it is, or give some of the tasks another CPU"
            ),
        }
    }
}
