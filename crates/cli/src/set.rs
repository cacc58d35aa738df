//! From the command line to a task set.

use std::cmp::Reverse;
use std::path::Path;

use punctual_service::ServiceClient;
use punctual_sys::sched;
use punctual_taskset::{parse_duration, Body, Loaded, Overrides, Overrun, RoleFolders, TaskSet};

use crate::args::{HostArg, Instead, OverrunArg, Run};
use crate::plugin::policy_named;
use punctual_diagnostic::Diagnostic;

/// Reads the set that the arguments name: checked, not yet admitted. Lists the parts of its file
/// that the set cannot represent.
pub fn read(args: &Run) -> Result<Loaded, Diagnostic> {
    let mut loaded = match &args.file {
        Some(file) => load(file, &args.instead)?,
        None => Loaded { set: single(args)?, unrepresented: Vec::new() },
    };
    if let Some(duration) = time(args.duration.as_deref(), "--duration")? {
        if duration == 0 {
            return Err(Diagnostic::usage(
                "--duration is 0",
                "give a time such as 10s, or leave it away",
            ));
        }
        loaded.set.duration = Some(duration);
    }
    Ok(loaded)
}

/// The set of a file, with what the command line has in its place.
pub fn load(file: &Path, instead: &Instead) -> Result<Loaded, Diagnostic> {
    let Instead { cpu, policy } = instead;
    let policy = policy.as_deref().map(policy_named).transpose()?.map(str::to_owned);
    let roles = RoleFolders::default();
    Loaded::load(file, &Overrides { cpu: *cpu, default_cpu: Some(last_cpu()), policy, roles })
}

/// The CPU of which the service has promised least, of those on which the caller may reserve.
fn cpu_of_service() -> Result<u32, Diagnostic> {
    let cpus = ServiceClient::require(&punctual_service::socket())?.status()?.cpus;
    let best = cpus.iter().min_by_key(|c| (c.limit_ppm == 0, c.reserved_ppm, Reverse(c.cpu)));
    // Where there is none, the service gives the reason.
    Ok(best.map_or(0, |c| c.cpu))
}

/// A time on the command line, ns.
pub fn time(text: Option<&str>, option: &str) -> Result<Option<u64>, Diagnostic> {
    text.map(|text| {
        parse_duration(text)
            .map_err(|e| Diagnostic::usage(format!("{option}: {}", e.cause), e.help))
    })
    .transpose()
}

fn single(args: &Run) -> Result<TaskSet, Diagnostic> {
    let (Some(period), Some(budget)) =
        (time(args.period.as_deref(), "--period")?, time(args.budget.as_deref(), "--budget")?)
    else {
        return Err(Diagnostic::usage(
            "nothing to run",
            "name a task-set file, or give --period and --budget with -- COMMAND or --pid PID",
        ));
    };
    let body = match args.pid {
        Some(pid) => Body::Pid(pid),
        None if args.argv.is_empty() => {
            return Err(Diagnostic::usage(
                "--period and --budget of what?",
                "add -- COMMAND, or --pid PID of a running process",
            ))
        }
        None => Body::Command(args.argv.clone()),
    };
    let cpu = match (args.instead.cpu, args.host) {
        (Some(cpu), _) => cpu,
        (None, HostArg::Service) => cpu_of_service()?,
        (None, _) => last_cpu(),
    };
    let mut single = TaskSet::single(period, budget, body).cpu(cpu);
    if let Some(policy) = &args.instead.policy {
        single = single.policy(policy_named(policy)?);
    }
    if let Some(deadline) = time(args.deadline.as_deref(), "--deadline")? {
        single = single.deadline(deadline);
    }
    if let Some(overrun) = args.overrun {
        single = single.overrun(match overrun {
            OverrunArg::Carry => Overrun::Carry,
            OverrunArg::Skip => Overrun::Skip,
            OverrunArg::Background => Overrun::Background,
            OverrunArg::Signal => Overrun::Signal,
        });
    }
    single.build()
}

/// The last CPU that we may use: the first ones have most interrupts.
pub fn last_cpu() -> u32 {
    sched::affinity(0).ok().and_then(|mask| sched::cpus(&mask).max()).unwrap_or(0)
}
