//! Does it fit: the tests a task set passes before it may start.
//!
//! [`analyse`] judges every task and every group of a set: response-time analysis for fixed
//! priorities, processor demand (QPA) for EDF, tables for time-driven groups, and the supply-bound
//! functions of servers for hierarchies. [`admit`] asks whether the set may run; [`advise`] finds
//! the smallest change that would make it fit. `docs/check.md` tells each test, its source, and
//! where it is exact and where only sufficient.
//!
//! All arithmetic is on integers and exact fractions: a set is refused for one nanosecond too many.
//! The work is bounded: what would take too long is said not to be computed, and not admitted.

mod advise;
mod aligned;
mod analysis;
mod budgets;
mod contender;
mod demand;
mod edf_response;
mod effort;
mod hyperperiod;
mod interference;
mod load;
mod members;
mod reserved_time;
mod response;
mod sleepers;
mod supply;
mod synthesis;
mod text;
mod time_driven;
mod time_table;
mod tree;
mod utilization;
mod verdict;

use punctual_taskset::{Costs, TaskSet};

pub use advise::{advise, Advice};
pub use analysis::{Analysis, BudgetGroupResult, CpuAnalysis, Fit, GroupResult, TaskResult, Test};
pub use hyperperiod::{gcd, hyperperiod, lcm, periods, HyperperiodTooLong};
pub use reserved_time::{OutsideServers, ReservedTime};
pub use text::{report, summary};
pub use time_table::{TableError, TableTask, TimeTable, LARGEST_TABLE, LONGEST_CYCLE, MOST_WINDOWS};
pub use utilization::{Ppm, WHOLE};
pub use verdict::{Change, CpuLoad, Cure, Over, Quantity, Refusal, Verdict, Whose};

/// The most of a CPU that is ever promised, 90 %. The rest keeps the dispatcher, the kernel's own
/// threads and ordinary programs running; it is below the kernel's limit for real time, 95 %.
pub const LIMIT: Ppm = Ppm(900_000);

/// As [`LIMIT`], where the dispatcher is inside the kernel: 95 %. It leaves others a twentieth of each CPU by itself.
pub const KERNEL_LIMIT: Ppm = Ppm(950_000);

/// What a host offers of each of its CPUs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Capacity {
    /// The most that budgets may be of it.
    pub limit: Ppm,
    /// The most that budgets may be of it together with what the host takes for them.
    pub total: Ppm,
    /// What the host takes for its own work, and the least budget that it enforces.
    pub costs: Costs,
}

impl Capacity {
    /// A host that costs nothing, for [`LIMIT`]: pure theory.
    pub const THEORY: Capacity = Capacity { limit: LIMIT, total: Ppm(WHOLE), costs: Costs::NONE };
}

/// Late tasks and groups that a [`Refusal`] names, for each CPU.
const MOST_NAMED: usize = 3;

/// Judges every task and every group of a set, on each of its CPUs.
#[must_use]
pub fn analyse(set: &TaskSet) -> Analysis {
    analyse_within(set, &Capacity::THEORY)
}

/// As [`analyse`], on a host with this capacity: each job takes its budget and what the host takes
/// for it (docs/check.md, "What the host takes").
#[must_use]
pub fn analyse_within(set: &TaskSet, capacity: &Capacity) -> Analysis {
    let cpus = load::cpus(set).into_iter();
    Analysis { cpus: cpus.map(|cpu| analyse_cpu(set, cpu, capacity, true, effort::TESTS).0).collect() }
}

/// One CPU, with so many terms at most, and how many it took. `figures`: whether response times that
/// decide nothing are wanted.
fn analyse_cpu(set: &TaskSet, cpu: u32, capacity: &Capacity, figures: bool, terms: u64) -> (CpuAnalysis, u64) {
    let promised = load::Promised::new(set, cpu);
    let mut walk = tree::Walk::new(set, cpu, capacity.costs, figures, terms);
    walk.run();
    let no_cycle = walk.no_cycle;
    let (tasks, groups, budget_groups, effort) = walk.results();
    let Capacity { limit, total, costs } = *capacity;
    let host = interference::share(set, cpu, &costs);
    let together = promised.utilization.clone().and(vec![host.clone()]);
    // Of both the larger one, so that one change brings it within both.
    let excess = [promised.utilization.above(limit), together.above(total)];
    let excess = excess.into_iter().flatten().map(|excess| excess.ppm()).max();
    let spent = terms - effort.left() + tasks.len() as u64;
    let analysis = CpuAnalysis {
        load: promised.load,
        host: host.ppm(),
        excess,
        capacity: *capacity,
        tasks,
        groups,
        budget_groups,
        no_cycle,
    };
    (analysis, spent)
}

/// Whether a set may run: each CPU keeps what the set promises on it.
///
/// # Errors
/// On one or more CPUs the budgets are more than [`LIMIT`], or somebody may be late: all such CPUs,
/// each with the least change that would make it fit.
pub fn admit(set: &TaskSet) -> Result<Verdict, Refusal> {
    admit_within(set, &Capacity::THEORY)
}

/// As [`admit`], on a host with this capacity.
///
/// # Errors
/// As [`admit`] has them.
pub fn admit_within(set: &TaskSet, capacity: &Capacity) -> Result<Verdict, Refusal> {
    let cpus = load::cpus(set).into_iter();
    let cpus = cpus.map(|cpu| analyse_cpu(set, cpu, capacity, false, effort::TESTS).0).collect();
    refusal(set, &Analysis { cpus })
}

/// As [`admit`], of a set that was analysed before.
///
/// # Errors
/// As [`admit`] has them.
pub fn refusal(set: &TaskSet, analysis: &Analysis) -> Result<Verdict, Refusal> {
    let cpus = analysis.cpus.iter().map(|cpu| cpu.load).collect();
    if analysis.fits() {
        return Ok(Verdict { cpus });
    }
    let over = analysis.cpus.iter().filter(|cpu| !cpu.fits()).map(|cpu| {
        let least = cpu.capacity.costs.least_budget;
        let mut tasks: Vec<&TaskResult> = cpu.tasks.iter().filter(|t| !t.fit.admitted()).collect();
        tasks.sort_by_key(|t| set.tasks[t.task].budget >= least);
        let tasks = tasks.into_iter().map(TaskResult::cause);
        let groups = cpu.groups.iter().filter(|g| !g.fit.admitted()).map(GroupResult::cause);
        let mut late: Vec<String> = groups.chain(tasks).collect();
        let more = late.len().saturating_sub(MOST_NAMED);
        late.truncate(MOST_NAMED);
        Over {
            load: cpu.load,
            host: cpu.host,
            excess: cpu.excess,
            capacity: cpu.capacity,
            late,
            more,
            cure: advise(set, cpu).cure,
        }
    });
    Err(Refusal { cpus, over: over.collect() })
}
