//! `punctual run`.

use std::sync::atomic::Ordering;

use punctual_diagnostic::{Diagnostic, Kind};
use punctual_process::Output;
use punctual_report::analysis::summary;
use punctual_report::{figures, headline, side_by_side, table, verdicts, RunResult, View};
use punctual_session::results::Results;
use punctual_session::{AdmittedSet, HostKind, RunOptions, Session, StartOutcome, TraceFiles};
use punctual_taskset::{Body, Loaded, TaskSet};
use punctual_trace::TaskEnd;

use crate::args::{HostArg, OutputArg, Run};
use crate::drive::{drive, Ran, Signals};
use crate::live::LiveSet;
use crate::output::{
    print_message, view, Caller, Outcome, INTERRUPTED, MISSED, PUNCTUAL_FAILED, TIMED_OUT,
};
use crate::screen::Screen;
use crate::top::Observed;
use crate::{compare, set, sim};

pub fn run(args: &Run) -> Result<Outcome<RunResult>, Diagnostic> {
    if args.json && args.output == Some(OutputArg::Inherit) {
        return Err(Diagnostic::usage(
            "--output inherit: with --json standard output has the results alone",
            "use --output stderr or --output null",
        ));
    }
    let Loaded { set, unrepresented } = set::read(args)?;
    let host = host(args, &set);
    options_fit(args, host, &set)?;
    let admitted = admit(Session::new(set.clone(), host)?, args.overload)?;
    if args.file.is_some() && !args.quiet {
        unrepresented.iter().for_each(|line| print_message(&format!("left out: {line}")));
        print_message(&admitted.analysis().map(summary).unwrap_or_default());
    }
    if host == HostKind::Sim {
        let simulated = sim::of_admitted(admitted, args.trace.as_deref(), args.quiet)?;
        return Ok(outcome(args, simulated.results, Vec::new(), simulated.code, None));
    }
    let overload = admitted.is_overload();
    let mut live = LiveSet::new(args, set, admitted.set(), overload);
    let set = admitted.set().clone();
    let traces = args.trace.as_ref().map(|path| TraceFiles::create(path, &set)).transpose()?;
    let signals = Signals::handle(live.is_from_a_file())?;
    let commands = set.tasks.iter().any(|t| matches!(t.body, Body::Command(_)));
    // With a command that writes where we do, a table could not be redrawn.
    let mut screen = Screen::new(args.quiet, !commands);
    let options = RunOptions {
        stop: signals.stop.clone(),
        traces,
        trace_records: args.trace_records,
        stdin: args.file.is_none() && commands,
        output: output(args),
        load: args.load,
        no_idle: args.no_idle,
        ..RunOptions::default()
    };
    let first = set.tasks.first().map(|t| t.name.as_str());
    let ran = match admitted.start(options)? {
        StartOutcome::Running(running) => {
            let observed = Observed::new(args.file.as_deref(), &set);
            drive(*running, first, Some(&mut live), observed, &signals, &mut screen)?
        }
        // For the kernel's own policies only.
        StartOutcome::NotPossible(refusal, _) => {
            return Err(Diagnostic::machine(refusal.reason, refusal.help.join("; ")))
        }
    };
    let mut baselines = Vec::new();
    if ran.failure.is_none() {
        for &baseline in &args.compare {
            if !signals.stop.load(Ordering::Relaxed) {
                baselines.extend(compare::run(args, &set, baseline, overload, &signals)?);
            }
        }
    }
    let code = exit_code(args, &ran, signals.stop.load(Ordering::Relaxed));
    Ok(outcome(args, ran.results, baselines, code, ran.failure))
}

/// The host that is asked for; of `auto`, the best that the machine and the set permit, with a line
/// of which and why.
fn host(args: &Run, set: &TaskSet) -> HostKind {
    match args.host {
        HostArg::User => HostKind::User,
        HostArg::Kernel => HostKind::Kernel,
        HostArg::Service => HostKind::Service,
        HostArg::Sim => HostKind::Sim,
        HostArg::Auto => {
            let (host, why) = match args.no_idle {
                true => (HostKind::User, "--no-idle is for the user host".to_owned()),
                false => best_host(args, set),
            };
            let name = match host {
                HostKind::Kernel => "kernel",
                HostKind::Service => "service",
                _ => "user",
            };
            if !args.quiet {
                print_message(&format!("the {name} host: {why}"));
            }
            host
        }
    }
}

