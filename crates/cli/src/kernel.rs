//! `punctual run --host kernel`: the dispatcher inside the kernel. And `--host auto`.

use std::cell::RefCell;
use std::fs::File;
use std::sync::atomic::AtomicBool;

use punctual_host_kernel::{Output, RunOptions, RunOutcome, Told};
use punctual_report::{Collector, HogResult, Host, KernelDispatcherStats, Results, Run as About};
use punctual_taskset::{Body, TaskSet};
use punctual_workload::Hog;

use crate::args::{HostArg, Run};
use crate::failure::{say, Failure, USAGE};
use crate::run::start_hog;
use crate::screen::Screen;

/// The best host that the machine and the set permit; in one line which, and why.
pub fn choose(args: &Run, set: &TaskSet) -> HostArg {
    let (kernel, why) = match asks_for_more(args) {
        Some(option) => (false, format!("{option} is not for the kernel host")),
        None => punctual_host_kernel::best_for(set),
    };
    let (host, name) = if kernel { (HostArg::Kernel, "kernel") } else { (HostArg::User, "user") };
    if !args.quiet {
        say(&mut std::io::stderr(), &format!("punctual: the {name} host: {why}"));
    }
    host
}

/// An option that this host has not.
fn asks_for_more(args: &Run) -> Option<&'static str> {
    args.awake.then_some("--awake")
}

/// Refuses what cannot be, before anything is done.
pub fn check(args: &Run, set: &TaskSet) -> Result<(), Failure> {
    punctual_host_kernel::machine::check(&set.cpus)?;
    punctual_host_kernel::accepts(set)?;
    match asks_for_more(args) {
        None => Ok(()),
        Some(option) => Err(Failure::new(
            USAGE,
            format!("{option} is not for the kernel host"),
            format!("leave out {option}, or use --host user"),
        )),
    }
}

/// The set on this host: its results, and whether it was interrupted.
pub fn run(
    args: &Run,
    set: &TaskSet,
    overload: bool,
    single: bool,
    traces: Vec<(u32, File)>,
    stop: &AtomicBool,
) -> Result<(Results, bool), Failure> {
    let about = About { overload, ..About::new(Host::Kernel, &set.policy.name, &set.cpus) };
    let collector = RefCell::new(Collector::for_set(about, set));
    let commands = set.tasks.iter().any(|t| matches!(t.body, Body::Command(_)));
    // With a command that writes where we do, a table could not be redrawn.
    let screen = RefCell::new(Screen::new(args.quiet, !commands));
    let hog = args.hog.then(|| start_hog(set.cpus[0])).transpose()?;
    let options = RunOptions {
        stop,
        owner: std::env::args().collect::<Vec<_>>().join(" "),
        traces,
        stdin: single && commands,
        output: if args.quiet {
            Output::Nowhere
        } else if args.json {
            Output::StandardError
        } else {
            Output::Inherit
        },
    };
    let outcome = punctual_host_kernel::run(
        set,
        options,
        &mut |told| match told {
            Told::Period(period) => collector.borrow_mut().record(&period),
            Told::Ended(index, how) => {
                let name = set.tasks.get(index as usize).map_or("?", |t| t.name.as_str());
                screen.borrow_mut().say(&format!("{name}: {how}"));
            }
            Told::Warning(text) => screen.borrow_mut().say(&format!("punctual: {text}")),
        },
        &mut || screen.borrow_mut().tick(|| collector.borrow().snapshot()),
    );
    screen.borrow_mut().clear();
    let RunOutcome { ran, ended, events, lateness, notes, interrupted } = outcome?;
    let hog = hog.map(Hog::stop);
    let mut collector = collector.into_inner();
    collector.finish(ended);
    let mut results = collector.snapshot();
    results.duration_ns = ran;
    results.interrupted = interrupted;
    results.kernel_dispatcher = lateness.map(|l| KernelDispatcherStats {
        events,
        releases: l.releases,
        release_to_running_p50_ns: l.p50,
        release_to_running_p99_ns: l.p99,
        release_to_running_max_ns: l.max,
    });
    results.hog = hog.map(|h| HogResult { share_ppm: h.share_ppm() });
    results.notes.extend(notes);
    Ok((results, interrupted))
}
