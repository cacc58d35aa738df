//! What this host makes of a set, before anything is started.

use punctual_dispatcher::{Dispatcher, Limits, TaskId};
use punctual_policies::{AllocatorOptions, Allocators, LocalDispatcher};
use punctual_program_jobs::{domain_has_jobs, ProgramGroups};
use punctual_taskset::{Arrival, Costs, DomainId, ServerSpec, TaskSet, TaskSpec};

use crate::abi::{arena_limits, domains};
use crate::diagnostics::{not_done_here, OTHERS};
use punctual_diagnostic::Diagnostic;

/// The kernel's watchdog evicts a scheduler whose runnable task waits for 30 s.
const LONGEST_WAIT: u64 = 20_000_000_000;
/// Of random arrivals with this mean, one in a million is farther away than the watchdog's 30 s.
const LONGEST_MEAN: u64 = 2_000_000_000;
/// One domain's part of a set.
pub(crate) struct Part {
    pub domain: DomainId,
    pub cpu: u32,
    pub allocators: Allocators,
    /// What they are made with.
    pub options: AllocatorOptions,
    pub limits: Limits,
    /// Its policies are asked at each job; else the kernel needs no thread in user space.
    pub asks_policies: bool,
    /// There are windows for its reservations and, during a swap, for those before.
    pub windows_fit: bool,
}

/// What a domain has room for beside the set.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Room {
    /// Tasks that may be added later, where the kernel has room for them.
    pub tasks: u32,
    /// Groups that the program replenishes itself.
    pub groups: ProgramGroups,
}

/// Whether this host can carry a set out.
///
/// # Errors
/// What of it only the other hosts can do.
pub fn accepts(set: &TaskSet) -> Result<(), Diagnostic> {
    parts(set, Costs::NONE, Room::default()).map(drop)
}

/// What allocators are made with, for a host that takes `costs` for its own work.
pub(crate) fn options(costs: Costs, room: Room) -> AllocatorOptions {
    let Room { tasks, groups } = room;
    let in_real_time = AllocatorOptions::in_real_time();
    AllocatorOptions { costs, room: tasks, program_groups: groups, ..in_real_time }
}

/// A set by its domains, for a host that takes `costs` for its own work.
pub(crate) fn parts(set: &TaskSet, costs: Costs, more: Room) -> Result<Vec<Part>, Diagnostic> {
    if set.domains.len() > domains() {
        return Err(not_done_here(format!(
            "the kernel host serves {} CPUs in a set; this one has {:?}",
            domains(),
            set.cpus()
        )));
    }
    set.tasks.iter().try_for_each(|task| waits(task, set.duration))?;
    groups_wait(set)?;
    set.domain_ids().map(|domain| part(set, domain, costs, more)).collect()
}

fn part(set: &TaskSet, domain: DomainId, costs: Costs, more: Room) -> Result<Part, Diagnostic> {
    let cpu = set.domain(domain).only_cpu()?;
    let of_the_set = set.tasks.iter().filter(|task| task.domain == domain).count() as u32;
    let most = arena_limits().tasks.saturating_sub(of_the_set);
    let options = options(costs, Room { tasks: more.tasks.min(most), ..more });
    let allocators = Allocators::with(set, domain, options)?;
    let limits = allocators.limits();
    let arena = arena_limits();
    let windows_fit = limits.windows <= arena.windows;
    let events = limits.events.max(arena.events);
    // All windows that there are, for a swap to a policy with more of them. Tasks for which they
    // are too few are carried out by the policy.
    let limits = Limits { events, records: arena.records, windows: arena.windows, ..limits };
    match room(cpu, &limits) {
        Err(_) if more.tasks > 0 => return part(set, domain, costs, Room { tasks: 0, ..more }),
        fits => fits?,
    }
    // Jobs of the program are added by the thread that executes the policies.
    let asks_policies = rehearse(set, domain, options, limits)? || domain_has_jobs(set, domain);
    Ok(Part { domain, cpu, allocators, options, limits, asks_policies, windows_fit })
}

