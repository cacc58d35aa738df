//! What admission promises, compared with the simulator.

use punctual_analysis::{analyse, Fit};
use punctual_taskset::{TaskSet, TaskSpec};

use crate::{simulate, Seen};

/// Simulates a set until `end`, ns, and calls `each` for the tasks that admission accepts.
///
/// # Panics
/// Such a task misses a deadline or exceeds its bound, or a policy refuses an admitted set.
pub fn check_admitted(seed: u64, set: &TaskSet, end: u64, mut each: impl FnMut(&TaskSpec, &Seen)) {
    let cpu = analyse(set).domains.remove(0);
    if !cpu.tasks.iter().any(|t| t.fit == Fit::Fits) {
        return;
    }
    let seen = match simulate(set, end) {
        Ok(seen) => seen,
        // Policies refuse some sets themselves.
        Err(e) => {
            assert!(!cpu.schedulable(), "seed {seed}: admitted, but {e}: {set:#?}");
            return;
        }
    };
    for (t, seen) in cpu.tasks.iter().zip(&seen).filter(|(t, _)| t.fit == Fit::Fits) {
        let which = || format!("seed {seed}: {}: {seen:?} {set:#?} {cpu:#?}", t.name);
        assert_eq!(seen.misses, 0, "{}", which());
        // Requests at a server may queue: their responses have no bound.
        let task = &set.tasks[t.task];
        let unbounded = task.server.is_some() || task.weight.is_some();
        assert!(t.response.map_or(unbounded, |bound| seen.worst <= bound), "{}", which());
        each(&set.tasks[t.task], seen);
    }
}
