//! Table 6 of the RED-Linux paper (section VI-B): a job of 500 us period and 250 us budget sleeps
//! 100 us and records how late it woke, idle and under each load.

mod job;
mod paper;
mod reference;
mod result;
mod row;

pub use paper::{PaperRow, TABLE_6, TABLE_6_MACHINE};
pub use result::{JobClass, LatencyResult, LatencyRow, ReferenceResult};

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::Arc;
use std::time::Duration;

use punctual_diagnostic::Diagnostic;
use punctual_session::results::Machine;

use crate::loads::{Generator, Workload};
use crate::noise::{Noise, NoiseReading};
use crate::require::{Requirement, Violation};

/// Time between releases of the job, ns.
pub const PERIOD: u64 = 500_000;
/// Its budget, ns.
pub const BUDGET: u64 = 250_000;
/// How long it sleeps in each period, ns.
pub const SLEEP: u64 = 100_000;
/// Periods that the paper measured, of each row.
pub const PERIODS: u64 = 100_000;

/// How long other programs are watched before the first row.
const WATCH: Duration = Duration::from_millis(500);

/// What is to be measured.
#[derive(Debug, Clone)]
pub struct LatencyPlan {
    /// The CPU of job and loads.
    pub cpu: u32,
    /// What releases the job; the non-real-time row is always an ordinary job's.
    pub class: JobClass,
    /// Periods of each row, from 1.
    pub periods: u64,
    /// The rows, in order.
    pub workloads: Vec<Workload>,
    /// What makes the loads; `None`: stress-ng where it is installed.
    pub generator: Option<Generator>,
    /// cyclictest measures in turns with us.
    pub reference: bool,
    /// What each row must keep; not the non-real-time one.
    pub requirements: Vec<Requirement>,
    /// Ends it early once true; what was measured is kept.
    pub stop: Arc<AtomicBool>,
}

/// How far a measurement is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LatencyProgress {
    /// The row that is measured.
    pub workload: Workload,
    /// Periods measured so far, of all rows.
    pub done: u64,
    /// Periods to measure, in all.
    pub planned: u64,
}

/// Measures row after row. The thread that calls it must be an ordinary one. The error beside a
/// result is why it ended before its time.
///
/// # Errors
/// Nothing could be measured: a CPU that is not there or in use, missing privileges, no cyclictest.
pub fn measure(
    plan: &LatencyPlan,
    progress: &mut dyn FnMut(LatencyProgress),
) -> Result<(LatencyResult, Option<Diagnostic>), Diagnostic> {
    if plan.reference {
        reference::check()?;
    }
    let quiet = NoiseReading::of(plan.cpu);
    std::thread::sleep(WATCH);
    let mut result =
        LatencyResult::new(plan, Machine::detect(), quiet.until(&NoiseReading::of(plan.cpu)));
    let planned = plan.periods * plan.workloads.len() as u64;
    for (place, &workload) in plan.workloads.iter().enumerate() {
        if plan.stop.load(Relaxed) {
            break;
        }
        let before = plan.periods * place as u64;
        let report =
            &mut |done| progress(LatencyProgress { workload, done: before + done, planned });
        match row::measure(plan, workload, report) {
            Ok(row) => result.rows.push(row),
            Err(error) if result.rows.is_empty() => return Err(error),
            Err(error) => {
                result.judge(&plan.requirements);
                return Ok((result, Some(error)));
            }
        }
    }
    result.interrupted = plan.stop.load(Relaxed);
    result.judge(&plan.requirements);
    Ok((result, None))
}

impl LatencyResult {
    fn new(plan: &LatencyPlan, machine: Machine, before: Noise) -> LatencyResult {
        LatencyResult {
            machine,
            class: plan.class,
            cpu: plan.cpu,
            period_ns: PERIOD,
            budget_ns: BUDGET,
            sleep_ns: SLEEP,
            planned_periods: plan.periods,
            interrupted: false,
            rows: Vec::new(),
            before,
            warnings: before.neighbours().into_iter().chain(before.doubts()).collect(),
            requirements: plan.requirements.clone(),
            violations: Vec::new(),
        }
    }

    /// Judges each row that was measured under a load; what the machine cannot do at all, such as
    /// a console, is not judged.
    fn judge(&mut self, requirements: &[Requirement]) {
        for row in &self.rows {
            let doubts = row.noise.doubts();
            self.warnings
                .extend(doubts.into_iter().map(|doubt| format!("{}: {doubt}", row.workload)));
        }
        let judged = self
            .rows
            .iter()
            .filter(|row| row.workload != Workload::NonRealTime && row.not_possible.is_none());
        let find = |row: &LatencyRow| {
            let figure = |name: &str| row.latency.as_ref()?.figure(name);
            Violation::find(row.workload.name(), figure, requirements)
        };
        self.violations = judged.flat_map(find).collect();
    }

    /// Rows that the requirements were applied to.
    #[must_use]
    pub fn judged(&self) -> usize {
        let judged =
            |row: &&LatencyRow| row.workload != Workload::NonRealTime && row.not_possible.is_none();
        self.rows.iter().filter(judged).count()
    }
}

#[cfg(test)]
mod tests;
