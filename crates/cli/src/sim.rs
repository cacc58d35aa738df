//! `punctual sim`: a task set in virtual time, or a recorded run again.

use std::fs::File;
use std::io::{BufWriter, IsTerminal, Write};
use std::path::Path;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};

use punctual_analysis::{analyse_within, Capacity};
use punctual_host_sim::{horizon, Gantt, Options, Simulation, Stretch, Watcher};
use punctual_report::{table, Collector, Host, HostCosts, Results, Run as About};
use punctual_taskset::{fmt_ns, Body, CostBasis, Costs, Loaded, TaskSet};
use punctual_trace::Period;

use crate::args::{RealHost, Sim};
use crate::output::{print, print_line, INTERRUPTED, MISSED};
use crate::progress::Progress;
use crate::{replay, session, set, traces};
use punctual_diagnostic::Diagnostic;

/// A hyperperiod with more releases than this takes longer than anybody expects who did not ask
/// for it.
const MANY_RELEASES: u64 = 20_000_000;

pub fn run(args: &Sim) -> Result<ExitCode, Diagnostic> {
    match (&args.replay, &args.file) {
        (Some(trace), _) => replay::run(args, trace),
        (None, Some(file)) => simulated(args, file),
        (None, None) => {
            Err(Diagnostic::usage("nothing to simulate", "name a task-set file, or a trace with --replay TRACE"))
        }
    }
}

fn simulated(args: &Sim, file: &Path) -> Result<ExitCode, Diagnostic> {
    let Loaded { set, unrepresented } = set::load(file, &args.instead)?;
    if !args.quiet {
        unrepresented
            .iter()
            .for_each(|line| print_line(&mut std::io::stderr(), &format!("punctual: left out: {line}")));
    }
    of_set(args, &set, false)
}

/// Simulates a set, and prints how it went. `overload`: it does not fit, as is known.
pub fn of_set(args: &Sim, set: &TaskSet, overload: bool) -> Result<ExitCode, Diagnostic> {
    let costs = args.costs.as_deref().map(|text| costs(text, set)).transpose()?.unwrap_or_default();
    let mut promoted = set.clone();
    if !costs.is_free() {
        // As `run` does on a host with these costs.
        analyse_within(set, &Capacity { costs, ..Capacity::THEORY }).promote(&mut promoted);
    }
    let set = &promoted;
    let (end, why) = end(args, set)?;
    let stop = session::stop_on_signals()?;
    // What cannot be simulated is refused before a trace that may be there is emptied.
    Simulation::new(set, Options::default())?;
    let files = args.trace.as_ref().map(|path| traces::open(path, set)).transpose()?;
    let width = terminal_size::terminal_size().map_or(110, |(w, _)| usize::from(w.0));
    let mut gantt = args.gantt.then(|| Gantt::new(set, end, width));
    let asked = Asked { set, end, costs, quiet: args.quiet };
    let (mut results, interrupted) = simulate(&asked, files.unwrap_or_default(), gantt.as_mut(), &stop)?;
    results.overload = overload;
    results.costs = HostCosts::of(&costs);
    if interrupted {
        results.notes.insert(0, format!("stopped before its end at {}", fmt_ns(end)));
    } else {
        results.notes.splice(0..0, why);
    }
    if args.json {
        print(&results.to_json())?;
    } else {
        let drawing = gantt.map_or_else(String::new, |gantt| gantt.draw() + "\n");
        print(&(drawing + &table(&results, width, std::io::stdout().is_terminal())))?;
    }
    Ok(if interrupted {
        ExitCode::from(INTERRUPTED)
    } else if results.exit_code() != 0 {
        ExitCode::from(MISSED)
    } else {
        ExitCode::SUCCESS
    })
}

/// What is to be simulated.
pub struct Asked<'a> {
    pub set: &'a TaskSet,
    /// Until when, ns.
    pub end: u64,
    pub costs: Costs,
    /// No progress.
    pub quiet: bool,
}

/// Simulates a set: the results, and whether it was stopped before its end.
pub fn simulate(
    asked: &Asked<'_>,
    traces: Vec<(u32, File)>,
    gantt: Option<&mut Gantt>,
    stop: &AtomicBool,
) -> Result<(Results, bool), Diagnostic> {
    let Asked { set, end, costs, quiet } = *asked;
    let buffered = |(cpu, file)| (cpu, Box::new(BufWriter::new(file)) as Box<dyn Write + Send>);
    let traces = traces.into_iter().map(buffered).collect();
    let simulation = Simulation::new(set, Options { costs, traces, ..Options::default() })?;
    let about = About::new(Host::Sim, &set.policy.name, &set.cpus);
    let collector = Collector::for_set(about, set).from_the_first();
    let mut watching =
        Watching { collector, gantt, stop, progress: Progress::new(quiet, Some(end)), periods: 0, missed: 0 };
    let outcome = simulation.run(end, &mut watching)?;
    watching.progress.clear();
    let (reached, interrupted) = (outcome.reached, outcome.interrupted);
    let notes = notes(set, &costs, outcome.count.overhead);
    Ok((watching.collector.results(reached, reached, interrupted, notes), interrupted))
}

