//! A set in the simulator: what each task met.

use punctual_diagnostic::Diagnostic;
use punctual_host_sim::{Options, Simulation, Watcher};
use punctual_taskset::{Costs, ServerKind, TaskSet};
use punctual_trace::{JobEnd, Period, NEVER};

/// What was seen of one task.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Seen {
    /// Releases whose deadline came.
    pub releases: u64,
    /// Of these, missed. Not the releases of an adaptive server that used up their budgets by the
    /// deadline: they received what admission promises.
    pub misses: u64,
    /// Of these, with an adaptive budget below the task's.
    pub adapted: u64,
    /// The first that was missed, its release, ns.
    pub first_miss: Option<u64>,
    /// The longest from a release to its completion, ns.
    pub worst: u64,
    /// What it executed in all, ns.
    pub received: u64,
}

struct Watch<'s> {
    end: u64,
    set: &'s TaskSet,
    seen: Vec<Seen>,
}

impl Watcher for Watch<'_> {
    fn period(&mut self, period: &Period) {
        let seen = &mut self.seen[period.task as usize];
        seen.received += period.received;
        if period.deadline > self.end {
            return;
        }
        seen.releases += 1;
        let task = &self.set.tasks[period.task as usize];
        let adaptive = task.server == Some(ServerKind::Adaptive);
        seen.adapted += u64::from(adaptive && period.assigned < task.budget);
        if period.miss && !(adaptive && period.end == JobEnd::Exhausted) {
            seen.misses += 1;
            seen.first_miss.get_or_insert(period.release);
        }
        if period.completed != NEVER {
            seen.worst = seen.worst.max(period.completed - period.release);
        }
    }
}

/// Simulates a set until `end`, ns.
///
/// # Errors
/// A policy cannot do what the set asks.
pub fn simulate(set: &TaskSet, end: u64) -> Result<Vec<Seen>, Diagnostic> {
    simulate_with(set, Costs::NONE, end)
}

/// As [`simulate`], on a host that takes time for its own work.
///
/// # Errors
/// As there.
pub fn simulate_with(set: &TaskSet, costs: Costs, end: u64) -> Result<Vec<Seen>, Diagnostic> {
    let mut watch = Watch { end, set, seen: vec![Seen::default(); set.tasks.len()] };
    Simulation::new(set, Options { costs, ..Options::default() })?.run(end, &mut watch)?;
    Ok(watch.seen)
}
