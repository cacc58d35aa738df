//! `punctual trace`: what can be made of a recorded run.

mod cut;
mod diff;
mod export;
mod stats;
pub mod why;

use std::fs::File;
use std::io::BufReader;
use std::ops::ControlFlow;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};

use punctual_diagnostic::Diagnostic;
use punctual_timeline::{Moment, Timeline};
use punctual_trace::{TraceError, TraceReader};
use serde::Serialize;

use crate::args_trace::{TraceArgs, TraceCommand};
use crate::output::{Caller, INTERRUPTED};
use crate::progress::Progress;

/// Bytes that are read or written at a time.
const BUFFER: usize = 1 << 18;

pub fn run(args: &TraceArgs, caller: Caller) -> ExitCode {
    match &args.command {
        TraceCommand::Export(args) => caller.finish(export::run(args)),
        TraceCommand::Stats(args) => caller.finish(stats::run(args)),
        TraceCommand::Diff(args) => caller.finish(diff::run(args)),
        TraceCommand::Cut(args) => caller.finish(cut::run(args)),
        TraceCommand::Why(args) => caller.finish(why::run(args)),
    }
}

/// The name of the subcommand, and whether it prints JSON.
pub fn caller(args: &TraceArgs) -> (&'static str, bool) {
    match &args.command {
        TraceCommand::Export(args) => ("trace export", args.json),
        TraceCommand::Stats(args) => ("trace stats", args.json),
        TraceCommand::Diff(args) => ("trace diff", args.json),
        TraceCommand::Cut(args) => ("trace cut", args.json),
        TraceCommand::Why(args) => ("trace why", args.json),
    }
}

/// The result of `punctual trace --json`.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(untagged)]
pub enum TraceResult {
    /// `trace export`.
    Export(export::ExportResult),
    /// `trace stats`.
    Stats(stats::StatsResult),
    /// `trace diff`.
    Diff(Box<diff::DiffResult>),
    /// `trace cut`.
    Cut(cut::CutResult),
}

type Input = BufReader<File>;

/// Opens a trace and reads its header.
fn open(path: &Path) -> Result<Timeline<Input>, Diagnostic> {
    Timeline::new(file(path)?).map_err(|e| damaged(path, &e, None))
}

/// The same for those who read records.
fn reader(path: &Path) -> Result<TraceReader<Input>, Diagnostic> {
    TraceReader::new(file(path)?).map_err(|e| damaged(path, &e, None))
}

fn file(path: &Path) -> Result<Input, Diagnostic> {
    let file = File::open(path).map_err(|e| {
        let help = "name a trace that `run --trace` or `sim --trace` wrote";
        Diagnostic::usage(format!("{}: {e}", path.display()), help)
    })?;
    Ok(BufReader::with_capacity(BUFFER, file))
}

/// Gives each moment to `add` until it breaks. Returns why the trace was not read to its end
/// (`kept`: what was made of the moments before), and whether the reading was interrupted.
fn each_moment(
    path: &Path,
    timeline: &mut Timeline<Input>,
    kept: Option<&str>,
    (stop, progress): (&AtomicBool, &mut Progress),
    mut add: impl FnMut(&Moment) -> ControlFlow<()>,
) -> (Option<Diagnostic>, bool) {
    let (mut error, mut moments) = (None, 0u64);
    while let Some(moment) = timeline.next() {
        match moment {
            Ok(moment) if add(&moment).is_break() => break,
            Ok(_) => {}
            Err(e) => error = Some(damaged(path, &e, kept)),
        }
        moments += 1;
        if moments % 65_536 == 0 {
            progress.count(timeline.records(), &"records read");
            if stop.load(Ordering::Relaxed) {
                return (error, true);
            }
        }
    }
    (error, false)
}

/// The exit code after a trace was read; `otherwise`: of one that was read to its end.
fn exit_code(interrupted: bool, error: Option<&Diagnostic>, otherwise: u8) -> u8 {
    match error {
        _ if interrupted => INTERRUPTED,
        Some(error) => error.exit_code(),
        None => otherwise,
    }
}

/// Why a trace was not read to its end. `kept`: what was made of the records before.
fn damaged(path: &Path, error: &TraceError, kept: Option<&str>) -> Diagnostic {
    let help = match (error, kept) {
        (_, Some(kept)) => {
            format!("what stands before is {kept}; for all of it, record the run again")
        }
        (TraceError::Io(_) | TraceError::Format(_), None) => {
            "name a trace that this version's `run --trace` or `sim --trace` wrote".to_owned()
        }
        (_, None) => "use the file as it was written, or record the run again".to_owned(),
    };
    Diagnostic::usage(format!("{}: {error}", path.display()), help)
}

/// Creates a file for what is made of these traces, which must not be one of them.
fn create(path: &Path, traces: &[&Path]) -> Result<File, Diagnostic> {
    let name = path.display();
    let identity = |path: &Path| path.metadata().ok().map(|m| (m.dev(), m.ino()));
    let is_a_trace =
        identity(path).is_some_and(|id| traces.iter().any(|trace| identity(trace) == Some(id)));
    if is_a_trace {
        return Err(Diagnostic::usage(
            format!("{name} is the trace itself"),
            "name another file with -o",
        ));
    }
    File::create(path).map_err(|e| {
        Diagnostic::usage(format!("{name}: {e}"), "name a file that can be written with -o")
    })
}

/// What was made of a trace could not be written.
fn not_written(path: &Path, error: std::io::Error) -> Diagnostic {
    let what = format!("{} cannot be written, and is incomplete", path.display());
    Diagnostic::refused(what, error, "free some room, or name another file with -o")
}
