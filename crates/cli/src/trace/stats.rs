//! `punctual trace stats`.

use std::ops::ControlFlow;

use punctual_diagnostic::Diagnostic;
use punctual_taskset::fmt_ns;
use punctual_timeline::Stats;
use serde::Serialize;

use super::{each_moment, exit_code, open, TraceResult};
use crate::args_trace::StatsArgs;
use crate::drive::stop_on_signals;
use crate::output::Outcome;
use crate::progress::Progress;

/// The figures of a trace.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct StatsResult {
    /// The figures.
    stats: TraceStats,
}

/// What a trace has.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct TraceStats {
    /// Records that were read.
    records: u64,
    /// Records that the run itself has lost.
    lost_records: u64,
    /// It was read to its end.
    whole: bool,
    /// By place in the set.
    tasks: Vec<TaskFigures>,
}

/// Figures of one task.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct TaskFigures {
    /// Its name.
    name: String,
    /// Periods that were reported.
    releases: u64,
    /// Deadlines that were missed.
    misses: u64,
    /// Periods in which it overran.
    overruns: u64,
    /// Execution time, ns.
    executed_ns: u64,
    /// How often it was preempted.
    preemptions: u64,
    /// Completions that were reported.
    completed: u64,
    /// Median response time, ns, to three digits; `null` without completions.
    response_p50_ns: Option<u64>,
    /// 99 % of the responses took at most this, ns, to three digits.
    response_p99_ns: Option<u64>,
    /// The worst response time, ns, exact.
    response_worst_ns: Option<u64>,
}

/// Reads a trace, and sums it up.
pub fn run(args: &StatsArgs) -> Result<Outcome<TraceResult>, Diagnostic> {
    let mut timeline = open(&args.file)?;
    let stop = stop_on_signals()?;
    let mut progress = Progress::new(args.quiet, None);
    let (mut stats, reading) = (Stats::default(), (&*stop, &mut progress));
    let (error, interrupted) =
        each_moment(&args.file, &mut timeline, Some("counted"), reading, |moment| {
            stats.add(moment);
            ControlFlow::Continue(())
        });
    progress.clear();
    let names = &timeline.header().tasks;
    let figures = |(place, task): (usize, &punctual_timeline::TaskStats)| TaskFigures {
        name: names.get(place).cloned().unwrap_or_else(|| format!("task {place}")),
        releases: task.releases,
        misses: task.misses,
        overruns: task.overruns,
        executed_ns: task.executed,
        preemptions: task.preemptions,
        completed: task.completed(),
        response_p50_ns: task.response(50),
        response_p99_ns: task.response(99),
        response_worst_ns: (task.completed() > 0).then_some(task.worst_response),
    };
    let tasks: Vec<_> = stats.tasks.iter().enumerate().map(figures).collect();
    let whole = error.is_none() && !interrupted;
    let result = TraceStats { records: timeline.records(), lost_records: stats.lost, whole, tasks };
    let verdict = verdict(&result);
    let text = result.tasks.iter().fold(format!("{verdict}\n"), |text, task| text + &lines(task));
    let code = exit_code(interrupted, error.as_ref(), 0);
    let result = TraceResult::Stats(StatsResult { stats: result });
    Ok(Outcome { verdict, ok: code == 0, code, result, text, error })
}

fn verdict(stats: &TraceStats) -> String {
    let sum = |of: fn(&TaskFigures) -> u64| stats.tasks.iter().map(of).sum::<u64>();
    let (misses, releases) = (sum(|task| task.misses), sum(|task| task.releases));
    let lost = match stats.lost_records {
        0 => String::new(),
        lost => format!("; the run itself lost {lost} records"),
    };
    let until = if stats.whole { "" } else { ", as far as it was read" };
    format!("{misses} of {releases} deadlines missed in {} records{until}{lost}.", stats.records)
}

/// Narrow enough for any terminal.
fn lines(task: &TaskFigures) -> String {
    let TaskFigures { name, releases, misses, overruns, preemptions, .. } = task;
    let response = |ns: Option<u64>| ns.map_or("-".to_owned(), fmt_ns);
    format!(
        "{name}\n  releases {releases}, missed {misses}\n  overruns {overruns}, preemptions \
         {preemptions}\n  executed {}\n  response p50 {}, p99 {}\n  response worst {}\n",
        fmt_ns(task.executed_ns),
        response(task.response_p50_ns),
        response(task.response_p99_ns),
        response(task.response_worst_ns)
    )
}
