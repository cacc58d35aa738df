//! Schedulability analysis: does a task set fit, and what would make it fit.
//!
//! Plain data in, results out: this crate depends on the task set only, and is below the policies,
//! which take their tables and promotion times from it.
//!
//! - [`analyse`] tests each task and each group of a set: response-time analysis for fixed
//!   priorities, processor demand (QPA) for EDF, tables for time-driven groups, and the
//!   supply-bound functions of servers for hierarchies.
//! - [`admit`] decides whether the set may run, [`advise`] searches for the smallest change that
//!   makes it fit.
//! - [`TimeTable::synthesise`] finds the windows of time-driven tasks, [`upper_band_responses`] the
//!   response times behind the promotions of dual priority, [`utilization`] what a set reserves.
//!
//! `docs/check.md` describes each test, its source, and where it is exact and where only
//! sufficient. All arithmetic is on integers and exact fractions: one nanosecond too many is
//! refused. The work is bounded: what would take too many steps is reported as not computed, and
//! not admitted.

mod advice;
mod analysed_task;
mod budget_groups;
mod capacity;
mod change;
mod cpu_utilization;
mod demand;
mod demand_shape;
mod demand_slack;
mod edf_response;
mod equal_priority;
mod group_test;
mod hierarchy;
mod higher_priority;
mod hyperperiod;
mod interference;
mod members;
mod offset_demand;
mod overload;
mod promotion;
mod record;
mod reserved_time;
mod response;
mod results;
mod self_suspension;
mod step_limit;
mod supply;
mod synthesis;
mod time_driven;
mod time_table;
mod utilization;
mod verdict;
mod window_supply;

use punctual_taskset::TaskSet;

use cpu_utilization::CpuUtilization;
use hierarchy::{Hierarchy, Results};

pub use advice::{advise, Advice};
pub use capacity::{Capacity, KERNEL_LIMIT, LIMIT};
pub use change::{Change, ChangeTarget, Help, Quantity};
pub use cpu_utilization::{utilization, utilization_of};
pub use hyperperiod::{gcd, hyperperiod, periods, HyperperiodTooLong};
pub use promotion::upper_band_responses;
pub use reserved_time::{OutsideServers, ReservedTime};
pub use results::{Analysis, BudgetGroupResult, CpuAnalysis, Fit, GroupResult, TaskResult, Test};
pub use time_table::{TableError, TableTask, TimeTable, LARGEST_TABLE, LONGEST_CYCLE, MOST_WINDOWS};
pub use utilization::{Ppm, WHOLE};
pub use verdict::{verdict, CpuLoad, CpuRefusal, Refusal, Verdict};

/// Tests all tasks and groups of a set, on each of its CPUs, for a host that takes no time itself.
#[must_use]
pub fn analyse(set: &TaskSet) -> Analysis {
    analyse_within(set, &Capacity::THEORY)
}

/// As [`analyse`], on a host with this capacity: each job takes its budget and what the host takes
/// for it (docs/check.md, "What the host takes").
#[must_use]
pub fn analyse_within(set: &TaskSet, capacity: &Capacity) -> Analysis {
    analyse_cpus(set, capacity, true)
}

/// Decides whether a set may run, on a host that takes no time itself.
///
/// # Errors
/// On one or more CPUs the budgets exceed [`LIMIT`], or a deadline may be missed: all such CPUs,
/// each with the least change that makes the set fit.
pub fn admit(set: &TaskSet) -> Result<Verdict, Refusal> {
    admit_within(set, &Capacity::THEORY)
}

/// As [`admit`], on a host with this capacity.
///
/// # Errors
/// As those of [`admit`], with the limits of the capacity.
pub fn admit_within(set: &TaskSet, capacity: &Capacity) -> Result<Verdict, Refusal> {
    verdict(set, &analyse_cpus(set, capacity, false))
}

fn analyse_cpus(set: &TaskSet, capacity: &Capacity, figures: bool) -> Analysis {
    let cpus = cpu_utilization::cpus(set).into_iter();
    Analysis { cpus: cpus.map(|cpu| analyse_cpu(set, cpu, capacity, figures, step_limit::TESTS).0).collect() }
}

/// Analyses one CPU in at most `steps` steps; returns the number taken as well. `figures`: whether
/// response times are computed on which no decision depends.
fn analyse_cpu(set: &TaskSet, cpu: u32, capacity: &Capacity, figures: bool, steps: u64) -> (CpuAnalysis, u64) {
    let Capacity { limit, total, costs } = *capacity;
    let utilization = CpuUtilization::new(set, cpu);
    let Results { tasks, groups, budget_groups, left, no_cycle } =
        Hierarchy::new(set, cpu, costs, figures, steps).run();
    let host = interference::share(set, cpu, &costs);
    let together = utilization.exact.clone().plus_all(vec![host.clone()]);
    // The larger excess, so that one change removes both.
    let excess = [utilization.exact.above(limit), together.above(total)];
    let excess = excess.into_iter().flatten().map(|excess| excess.ppm()).max();
    let taken = steps - left + tasks.len() as u64;
    let analysis = CpuAnalysis {
        load: utilization.load,
        host: host.ppm(),
        excess,
        capacity: *capacity,
        tasks,
        groups,
        budget_groups,
        no_cycle,
    };
    (analysis, taken)
}