/// Whether a block of the arena has room for it.
fn room(cpu: u32, asked: &Limits) -> Result<(), Diagnostic> {
    let arena = arena_limits();
    let all = [
        ("tasks", asked.tasks, arena.tasks),
        ("groups, with the top one", asked.groups, arena.groups),
        ("budget groups", asked.budget_groups, arena.budget_groups),
        ("jobs at a time", asked.jobs, arena.jobs),
        ("reservations of tasks and groups", asked.reservations, arena.reservations),
        ("timers", asked.timers, arena.timers),
        ("events at a time", asked.events, arena.events),
    ];
    match all.into_iter().find(|(_, asked, room)| asked > room) {
        Some((what, asked, room)) => Err(not_done_here(format!(
            "CPU {cpu}: the kernel host has room for {room} {what}; this set has {asked}"
        ))),
        None => Ok(()),
    }
}

/// What a dispatcher and its allocators make of the set, tried in this process: whether some policy
/// is asked at each job.
fn rehearse(
    set: &TaskSet,
    domain: DomainId,
    options: AllocatorOptions,
    limits: Limits,
) -> Result<bool, Diagnostic> {
    let refused = |e: &dyn std::fmt::Display| {
        let cpus = set.domain(domain);
        not_done_here(format!("{cpus}: the dispatcher refuses the set: {e}"))
    };
    let mut allocators = Allocators::with(set, domain, options)?;
    let mut dispatcher = Dispatcher::new(limits).map_err(|e| refused(&e))?;
    allocators.begin(&mut LocalDispatcher::new(&mut dispatcher, 0), 0).map_err(|e| refused(&e))?;
    for (index, _) in set.tasks.iter().enumerate().filter(|(_, t)| t.domain == domain) {
        let task: TaskId = dispatcher.add_task(0).map_err(|e| refused(&e))?;
        allocators
            .add(&mut LocalDispatcher::new(&mut dispatcher, 0), index, task)
            .map_err(|e| refused(&e))?;
    }
    Ok(allocators.asks_policies())
}

/// How long a task may wait for its next release, though it is runnable.
pub(crate) fn waits(task: &TaskSpec, duration: Option<u64>) -> Result<(), Diagnostic> {
    let refuse = |what: &str| {
        Err(Diagnostic::usage(
            format!(
                "task \"{}\": {what}, and a runnable task that waits for 30 s makes the kernel's \
                 watchdog end the scheduler",
                task.name
            ),
            format!("make it 20 s at most; or {OTHERS}"),
        ))
    };
    if task.offset > LONGEST_WAIT {
        return refuse("it starts more than 20 s after the run");
    }
    match &task.arrival {
        Arrival::Periodic if task.weight.is_some() && task.period > LONGEST_WAIT => {
            refuse("its share of its group is a quantum in more than 20 s")
        }
        Arrival::Periodic if task.period > LONGEST_WAIT => refuse("its period is over 20 s"),
        Arrival::Sporadic { longest, .. } if *longest > LONGEST_WAIT => {
            refuse("its arrivals may be over 20 s apart")
        }
        Arrival::Aperiodic { mean, .. } if *mean > LONGEST_MEAN => {
            refuse("its random arrivals, more than 2 s apart on average, may be over 30 s apart")
        }
        Arrival::List(times) => {
            let far = times.windows(2).any(|w| w[1].saturating_sub(w[0]) > LONGEST_WAIT);
            let first = times.first().is_some_and(|&t| t > LONGEST_WAIT);
            let last = times.last().copied().unwrap_or(0);
            let after = duration.map_or(u64::MAX, |d| d.saturating_sub(last));
            match (far || first, after > LONGEST_WAIT) {
                (true, _) => refuse("its listed arrivals are over 20 s apart"),
                (_, true) => refuse(
                    "its list of arrivals ends more than 20 s before the run (give it a duration)",
                ),
                _ => Ok(()),
            }
        }
        _ => Ok(()),
    }
}

