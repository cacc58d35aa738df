//! Files that a page is made of: traces, and the results of `run`, `sim` and `measure --json`.

use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;

use punctual_diagnostic::{Diagnostic, Place};
use punctual_measure::determinism::DeterminismResult;
use punctual_measure::latency::LatencyResult;
use punctual_report::{headline, RunResult, SCHEMA};
use punctual_session::results::{Machine, Results};
use punctual_taskset::{fmt_ns, TaskSet};
use punctual_trace::{Cut, Trace, TraceError, TraceReader};
use serde::Deserialize;
use serde_json::Value;

use crate::measured::{Figures, Measurement};
use crate::recorded::Recorded;
use crate::Page;

/// What `progress` is asked after, records.
const BETWEEN: usize = 65_536;
/// A result has some KB for each task.
const LARGEST_RESULT: u64 = 256 << 20;
/// What a file may be.
const OURS: &str = "name a trace (--trace FILE) or a result (--json of run, sim or measure)";

/// One run: of a trace, of a result, or of a baseline in it.
#[derive(Debug)]
pub struct PageRun {
    /// What to call it: its file, and its host where the file has several.
    pub title: String,
    /// In one sentence.
    pub verdict: String,
    /// The figures.
    pub results: Results,
    /// What a trace has beside them.
    pub(crate) recorded: Option<Recorded>,
    /// The machine is known: results name it, traces do not.
    pub(crate) machine_known: bool,
    /// What of its file is missing or wrong: one sentence; the rest is in the figures.
    pub damage: Option<String>,
}

/// Reads one file. `progress` is called now and then with the records read so far; where it
/// returns `false`, reading ends, and what was read is kept.
///
/// # Errors
/// Nothing in it can be read: it is none of ours, or of another version.
pub fn read(path: &Path, progress: &mut dyn FnMut(u64) -> bool) -> Result<Page, Diagnostic> {
    let name = path.display().to_string();
    let refused = |e: std::io::Error| {
        Diagnostic::usage(format!("it cannot be read: {e}"), OURS).at(place(&name))
    };
    let mut input = BufReader::with_capacity(1 << 20, File::open(path).map_err(refused)?);
    let first = input.fill_buf().map_err(refused)?;
    if first.starts_with(b"{\"format\"") {
        let run = trace(&name, input, progress)?;
        return Ok(Page { runs: vec![run], ..Page::default() });
    }
    let mut text = Vec::new();
    input.take(LARGEST_RESULT).read_to_end(&mut text).map_err(refused)?;
    result(&name, &text)
}

/// A machine of which nothing is known.
pub(crate) fn unknown_machine() -> Machine {
    Machine {
        kernel: None,
        build: None,
        preempt_rt: false,
        preemption: None,
        hz: None,
        distribution: None,
        arch: String::new(),
        cpu_model: None,
        cpu_khz: None,
        cpus: Vec::new(),
        allowed_cpus: Vec::new(),
        isolated_cpus: Vec::new(),
        clock_source: None,
        rt_runtime_us: None,
        rt_period_us: None,
        virtual_machine: None,
    }
}

fn place(name: &str) -> Place {
    Place { name: name.into(), position: None }
}

fn trace(
    name: &str,
    input: BufReader<File>,
    progress: &mut dyn FnMut(u64) -> bool,
) -> Result<PageRun, Diagnostic> {
    let unread = |e: TraceError| {
        let help = "name a trace that this version's `run --trace` or `sim --trace` wrote";
        Diagnostic::usage(e.to_string(), help).at(place(name))
    };
    let mut reader = TraceReader::new(input).map_err(unread)?;
    let header = reader.header().clone();
    let mut records = Vec::new();
    let mut damage = Vec::new();
    for record in reader.by_ref() {
        match record {
            Ok(record) => records.push(record),
            Err(e) => {
                damage.push(format!("{e}; shown is what stands before"));
                break;
            }
        }
        if records.len() % BETWEEN == 0 && !progress(records.len() as u64) {
            damage.push(format!("interrupted after {} records", records.len()));
            break;
        }
    }
    let trace = Trace { header, records };
    let title = match &trace.header.cut {
        None => name.to_owned(),
        Some(cut) => format!("{name} ({})", part(cut)),
    };
    match trace.lost() {
        0 => {}
        lost => {
            damage.push(format!("{lost} records are missing in it: they were dropped while it ran"))
        }
    }
    let set = TaskSet::parse_recorded(&trace.header.set, &format!("{name}: the set in its header"));
    if let Err(e) = &set {
        damage.push(format!("its set cannot be read: {}", e.cause));
    }
    let recorded = Recorded::of(&trace);
    let results = recorded.results(&trace, set.as_ref().ok());
    Ok(PageRun {
        title,
        verdict: headline(&results),
        results,
        recorded: Some(recorded),
        machine_known: false,
        damage: (!damage.is_empty()).then(|| format!("{name}: {}.", damage.join("; "))),
    })
}

