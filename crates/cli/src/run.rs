//! `punctual run`.

use std::fs::File;
use std::io::{IsTerminal, Write};
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};

use punctual_analysis::Capacity;
use punctual_host_user::{Awake, Finished, RunOptions, RunOutcome};
use punctual_report::{side_by_side, table, DispatcherStats, Host, HostCosts, Results};
use punctual_taskset::{Loaded, TaskSet};

use crate::args::{HostArg, Instead, RealHost, Run, Sim};
use crate::output::{print_line, report, INTERRUPTED, MISSED};
use crate::session::{self, Session};
use crate::set::{self, Admitted};
use crate::{compare, kernel, sim, traces};
use punctual_diagnostic::Diagnostic;

pub fn run(args: &Run) -> Result<ExitCode, Diagnostic> {
    let Loaded { mut set, unrepresented } = set::read(args)?;
    let host = if args.host == HostArg::Auto { kernel::choose(args, &set) } else { args.host };
    let capacity = match host {
        HostArg::Sim => Capacity::THEORY,
        HostArg::Kernel => set::capacity(RealHost::Kernel, &set),
        HostArg::User | HostArg::Auto => set::capacity(RealHost::User, &set),
    };
    let Admitted { overload, verdict } = set::admit(&mut set, &capacity, args.overload)?;
    if args.file.is_some() && !args.quiet {
        let warn = &mut std::io::stderr();
        unrepresented.iter().for_each(|line| print_line(warn, &format!("punctual: left out: {line}")));
        print_line(warn, &format!("punctual: {verdict}"));
    }
    if host == HostArg::Sim {
        return in_virtual_time(args, &set, overload);
    }
    if host == HostArg::Kernel {
        kernel::check(args, &set)?;
    }
    if !args.compare.is_empty() && set.duration.is_none() {
        return Err(Diagnostic::usage(
            "--compare runs the set several times, and nothing says for how long",
            "add --duration 10s",
        ));
    }
    let trace = args.trace.as_ref().map(|path| traces::open(path, &set)).transpose()?;
    let stop = session::stop_on_signals()?;

    let (mut results, interrupted, failure) = if host == HostArg::Kernel {
        kernel::run(args, &set, overload, trace.unwrap_or_default(), &stop)?
    } else {
        let (results, interrupted) = user(args, &set, overload, trace, &stop)?;
        (results, interrupted, None)
    };
    results.costs = HostCosts::of(&capacity.costs);
    if let Some(failure) = failure {
        return Ok(report_ended(args, &results, failure));
    }
    let mut runs = vec![results];
    for &baseline in &args.compare {
        if !stop.load(Ordering::Relaxed) {
            runs.extend(compare::run(args, &set, baseline, overload, &stop)?);
        }
    }
    let interrupted = interrupted || stop.load(Ordering::Relaxed);
    print(args, &runs);
    Ok(if interrupted {
        ExitCode::from(INTERRUPTED)
    } else if runs[0].exit_code() != 0 {
        ExitCode::from(MISSED)
    } else {
        ExitCode::SUCCESS
    })
}

/// `--host sim`: the same set, admission, table and JSON; nothing is started.
fn in_virtual_time(args: &Run, set: &TaskSet, overload: bool) -> Result<ExitCode, Diagnostic> {
    let real = [(args.hog, "--hog"), (args.awake, "--awake"), (!args.compare.is_empty(), "--compare")];
    if let Some((_, option)) = real.into_iter().find(|(given, _)| *given) {
        return Err(Diagnostic::usage(
            format!("{option} has no meaning in virtual time"),
            format!("leave out {option}, or --host sim"),
        ));
    }
    let sim = Sim {
        file: args.file.clone(),
        // The set has both.
        instead: Instead::default(),
        duration: None,
        hyperperiod: false,
        gantt: false,
        costs: None,
        trace: args.trace.clone(),
        replay: None,
        json: args.json,
        quiet: args.quiet,
    };
    sim::of_set(&sim, set, overload)
}

