//! `punctual run`.

use std::fs::File;
use std::sync::atomic::{AtomicBool, Ordering};

use punctual_analysis::Capacity;
use punctual_host_user::{Awake, Finished, RunOptions, RunOutcome};
use punctual_report::{
    figures, headline, side_by_side, table, verdicts, DispatcherStats, Host, HostCosts, Results, RunResult, View,
};
use punctual_taskset::{Loaded, TaskSet};
use punctual_trace::TaskEnd;

use crate::args::{HostArg, OutputArg, RealHost, Run, Sim};
use crate::output::{print_line, view, Caller, Outcome, INTERRUPTED, MISSED, PUNCTUAL_FAILED, TIMED_OUT};
use crate::session::{self, Session};
use crate::set::{self, Admitted};
use crate::{compare, kernel, sim, traces};
use punctual_diagnostic::Diagnostic;

/// A run on one host.
pub struct Ran {
    pub results: Results,
    pub interrupted: bool,
    /// How the first task ended; `None` if the run ended before it.
    pub end: Option<TaskEnd>,
    /// Why the run was ended, if something failed.
    pub failure: Option<Diagnostic>,
}

pub fn run(args: &Run) -> Result<Outcome<RunResult>, Diagnostic> {
    if args.json && args.output == Some(OutputArg::Inherit) {
        return Err(Diagnostic::usage(
            "--output inherit: with --json standard output has the results alone",
            "use --output stderr or --output null",
        ));
    }
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

    let mut ran = if host == HostArg::Kernel {
        kernel::run(args, &set, overload, trace.unwrap_or_default(), &stop)?
    } else {
        user(args, &set, overload, trace, &stop)?
    };
    ran.results.costs = HostCosts::of(&capacity.costs);
    let mut baselines = Vec::new();
    if ran.failure.is_none() {
        for &baseline in &args.compare {
            if !stop.load(Ordering::Relaxed) {
                baselines.extend(compare::run(args, &set, baseline, overload, &stop)?);
            }
        }
    }
    ran.interrupted |= stop.load(Ordering::Relaxed);
    let code = exit_code(args, &ran);
    Ok(outcome(args, ran.results, baselines, code, ran.failure))
}

/// The exit code of a run: with `-- COMMAND` that of the command.
fn exit_code(args: &Run, ran: &Ran) -> u8 {
    let missed = if ran.results.exit_code() == 0 { 0 } else { MISSED };
    match &ran.failure {
        Some(failure) => Caller::of_run(args).code(failure),
        None if ran.interrupted => INTERRUPTED,
        None if args.wraps() => command_code(ran.end, if args.strict { missed } else { 0 }),
        None => missed,
    }
}

/// The exit code of a command that ended so, if at all; and of one that did well if deadlines were `missed`.
fn command_code(end: Option<TaskEnd>, missed: u8) -> u8 {
    match end {
        Some(TaskEnd::Exited(0)) => missed,
        // Exit codes are 0 to 255, signals 1 to 64.
        Some(TaskEnd::Exited(code)) => u8::try_from(code).unwrap_or(u8::MAX),
        Some(TaskEnd::Signalled(signal)) => u8::try_from(128 + signal).unwrap_or(u8::MAX),
        Some(TaskEnd::Returned | TaskEnd::Gone | TaskEnd::Refused) => PUNCTUAL_FAILED,
        None if missed != 0 => missed,
        None => TIMED_OUT,
    }
}

/// The results, with those under the kernel's own policies; `error`: why the run was ended before its time.
fn outcome(
    args: &Run,
    results: Results,
    baselines: Vec<Results>,
    code: u8,
    error: Option<Diagnostic>,
) -> Outcome<RunResult> {
    let (headline, view) = (headline(&results), view(args.wide));
    let verdict = match &error {
        Some(error) => format!("Ended early: {}. Until then: {headline}", error.cause.trim_end_matches('.')),
        None => headline,
    };
    let ok = results.totals.met && error.is_none();
    let result = RunResult { run: results, baselines };
    let text = match &error {
        Some(_) => format!("{verdict}\n\n{}", figures(&result.run, &view)),
        None => text(&result, &view),
    };
    Outcome { verdict, ok, code, result, text, error }
}

fn text(result: &RunResult, view: &View) -> String {
    if result.baselines.is_empty() {
        return table(&result.run, view);
    }
    let runs: Vec<Results> = [&result.run].into_iter().chain(&result.baselines).cloned().collect();
    format!("{}\n{}\n{}", verdicts(&runs, view), figures(&result.run, view), side_by_side(&runs, view))
}

/// `--host sim`: the same set, admission, table and JSON; nothing is started.
fn in_virtual_time(args: &Run, set: &TaskSet, overload: bool) -> Result<Outcome<RunResult>, Diagnostic> {
    let real = [(args.load, "--load"), (args.no_idle, "--no-idle"), (!args.compare.is_empty(), "--compare")];
    if let Some((_, option)) = real.into_iter().find(|(given, _)| *given) {
        return Err(Diagnostic::usage(
            format!("{option} has no meaning in virtual time"),
            format!("leave out {option}, or --host sim"),
        ));
    }
    let sim = Sim {
        file: args.file.clone(),
        // The set has it.
        duration: None,
        hyperperiod: false,
        gantt: false,
        costs: None,
        trace: args.trace.clone(),
        replay: None,
        json: args.json,
        wide: args.wide,
        quiet: args.quiet,
    };
    let simulated = sim::of_set(&sim, set, overload)?;
    Ok(outcome(args, simulated.results, Vec::new(), simulated.code, None))
}

/// The set on the user host.
fn user(
    args: &Run,
    set: &TaskSet,
    overload: bool,
    trace: Option<Vec<(u32, File)>>,
    stop: &AtomicBool,
) -> Result<Ran, Diagnostic> {
    let awake = args.no_idle.then(|| Awake::start(&set.cpus)).transpose()?;
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
    let end = session.end();
    let mut results = session.results(ran, ended, interrupted, notes);
    drop(awake);
    results.dispatcher = dispatcher_stats(&finished);
    results.notes.extend(finished.problems.iter().map(|p| format!("not restored: {p} (punctual clean)")));
    if let Some(files) = trace {
        results.notes.extend(traces::write(files, set, &finished)?);
    }
    Ok(Ran { results, interrupted, end, failure: None })
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
        wakeup_latency_p50_ns: most(|r| r.late_p50)?,
        wakeup_latency_p99_ns: most(|r| r.late_p99)?,
        wakeup_latency_max_ns: most(|r| r.late_max)?,
        freezer_waits: costs.iter().map(|c| c.reading.freezer_waits).sum(),
        freezer_wait_max_ns: most(|r| r.freezer_wait_max)?,
        cpu_ns: costs.iter().map(|c| c.cpu_time).sum(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_exits_as_it_would_alone_unless_it_did_well_and_deadlines_were_missed() {
        let all = [
            (Some(TaskEnd::Exited(0)), 0, 1),
            (Some(TaskEnd::Exited(3)), 3, 3),
            (Some(TaskEnd::Exited(255)), 255, 255),
            (Some(TaskEnd::Signalled(libc::SIGKILL)), 137, 137),
            (Some(TaskEnd::Refused), 125, 125),
            (None, 124, 1),
        ];
        for (end, code, missed) in all {
            assert_eq!((command_code(end, 0), command_code(end, MISSED)), (code, missed), "{end:?}");
        }
    }
}
