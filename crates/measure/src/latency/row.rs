//! One row: a load, the job in one window or several, and what disturbed them.

use std::sync::atomic::Ordering::Relaxed;

use punctual_diagnostic::Diagnostic;

use super::job::{JobWindow, Sample, WindowEnd};
use super::result::{JobClass, LatencyRow, ReferenceResult};
use super::{reference, LatencyPlan, PERIOD};
use crate::distribution::Distribution;
use crate::loads::{RunningLoad, Workload};
use crate::noise::{Noise, NoiseReading};

/// Windows of a row beside cyclictest.
const WINDOWS: u64 = 5;
/// A row ends after so many times its length, and this time, although periods are missing, ns.
const LONGEST: u64 = 2;
const SLACK: u64 = 10_000_000_000;

/// The distributions of a row.
#[derive(Default)]
struct Distributions {
    latency: Distribution,
    waited: Distribution,
    rest: Distribution,
    release: Distribution,
}

impl Distributions {
    fn add(&mut self, sample: Sample) {
        self.latency.add(sample.latency);
        self.release.add(sample.release);
        if let Some(waited) = sample.waited {
            self.waited.add(waited);
            self.rest.add(sample.latency - waited);
        }
    }
}

/// Measures a row; `progress` gets the periods so far.
///
/// # Errors
/// The job cannot run. A load that cannot is reported in the row.
pub fn measure(
    plan: &LatencyPlan,
    workload: Workload,
    progress: &mut dyn FnMut(u64),
) -> Result<LatencyRow, Diagnostic> {
    let class = if workload == Workload::NonRealTime { JobClass::Other } else { plan.class };
    let mut row = LatencyRow::empty(workload, class);
    let windows = if plan.reference { WINDOWS } else { 1 };
    let longest = plan.periods.saturating_mul(PERIOD).saturating_mul(LONGEST).saturating_add(SLACK);
    // The reference takes as long again.
    let life = longest.saturating_mul(2);
    let mut load = match RunningLoad::start(workload, plan.cpu, life, plan.generator) {
        Ok(load) => load,
        Err(why) => return Ok(LatencyRow { not_possible: Some(why), ..row }),
    };
    row.generator = load.generator;
    let mut all = Distributions::default();
    let mut medians = Vec::new();
    let mut noise: Option<Noise> = None;
    for number in 0..windows {
        let periods = plan.periods / windows + u64::from(number < plan.periods % windows);
        if periods == 0 || plan.stop.load(Relaxed) {
            break;
        }
        let window = JobWindow {
            cpu: plan.cpu,
            class,
            periods,
            longest: longest / windows,
            stop: plan.stop.clone(),
        };
        let mut of_window = Distribution::new();
        let before = NoiseReading::of(plan.cpu);
        let end = window.run(&mut |sample| {
            of_window.add(sample.latency);
            all.add(sample);
            progress(all.latency.count());
        })?;
        let meanwhile = before.until(&NoiseReading::of(plan.cpu));
        noise = Some(noise.map_or(meanwhile, |noise| noise.join(&meanwhile)));
        row.end_window(end);
        if plan.reference && !plan.stop.load(Relaxed) {
            let theirs = reference::median(plan.cpu, periods, class, &plan.stop)?;
            medians
                .extend(of_window.spread().zip(theirs).map(|(ours, theirs)| [ours.p50_ns, theirs]));
        }
    }
    if let Some(end) = load.early_end() {
        return Ok(without_load(workload, class, &end));
    }
    drop(load);
    let measured = all.latency.count() + row.lost;
    if measured < plan.periods && !plan.stop.load(Relaxed) {
        row.notes
            .push(format!("{measured} of {} periods in the time that they may take", plan.periods));
    }
    row.noise = noise.unwrap_or_default();
    row.latency = all.latency.spread();
    row.scheduling_delay = all.waited.spread();
    row.timer_and_switch = all.rest.spread();
    row.release_latency = all.release.spread();
    row.reference = ReferenceResult::of(
        reference::command_line(plan.cpu, plan.periods / windows, class),
        &medians,
    );
    Ok(row)
}

/// A row whose load ended too early: what was measured without it must not pass for the row, and
/// keeps no requirement.
pub fn without_load(workload: Workload, class: JobClass, end: &str) -> LatencyRow {
    let notes = vec![format!("{end}, so that its figures are left out")];
    LatencyRow { notes, ..LatencyRow::empty(workload, class) }
}

impl LatencyRow {
    fn empty(workload: Workload, class: JobClass) -> LatencyRow {
        LatencyRow {
            workload,
            class,
            generator: None,
            latency: None,
            scheduling_delay: None,
            timer_and_switch: None,
            release_latency: None,
            dispatcher: None,
            lost: 0,
            noise: Noise::default(),
            reference: None,
            not_possible: None,
            notes: Vec::new(),
        }
    }

    fn end_window(&mut self, end: WindowEnd) {
        let WindowEnd { lost, dispatcher, notes } = end;
        self.lost += lost;
        self.dispatcher = dispatcher;
        self.notes.extend(notes);
        self.notes.dedup();
    }
}