/// The set on the user host.
fn user(
    args: &Run,
    set: &TaskSet,
    overload: bool,
    trace: Option<Vec<(u32, File)>>,
    stop: &AtomicBool,
) -> Result<(Results, bool), Diagnostic> {
    let awake = args.awake.then(|| Awake::start(&set.cpus)).transpose()?;
    let session = Session::begin(args, set, Host::User, overload)?;
    let options = RunOptions {
        stop,
        duration: set.duration,
        owner: session.owner.clone(),
        records: args.trace_records.next_power_of_two(),
        stdin: session.stdin,
        output: session.output,
    };
    let outcome = punctual_host_user::run(set, &options, &mut |told| session.hear(told), &mut |_| session.tick());
    session.clear();
    let RunOutcome { finished, ran, ended, notes, interrupted } = outcome?;
    let mut results = session.results(ran, ended, interrupted, notes);
    drop(awake);
    results.dispatcher = dispatcher_stats(&finished);
    results.notes.extend(finished.problems.iter().map(|p| format!("not given back: {p} (punctual clean)")));
    if let Some(files) = trace {
        results.notes.extend(traces::write(files, set, &finished)?);
    }
    Ok((results, interrupted))
}

/// All dispatcher threads together.
fn dispatcher_stats(finished: &Finished) -> Option<DispatcherStats> {
    let costs = &finished.readings;
    let events: u64 = costs.iter().map(|c| c.reading.events).sum();
    let most = |get: fn(&punctual_host_user::EngineReading) -> u64| costs.iter().map(|c| get(&c.reading)).max();
    Some(DispatcherStats {
        events,
        handler_mean_ns: costs.iter().map(|c| c.reading.handler_mean * c.reading.events).sum::<u64>() / events.max(1),
        handler_max_ns: most(|r| r.handler_max)?,
        lateness_p50_ns: most(|r| r.late_p50)?,
        lateness_p99_ns: most(|r| r.late_p99)?,
        lateness_max_ns: most(|r| r.late_max)?,
        freezer_waits: costs.iter().map(|c| c.reading.freezer_waits).sum(),
        freezer_wait_max_ns: most(|r| r.freezer_wait_max)?,
        cpu_ns: costs.iter().map(|c| c.cpu_time).sum(),
    })
}

/// A run that was ended: its results until then, and why. One document under --json.
fn report_ended(args: &Run, results: &Results, failure: Diagnostic) -> ExitCode {
    if !args.json {
        print(args, std::slice::from_ref(results));
        return report(failure, false);
    }
    let mut document = serde_json::to_value(results).unwrap_or_default();
    document["error"] = failure.to_json();
    print_line(&mut std::io::stdout(), &format!("{document:#}"));
    ExitCode::from(failure.exit_code())
}

fn print(args: &Run, runs: &[Results]) {
    // Standard output is the command's, unless JSON was asked for.
    let to_error = args.file.is_none() && !args.json;
    let text = if args.json {
        match runs {
            [one] => one.to_json(),
            many => {
                let all: Vec<serde_json::Value> = many.iter().filter_map(|r| serde_json::to_value(r).ok()).collect();
                format!("{:#}\n", serde_json::json!({ "version": 1, "runs": all }))
            }
        }
    } else {
        let color = if to_error { std::io::stderr().is_terminal() } else { std::io::stdout().is_terminal() };
        let width = terminal_size::terminal_size().map_or(110, |(w, _)| usize::from(w.0));
        match runs {
            [one] => table(one, width, color),
            many => format!("{}\n{}", table(&many[0], width, color), side_by_side(many)),
        }
    };
    let written = if to_error {
        std::io::stderr().write_all(text.as_bytes())
    } else {
        std::io::stdout().write_all(text.as_bytes())
    };
    // A reader that has gone (head) is no failure of the run.
    let _ = written;
}
