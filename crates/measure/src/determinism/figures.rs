//! What was measured, as data.

use punctual_doctor::Machine;
use serde::{Deserialize, Serialize};

use super::kinds::{RealTimePolicy, ReleaseKind};

/// The result of `punctual measure determinism --json`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DeterminismResult {
    /// What it ran on.
    pub machine: Machine,
    /// A run for each heart beat, in the order asked for.
    pub runs: Vec<DeterminismRun>,
}

/// A run at one heart beat.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DeterminismRun {
    /// Heart beats a second.
    pub rate_hz: u32,
    /// The CPU on which all tasks ran.
    pub cpu: u32,
    /// How long was measured, ns.
    pub duration_ns: u64,
    /// `Posix-hrt`: timers have the clock's resolution; `NonHR-clk`: that of the tick.
    pub clock_mode: String,
    /// Units of work of each task cycle.
    pub work: u32,
    /// Units that were asked for: more than `work` where those would not have fitted.
    pub work_asked: u32,
    /// What the work of a cycle took when it was tried before the run, ns.
    pub work_ns: u64,
    /// What the executive and its tasks used of their CPU.
    pub cpu_use: CpuUse,
    /// Page faults of the executive and its tasks.
    pub page_faults: u64,
    /// The executive, then its tasks.
    pub tasks: Vec<TaskFigures>,
}

/// A share of the CPU, ppm, each of a quarter of a second.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CpuUse {
    /// The latest.
    pub now_ppm: u64,
    /// Of the whole run.
    pub average_ppm: u64,
    /// The greatest.
    pub max_ppm: u64,
}

/// The figures of the executive or of a task; the times are `null` before its first cycle.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TaskFigures {
    /// `exec`, `task1`, ...
    pub name: String,
    /// What it is released by (docs/measure.md).
    pub kind: ReleaseKind,
    /// The call that releases it.
    pub primitive: String,
    /// Its policy.
    pub policy: RealTimePolicy,
    /// Its real-time priority.
    pub priority: u32,
    /// The time between two releases; of a task that sleeps, the time that it sleeps, ns.
    pub period_ns: u64,
    /// Cycles measured.
    pub cycles: u64,
    /// Cycles that ended after the next release was due, and releases that found the task in the
    /// cycle before.
    pub late: u64,
    /// What the latest cycle left of the period, ns.
    pub spare_ns: u64,
    /// The latest latency: from the release to the first instruction of the cycle, ns.
    pub current_ns: u64,
    /// The least latency, ns.
    pub best_ns: Option<u64>,
    /// The greatest latency, ns.
    pub worst_ns: Option<u64>,
    /// The worst less the best, ns.
    pub determinism_ns: Option<u64>,
}

impl DeterminismRun {
    /// The task whose worst latency is furthest from its best.
    #[must_use]
    pub fn least_deterministic(&self) -> Option<&TaskFigures> {
        self.tasks
            .iter()
            .filter(|task| task.determinism_ns.is_some())
            .max_by_key(|task| task.determinism_ns)
    }
}
