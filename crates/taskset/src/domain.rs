//! Domains: the CPUs that share one dispatcher.

use std::fmt;

use punctual_diagnostic::{Diagnostic, Place};
use schemars::JsonSchema;
use serde::Serialize;

use crate::TaskSet;

/// A domain's index in [`TaskSet::domains`].
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, JsonSchema,
)]
#[serde(transparent)]
pub struct DomainId(pub u32);

impl DomainId {
    /// The one of `domains` that has a CPU.
    #[must_use]
    pub fn of_cpu(domains: &[DomainSpec], cpu: u32) -> Option<DomainId> {
        let found = domains.iter().zip(0..).find(|(domain, _)| domain.cpus.contains(&cpu));
        found.map(|(_, id)| DomainId(id))
    }
}

/// CPUs that share one dispatcher, and with it the tasks that name this domain.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct DomainSpec {
    /// At least one, in the order given; a CPU is in one domain of a set only.
    pub cpus: Vec<u32>,
    /// What of a file describes it, for messages; `None` when it is from no file.
    #[serde(skip)]
    pub place: Option<Place>,
}

impl DomainSpec {
    /// A domain of one CPU.
    #[must_use]
    pub fn of_cpu(cpu: u32) -> DomainSpec {
        DomainSpec { cpus: vec![cpu], place: None }
    }

    /// Its CPU, for a host whose dispatchers execute on one each. This is the one place that
    /// refuses a domain of several.
    ///
    /// # Errors
    /// It has several CPUs.
    pub fn only_cpu(&self) -> Result<u32, Diagnostic> {
        if let [cpu] = self.cpus[..] {
            return Ok(cpu);
        }
        let cause = format!("several CPUs per domain are not implemented yet: {self} share one");
        let help = "use domain = \"partitioned\", and give each task its cpu";
        let refused = Diagnostic::usage(cause, help);
        Err(match &self.place {
            Some(place) => refused.at(place.clone()),
            None => refused,
        })
    }
}

impl fmt::Display for DomainSpec {
    /// As [`cpus_name`].
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&cpus_name(&self.cpus))
    }
}

impl TaskSet {
    /// The numbers of its domains.
    pub fn domain_ids(&self) -> impl Iterator<Item = DomainId> {
        (0..).take(self.domains.len()).map(DomainId)
    }

    /// A domain of this set.
    ///
    /// # Panics
    /// It has none of this number.
    #[must_use]
    pub fn domain(&self, id: DomainId) -> &DomainSpec {
        &self.domains[id.0 as usize]
    }

    /// The domain that has a CPU.
    #[must_use]
    pub fn domain_of_cpu(&self, cpu: u32) -> Option<DomainId> {
        DomainId::of_cpu(&self.domains, cpu)
    }

    /// The CPU of each domain, for a host that takes no others.
    ///
    /// # Errors
    /// A domain has several CPUs. In a set that was made by a program: a task or a group names a
    /// domain that is not there.
    pub fn only_cpus(&self) -> Result<Vec<u32>, Diagnostic> {
        let named = self.tasks.iter().map(|task| task.domain);
        let named = named.chain(self.groups.iter().map(|group| group.domain));
        let mut named = named.chain(self.budget_groups.iter().map(|group| group.domain));
        if let Some(unknown) = named.find(|id| id.0 as usize >= self.domains.len()) {
            let cause =
                format!("the set has no domain {}, and a task or a group is in it", unknown.0);
            return Err(Diagnostic::usage(cause, "name one of the set's domains, or add it"));
        }
        self.domains.iter().map(DomainSpec::only_cpu).collect()
    }

    /// The CPUs of all its domains, in their order.
    #[must_use]
    pub fn cpus(&self) -> Vec<u32> {
        cpus(&self.domains)
    }
}

pub(crate) fn cpus(domains: &[DomainSpec]) -> Vec<u32> {
    domains.iter().flat_map(|domain| domain.cpus.iter().copied()).collect()
}

/// A domain by its CPUs, for a message: `CPU 1` or `CPUs 0, 1`, the first eight of many.
#[must_use]
pub fn cpus_name(cpus: &[u32]) -> String {
    let s = if cpus.len() == 1 { "" } else { "s" };
    format!("CPU{s} {}", list(cpus))
}

/// CPU numbers for a message, the first eight of many.
pub(crate) fn list(cpus: &[u32]) -> String {
    let mut words: Vec<String> = cpus.iter().take(8).map(u32::to_string).collect();
    if cpus.len() > words.len() {
        words.push("...".to_owned());
    }
    words.join(", ")
}
