//! What becomes known of a run while it runs, and at its end.

use std::panic::{catch_unwind, AssertUnwindSafe};
use std::sync::Arc;

use punctual_host_user::EngineCost;
use punctual_report::{Collector, DispatcherStats, Results, Run, TaskInfo, TaskKind, Totals};
use punctual_taskset::TaskSpec;
use punctual_trace::Period;

/// What becomes known while a set runs.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Report {
    /// One release of one task, as it turned out; told when the next one comes, those lost as well.
    Period {
        /// The task's name.
        task: Arc<str>,
        /// Its number in the run, release, deadline and execution time, ns on CLOCK_MONOTONIC.
        period: Period,
    },
    /// Releases of a task that nothing more is known of: the thread that keeps the run did not get the CPU for so long
    /// that their reports were dropped.
    Unreported {
        /// The task's name.
        task: Arc<str>,
        /// Number since the previous event of this kind.
        count: u64,
    },
    /// A task has ended.
    Ended {
        /// The task's name.
        task: Arc<str>,
        /// How: `returned`, `panicked: ...`, `exited with 0`, `ended by signal 9`.
        how: String,
    },
    /// Something people should know.
    Warning(String),
}

/// How a run went.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Outcome {
    /// The figures of every task that ever was in it, in the order in which they came.
    pub results: Results,
    /// What could not be given back, or ended; empty when all was. `punctual clean` mends the former.
    pub problems: Vec<String>,
}

/// The program's own listener.
pub(crate) struct Observer(Option<Box<dyn FnMut(Report) + Send>>);

impl Observer {
    pub fn new(f: impl FnMut(Report) + Send + 'static) -> Observer {
        Observer(Some(Box::new(f)))
    }

    /// One that panics is not called again; the panic hook has said so, and the run goes on.
    pub fn tell(&mut self, report: Report) {
        let Some(f) = &mut self.0 else { return };
        if catch_unwind(AssertUnwindSafe(|| f(report))).is_err() {
            self.0 = None;
        }
    }
}

/// One task's figures: tasks come later too, and a collector's are fixed.
pub(crate) fn collector(run: &Run, spec: &TaskSpec, kind: TaskKind) -> Collector {
    let info = TaskInfo { kind, ..TaskInfo::new(&spec.name, spec.period, spec.budget, spec.deadline) };
    Collector::new(run.clone(), vec![info])
}

/// All collectors' figures in one document.
pub(crate) fn merge<'a>(run: &Run, collectors: impl Iterator<Item = &'a Collector>, now: u64) -> Results {
    let mut all = Collector::new(run.clone(), Vec::new()).snapshot();
    for one in collectors.map(Collector::snapshot) {
        all.utilization_ppm += one.utilization_ppm;
        all.tasks.extend(one.tasks);
    }
    all.duration_ns = now.saturating_sub(run.started);
    all.totals = Totals::of(&all.tasks);
    all
}

/// All dispatcher threads together: sums, and the worst of each.
pub(crate) fn dispatcher(costs: &[EngineCost]) -> Option<DispatcherStats> {
    let events: u64 = costs.iter().map(|c| c.reading.events).sum();
    let handling: u64 = costs.iter().map(|c| c.reading.handler_mean * c.reading.events).sum();
    Some(DispatcherStats {
        events,
        handler_mean_ns: handling / events.max(1),
        handler_max_ns: costs.iter().map(|c| c.reading.handler_max).max()?,
        wakeup_latency_p50_ns: costs.iter().map(|c| c.reading.late_p50).max()?,
        wakeup_latency_p99_ns: costs.iter().map(|c| c.reading.late_p99).max()?,
        wakeup_latency_max_ns: costs.iter().map(|c| c.reading.late_max).max()?,
        freezer_waits: costs.iter().map(|c| c.reading.freezer_waits).sum(),
        freezer_wait_max_ns: costs.iter().map(|c| c.reading.freezer_wait_max).max()?,
        cpu_ns: costs.iter().map(|c| c.cpu_time).sum(),
    })
}
