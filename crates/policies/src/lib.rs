//! The allocators: who runs, as jobs for the dispatcher.
//!
//! The standard periodic ones are the dispatcher's own reservations (RED-Linux IV-C: close to the
//! mechanism, so that no host needs a round trip); what each adds is which attribute orders its
//! jobs, and which priority they carry. One file per policy, one table of names.

mod dm;
mod edf;
mod fp;
mod gsi;
mod rm;

pub use gsi::{Gsi, Native};
use punctual_dispatcher::{Attribute, For, Overrun, Reservation, TaskId};
use punctual_taskset as taskset;
use taskset::TaskSpec;

/// A standard periodic policy: an ordering of jobs, and the priority that a task's jobs carry.
pub struct Policy {
    /// Its name in task sets.
    pub name: &'static str,
    /// What it is, for people.
    pub title: &'static str,
    /// Where it comes from.
    pub source: &'static str,
    /// The ordering of its scheduling group.
    pub order: &'static [Attribute],
    /// The priority of a task's jobs: larger first.
    pub priority: fn(&TaskSpec) -> i64,
    /// Whether a task that wakes in mid-job is cut to its bandwidth. Under fixed priorities
    /// admission counts the jitter instead (design, "Reservation").
    pub wakeup_rule: bool,
}

/// All policies.
pub static POLICIES: &[&Policy] = &[&rm::POLICY, &dm::POLICY, &edf::POLICY, &fp::POLICY];

/// The policy of that name.
pub fn by_name(name: &str) -> Option<&'static Policy> {
    POLICIES.iter().copied().find(|p| p.name == name)
}

impl Policy {
    /// The reservation that carries a task out under this policy, its first release `start` ns
    /// after `origin` (CLOCK_MONOTONIC ns).
    pub fn reservation(&self, spec: &TaskSpec, task: TaskId, origin: u64) -> Reservation {
        Reservation {
            serves: For::Task(task),
            group: 0,
            budget_group: 0,
            cookie: None,
            start: origin.saturating_add(spec.start),
            period: spec.period,
            budget: spec.budget,
            deadline: spec.deadline,
            priority: (self.priority)(spec),
            overrun: match spec.overrun {
                taskset::Overrun::Carry => Overrun::Carry,
                taskset::Overrun::Skip => Overrun::Skip,
                taskset::Overrun::Background => Overrun::Background,
                taskset::Overrun::Signal => Overrun::Signal,
            },
            wakeup_rule: self.wakeup_rule,
        }
    }

    /// The tasks of a set, most important first, as far as an order that is fixed before they run
    /// can say (for EDF: by relative deadline). Ties stand in file order.
    pub fn static_rank(&self, tasks: &[TaskSpec]) -> Vec<usize> {
        let mut rank: Vec<usize> = (0..tasks.len()).collect();
        rank.sort_by_key(|&i| {
            let t = &tasks[i];
            let key = match self.order.first() {
                Some(Attribute::Finish) => -i128::from(t.deadline),
                _ => i128::from((self.priority)(t)),
            };
            -key
        });
        rank
    }
}

/// Periods and deadlines as priorities: the shorter, the larger.
fn shorter_first(ns: u64) -> i64 {
    -i64::try_from(ns).unwrap_or(i64::MAX)
}
