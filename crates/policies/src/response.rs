//! The worst response time under fixed priorities, for promotion times (Davis and Wellings 1995,
//! after Joseph and Pandya 1986, Audsley et al. 1993).

use punctual_taskset::TaskSpec;

/// A fixed point that is further away counts as none: near full utilization it may be billions of
/// steps. Whoever has none is promoted at once, which is early, never late.
const MOST_STEPS: u32 = 100_000;

/// The worst response time of `task`, ns, where shorter deadlines are more important, ties counting
/// against it; `None` when it is later than the deadline (or too long to find). All tasks have the whole CPU.
pub(crate) fn deadline_monotonic(task: &TaskSpec, all: &[&TaskSpec]) -> Option<u64> {
    let others = || all.iter().filter(|o| !std::ptr::eq(**o, task) && o.deadline <= task.deadline);
    let limit = task.deadline.checked_sub(task.jitter)?;
    let own = task.budget.checked_add(task.blocking)?;
    let mut busy = own;
    for _ in 0..MOST_STEPS {
        if busy > limit {
            return None;
        }
        let mut demand = own;
        for o in others() {
            let releases = busy.checked_add(o.jitter)?.div_ceil(o.period);
            demand = demand.checked_add(releases.checked_mul(o.budget)?)?;
        }
        if demand == busy {
            return Some(busy + task.jitter);
        }
        busy = demand;
    }
    None
}
