//! What the user host takes of a CPU.

use punctual_analysis::{Capacity, JobCap, Ppm, LIMIT};
use punctual_taskset::{CostBasis, Costs, TaskSet};

use crate::dispatch::UNPARKED;

/// A budget below so many granularities is not enforced to a tenth of it: under one granularity
/// counts as none.
const LEAST: u64 = 10;

/// What the system calls of one event take, and the timers' granularity, ns, as counted in a
/// virtual machine (Linux 6.18, `docs/vm.md`). They are not measured on the machine at hand: a set
/// would be admitted at one time and refused at another.
const COUNTED: (u64, u64) = (11_800, 6_000);

/// The kernel's limit for real time (sched_rt_runtime_us), and what its fair server leaves beside:
/// jobs and their dispatcher beyond it are stopped for 50 ms at a time.
const REAL_TIME: Ppm = Ppm(950_000);

/// The same by its time. No kernel is asked, so that a set is admitted on all machines or on none.
const CAP: JobCap = JobCap { window: 1_000_000_000, share: 950_000_000 };

/// What this host offers of each CPU of a set, with what its dispatcher takes at most.
#[must_use]
pub fn capacity(set: &TaskSet) -> Capacity {
    let of = |domain| costs_of(set.tasks.iter().filter(|t| t.domain == domain).count() as u64);
    let costs = set.domain_ids().map(of).reduce(Costs::max).unwrap_or(Costs::NONE);
    Capacity { limit: LIMIT, total: REAL_TIME, costs, cap: Some(CAP) }
}

/// The costs that follow from what the system calls of one event take, and from how many tasks
/// there are. The engine's own computation adds a quarter, and a twelfth for each task more than
/// are unparked: at an event the engine reads all tasks that executed lately, which are many on a
/// CPU that is behind. The end of a budget takes up to two events (`Engine::next`); a quarter of an
/// event is the switch between two jobs, with the gate of each.
fn costs_of(tasks: u64) -> Costs {
    let (event, granularity) = COUNTED;
    let more = tasks.saturating_sub(UNPARKED as u64);
    let whole = event + event / 4 + event / 12 * more;
    Costs {
        release: whole,
        switch: event / 4,
        timer: 2 * whole + event / 4,
        command: whole,
        least_budget: LEAST * granularity,
        basis: CostBasis::Counted,
    }
}
