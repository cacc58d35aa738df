//! `punctual trace export`.

use std::io::BufWriter;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;

use punctual_diagnostic::Diagnostic;
use punctual_timeline::{Exporter, Format, Timeline};
use serde::Serialize;

use super::{create, damaged, exit_code, not_written, open, Input, TraceResult, BUFFER};
use crate::args_trace::{Export, FormatArg};
use crate::drive::stop_on_signals;
use crate::output::Outcome;
use crate::progress::Progress;

/// What was exported.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ExportResult {
    /// The summary.
    export: Exported,
}

/// What became of traces that were exported.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct Exported {
    /// The file that was written.
    output: String,
    /// `perfetto` or `chrome`.
    format: &'static str,
    /// One for each trace that was read.
    traces: Vec<ExportedTrace>,
    /// It was interrupted before the end of the traces.
    interrupted: bool,
}

/// One trace that was exported.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct ExportedTrace {
    /// The file.
    file: String,
    /// The CPU.
    cpu: u32,
    /// Records that were read.
    records: u64,
    /// Records that the run itself has lost.
    lost_records: u64,
    /// It was read to its end.
    whole: bool,
}

/// Draws traces of one run.
pub fn run(args: &Export) -> Result<Outcome<TraceResult>, Diagnostic> {
    let mut traces = Vec::new();
    for path in &args.files {
        traces.push((path.as_path(), open(path)?));
    }
    are_of_one_run(&traces)?;
    let (format, name, suffix) = match args.format {
        FormatArg::Perfetto => (Format::Perfetto, "perfetto", ".pftrace"),
        FormatArg::Chrome => (Format::Chrome, "chrome", ".json"),
    };
    let output = args.output.clone().unwrap_or_else(|| {
        let mut name = args.files[0].clone().into_os_string();
        name.push(suffix);
        PathBuf::from(name)
    });
    let stop = stop_on_signals()?;
    let paths: Vec<&Path> = traces.iter().map(|(path, _)| *path).collect();
    let file = create(&output, &paths)?;
    let refused = |e| not_written(&output, e);
    let out = BufWriter::with_capacity(BUFFER, file);
    let mut exporter = Exporter::new(out, format, traces[0].1.header()).map_err(refused)?;
    let mut progress = Progress::new(args.quiet, None);
    let mut result = Exported {
        output: output.display().to_string(),
        format: name,
        traces: vec![],
        interrupted: false,
    };
    let mut error = None;
    for (path, trace) in &mut traces {
        let mut proceeds = |records| {
            progress.count(records, &"records exported");
            !stop.load(Ordering::Relaxed)
        };
        let exported = exporter.trace(trace, &mut proceeds).map_err(refused)?;
        let whole = exported.error.is_none() && !exported.interrupted;
        error = error.or(exported.error.map(|error| damaged(path, &error, Some("exported"))));
        result.traces.push(ExportedTrace {
            file: path.display().to_string(),
            cpu: trace.header().cpu,
            records: exported.records,
            lost_records: exported.lost,
            whole,
        });
        if exported.interrupted {
            result.interrupted = true;
            break;
        }
    }
    exporter.finish().map_err(refused)?;
    progress.clear();
    let verdict = verdict(&result);
    let code = exit_code(result.interrupted, error.as_ref(), 0);
    let text = format!("{verdict}\n");
    let result = TraceResult::Export(ExportResult { export: result });
    Ok(Outcome { verdict, ok: code == 0, code, result, text, error })
}

/// All of them name the same set, and each another CPU.
fn are_of_one_run(traces: &[(&Path, Timeline<Input>)]) -> Result<(), Diagnostic> {
    let (first, others) =
        traces.split_first().map_or((None, &[][..]), |(first, others)| (Some(first), others));
    let Some((first, first_trace)) = first else { return Ok(()) };
    for (at, (path, trace)) in others.iter().enumerate() {
        let (a, b) = (first_trace.header(), trace.header());
        let same = (&a.host, &a.tasks, &a.set) == (&b.host, &b.tasks, &b.set);
        let again =
            a.cpu == b.cpu || others[..at].iter().any(|(_, other)| other.header().cpu == b.cpu);
        let why = match (same, again) {
            (true, false) => continue,
            (false, _) => format!("{} is of another run than {}", path.display(), first.display()),
            (true, true) => format!("{} is of CPU {}, as one before it", path.display(), b.cpu),
        };
        return Err(Diagnostic::usage(
            why,
            "export the .cpuN files of one run together, and others one by one",
        ));
    }
    Ok(())
}

fn verdict(result: &Exported) -> String {
    let records: u64 = result.traces.iter().map(|trace| trace.records).sum();
    let lost: u64 = result.traces.iter().map(|trace| trace.lost_records).sum();
    let state = match (result.interrupted, result.traces.iter().all(|trace| trace.whole)) {
        (true, _) => "Interrupted, and exported until then",
        (false, true) => "Exported",
        (false, false) => "Exported as far as it can be read",
    };
    let lost = match lost {
        0 => String::new(),
        lost => format!("; the run itself lost {lost} more"),
    };
    format!("{state}: {records} records to {}{lost}.", result.output)
}
