//! `punctual trace cut`.

use std::io::BufWriter;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, Ordering};

use punctual_diagnostic::Diagnostic;
use punctual_taskset::{fmt_ns, ServerSpec, TaskSet};
use punctual_timeline::{cut, start, CutTrace, What};
use punctual_trace::{Cut, Header, Period, TraceError, NEVER};
use serde::Serialize;

use super::{
    create, damaged, each_moment, exit_code, not_written, open, reader, TraceResult, BUFFER,
};
use crate::args_trace::CutArgs;
use crate::drive::stop_on_signals;
use crate::output::Outcome;
use crate::progress::Progress;
use crate::set::time;

/// What was cut.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct CutResult {
    /// The summary.
    cut: CutPart,
}

/// The part of a trace that was written.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct CutPart {
    /// The file that was written.
    output: String,
    /// Where the part begins, ns since the start of the run; 0: with the run.
    from_ns: u64,
    /// Where it ends, ns since the start of the run; `null`: with the run.
    to_ns: Option<u64>,
    /// The tasks that are in it.
    tasks: Vec<String>,
    /// Records that were read.
    records: u64,
    /// Records that were written.
    records_written: u64,
    /// Periods that the part has.
    periods: u64,
    /// Whether `sim --replay` can replay it.
    can_be_replayed: bool,
    /// All that the part needs of the trace was read.
    whole: bool,
    /// It was interrupted before the end of the trace.
    interrupted: bool,
}

pub fn run(args: &CutArgs) -> Result<Outcome<TraceResult>, Diagnostic> {
    let path = &args.file;
    let reader = reader(path)?;
    let header = reader.header().clone();
    let stop = stop_on_signals()?;
    let mut progress = Progress::new(args.quiet, None);
    let part = part(args, &header, &stop, &mut progress)?;
    let file = create(&args.output, &[path])?;
    let out = BufWriter::with_capacity(BUFFER, file);
    let done = cut(reader, &part, out, &mut |records| {
        progress.count(records, &"records read");
        !stop.load(Ordering::Relaxed)
    });
    progress.clear();
    let done = done.map_err(|e| match e {
        TraceError::Io(e) => not_written(&args.output, e),
        other => damaged(path, &other, None),
    })?;
    if done.within == 0 && done.error.is_none() && !done.interrupted {
        if args.output.is_file() {
            let _ = std::fs::remove_file(&args.output);
        }
        let cause = format!("{} has nothing in this time", path.display());
        return Err(Diagnostic::usage(cause, "name a time within its run"));
    }
    let error = done.error.as_ref().map(|e| damaged(path, e, Some("cut")));
    let result = of(args, &header, &part, &done);
    let verdict = verdict(&result);
    let code = exit_code(done.interrupted, error.as_ref(), 0);
    let replayed = if result.can_be_replayed {
        ""
    } else {
        "It cannot be replayed: that needs the run from its start.\n"
    };
    let text = format!("{verdict}\n{replayed}");
    let result = TraceResult::Cut(CutResult { cut: result });
    Ok(Outcome { verdict, ok: code == 0, code, result, text, error })
}

/// The part that is asked for, on the clock of the trace.
fn part(
    args: &CutArgs,
    header: &Header,
    stop: &AtomicBool,
    progress: &mut Progress,
) -> Result<Cut, Diagnostic> {
    for name in args.tasks.iter().chain(args.around.iter().flat_map(|around| around.first())) {
        if !header.tasks.contains(name) {
            let names: Vec<&str> = header.tasks.iter().take(20).map(String::as_str).collect();
            let help = format!("name one of {}", names.join(", "));
            return Err(Diagnostic::usage(format!("the trace has no task {name:?}"), help));
        }
    }
    let start = start(&mut reader(&args.file)?).map_err(|e| damaged(&args.file, &e, None))?;
    let (from, to) = match &args.around {
        Some(around) => around_release(args, around, header, stop, progress)?,
        None => {
            let since = |at: Option<u64>| at.map(|at| start.saturating_add(at));
            let from = since(time(args.from.as_deref(), "--from")?);
            let to = since(time(args.to.as_deref(), "--to")?);
            (from.filter(|&from| from > start).unwrap_or(0), to.unwrap_or(u64::MAX))
        }
    };
    if from >= to {
        return Err(Diagnostic::usage(
            "the part ends before it begins",
            "give a --to that is after --from",
        ));
    }
    // Of a part: no more than it has.
    let whole = header.cut.as_ref().map_or((0, u64::MAX), |cut| (cut.from, cut.to));
    let mut tasks = args.tasks.clone();
    if let Some(cut) = header.cut.as_ref().filter(|cut| !cut.tasks.is_empty()) {
        match tasks.is_empty() {
            true => tasks.clone_from(&cut.tasks),
            false => tasks.retain(|task| cut.tasks.contains(task)),
        }
    }
    Ok(Cut { start, from: from.max(whole.0), to: to.min(whole.1), tasks })
}

