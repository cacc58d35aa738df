//! What the kernel host takes of a CPU.

use punctual_analysis::{Capacity, Ppm, KERNEL_LIMIT, WHOLE};
use punctual_taskset::{CostBasis, Costs, TaskSet};

use crate::{abi, limits};

/// With timers of BPF programs, as counted in a virtual machine (Linux 6.18,
/// `docs/kernel-host.md`).
const BY_TIMER: Costs = Costs {
    release: 4_500,
    switch: 1_500,
    timer: 3_500,
    command: 2_500,
    least_budget: 50_000,
    basis: CostBasis::Counted,
};

/// With a timer process, under PREEMPT_RT (Linux 7.3).
const BY_PROCESS: Costs = Costs {
    release: 14_000,
    switch: 2_500,
    timer: 14_000,
    command: 7_000,
    least_budget: 50_000,
    basis: CostBasis::Counted,
};

/// What a policy outside the kernel adds to each release and each timer: its thread is woken, and
/// answers.
const ALLOCATOR: u64 = 18_000;
/// The same with a timer process.
const ALLOCATOR_BY_PROCESS: u64 = 58_000;

/// What this host offers of each CPU of a set. Its costs are counted and not measured here: what
/// the kernel takes for a timer and a switch of sched_ext shows only once a scheduler is attached.
#[must_use]
pub fn capacity(set: &TaskSet) -> Capacity {
    Capacity { limit: KERNEL_LIMIT, total: Ppm(WHOLE), costs: costs(set), cap: Some(abi::cap()) }
}

fn costs(set: &TaskSet) -> Costs {
    let (costs, more) = match punctual_sys::kernel::is_preempt_rt() {
        true => (BY_PROCESS, ALLOCATOR_BY_PROCESS),
        false => (BY_TIMER, ALLOCATOR),
    };
    // What this host does not accept is refused later, with its cause.
    let asked = limits::parts(set, Costs::NONE, limits::Room::default())
        .is_ok_and(|parts| parts.iter().any(|part| part.asks_policies));
    if asked {
        Costs { release: costs.release + more, timer: costs.timer + more, ..costs }
    } else {
        costs
    }
}
