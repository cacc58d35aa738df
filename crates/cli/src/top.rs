//! `punctual top`: a running set, seen and changed from another terminal.

use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;
use punctual_diagnostic::Diagnostic;
use punctual_session::results::Results;
use punctual_session::RunningSet;
use punctual_taskset::{parse_duration, TaskSet};
use punctual_top::client::Client;
use punctual_top::protocol::{Query, Reply, Snapshot, TaskPlace, VERSION};
use punctual_top::server::Server;

use crate::drive::stop_on_signals;
use crate::live::LiveSet;
use crate::output::{Outcome, INTERRUPTED, MISSED};
use crate::screen::Screen;

/// Least time between two readings of the figures: a set answers some 40 times a second.
const LEAST_INTERVAL_NS: u64 = 100_000_000;

#[derive(Args)]
pub struct Top {
    /// The process that runs the set [default: the only one]
    pub pid: Option<u32>,
    /// Time between two readings of the figures, at least 100ms
    #[arg(long, value_name = "TIME", default_value = "500ms")]
    pub interval: String,
    /// Print the figures once, as text, and exit
    #[arg(long)]
    pub once: bool,
    /// Print the figures once, as JSON (docs/results.md), and exit
    #[arg(long, conflicts_with = "once")]
    pub json: bool,
}

/// Where running sets are found.
pub fn directory() -> PathBuf {
    punctual_process::state_directory().join("top")
}

pub fn run(args: &Top) -> Result<Outcome<Option<Results>>, Diagnostic> {
    let every = parse_duration(&args.interval)
        .ok()
        .filter(|&every| every >= LEAST_INTERVAL_NS)
        .ok_or_else(|| {
            Diagnostic::usage(
                format!("--interval {} is no time of at least 100ms", args.interval),
                "such as 500ms or 2s",
            )
        })?;
    let on_terminal = std::io::stdout().is_terminal() && std::io::stdin().is_terminal();
    if !(args.once || args.json || on_terminal) {
        let cause = "standard input and output are no terminal";
        return Err(Diagnostic::usage(cause, "use --once for text, or --json"));
    }
    let mut client = Client::connect(&directory(), args.pid)?;
    if args.once || args.json {
        let snapshot = client
            .snapshot()?
            .ok_or_else(|| Diagnostic::usage("the run has ended", "start it again"))?;
        return Ok(printed(snapshot));
    }
    let stop = stop_on_signals()?;
    let color = anstream::stdout().current_choice() != anstream::ColorChoice::Never;
    let ended = punctual_top::show(&mut client, Duration::from_nanos(every), color, &stop)?;
    let verdict = if ended { "The run has ended.".to_owned() } else { String::new() };
    let text = if ended { format!("{verdict}\n") } else { String::new() };
    let code = if stop.load(std::sync::atomic::Ordering::Relaxed) { INTERRUPTED } else { 0 };
    Ok(Outcome { verdict, ok: true, code, result: None, text, error: None })
}

/// One reading, and the exit code that the run would have now.
fn printed(snapshot: Snapshot) -> Outcome<Option<Results>> {
    let results = snapshot.results.clone();
    let met = results.totals.met;
    Outcome {
        verdict: punctual_report::headline(&results),
        ok: met,
        code: if met { 0 } else { MISSED },
        result: Some(results),
        text: punctual_top::text(snapshot),
        error: None,
    }
}

/// Answers the observers of a run.
pub struct Observed {
    server: Server,
    what: String,
}

impl Observed {
    /// `None`: this run cannot be observed (no state directory), which is no reason not to run it.
    pub fn new(file: Option<&Path>, set: &TaskSet) -> Option<Observed> {
        let first = || set.tasks.first().map_or_else(String::new, |task| task.name.clone());
        let what = file.map_or_else(first, |file| file.display().to_string());
        let server = Server::listen(&directory()).ok()?;
        Some(Observed { server, what })
    }

    /// Answers what was asked since the last call; a reload is reported on the screen, too.
    pub fn serve(&mut self, running: &mut RunningSet, live: &mut LiveSet, screen: &mut Screen) {
        let Observed { server, what } = self;
        server.serve(|request| match request {
            Query::Snapshot => Reply::Snapshot(Box::new(snapshot(what, &live.set, running))),
            Query::ChangeBudget { place, budget_ns } => live
                .change_budget(running, place, budget_ns)
                .map_or_else(Reply::from, |()| Reply::Changed),
            Query::Reload => {
                let reloaded = live.reload(running);
                screen.warn(&live.report(&reloaded));
                reloaded.map_or_else(Reply::from, Reply::Reloaded)
            }
        });
    }
}

fn snapshot(what: &str, set: &TaskSet, running: &RunningSet) -> Snapshot {
    let alive: Vec<usize> = running.alive().collect();
    let places = set.tasks.iter().enumerate().map(|(place, task)| TaskPlace {
        group: task.group.map(|group| set.groups[group].name.clone()),
        cpus: set.domains[task.domain.0 as usize].cpus.clone(),
        alive: alive.binary_search(&place).is_ok(),
    });
    Snapshot {
        version: VERSION,
        pid: std::process::id(),
        what: what.to_owned(),
        results: running.results(),
        places: places.collect(),
    }
}