/// Which part of its run a trace was cut to.
fn part(cut: &Cut) -> String {
    let since = |at: u64| fmt_ns(at.saturating_sub(cut.start));
    let to = if cut.to == u64::MAX { "its end".to_owned() } else { since(cut.to) };
    format!("{} to {to} of its run", since(cut.from))
}

fn result(name: &str, text: &[u8]) -> Result<Page, Diagnostic> {
    let wrong = |cause: String, help: &str| Diagnostic::usage(cause, help).at(place(name));
    let document: Value =
        serde_json::from_slice(text).map_err(|e| match e.is_eof() && !text.is_empty() {
            true => {
                wrong(format!("a result that is cut short ({e})"), "use the file as it was written")
            }
            false => wrong(format!("neither a trace nor a result ({e})"), OURS),
        })?;
    match document["schema"].as_str() {
        Some(SCHEMA) => {}
        Some(other) if other.starts_with("punctual/") => {
            let help = "make the result and the report with one version";
            return Err(wrong(
                format!("a result of schema {other:?}, this version reads {SCHEMA:?}"),
                help,
            ));
        }
        _ => {
            return Err(wrong(
                "neither a trace nor a result: it has no \"schema\"".to_owned(),
                OURS,
            ))
        }
    }
    let command = document["command"].as_str().unwrap_or_default();
    if document["result"].is_null() {
        let cause = document["error"]["cause"].as_str().unwrap_or("it names no cause");
        return Err(wrong(
            format!("a result without figures: {cause}"),
            "make one of a run that took place",
        ));
    }
    let error = document["error"]["cause"].as_str().map(|cause| format!("{name}: {cause}."));
    let figures = &document["result"];
    let unlike =
        |e| wrong(format!("not what its schema says: {e}"), "use the file as it was written");
    let runs = match command {
        "run" => RunResult::deserialize(figures).map(|r| [vec![r.run], r.baselines].concat()),
        "sim" if figures.get("replay").is_some() => {
            return Err(wrong(
                "the result of a replay has no figures".to_owned(),
                "name the trace itself",
            ));
        }
        "sim" => Results::deserialize(figures).map(|r| vec![r]),
        "measure determinism" | "measure latency" => {
            let figures = match command {
                "measure latency" => LatencyResult::deserialize(figures)
                    .map(|result| Figures::Latency(Box::new(result))),
                _ => DeterminismResult::deserialize(figures)
                    .map(|result| Figures::Determinism(Box::new(result))),
            };
            let measurement = Measurement {
                title: name.to_owned(),
                verdict: document["verdict"].as_str().unwrap_or_default().to_owned(),
                ok: document["ok"] == true,
                damage: error,
                figures: figures.map_err(unlike)?,
            };
            return Ok(Page { measurements: vec![measurement], ..Page::default() });
        }
        other => return Err(wrong(format!("the result of `{}`", other.escape_debug()), OURS)),
    };
    let runs = runs.map_err(unlike)?;
    let several = runs.len() > 1;
    let run = |(number, results): (usize, Results)| PageRun {
        title: if several { format!("{name}: {}", results.title()) } else { name.to_owned() },
        verdict: headline(&results),
        recorded: None,
        machine_known: true,
        damage: error.clone().filter(|_| number == 0),
        results,
    };
    Ok(Page { runs: runs.into_iter().enumerate().map(run).collect(), ..Page::default() })
}
