//! `punctual sim`: a task set in virtual time, or a recorded run again.

use std::path::Path;
use std::process::ExitCode;

use punctual_diagnostic::Diagnostic;
use punctual_host_sim::{horizon, Gantt, Simulation, Watcher};
use punctual_report::{figures, headline, verdict};
use punctual_session::results::Results;
use punctual_session::{
    AdmittedSet, HostKind, NamedEvent, RunOptions, Session, StartOutcome, TraceFiles,
};
use punctual_taskset::{fmt_ns, CostBasis, Costs, Loaded, TaskSet};

use crate::args::Sim;
use crate::drive::stop_on_signals;
use crate::output::{print_message, view, Caller, Outcome, INTERRUPTED, MISSED};
use crate::progress::Progress;
use crate::{replay, set};

/// A hyperperiod with more releases than this takes longer than is expected without
/// `--hyperperiod`.
const MANY_RELEASES: u64 = 20_000_000;

pub fn run(args: &Sim, caller: Caller) -> ExitCode {
    match (&args.replay, &args.file) {
        (Some(trace), _) => caller.finish(replay::run(args, trace)),
        (None, Some(file)) => caller.finish(simulated(args, file)),
        (None, None) => caller.finish::<()>(Err(Diagnostic::usage(
            "nothing to simulate",
            "name a task-set file, or a trace with --replay TRACE",
        ))),
    }
}

fn simulated(args: &Sim, file: &Path) -> Result<Outcome<Results>, Diagnostic> {
    let Loaded { set, unrepresented } = set::load(file, &args.instead)?;
    if !args.quiet {
        unrepresented.iter().for_each(|line| print_message(&format!("left out: {line}")));
    }
    let Simulated { results, code, drawing } = of_set(args, set)?;
    let view = view(args.wide);
    let drawing = drawing.map_or_else(String::new, |drawing| format!("{drawing}\n"));
    let text = format!("{}\n{drawing}{}", verdict(&results, &view), figures(&results, &view));
    Ok(Outcome {
        verdict: headline(&results),
        ok: results.totals.met,
        code,
        result: results,
        text,
        error: None,
    })
}

/// A set that was simulated.
pub struct Simulated {
    pub results: Results,
    pub code: u8,
    /// `--gantt`.
    drawing: Option<String>,
}

fn of_set(args: &Sim, mut set: TaskSet) -> Result<Simulated, Diagnostic> {
    let costs =
        args.costs.as_deref().map(|text| costs(text, &set)).transpose()?.unwrap_or_default();
    let (end, why) = end(args, &set)?;
    set.duration = Some(end);
    // As `run` does on a host with these costs.
    let admitted = Session::new(set, HostKind::Sim)?.with_costs(costs).unchecked(false);
    let gantt = args.gantt.then(|| Gantt::new(admitted.set(), end, view(false).width));
    simulate(admitted, args.trace.as_deref(), gantt, args.quiet, why)
}

/// `run --host sim`: what was admitted, in virtual time.
pub fn of_admitted(
    mut admitted: AdmittedSet,
    trace: Option<&Path>,
    quiet: bool,
) -> Result<Simulated, Diagnostic> {
    let (end, why) = match admitted.set().duration {
        Some(duration) => (duration, None),
        None => hyperperiod(admitted.set(), false)?,
    };
    admitted.set_duration(end);
    simulate(admitted, trace, None, quiet, why)
}

/// `why`: a note on the end that was chosen.
fn simulate(
    admitted: AdmittedSet,
    trace: Option<&Path>,
    gantt: Option<Gantt>,
    quiet: bool,
    why: Option<String>,
) -> Result<Simulated, Diagnostic> {
    let set = admitted.set();
    let end = set.duration.unwrap_or(0);
    let stop = stop_on_signals()?;
    // What cannot be simulated is refused before a trace that may be there is emptied.
    Simulation::new(set, punctual_host_sim::Options::default())?;
    let traces = trace.map(|path| TraceFiles::create(path, set)).transpose()?;
    let options = RunOptions { stop, traces, intervals: gantt.is_some(), ..RunOptions::default() };
    let StartOutcome::Running(mut running) = admitted.start(options)? else {
        return Err(Diagnostic::usage(
            "the simulator runs every set",
            "report it with the task set",
        ));
    };
    let mut observed = Observed { gantt, periods: 0, missed: 0 };
    let mut progress = Progress::new(quiet, Some(end));
    while running.poll(&mut |event| observed.event(&event))? {
        let Observed { periods, missed, .. } = observed;
        progress.tick(running.now(), &format_args!("{periods} periods, {missed} missed"));
    }
    progress.clear();
    let mut results = running.finish(&mut |event| observed.event(&event))?.results;
    if results.interrupted {
        results.notes.insert(0, format!("stopped before its end at {}", fmt_ns(end)));
    } else {
        results.notes.splice(0..0, why);
    }
    let code = match results.exit_code() {
        _ if results.interrupted => INTERRUPTED,
        0 => 0,
        _ => MISSED,
    };
    Ok(Simulated { results, code, drawing: observed.gantt.map(|gantt| gantt.draw()) })
}

