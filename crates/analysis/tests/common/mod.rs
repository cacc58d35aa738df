//! Sets in a line each.
#![allow(dead_code)] // Each test file uses some of them.

use punctual_analysis::{analyse, DomainAnalysis};
use punctual_taskset::{
    Body, DomainId, DomainSpec, GroupSpec, PolicySpec, ServerKind, ServerSpec, Spin, TaskSet,
    TaskSpec, Window,
};

/// A task that executes all of its budget: budget, period, deadline.
pub fn task(budget: u64, period: u64, deadline: u64) -> TaskSpec {
    TaskSpec { deadline, ..TaskSpec::new("t", period, budget, Body::Spin(Spin::Forever)) }
}

/// Implicit deadlines, from (budget, period).
pub fn tasks(of: &[(u64, u64)]) -> Vec<TaskSpec> {
    of.iter().map(|&(budget, period)| task(budget, period, period)).collect()
}

/// A set on CPU 0, the tasks named t1, t2 and so on.
pub fn set(policy: &str, tasks: Vec<TaskSpec>) -> TaskSet {
    let name = |(n, task): (usize, TaskSpec)| TaskSpec { name: format!("t{}", n + 1), ..task };
    TaskSet {
        domains: vec![DomainSpec::of_cpu(0)],
        policy: PolicySpec::named(policy),
        duration: None,
        tasks: tasks.into_iter().enumerate().map(name).collect(),
        groups: Vec::new(),
        budget_groups: Vec::new(),
    }
}

/// A group in group 0.
pub fn group(policy: &str, server: ServerSpec) -> GroupSpec {
    GroupSpec {
        name: "g".to_owned(),
        parent: None,
        policy: PolicySpec::named(policy),
        server,
        priority: 0,
        budget_group: None,
        domain: DomainId(0),
        line: None,
    }
}

/// A deferrable server with an implicit deadline.
pub fn server(budget: u64, period: u64) -> ServerSpec {
    ServerSpec::Periodic {
        period,
        budget,
        deadline: period,
        offset: 0,
        kind: ServerKind::Deferrable,
    }
}

/// Windows as (start, length).
pub fn windows(cycle: u64, of: &[(u64, u64)]) -> ServerSpec {
    let windows = of.iter().map(|&(start, length)| Window { start, length }).collect();
    ServerSpec::Windows { cycle, windows }
}

/// The analysis of CPU 0.
pub fn cpu(set: &TaskSet) -> DomainAnalysis {
    analyse(set).domains.remove(0)
}

/// The worst responses on CPU 0.
pub fn responses(set: &TaskSet) -> Vec<Option<u64>> {
    cpu(set).tasks.iter().map(|t| t.response).collect()
}

/// Whether each task fits.
pub fn fits(set: &TaskSet) -> Vec<bool> {
    cpu(set).tasks.iter().map(|t| t.fit.admitted()).collect()
}
