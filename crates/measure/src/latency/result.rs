//! The results of a measurement, as `--json` prints them. All of it is integers.

use punctual_session::results::{DispatcherStats, Machine};
use serde::{Deserialize, Serialize};

use crate::distribution::LatencySpread;
use crate::loads::{Generator, Workload};
use crate::noise::Noise;
use crate::require::{Requirement, Violation};

/// What the measured job is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum JobClass {
    /// A task of Punctual's user host, with its budget.
    User,
    /// A SCHED_FIFO thread that releases itself.
    Fifo,
    /// An ordinary thread (SCHED_OTHER) that releases itself.
    Other,
}

/// A table of latencies.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LatencyResult {
    /// What it ran on.
    pub machine: Machine,
    /// What the job was, but in the non-real-time row.
    pub class: JobClass,
    /// The CPU of job and loads.
    pub cpu: u32,
    /// Time between releases, ns.
    pub period_ns: u64,
    /// The job's budget, ns; of the user host alone.
    pub budget_ns: u64,
    /// How long it sleeps in each period, ns.
    pub sleep_ns: u64,
    /// Periods that were asked for, of each row.
    pub planned_periods: u64,
    /// It was ended before its time: the last row is incomplete.
    pub interrupted: bool,
    /// Row by row, in the order in which they were measured.
    pub rows: Vec<LatencyRow>,
    /// What was on the CPU before the first row.
    pub before: Noise,
    /// Reasons not to believe the figures.
    pub warnings: Vec<String>,
    /// What each real-time row had to keep.
    pub requirements: Vec<Requirement>,
    /// What was not kept.
    pub violations: Vec<Violation>,
}

/// One row.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LatencyRow {
    /// What ran beside the job.
    pub workload: Workload,
    /// What the job was.
    pub class: JobClass,
    /// What made the load; `null` where nothing ran.
    pub generator: Option<Generator>,
    /// From the end of the sleep, as it was asked for, to the job's next instruction.
    pub latency: Option<LatencySpread>,
    /// Of that, the time from runnable to chosen by the scheduler (run_delay of
    /// /proc/thread-self/schedstat); `null` where the kernel does not count it.
    pub scheduling_delay: Option<LatencySpread>,
    /// The rest: the timer's lateness, its interrupt, the switch and the return to user space,
    /// which user space cannot separate.
    pub timer_and_switch: Option<LatencySpread>,
    /// From each release to the job's first instruction.
    pub release_latency: Option<LatencySpread>,
    /// The dispatcher's own figures, its wake-up latency among them; `null` without one, or where
    /// a row was measured in several windows, of the last one.
    pub dispatcher: Option<DispatcherStats>,
    /// Measurements that found no room, because this program did not get a CPU for seconds.
    pub lost: u64,
    /// What disturbed the CPU meanwhile. It is busy with the load.
    pub noise: Noise,
    /// cyclictest under the same load, in turns with the job; `null` if that was not asked for.
    pub reference: Option<ReferenceResult>,
    /// Why this machine cannot have the workload; then there are no figures.
    pub not_possible: Option<String>,
    /// What a reader should know beside the figures.
    pub notes: Vec<String>,
}

/// cyclictest beside the job, in alternating windows.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ReferenceResult {
    /// The command that was run in each window.
    pub command: String,
    /// The job's median in each window, ns.
    pub p50_ns: Vec<u64>,
    /// cyclictest's median in each window, ns.
    pub reference_p50_ns: Vec<u64>,
    /// The median, over the windows, of the job's median in terms of cyclictest's, parts per
    /// million.
    pub ratio_ppm: u64,
}

impl ReferenceResult {
    /// Of medians, window by window; `None` without any.
    pub(super) fn of(command: String, windows: &[[u64; 2]]) -> Option<ReferenceResult> {
        let ratio = |[ours, theirs]: &[u64; 2]| {
            u64::try_from(u128::from(*ours) * 1_000_000 / u128::from((*theirs).max(1)))
                .unwrap_or(u64::MAX)
        };
        let mut ratios: Vec<u64> = windows.iter().map(ratio).collect();
        ratios.sort_unstable();
        let ratio_ppm = *ratios.get(ratios.len() / 2)?;
        let [p50_ns, reference_p50_ns] =
            [0, 1].map(|k| windows.iter().map(|window| window[k]).collect());
        Some(ReferenceResult { command, p50_ns, reference_p50_ns, ratio_ppm })
    }
}
