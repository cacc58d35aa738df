//! What Punctual costs on a machine: the measurements of the RTAI, RED-Linux and RT-Linux papers,
//! each beside the paper's figures, in time and in cycles.
//!
//! ```text
//! plan ── measure ──> events      RTAI, Tables 2 and 3   gaps: what an event takes from tasks
//!                     decisions   RED-Linux, Table 5     the dispatcher alone, native and BPF
//!                     budgets     RTAI, Fig. 6           received per assigned execution time
//!                     square-wave RT-Linux, section 2    edges each 100 us, idle and under load
//! ```

pub mod budgets;
pub mod decisions;
mod events;
pub mod gaps;
pub mod paper;
mod result;
pub mod sets;
mod square_wave;
mod switch;
#[cfg(test)]
mod tests;

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::Arc;
use std::time::Duration;

use punctual_diagnostic::{Diagnostic, Kind};
use punctual_process::check_privileges;
use punctual_session::results::Machine;

pub use result::*;

use crate::cycles::CycleRate;
use crate::loads::Generator;
use crate::noise::NoiseReading;
use crate::require::{Requirement, Violation};

/// A part of the measurement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OverheadPart {
    /// RTAI's Tables 2 and 3.
    Events,
    /// RED-Linux's Table 5.
    Decisions,
    /// RTAI's Fig. 6.
    Budgets,
    /// RT-Linux's square wave.
    SquareWave,
}

impl OverheadPart {
    /// All, in the order in which they are measured.
    pub const ALL: [OverheadPart; 4] = [
        OverheadPart::Events,
        OverheadPart::Decisions,
        OverheadPart::Budgets,
        OverheadPart::SquareWave,
    ];

    /// Its name on the command line.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            OverheadPart::Events => "events",
            OverheadPart::Decisions => "decisions",
            OverheadPart::Budgets => "budgets",
            OverheadPart::SquareWave => "square-wave",
        }
    }

    /// The part of this name.
    #[must_use]
    pub fn named(name: &str) -> Option<OverheadPart> {
        OverheadPart::ALL.into_iter().find(|part| part.name() == name)
    }
}

/// What `run` measures.
#[derive(Debug, Clone)]
pub struct OverheadPlan {
    /// The CPU of tasks and loads.
    pub cpu: u32,
    /// The parts.
    pub parts: Vec<OverheadPart>,
    /// How long each row of the events measures, ns.
    pub events: u64,
    /// How long each row of the decisions measures, ns.
    pub decisions: u64,
    /// Periods of each task of the budgets.
    pub budget_periods: u64,
    /// Edges of each task of the square wave, in each row.
    pub edges: u64,
    /// What makes the loads; `None`: stress-ng where it is installed.
    pub generator: Option<Generator>,
    /// A command that executes [`gaps::GapPage::spin`]: its arguments are the page's path, the
    /// spinner and until when.
    pub spinner: Vec<String>,
    /// What must be kept, of [`FIGURES`].
    pub requirements: Vec<Requirement>,
    /// Ends it early once true; what was measured is kept.
    pub stop: Arc<AtomicBool>,
}

/// Names of the figures that can be required.
pub const FIGURES: [&str; 5] =
    ["event-average", "event-max", "decision-average", "decision-max", "variation"];

/// How far a measurement is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OverheadProgress {
    /// What is measured, such as `square-wave: two tasks, network`.
    pub what: String,
    /// Time measured so far, ns.
    pub done: u64,
    /// Time to measure, in all, ns.
    pub planned: u64,
}

/// How long other programs are watched before the first part.
const WATCH: Duration = Duration::from_millis(500);

/// A row while it is measured.
struct Window<'a> {
    /// How long it measures, ns.
    length: u64,
    what: String,
    /// Measured before it.
    before: u64,
    planned: u64,
    progress: &'a mut dyn FnMut(&OverheadProgress),
}

impl Window<'_> {
    /// So much of it is measured, ns.
    fn tick(&mut self, done: u64) {
        let done = self.before + done.min(self.length);
        let what = self.what.clone();
        (self.progress)(&OverheadProgress { what, done, planned: self.planned });
    }
}

/// Row by row, of all parts.
enum Step {
    Events(MeasuredHost, MeasuredTasks),
    Native(u32),
    Bpf(u32),
    Budgets(MeasuredHost, bool),
    Switch,
    SquareWave(MeasuredHost, u32, WaveLoad),
}