/// What a reader should know of how it was simulated.
fn notes(set: &TaskSet, costs: &Costs, taken: u64) -> Vec<String> {
    let mut notes = Vec::new();
    let programs = |t: &&punctual_taskset::TaskSpec| matches!(t.body, Body::Command(_) | Body::Pid(_));
    let names: Vec<&str> = set.tasks.iter().filter(programs).map(|t| t.name.as_str()).collect();
    if !names.is_empty() {
        let are = if names.len() == 1 {
            "is simulated as a program that wants"
        } else {
            "are simulated as programs that want"
        };
        notes.push(format!("{} {are} all of every budget: nothing is started", names.join(", ")));
    }
    if !costs.is_free() {
        notes.push(format!("the host's own work: {costs}; {} in all, on no budget", fmt_ns(taken)));
    }
    notes
}

/// Until when, and why, if nobody said so.
fn end(args: &Sim, set: &TaskSet) -> Result<(u64, Option<String>), Diagnostic> {
    if let Some(duration) = set::time(args.duration.as_deref(), "--duration")? {
        if duration == 0 {
            return Err(Diagnostic::usage("--duration is 0", "give a time such as 10s, or leave it away"));
        }
        return Ok((duration, None));
    }
    if let (Some(duration), false) = (set.duration, args.hyperperiod) {
        return Ok((duration, None));
    }
    let horizon = horizon(set)?;
    if horizon.releases > MANY_RELEASES && !args.hyperperiod {
        return Err(Diagnostic::usage(
            format!(
                "the hyperperiod is {}, with some {} million releases in all",
                fmt_ns(horizon.hyperperiod),
                horizon.releases / 1_000_000
            ),
            "say for how long: --duration 10s; or ask for all of it: --hyperperiod",
        ));
    }
    let text = if horizon.end == horizon.hyperperiod {
        "simulated for one hyperperiod: from then on everything repeats".to_owned()
    } else {
        format!("simulated until {}; the hyperperiod is {}", fmt_ns(horizon.end), fmt_ns(horizon.hyperperiod))
    };
    Ok((horizon.end, Some(text)))
}

/// The longest that any of a host's costs can be, ns.
const LONGEST_COST: u64 = 1_000_000_000;

/// `user`, `kernel`, or `release=5us,switch=2us,timer=1us,command=1us`, each of them if wanted.
fn costs(text: &str, set: &TaskSet) -> Result<Costs, Diagnostic> {
    match text {
        "user" => return Ok(set::capacity(RealHost::User, set).costs),
        "kernel" => return Ok(set::capacity(RealHost::Kernel, set).costs),
        _ => {}
    }
    let mut costs = Costs { basis: CostBasis::Given, ..Costs::NONE };
    let wrong = |cause: String| {
        Diagnostic::usage(
            format!("--costs: {cause}"),
            "name a host (user, kernel), or write it such as --costs release=5us,switch=2us,timer=1us,command=1us",
        )
    };
    for part in text.split(',') {
        let (what, time) = part.split_once('=').ok_or_else(|| wrong(format!("\"{part}\" is no name=TIME")))?;
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

struct Watching<'a> {
    collector: Collector,
    gantt: Option<&'a mut Gantt>,
    stop: &'a AtomicBool,
    progress: Progress,
    periods: u64,
    missed: u64,
}

impl Watcher for Watching<'_> {
    fn period(&mut self, period: &Period) {
        self.periods += 1;
        self.missed += u64::from(period.miss);
        self.collector.record(period);
        if let Some(gantt) = &mut self.gantt {
            gantt.period(period);
        }
    }

    fn executed(&mut self, stretch: &Stretch) {
        if let Some(gantt) = &mut self.gantt {
            gantt.executed(stretch);
        }
    }

    fn go_on(&mut self, now: u64) -> bool {
        self.progress.tick(now, &format_args!("{} periods, {} missed", self.periods, self.missed));
        !self.stop.load(Ordering::Relaxed)
    }
}
