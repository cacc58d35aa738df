//! `punctual measure determinism`.

use std::sync::atomic::Ordering;

use punctual_diagnostic::Diagnostic;
use punctual_doctor::Machine;
use punctual_measure::determinism::{
    figures_line, figures_table, machine_line, measure, verdict, DeterminismConfig,
    DeterminismResult, DeterminismRun,
};
use punctual_measure::require::Requirement;

use crate::args_measure::Determinism;
use crate::drive::stop_on_signals;
use crate::output::{view, Outcome, INTERRUPTED, MISSED};
use crate::screen::{Form, Screen};
use crate::set::last_cpu;

/// Measures at each heart beat, until one is interrupted or ended.
pub fn run(args: &Determinism) -> Result<Outcome<DeterminismResult>, Diagnostic> {
    let cpu = args.cpu.unwrap_or_else(last_cpu);
    let stop = stop_on_signals()?;
    let mut screen = Screen::new(args.quiet, true);
    let (mut runs, mut error) = (Vec::new(), None);
    for &rate in &args.rate {
        if stop.load(Ordering::Relaxed) || error.is_some() {
            break;
        }
        let config = DeterminismConfig { cpu, rate, work: args.work, duration: args.duration };
        let mut show = |run: &DeterminismRun| {
            screen.show(|form| match form {
                Form::Table => figures_table(run, view(false).width),
                Form::Line => figures_line(run),
            });
        };
        let measured = measure(config, &stop, &mut show);
        screen.clear();
        match measured {
            Ok((run, ended)) => {
                runs.push(run);
                error = ended;
            }
            // What was measured at the heart beats before it is kept.
            Err(e) if !runs.is_empty() => error = Some(e),
            Err(e) => return Err(e),
        }
    }
    let result = DeterminismResult { machine: Machine::detect(), runs };
    Ok(outcome(&args.require, result, error, stop.load(Ordering::Relaxed), cpu))
}

fn outcome(
    required: &[Requirement],
    result: DeterminismResult,
    error: Option<Diagnostic>,
    interrupted: bool,
    cpu: u32,
) -> Outcome<DeterminismResult> {
    let broken = broken(required, &result.runs);
    let ok = broken.is_none() && error.is_none() && !interrupted;
    let code = match &error {
        Some(error) => error.exit_code(),
        None if interrupted => INTERRUPTED,
        None if broken.is_some() => MISSED,
        None => 0,
    };
    let figures = verdict(&result.runs);
    let verdict = match (&error, broken) {
        (Some(error), _) => format!("Ended early: {}. Until then: {figures}", error.cause),
        (None, Some(why)) => format!("Not kept: {why}. {figures}"),
        (None, None) => figures,
    };
    let mut text = format!("{verdict}\n{}", machine_line(&result.machine, cpu));
    for run in &result.runs {
        text += &format!("\n{}", figures_table(run, view(false).width));
    }
    Outcome { verdict, ok, code, result, text, error }
}

/// The first requirement that is not kept, by the task that exceeds it furthest. One that no cycle
/// was measured for is not kept either.
fn broken(required: &[Requirement], runs: &[DeterminismRun]) -> Option<String> {
    required.iter().find_map(|requirement| {
        let figure = |run: &DeterminismRun| {
            let tasks = run.tasks.iter().filter_map(|task| {
                let value =
                    if requirement.figure == "worst" { task.worst_ns } else { task.determinism_ns };
                Some((value?, format!("{} at {} Hz", task.name, run.rate_hz)))
            });
            tasks.max()
        };
        match runs.iter().filter_map(figure).max() {
            Some((value, what)) => requirement.broken_by(value, &what),
            None => Some(format!("{} was not measured", requirement.figure)),
        }
    })
}