impl Step {
    fn all(plan: &OverheadPlan) -> Vec<Step> {
        let of = |part: &OverheadPart| -> Vec<Step> {
            match part {
                OverheadPart::Events => {
                    events::ROWS.map(|(host, tasks)| Step::Events(host, tasks)).into()
                }
                OverheadPart::Decisions => {
                    let native = decisions::JOBS.map(Step::Native);
                    native.into_iter().chain(decisions::BPF_JOBS.map(Step::Bpf)).collect()
                }
                OverheadPart::Budgets => [MeasuredHost::User, MeasuredHost::Kernel]
                    .into_iter()
                    .flat_map(|host| [false, true].map(|player| Step::Budgets(host, player)))
                    .collect(),
                OverheadPart::SquareWave => {
                    let rows = square_wave::rows().into_iter();
                    let rows = rows.map(|(host, tasks, load)| Step::SquareWave(host, tasks, load));
                    std::iter::once(Step::Switch).chain(rows).collect()
                }
            }
        };
        plan.parts.iter().flat_map(of).collect()
    }

    /// How long it measures, ns.
    fn length(&self, plan: &OverheadPlan) -> u64 {
        match self {
            Step::Events(..) => plan.events,
            Step::Native(_) | Step::Bpf(_) => plan.decisions,
            Step::Budgets(_, player) => budgets::length(plan.budget_periods, *player),
            Step::Switch => 0,
            Step::SquareWave(..) => plan.edges * paper::SQUARE_WAVE_PERIOD,
        }
    }

    fn describe(&self) -> String {
        match self {
            Step::Events(host, tasks) => format!("events: {}, {}", host.title(), tasks.title()),
            Step::Native(jobs) => format!("decisions: {jobs} jobs"),
            Step::Bpf(jobs) => format!("decisions: {jobs} jobs, as BPF"),
            Step::Budgets(host, player) => {
                format!(
                    "budgets: {}{}",
                    host.title(),
                    if *player { ", with the player" } else { "" }
                )
            }
            Step::Switch => "square-wave: a switch".to_owned(),
            Step::SquareWave(host, tasks, load) => format!(
                "square-wave: {}, {tasks} {}, {}",
                host.title(),
                if *tasks == 1 { "task" } else { "tasks" },
                load.title()
            ),
        }
    }
}

/// Measures part by part. The thread that calls it must be an ordinary one. The error beside a
/// result is why it ended before its time.
///
/// # Errors
/// Nothing could be measured: a CPU that is not there or in use, missing privileges.
pub fn measure(
    plan: &OverheadPlan,
    progress: &mut dyn FnMut(&OverheadProgress),
) -> Result<(OverheadResult, Option<Diagnostic>), Diagnostic> {
    if let Err(why) = check_privileges(&[plan.cpu]) {
        // Decisions need no privileges.
        if why.kind == Kind::Usage || plan.parts != [OverheadPart::Decisions] {
            return Err(why);
        }
    }
    let quiet = NoiseReading::of(plan.cpu);
    std::thread::sleep(WATCH);
    let begun = NoiseReading::of(plan.cpu);
    let machine = Machine::detect();
    let rate = CycleRate::measure(machine.cpu_khz);
    let mut result = OverheadResult {
        machine,
        cpu: plan.cpu,
        cycle_khz: rate.khz,
        interrupted: false,
        events: None,
        decisions: None,
        budgets: None,
        square_wave: None,
        before: quiet.until(&begun),
        noise: Default::default(),
        warnings: Vec::new(),
        requirements: plan.requirements.clone(),
        violations: Vec::new(),
    };
    let steps = Step::all(plan);
    let planned = steps.iter().map(|step| step.length(plan)).sum();
    let (mut before, mut error, mut any) = (0, None, false);
    // Of the budgets with a player.
    let mut clip = None;
    for step in &steps {
        if plan.stop.load(Relaxed) {
            break;
        }
        let length = step.length(plan);
        let mut window = Window { length, what: step.describe(), before, planned, progress };
        window.tick(0);
        match result.add(plan, &rate, step, &mut clip, &mut window) {
            Ok(()) => any = true,
            Err(e) if !any => return Err(e),
            Err(e) => {
                error = Some(e);
                break;
            }
        }
        before += length;
    }
    result.interrupted = plan.stop.load(Relaxed);
    result.noise = begun.until(&NoiseReading::of(plan.cpu));
    result.warnings = result.before.neighbours().into_iter().chain(result.noise.doubts()).collect();
    result.violations = result.judge(&plan.requirements);
    Ok((result, error))
}

