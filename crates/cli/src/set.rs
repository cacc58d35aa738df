//! From the command line to a task set.

use std::cmp::Reverse;
use std::path::Path;

use punctual_service::{CpuStatus, ServiceClient, StatusReply};
use punctual_sys::sched;
use punctual_taskset::{
    parse_duration, Body, Loaded, Overrides, Overrun, Role, RoleFolders, TaskSet,
};

use crate::args::{HostArg, Instead, Run};
use crate::plugin::policy_named;
use punctual_diagnostic::Diagnostic;

/// Reads the set that the arguments name: checked, not yet admitted. Lists the parts of its file
/// that the set cannot represent.
pub fn read(args: &Run) -> Result<Loaded, Diagnostic> {
    let mut loaded = match &args.file {
        Some(file) => load(file, &args.instead)?,
        None => {
            let find = |name: &String| RoleFolders::default().find(name);
            let role = args.role.as_ref().map(find).transpose()?;
            Loaded { set: single(args, role.as_ref())?, unrepresented: Vec::new() }
        }
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
    let given = Overrides { cpu: *cpu, policy, roles, ..Overrides::default() };
    Loaded::load(file, &Overrides { default_cpu: Some(last_cpu()), ..given })
}

/// That of the scheduling group of the service, if a role names one; else the CPU of which the
/// service has promised least, of those on which the caller may reserve.
fn cpu_of(status: &StatusReply, group: Option<&str>) -> u32 {
    let of_group = status.groups.iter().find(|of| group == Some(of.name.as_str()));
    let by_load = |c: &&CpuStatus| (c.limit_ppm == 0, c.reserved_ppm, Reverse(c.cpu));
    let best = || status.cpus.iter().min_by_key(by_load).map(|c| c.cpu);
    // Where there is none, the service gives the reason.
    of_group.map(|of| of.cpu).or_else(best).unwrap_or(0)
}

/// A time on the command line, ns.
pub fn time(text: Option<&str>, option: &str) -> Result<Option<u64>, Diagnostic> {
    text.map(|text| {
        parse_duration(text)
            .map_err(|e| Diagnostic::usage(format!("{option}: {}", e.cause), e.help))
    })
    .transpose()
}

/// The set of the one task that the options describe; a role has what they leave out.
fn single(args: &Run, role: Option<&Role>) -> Result<TaskSet, Diagnostic> {
    let period = time(args.period.as_deref(), "--period")?.or(role.map(|role| role.period));
    let budget = time(args.budget.as_deref(), "--budget")?.or(role.map(|role| role.budget));
    let (Some(period), Some(budget)) = (period, budget) else {
        return Err(Diagnostic::usage(
            "nothing to run",
            "name a task-set file, or give --period and --budget, or --role, with -- COMMAND or \
             --pid PID",
        ));
    };
    let body = match args.pid {
        Some(pid) => Body::Pid(pid),
        None if args.argv.is_empty() => {
            return Err(Diagnostic::usage(
                "period and budget of what?",
                "add -- COMMAND, or --pid PID of a running process",
            ))
        }
        None => Body::Command(args.argv.clone()),
    };
    let group = role.and_then(|role| role.group.as_deref());
    let cpu = match (args.instead.cpu.or(role.and_then(|role| role.cpu)), args.host) {
        (Some(cpu), _) => cpu,
        (None, HostArg::Service) => {
            cpu_of(&ServiceClient::require(&punctual_service::socket())?.status()?, group)
        }
        (None, HostArg::Auto) => match ServiceClient::connect(&punctual_service::socket()) {
            Ok(Some(mut service)) => cpu_of(&service.status()?, group),
            // There is none for this user, as the choice of the host finds.
            Ok(None) | Err(_) => last_cpu(),
        },
        (None, _) => last_cpu(),
    };
    let mut single = TaskSet::single(period, budget, body).cpu(cpu);
    let policy = args.instead.policy.as_deref().map(policy_named).transpose()?;
    // In a group of the service, the group's policy orders it.
    let by_itself = group.is_none() || args.host != HostArg::Service;
    let of_role = role.filter(|_| by_itself).and_then(|role| role.policy.as_deref());
    if let Some(policy) = policy.or(of_role) {
        single = single.policy(policy);
    }
    let deadline = time(args.deadline.as_deref(), "--deadline")?;
    if let Some(deadline) = deadline.or(role.and_then(|role| role.deadline)) {
        single = single.deadline(deadline);
    }
    let overrun = args.overrun.map(Overrun::from);
    if let Some(overrun) = overrun.or(role.and_then(|role| role.overrun)) {
        single = single.overrun(overrun);
    }
    let mut set = single.build()?;
    let own = [&args.period, &args.budget, &args.deadline].into_iter().any(Option::is_some);
    if let (Some(role), false, None) = (role, own, args.overrun) {
        set.tasks.iter_mut().for_each(|task| task.role = Some(role.name.clone()));
    }
    Ok(set)
}

/// The last CPU that we may use: the first ones have most interrupts.
pub fn last_cpu() -> u32 {
    sched::affinity(0).ok().and_then(|mask| sched::cpus(&mask).max()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use clap::Parser;
    use punctual_service::GroupStatus;

    use super::*;
    use crate::args::{Cli, Command};

    #[test]
    fn a_role_of_a_group_has_the_cpu_of_that_and_others_the_emptiest() {
        let cpu =
            |cpu, reserved_ppm, limit_ppm| CpuStatus { cpu, reserved_ppm, own_ppm: 0, limit_ppm };
        let media = GroupStatus {
            name: "media".to_owned(),
            cpu: 0,
            period_ns: 5_000_000,
            budget_ns: 2_000_000,
            policy: "edf".to_owned(),
            reserved_ppm: 0,
        };
        let status = StatusReply {
            version: "1".to_owned(),
            host: "user".to_owned(),
            cpus: vec![cpu(0, 400_000, 300_000), cpu(1, 300_000, 300_000), cpu(2, 0, 0)],
            groups: vec![media],
            reservations: Vec::new(),
        };
        let cpus = [Some("media"), Some("other"), None].map(|group| cpu_of(&status, group));
        assert_eq!(cpus, [0, 1, 1]);
    }

    #[test]
    fn an_option_replaces_its_value_of_the_role() {
        let text = "period = \"10ms\"\nbudget = \"2ms\"\ndeadline = \"5ms\"\noverrun = \"skip\"\n\
                    cpu = 3\npolicy = \"dm\"\n";
        let role = Role::parse("audio", text, "audio.toml").expect("it is right");
        let set = |options: &str| {
            let words = ["punctual run --role audio", options, "-- true"].join(" ");
            let cli = Cli::try_parse_from(words.split_whitespace()).expect("they are options");
            let Command::Run(run) = cli.command else { panic!("it is run") };
            let set = single(&run, Some(&role)).expect(options);
            let task = set.tasks[0].clone();
            let times = [task.period, task.budget, task.deadline].map(|ns| ns / 1_000_000);
            let whole = ["--period", "--budget", "--deadline", "--overrun"];
            let whole = !whole.iter().any(|option| options.contains(option));
            assert_eq!(task.role.as_deref(), whole.then_some("audio"), "{options}");
            (times, task.overrun, set.cpus()[0], set.policy.name)
        };
        let of_role = || ([10, 2, 5], Overrun::Skip, 3, "dm".to_owned());
        assert_eq!(set(""), of_role());
        let with = |change: fn(&mut ([u64; 3], Overrun, u32, String))| {
            let mut want = of_role();
            change(&mut want);
            want
        };
        assert_eq!(set("--period 20ms"), with(|want| want.0[0] = 20));
        assert_eq!(set("--budget 1ms"), with(|want| want.0[1] = 1));
        assert_eq!(set("--deadline 8ms"), with(|want| want.0[2] = 8));
        assert_eq!(set("--overrun carry"), with(|want| want.1 = Overrun::Carry));
        assert_eq!(set("--cpu 0"), with(|want| want.2 = 0));
        assert_eq!(set("--policy edf"), with(|want| want.3 = "edf".to_owned()));
    }
}