/// The service, if one listens and takes the set: it may have the CPUs. Else the best host in this
/// process. And why.
fn best_host(args: &Run, set: &TaskSet) -> (HostKind, String) {
    match Session::service_for(set, (args.overload, args.trace.is_some())) {
        Ok(why) => (HostKind::Service, why),
        Err(why_not) => {
            let (host, why) = Session::best_host(set);
            (host, format!("{why}; {why_not}"))
        }
    }
}

/// Refuses options that a host does not have.
fn options_fit(args: &Run, host: HostKind, set: &TaskSet) -> Result<(), Diagnostic> {
    let real = [
        (args.load, "--load"),
        (args.no_idle, "--no-idle"),
        (!args.compare.is_empty(), "--compare"),
    ];
    let given = real.into_iter().find(|(given, _)| *given);
    if let (HostKind::Sim, Some((_, option))) = (host, given) {
        return Err(Diagnostic::usage(
            format!("{option} has no meaning in virtual time"),
            format!("leave out {option}, or --host sim"),
        ));
    }
    if matches!(host, HostKind::Kernel | HostKind::Service) && args.no_idle {
        return Err(Diagnostic::usage(
            "--no-idle is for the user host",
            "leave out --no-idle, or use --host user",
        ));
    }
    if !args.compare.is_empty() && set.duration.is_none() {
        return Err(Diagnostic::usage(
            "--compare runs the set several times, and has no duration",
            "add --duration 10s",
        ));
    }
    Ok(())
}

fn admit(session: Session, overload: bool) -> Result<AdmittedSet, Diagnostic> {
    session.admit(overload).map_err(|e| match e.kind {
        Kind::NotAdmitted => Diagnostic::not_admitted(
            e.cause,
            format!("{}; or run it all the same with --overload", e.help),
        ),
        _ => e,
    })
}

/// Where commands' output goes.
fn output(args: &Run) -> Output {
    match args.output {
        Some(OutputArg::Null) => Output::Nowhere,
        Some(OutputArg::Stderr) => Output::StandardError,
        None if args.json => Output::StandardError,
        Some(OutputArg::Inherit) | None => Output::Inherit,
    }
}

/// The exit code of a run: with `-- COMMAND` that of the command.
fn exit_code(args: &Run, ran: &Ran, interrupted: bool) -> u8 {
    let missed = if ran.results.exit_code() == 0 { 0 } else { MISSED };
    match &ran.failure {
        Some(failure) => Caller::of_run(args).code(failure),
        None if interrupted => INTERRUPTED,
        None if args.wraps() => {
            command_code(ran.end.as_ref(), if args.strict { missed } else { 0 })
        }
        None => missed,
    }
}

/// The exit code of a command that ended so, if at all; and of one that did well if deadlines were
/// `missed`.
pub fn command_code(end: Option<&TaskEnd>, missed: u8) -> u8 {
    match end {
        Some(TaskEnd::Exited(0)) => missed,
        // Exit codes are 0 to 255, signals 1 to 64.
        Some(&TaskEnd::Exited(code)) => u8::try_from(code).unwrap_or(u8::MAX),
        Some(&TaskEnd::Signalled(signal)) => u8::try_from(128 + signal).unwrap_or(u8::MAX),
        None if missed != 0 => missed,
        None => TIMED_OUT,
        // No command ends so by itself.
        Some(_) => PUNCTUAL_FAILED,
    }
}

/// The results, with those under the kernel's own policies; `error`: why the run was ended before
/// its time.
fn outcome(
    args: &Run,
    results: Results,
    baselines: Vec<Results>,
    code: u8,
    error: Option<Diagnostic>,
) -> Outcome<RunResult> {
    let (headline, view) = (headline(&results), view(args.wide));
    let verdict = match &error {
        Some(error) => {
            format!("Ended early: {}. Until then: {headline}", error.cause.trim_end_matches('.'))
        }
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
    format!(
        "{}\n{}\n{}",
        verdicts(&runs, view),
        figures(&result.run, view),
        side_by_side(&runs, view)
    )
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
            let codes = [0, MISSED].map(|verdict| command_code(end.as_ref(), verdict));
            assert_eq!(codes, [code, missed], "{end:?}");
        }
    }
}
