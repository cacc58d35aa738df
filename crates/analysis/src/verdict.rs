//! The verdict on a set: how full each domain is, or what does not fit and what would help.

use std::fmt;

use punctual_taskset::{cpus_name, DomainId, TaskSet};
use serde::Serialize;

use crate::advice::advise;
use crate::cap::CapAnalysis;
use crate::capacity::Capacity;
use crate::change::Help;
use crate::results::{Analysis, DomainAnalysis, GroupAnalysis, TaskAnalysis};
use crate::utilization::Ppm;

/// The set fits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verdict {
    /// Each domain of the set, in the set's order.
    pub domains: Vec<DomainLoad>,
}

/// How much of a domain is reserved.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DomainLoad {
    /// The domain's number in the set, from 0.
    pub domain: DomainId,
    /// Its CPUs.
    pub cpus: Vec<u32>,
    /// How many tasks it has.
    pub tasks: usize,
    /// The sum of budget / period over the tasks and servers of group 0, rounded up to a millionth.
    #[serde(rename = "utilization_ppm")]
    pub utilization: Ppm,
}

/// The set does not fit. Displays one line for each domain in which it does not, with help.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub struct Unschedulable {
    /// Each domain of the set, in the set's order, also those in which it fits.
    pub domains: Vec<DomainLoad>,
    /// The domains in which it does not fit, in the set's order; at least one.
    pub over: Vec<DomainRefusal>,
}

/// One domain in which the set does not fit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DomainRefusal {
    /// How full it is.
    pub load: DomainLoad,
    /// The most that the host takes of it for its own work.
    pub host: Ppm,
    /// The excess over the capacity, rounded up to a millionth; `None` where there is none, and
    /// deadlines are missed.
    pub excess: Option<Ppm>,
    /// What the host offers of it.
    pub capacity: Capacity,
    /// Whether the host's cap on jobs delays them.
    pub cap: Option<CapAnalysis>,
    /// The first few late tasks and groups, with reasons.
    pub late: Vec<String>,
    /// How many more are late.
    pub more: usize,
    /// The least change that would make it fit.
    pub help: Help,
}

impl Unschedulable {
    /// The cause in each domain, in one line.
    #[must_use]
    pub fn cause(&self) -> String {
        self.over.iter().map(DomainRefusal::cause).collect::<Vec<_>>().join("; ")
    }

    /// What would make it fit in each domain, in one line.
    #[must_use]
    pub fn help(&self) -> String {
        self.over.iter().map(DomainRefusal::help_text).collect::<Vec<_>>().join("; ")
    }
}

impl fmt::Display for Unschedulable {
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

impl DomainRefusal {
    /// The cause, in one line.
    #[must_use]
    pub fn cause(&self) -> String {
        let cpus = self.load.name();
        // A budget that cannot be enforced comes first: its change affects everything else.
        let least = matches!(self.help, Help::LeastBudget { .. });
        if let Some(excess) = self.excess.filter(|_| !least) {
            let over = self.load.over(self.host, excess, &self.capacity);
            return format!("{cpus}: the budgets are {over}");
        }
        let more = match self.more {
            0 => String::new(),
            n => format!("; and {n} more"),
        };
        let cap =
            self.cap.and_then(|cap| cap.note()).map_or(String::new(), |cap| format!("; {cap}"));
        format!("{cpus}: {}{more}{cap}", self.late.join("; "))
    }
}

impl DomainRefusal {
    fn help_text(&self) -> String {
        let cap =
            self.cap.and_then(|cap| cap.help()).map_or(String::new(), |cap| format!("; {cap}"));
        format!("{}{cap}", self.help)
    }

    /// The most late tasks and groups that it names.
    const MOST_NAMED: usize = 3;

    /// Of a domain in which a set does not fit.
    pub(crate) fn new(set: &TaskSet, domain: &DomainAnalysis) -> DomainRefusal {
        let least = domain.capacity.costs.least_budget;
        let mut tasks: Vec<&TaskAnalysis> =
            domain.tasks.iter().filter(|t| !t.fit.admitted()).collect();
        // Budgets that cannot be enforced come first.
        tasks.sort_by_key(|t| set.tasks[t.task].budget >= least);
        let tasks = tasks.into_iter().map(TaskAnalysis::cause);
        let groups = domain.groups.iter().filter(|g| !g.fit.admitted()).map(GroupAnalysis::cause);
        let mut late: Vec<String> = groups.chain(tasks).collect();
        let more = late.len().saturating_sub(Self::MOST_NAMED);
        late.truncate(Self::MOST_NAMED);
        let help = advise(set, domain).help;
        let (load, capacity) = (domain.load.clone(), domain.capacity);
        let (host, excess) = (domain.host, domain.excess);
        let cap = domain.cap;
        DomainRefusal { load, host, excess, capacity, cap, late, more, help }
    }
}

/// The verdict from an analysis of the set.
///
/// # Errors
/// In one or more domains the budgets exceed the capacity, or a deadline may be missed: all such
/// domains, each with the least change that makes the set fit.
pub fn verdict(set: &TaskSet, analysis: &Analysis) -> Result<Verdict, Unschedulable> {
    let domains = analysis.domains.iter().map(|domain| domain.load.clone()).collect();
    if analysis.fits() {
        return Ok(Verdict { domains });
    }
    let over = analysis.domains.iter().filter(|domain| !domain.fits());
    Err(Unschedulable {
        domains,
        over: over.map(|domain| DomainRefusal::new(set, domain)).collect(),
    })
}

impl DomainLoad {
    /// The domain by its CPUs: `CPU 1`.
    #[must_use]
    pub fn name(&self) -> String {
        cpus_name(&self.cpus)
    }

    /// How full it is, and of what it is too full: `62 % of it, 12 % more than the 50 % that can
    /// be promised`.
    pub(crate) fn over(&self, host: Ppm, excess: Ppm, capacity: &Capacity) -> String {
        let Capacity { limit, total, .. } = *capacity;
        let is = self.utilization;
        if is.0.saturating_sub(limit.0) >= excess.0 {
            return format!("{is} of it, {excess} more than the {limit} that can be promised");
        }
        format!(
            "{is} of it and the host takes up to {host} for its own work, together {excess} more \
             than {total}"
        )
    }
}

impl fmt::Display for DomainRefusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}; {}", self.cause(), self.help_text())
    }
}
