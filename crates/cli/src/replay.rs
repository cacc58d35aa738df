//! `punctual sim --replay`: a recorded run again.

use std::fs::File;
use std::io::BufReader;
use std::path::Path;
use std::sync::atomic::Ordering;

use punctual_host_sim::{replay, ReplayError, Replayed};
use punctual_trace::TraceError;
use serde::Serialize;

use crate::args::Sim;
use crate::drive::stop_on_signals;
use crate::output::{Outcome, INTERRUPTED, MISSED};
use crate::progress::Progress;
use punctual_diagnostic::Diagnostic;

/// Feeds the recorded inputs to a dispatcher, which must decide the same.
pub fn run(args: &Sim, path: &Path) -> Result<Outcome<ReplayResult>, Diagnostic> {
    let name = path.display();
    let file = File::open(path).map_err(|e| {
        Diagnostic::usage(
            format!("{name}: {e}"),
            "name a trace that `run --trace` or `sim --trace` wrote",
        )
    })?;
    let stop = stop_on_signals()?;
    let mut progress = Progress::new(args.quiet, None);
    let replayed = replay(BufReader::new(file), &mut |now| {
        progress.tick(now, &"the same so far");
        !stop.load(Ordering::Relaxed)
    });
    progress.clear();
    let replayed = replayed.map_err(|e| {
        let help = match e {
            ReplayError::Trace(TraceError::Io(_) | TraceError::Format(_)) => {
                "name a trace that this version's `run --trace` or `sim --trace` wrote"
            }
            ReplayError::Cut => {
                "replay the trace that it was cut from, or cut it without --from and --task"
            }
            _ => "use the file as it was written, or record the run again",
        };
        Diagnostic::usage(format!("{name}: {e}"), help)
    })?;
    let verdict = verdict(&replayed);
    let result = ReplayResult { replay: Replay::of(&replayed) };
    let text = text(&verdict, &name.to_string(), &replayed);
    let code = match &replayed.difference {
        _ if replayed.interrupted => INTERRUPTED,
        Some(_) => MISSED,
        None => 0,
    };
    Ok(Outcome { verdict, ok: result.replay.same, code, result, text, error: None })
}

/// The result of `punctual sim --replay --json`.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ReplayResult {
    /// The replayed trace.
    replay: Replay,
}

/// A recorded run that was decided again.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct Replay {
    /// The host that recorded it.
    host: String,
    /// Its CPU.
    cpu: u32,
    /// The policy's name.
    policy: String,
    /// The tasks' names.
    tasks: Vec<String>,
    /// The whole set, as the text of a task-set file; empty in traces of older versions.
    set: String,
    /// Inputs that were read.
    inputs: u64,
    /// Decisions that were the same.
    decisions: u64,
    /// The time of the last record, ns on the recording's clock.
    until_ns: u64,
    /// Whether all decisions were the same.
    same: bool,
    /// It was interrupted before the end of the trace.
    interrupted: bool,
    /// The file is cut short at this record, or records are missing there; `null` if it is whole.
    cut_at_record: Option<u64>,
    /// The number of missing records; 0 where the file is cut short.
    lost_records: u64,
    /// The first decision that was different; `null` without one.
    difference: Option<Difference>,
}

/// A decision that was not the recorded one.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct Difference {
    /// The record's number, from 0.
    record: u64,
    /// Its time, ns on the recording's clock.
    at_ns: u64,
    /// The recorded decision.
    recorded: String,
    /// The decision of the replay.
    replayed: String,
}

impl Replay {
    fn of(r: &Replayed) -> Replay {
        Replay {
            host: r.header.host.clone(),
            cpu: r.header.cpu,
            policy: r.header.policy.clone(),
            tasks: r.header.tasks.clone(),
            set: r.header.set.clone(),
            inputs: r.inputs,
            decisions: r.decisions,
            until_ns: r.until,
            same: r.difference.is_none() && !r.interrupted,
            interrupted: r.interrupted,
            cut_at_record: r.cut,
            lost_records: r.lost,
            difference: r.difference.as_ref().map(|d| Difference {
                record: d.number,
                at_ns: d.at,
                recorded: d.recorded.clone(),
                replayed: d.replayed.clone(),
            }),
        }
    }
}

/// In one sentence.
fn verdict(r: &Replayed) -> String {
    let Replayed { inputs, decisions, .. } = r;
    match &r.difference {
        None if r.interrupted => {
            format!(
                "Interrupted: until then {inputs} inputs led to the same {decisions} decisions."
            )
        }
        None => format!("The same: {inputs} inputs led to the same {decisions} decisions."),
        Some(d) => {
            format!(
                "Different at record {}, at {} ns, after {decisions} decisions that were the same.",
                d.number, d.at
            )
        }
    }
}

fn text(verdict: &str, name: &str, r: &Replayed) -> String {
    let header = &r.header;
    let mut text = format!(
        "{verdict}\n{name}: a run on the {} host, CPU {}, policy {}, {}\n",
        header.host,
        header.cpu,
        header.policy,
        match header.tasks.len() {
            1 => "1 task".to_owned(),
            n => format!("{n} tasks"),
        }
    );
    if let Some(d) = &r.difference {
        text.push_str(&format!("  recorded: {}\n  replayed: {}\n", d.recorded, d.replayed));
    } else if let Some(record) = r.cut {
        let what = match r.lost {
            0 => format!("The file is cut short at record {record}"),
            lost => format!("At record {record}, {lost} records are missing"),
        };
        text.push_str(&format!("{what}; what is before was replayed.\n"));
    }
    text
}
