//! `punctual run --host kernel`: the dispatcher inside the kernel. And `--host auto`.

use std::fs::File;
use std::sync::atomic::AtomicBool;

use punctual_host_kernel::{RunOptions, RunOutcome};
use punctual_report::{Host, KernelDispatcherStats};
use punctual_taskset::TaskSet;

use crate::args::{HostArg, Run};
use crate::output::print_line;
use crate::run::Ran;
use crate::session::Session;
use punctual_diagnostic::Diagnostic;

/// The best host that the machine and the set permit; in one line which, and why.
pub fn choose(args: &Run, set: &TaskSet) -> HostArg {
    let (kernel, why) = match asks_for_more(args) {
        Some(option) => (false, format!("{option} is not for the kernel host")),
        None => punctual_host_kernel::best_for(set),
    };
    let (host, name) = if kernel { (HostArg::Kernel, "kernel") } else { (HostArg::User, "user") };
    if !args.quiet {
        print_line(&mut std::io::stderr(), &format!("punctual: the {name} host: {why}"));
    }
    host
}

/// An option that this host has not.
fn asks_for_more(args: &Run) -> Option<&'static str> {
    args.no_idle.then_some("--no-idle")
}

/// Refuses what cannot be, before anything is done.
pub fn check(args: &Run, set: &TaskSet) -> Result<(), Diagnostic> {
    punctual_host_kernel::machine::check(&set.cpus)?;
    punctual_host_kernel::accepts(set)?;
    match asks_for_more(args) {
        None => Ok(()),
        Some(option) => Err(Diagnostic::usage(
            format!("{option} is not for the kernel host"),
            format!("leave out {option}, or use --host user"),
        )),
    }
}

/// The set on this host.
pub fn run(
    args: &Run,
    set: &TaskSet,
    overload: bool,
    traces: Vec<(u32, File)>,
    stop: &AtomicBool,
) -> Result<Ran, Diagnostic> {
    let session = Session::begin(args, set, Host::Kernel, overload)?;
    let options =
        RunOptions { stop, owner: session.owner.clone(), traces, stdin: session.stdin, output: session.output };
    let outcome = punctual_host_kernel::run(set, options, &mut |told| session.hear(told), &mut || session.tick());
    session.clear();
    let RunOutcome { ran, ended, events, lateness, notes, interrupted, exit } = outcome?;
    let end = session.end();
    let mut results = session.results(ran, ended, interrupted, notes);
    results.kernel_dispatcher = lateness.map(|l| KernelDispatcherStats {
        events,
        releases: l.releases,
        release_latency_p50_ns: l.p50,
        release_latency_p99_ns: l.p99,
        release_latency_max_ns: l.max,
    });
    Ok(Ran { results, interrupted, end, failure: exit })
}