/// What a simulation has reported.
struct Observed {
    gantt: Option<Gantt>,
    periods: u64,
    missed: u64,
}

impl Observed {
    fn event(&mut self, event: &NamedEvent) {
        match event {
            NamedEvent::Period { period, .. } => {
                self.periods += 1;
                self.missed += u64::from(period.miss);
                self.gantt.iter_mut().for_each(|gantt| gantt.period(period));
            }
            NamedEvent::Executed { interval, .. } => {
                self.gantt.iter_mut().for_each(|gantt| gantt.executed(interval))
            }
            NamedEvent::Unreported { .. }
            | NamedEvent::Ended { .. }
            | NamedEvent::PolicyStopped(_)
            | NamedEvent::Warning(_) => {}
        }
    }
}

/// Until when; and why, where neither arguments nor set give a duration.
fn end(args: &Sim, set: &TaskSet) -> Result<(u64, Option<String>), Diagnostic> {
    if let Some(duration) = set::time(args.duration.as_deref(), "--duration")? {
        if duration == 0 {
            return Err(Diagnostic::usage(
                "--duration is 0",
                "give a time such as 10s, or leave it away",
            ));
        }
        return Ok((duration, None));
    }
    if let (Some(duration), false) = (set.duration, args.hyperperiod) {
        return Ok((duration, None));
    }
    hyperperiod(set, args.hyperperiod)
}

/// The hyperperiod, and a note of it; `asked`: however long it is.
fn hyperperiod(set: &TaskSet, asked: bool) -> Result<(u64, Option<String>), Diagnostic> {
    let horizon = horizon(set)?;
    if horizon.releases > MANY_RELEASES && !asked {
        return Err(Diagnostic::usage(
            format!(
                "the hyperperiod is {}, with some {} million releases in all",
                fmt_ns(horizon.hyperperiod),
                horizon.releases / 1_000_000
            ),
            "give a time: --duration 10s; or ask for all of it: --hyperperiod",
        ));
    }
    let text = if horizon.end == horizon.hyperperiod {
        "simulated for one hyperperiod: from then on everything repeats".to_owned()
    } else {
        format!(
            "simulated until {}; the hyperperiod is {}",
            fmt_ns(horizon.end),
            fmt_ns(horizon.hyperperiod)
        )
    };
    Ok((horizon.end, Some(text)))
}

/// The longest that any of a host's costs can be, ns.
const LONGEST_COST: u64 = 1_000_000_000;

/// `user`, `kernel`, or `release=5us,switch=2us,timer=1us,command=1us`, each of them if wanted.
fn costs(text: &str, set: &TaskSet) -> Result<Costs, Diagnostic> {
    match text {
        "user" => return Ok(Session::capacity_of(HostKind::User, set).costs),
        "kernel" => return Ok(Session::capacity_of(HostKind::Kernel, set).costs),
        _ => {}
    }
    let mut costs = Costs { basis: CostBasis::Given, ..Costs::NONE };
    let wrong = |cause: String| {
        Diagnostic::usage(
            format!("--costs: {cause}"),
            "name a host (user, kernel), or write it such as --costs \
             release=5us,switch=2us,timer=1us,command=1us",
        )
    };
    for part in text.split(',') {
        let (what, time) =
            part.split_once('=').ok_or_else(|| wrong(format!("\"{part}\" is no name=TIME")))?;
        let place = match what.trim() {
            "release" => &mut costs.release,
            "switch" => &mut costs.switch,
            "timer" => &mut costs.timer,
            "command" => &mut costs.command,
            other => return Err(wrong(format!("there is no cost \"{other}\""))),
        };
        *place = set::time(Some(time.trim()), "--costs")?.unwrap_or(0);
        if *place > LONGEST_COST {
            return Err(wrong(format!("{} is more than {}", fmt_ns(*place), fmt_ns(LONGEST_COST))));
        }
    }
    Ok(costs)
}