/// The window of a release, and what is around it.
fn around_release(
    args: &CutArgs,
    around: &[String],
    header: &Header,
    stop: &AtomicBool,
    progress: &mut Progress,
) -> Result<(u64, u64), Diagnostic> {
    let [name, number] = around else {
        return Err(Diagnostic::usage(
            "--around needs a task and a release",
            "such as --around servo 12",
        ));
    };
    let number: u64 = number.parse().map_err(|_| {
        Diagnostic::usage(format!("{number:?} is no number of a release"), "releases count from 0")
    })?;
    let task = header.tasks.iter().position(|task| task == name);
    let mut timeline = open(&args.file)?;
    let mut found: Option<Period> = None;
    let (error, interrupted) =
        each_moment(&args.file, &mut timeline, None, (stop, progress), |moment| {
            match moment.what {
                What::Period(period)
                    if (Some(period.task as usize), period.number) == (task, number) =>
                {
                    found = Some(period);
                    ControlFlow::Break(())
                }
                _ => ControlFlow::Continue(()),
            }
        });
    if let Some(error) = error {
        return Err(error);
    }
    if interrupted {
        return Err(Diagnostic::usage("interrupted before the release was found", "try again"));
    }
    let period = found.ok_or_else(|| {
        let list = format!("`punctual trace why FILE {name}` lists its misses");
        Diagnostic::usage(format!("the trace has no release {number} of {name}"), list)
    })?;
    let until = match (period.deadline, period.completed) {
        (deadline, NEVER) if deadline == NEVER => period.release,
        (deadline, NEVER) => deadline,
        (NEVER, completed) => completed,
        (deadline, completed) => deadline.max(completed),
    };
    let more = longest_period(header).max(until - period.release);
    Ok((period.release.saturating_sub(more), until.saturating_add(more)))
}

/// The longest period of tasks, groups and budget groups, ns.
fn longest_period(header: &Header) -> u64 {
    let Ok(set) = TaskSet::parse_recorded(&header.set, "the trace's set") else { return 0 };
    let tasks = set.tasks.iter().map(|task| task.period);
    let groups = set.groups.iter().map(|group| match &group.server {
        ServerSpec::Periodic { period, .. } => *period,
        ServerSpec::Windows { cycle, .. } => *cycle,
    });
    let budget_groups = set.budget_groups.iter().map(|group| group.period);
    tasks.chain(groups).chain(budget_groups).max().unwrap_or(0)
}

fn of(args: &CutArgs, header: &Header, part: &Cut, done: &CutTrace) -> CutPart {
    let tasks = if part.tasks.is_empty() { &header.tasks } else { &part.tasks };
    CutPart {
        output: args.output.display().to_string(),
        from_ns: part.from.saturating_sub(part.start),
        to_ns: (part.to != u64::MAX).then(|| part.to.saturating_sub(part.start)),
        tasks: tasks.clone(),
        records: done.read,
        records_written: done.written,
        periods: done.periods,
        can_be_replayed: part.is_from_the_start(),
        whole: done.error.is_none() && !done.interrupted,
        interrupted: done.interrupted,
    }
}

fn verdict(cut: &CutPart) -> String {
    let state = match (cut.interrupted, cut.whole) {
        (true, _) => "Interrupted, and cut until then",
        (false, true) => "Cut",
        (false, false) => "Cut as far as it can be read",
    };
    let to = cut.to_ns.map_or_else(|| "its end".to_owned(), fmt_ns);
    format!(
        "{state}: {} of {} records, {} periods, from {} to {to} of the run, to {}.",
        cut.records_written,
        cut.records,
        cut.periods,
        fmt_ns(cut.from_ns),
        cut.output
    )
}
