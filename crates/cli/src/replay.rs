//! `punctual sim --replay`: a recorded run again.

use std::fs::File;
use std::io::BufReader;
use std::path::Path;
use std::process::ExitCode;
use std::sync::atomic::Ordering;

use punctual_host_sim::{replay, ReplayError, Replayed};
use punctual_trace::TraceError;

use crate::args::Sim;
use crate::output::{print, INTERRUPTED, MISSED};
use crate::progress::Progress;
use crate::session;
use punctual_diagnostic::Diagnostic;

/// Feeds the recorded inputs to a dispatcher, which must decide the same.
pub fn run(args: &Sim, path: &Path) -> Result<ExitCode, Diagnostic> {
    let name = path.display();
    let file = File::open(path).map_err(|e| {
        Diagnostic::usage(format!("{name}: {e}"), "name a trace that `run --trace` or `sim --trace` wrote")
    })?;
    let stop = session::stop_on_signals()?;
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
            ReplayError::BeginningLost(_) => "record it again, with a larger --trace-records",
            _ => "use the file as it was written, or record the run again",
        };
        Diagnostic::usage(format!("{name}: {e}"), help)
    })?;
    if args.json {
        print(&format!("{:#}\n", document(&replayed)))?;
    } else {
        print(&(in_words(&name.to_string(), &replayed) + "\n"))?;
    }
    Ok(if replayed.interrupted {
        ExitCode::from(INTERRUPTED)
    } else if replayed.difference.is_some() {
        ExitCode::from(MISSED)
    } else {
        ExitCode::SUCCESS
    })
}

fn document(r: &Replayed) -> serde_json::Value {
    let difference = r.difference.as_ref().map(
        |d| serde_json::json!({ "record": d.number, "at_ns": d.at, "recorded": d.recorded, "replayed": d.replayed }),
    );
    serde_json::json!({
        "version": 1,
        "replay": {
            "host": r.header.host,
            "cpu": r.header.cpu,
            "policy": r.header.policy,
            "tasks": r.header.tasks,
            "set": r.header.set,
            "inputs": r.inputs,
            "decisions": r.decisions,
            "until_ns": r.until,
            "same": r.difference.is_none() && !r.interrupted,
            "interrupted": r.interrupted,
            "cut_at_record": r.cut,
            "difference": difference,
        }
    })
}

fn in_words(name: &str, r: &Replayed) -> String {
    let Replayed { header, inputs, decisions, .. } = r;
    let whose = format!(
        "{name}: a run on the {} host, CPU {}, policy {}, {}",
        header.host,
        header.cpu,
        header.policy,
        match header.tasks.len() {
            1 => "1 task".to_owned(),
            n => format!("{n} tasks"),
        }
    );
    let until = r.cut.map_or(String::new(), |record| {
        format!("\nthe file is cut short at record {record}; what stands before was replayed")
    });
    match &r.difference {
        None if r.interrupted => {
            format!("{whose}\ninterrupted; until then {inputs} inputs led to the same {decisions} decisions")
        }
        None => format!("{whose}\nthe same: {inputs} inputs led to the same {decisions} decisions{until}"),
        Some(d) => format!(
            "{whose}\nDIFFERENT at record {}, at {} ns, after {decisions} decisions that were the same\n  recorded: {}\n  \
             replayed: {}",
            d.number, d.at, d.recorded, d.replayed
        ),
    }
}