/// The player's clip, once it was tried to make it.
type MadeClip = Option<Result<budgets::Clip, String>>;

impl OverheadResult {
    /// Measures one row and adds it to its part.
    fn add(
        &mut self,
        plan: &OverheadPlan,
        rate: &CycleRate,
        step: &Step,
        clip: &mut MadeClip,
        window: &mut Window,
    ) -> Result<(), Diagnostic> {
        let refused = |why: punctual_dispatcher::Refusal| {
            Diagnostic::machine(format!("the dispatcher refused a job: {why}"), "report it")
        };
        match *step {
            Step::Events(host, tasks) => {
                let row = events::row(plan, rate, (host, tasks), window)?;
                let part = self.events.get_or_insert_with(|| EventsResult::new(plan.events));
                part.rows.push(row);
            }
            Step::Native(jobs) => {
                let (row, note) = decisions::native(plan, rate, jobs, window).map_err(refused)?;
                let part = self.decisions.get_or_insert_with(DecisionsResult::new);
                part.rows.extend(row);
                part.notes.extend(note);
                part.notes.dedup();
            }
            Step::Bpf(jobs) => {
                let part = self.decisions.get_or_insert_with(DecisionsResult::new);
                if part.bpf_not_possible.is_none() {
                    match decisions::bpf(plan, rate, jobs, window) {
                        Ok(row) => part.rows.extend(row),
                        Err(why) => part.bpf_not_possible = Some(why.to_string()),
                    }
                }
            }
            Step::Budgets(host, player) => {
                let part =
                    self.budgets.get_or_insert_with(|| BudgetsResult::new(plan.budget_periods));
                let clip = match player {
                    false => None,
                    true => match clip.get_or_insert_with(|| budgets::Clip::make(window.length)) {
                        Ok(clip) => Some(&*clip),
                        Err(why) => {
                            part.player_not_possible = Some(why.clone());
                            return Ok(());
                        }
                    },
                };
                part.rows.push(budgets::row(plan, host, clip, window)?);
            }
            Step::Switch => {
                let part =
                    self.square_wave.get_or_insert_with(|| SquareWaveResult::new(plan.edges));
                part.switch = switch::measure(plan, rate).ok();
            }
            Step::SquareWave(host, tasks, load) => {
                let row = square_wave::row(plan, rate, (host, tasks, load), window)?;
                let part =
                    self.square_wave.get_or_insert_with(|| SquareWaveResult::new(plan.edges));
                part.rows.push(row);
            }
        }
        Ok(())
    }

    /// What was not kept. A requirement that no row has a figure for is not kept either.
    fn judge(&self, requirements: &[Requirement]) -> Vec<Violation> {
        let figures = self.figures();
        let of = |requirement: &Requirement| {
            let rows = figures.iter().filter(|(figure, ..)| *figure == requirement.figure);
            let one = std::slice::from_ref(requirement);
            let found: Vec<_> = rows.collect();
            if found.is_empty() {
                return Violation::find("this machine", |_| None, one);
            }
            found.iter().flat_map(|(_, row, ns)| Violation::find(row, |_| Some(*ns), one)).collect()
        };
        requirements.iter().flat_map(of).collect()
    }

    /// The figures that can be required, with their rows, ns. SCHED_FIFO's are not Punctual's.
    fn figures(&self) -> Vec<(&'static str, String, u64)> {
        let mut figures = Vec::new();
        for row in self.events.iter().flat_map(|part| &part.rows) {
            let name = format!("{} ({})", row.host.title(), row.tasks.title());
            figures.extend(row.average.map(|time| ("event-average", name.clone(), time.ns)));
            figures.extend(row.max.map(|time| ("event-max", name, time.ns)));
        }
        for row in self.decisions.iter().flat_map(|part| &part.rows) {
            let bpf = if row.build == DispatcherBuild::Bpf { " as BPF" } else { "" };
            let name = format!("{} jobs{bpf}", row.jobs);
            figures.push(("decision-average", name.clone(), row.average.ns));
            figures.push(("decision-max", name, row.max.ns));
        }
        for row in self.square_wave.iter().flat_map(|part| &part.rows) {
            let name = format!("{} tasks, {}", row.tasks, row.load.title());
            let ours = row.variation.filter(|_| row.host != MeasuredHost::Fifo);
            figures.extend(ours.map(|time| ("variation", name, time.ns)));
        }
        figures
    }
}