/// How long a group's members may wait for its budget.
fn groups_wait(set: &TaskSet) -> Result<(), Diagnostic> {
    let of_group = set.groups.iter().map(|g| match &g.server {
        ServerSpec::Periodic { period, offset, .. } => ("group", &g.name, (*period).max(*offset)),
        ServerSpec::Windows { cycle, .. } => ("group", &g.name, *cycle),
    });
    let of_budget = set.budget_groups.iter().map(|b| ("budget group", &b.name, b.period));
    match of_group.chain(of_budget).find(|(_, _, period)| *period > LONGEST_WAIT) {
        Some((what, name, _)) => Err(not_done_here(format!(
            "{what} \"{name}\": its period (or its offset) is over 20 s, and a runnable task that \
             waits for 30 s makes the kernel's watchdog end the scheduler"
        ))),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(text: &str) -> TaskSet {
        TaskSet::parse(text, "set.toml").expect("it is in order")
    }

    const TASK: &str =
        "[[task]]\nname = \"a\"\nperiod = \"10ms\"\nbudget = \"2ms\"\nwork = { spin = \"1ms\" }\n";

    fn asks_policies(policy: &str, more: &str) -> bool {
        let text = format!("cpu = 0\npolicy = \"{policy}\"\n{TASK}{more}");
        parts(&set(&text), Costs::NONE, Room::default()).expect("it can be carried out")[0]
            .asks_policies
    }

    #[test]
    fn reservations_need_no_thread_in_user_space_and_job_by_job_policies_do() {
        assert!(
            !asks_policies("rm", "")
                && !asks_policies("edf", "")
                && !asks_policies("fp", "priority = 3\n")
        );
        assert!(asks_policies("imprecise", "mandatory = \"1ms\"\n"));
        assert!(asks_policies("dual", ""));
    }

    fn tasks(count: usize) -> String {
        let task = |n| TASK.replace("\"a\"", &format!("\"a{n}\""));
        format!("cpu = 0\npolicy = \"edf\"\n{}", (0..count).map(task).collect::<String>())
    }

    fn groups(count: usize) -> String {
        let group = |n| {
            format!(
                "[[group]]\nname = \"g{n}\"\npolicy = \"edf\"\nperiod = \"9ms\"\n\
                 budget = \"1ms\"\n"
            )
        };
        format!("{}{}", tasks(1), (0..count).map(group).collect::<String>())
    }

    #[test]
    fn a_set_that_is_too_large_is_refused_before_anything_is_started() {
        type Sets = fn(usize) -> String;
        let sets: [(Sets, usize, &str); 2] = [
            (tasks, 256, "room for 256 tasks; this set has 257"),
            (groups, 63, "room for 64 groups, with the top one; this set has 65"),
        ];
        for (of, most, said) in sets {
            accepts(&set(&of(most))).expect("that many fit");
            let e = accepts(&set(&of(most + 1))).expect_err("one too many");
            assert!(e.to_string().contains(said) && e.to_string().contains("--host user"), "{e}");
            assert_eq!(e.exit_code(), 2);
        }
    }

    #[test]
    fn waits_that_the_watchdog_would_end_are_refused_with_help() {
        let long = format!("cpu = 0\npolicy = \"edf\"\n{}", TASK.replace("10ms", "21s"));
        let e = accepts(&set(&long)).expect_err("too long");
        assert!(e.to_string().contains("task \"a\": its period is over 20 s"), "{e}");
        assert!(e.to_string().contains("--host user"), "{e}");
        assert_eq!(e.exit_code(), 2);
        let late = format!("cpu = 0\npolicy = \"edf\"\n{TASK}offset = \"25s\"\n");
        assert!(accepts(&set(&late))
            .expect_err("too late")
            .to_string()
            .contains("starts more than 20 s"));
    }
}
