//! Schedulability analysis: does a task set fit, and what would make it fit.
//!
//! Plain data in, results out: this crate depends on the task set only, and is below the policies,
//! which take their tables and promotion times from it.
//!
//! - [`analyse`] tests each task and each group of a set: response-time analysis for fixed
//!   priorities, processor demand (QPA) for EDF, tables for time-driven groups, delay bounds of
//!   fair queueing, and the supply-bound functions of servers for hierarchies.
//! - [`admit`] decides whether the set may run, [`advise`] searches for the smallest change that
//!   makes it fit.
//! - [`TimeTable::synthesise`] finds the windows of time-driven tasks, [`upper_band_responses`] the
//!   response times behind the promotions of dual priority, [`utilization`] what a set reserves.
//!
//! Each domain is tested by itself, with the tests for one CPU: those for several under one
//! dispatcher are not there yet, as no host is, and [`punctual_taskset::DomainSpec::only_cpu`]
//! refuses such a domain.
//!
//! `docs/check.md` describes each test, its source, and where it is exact and where only
//! sufficient. All arithmetic is on integers and exact fractions: one nanosecond too many is
//! refused. The work is bounded: what would take too many steps is reported as not computed, and
//! not admitted.

mod advice;
mod analysed_task;
mod budget_groups;
mod cap;
mod capacity;
mod change;
mod demand;
mod demand_shape;
mod demand_slack;
mod domain_utilization;
mod edf_response;
mod equal_priority;
mod fair;
mod group_test;
mod hierarchy;
mod higher_priority;
mod hyperperiod;
mod interference;
mod members;
mod offset_demand;
mod overload;
mod own_test;
mod promotion;
mod reclaiming;
mod record;
mod reserved_time;
mod response;
mod results;
mod self_suspension;
mod step_limit;
mod supply;
mod synthesis;
mod task_server;
mod time_driven;
mod time_table;
mod utilization;
mod verdict;
mod window_costs;
mod window_supply;

use std::collections::HashMap;

use punctual_taskset::{DomainId, TaskSet};

use domain_utilization::DomainUtilization;
use hierarchy::{Hierarchy, Results};

pub use advice::{advise, Advice};
pub use cap::{CapAnalysis, JobCap};
pub use capacity::{Capacity, KERNEL_LIMIT, LIMIT};
pub use change::{Change, ChangeTarget, Help, Quantity};
pub use domain_utilization::{utilization, utilization_of};
pub use hyperperiod::{gcd, hyperperiod, periods, HyperperiodTooLong};
pub use promotion::upper_band_responses;
pub use reserved_time::{OutsideServers, ReservedTime};
pub use results::{
    Analysis, BudgetGroupResult, DomainAnalysis, Fit, GroupAnalysis, TaskAnalysis, Test,
};
pub use time_table::{
    TableError, TableTask, TimeTable, LARGEST_TABLE, LONGEST_CYCLE, MOST_WINDOWS,
};
pub use utilization::{Ppm, WHOLE};
pub use verdict::{verdict, DomainLoad, DomainRefusal, Unschedulable, Verdict};
pub use window_costs::HostWork;

/// Tests all tasks and groups of a set, in each of its domains, for a host that takes no time
/// itself.
#[must_use]
pub fn analyse(set: &TaskSet) -> Analysis {
    analyse_within(set, &Capacity::THEORY)
}

/// As [`analyse`], on a host with this capacity: each job takes its budget and what the host takes
/// for it (docs/check.md, "What the host takes").
#[must_use]
pub fn analyse_within(set: &TaskSet, capacity: &Capacity) -> Analysis {
    analyse_domains(set, capacity, true)
}

/// Decides whether a set may run, on a host that takes no time itself.
///
/// # Errors
/// In one or more domains the budgets exceed [`LIMIT`], or a deadline may be missed: all such
/// domains, each with the least change that makes the set fit.
pub fn admit(set: &TaskSet) -> Result<Verdict, Unschedulable> {
    admit_within(set, &Capacity::THEORY)
}

/// As [`admit`], on a host with this capacity.
///
/// # Errors
/// As those of [`admit`], with the limits of the capacity.
pub fn admit_within(set: &TaskSet, capacity: &Capacity) -> Result<Verdict, Unschedulable> {
    verdict(set, &analyse_domains(set, capacity, false))
}

fn analyse_domains(set: &TaskSet, capacity: &Capacity, figures: bool) -> Analysis {
    let analyse = |id| analyse_domain(set, id, capacity, figures, step_limit::TESTS).0;
    Analysis { domains: set.domain_ids().map(analyse).collect() }
}

/// Analyses one domain in at most `steps` steps; returns the number taken as well. `figures`:
/// whether response times are computed on which no decision depends.
fn analyse_domain(
    set: &TaskSet,
    domain: DomainId,
    capacity: &Capacity,
    figures: bool,
    steps: u64,
) -> (DomainAnalysis, u64) {
    let Capacity { limit, total, costs, cap } = *capacity;
    let utilization = DomainUtilization::new(set, domain);
    let test = |cap: Option<CapAnalysis>, figures: bool, steps: u64| {
        Hierarchy::new(set, domain, costs, cap, figures, steps).run()
    };
    let deadlines = HashMap::new();
    let by_ends = |ends| Some(CapAnalysis::new(set, domain, cap?, &costs, ends));
    let results = match by_ends(&deadlines).filter(|cap| cap.counts) {
        None => test(by_ends(&deadlines), figures, steps),
        Some(_) => {
            let without = test(None, true, steps);
            match by_ends(&cap::ends(set, &without.tasks)) {
                Some(cap) if cap.counts => test(Some(cap), figures, without.left),
                cap => Results { cap, ..without },
            }
        }
    };
    let Results { tasks, groups, budget_groups, left, no_cycle, tables, cap } = results;
    let host = interference::share(set, domain, &costs, &tables);
    let together = utilization.exact.clone().plus_all(vec![host.clone()]);
    // The larger excess, so that one change removes both.
    let excess = [utilization.exact.above(limit), together.above(total)];
    let excess = excess.into_iter().flatten().map(|excess| excess.ppm()).max();
    let taken = steps - left + tasks.len() as u64;
    let analysis = DomainAnalysis {
        load: utilization.load,
        host: host.ppm(),
        excess,
        capacity: *capacity,
        cap,
        tasks,
        groups,
        budget_groups,
        no_cycle,
        tables,
    };
    (analysis, taken)
}
