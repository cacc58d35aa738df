//! From a task set to the kernel's parameters.

use crate::judge::Nature;
use crate::observer::{ABOVE_ALL, AMONG_DEADLINES, AMONG_DEADLINES_FREE};
use crate::refusal::Unsupported;
use crate::run::Baseline;
use crate::sys::{affinity, KernelPolicy};
use punctual_taskset::{Arrival, Body, DomainId, ReleaseAttributes, Spin, Step, TaskSet, TaskSpec};

/// Records that a ring holds, for the time in which the caller gets no CPU.
const RING_SECONDS: u64 = 3;
/// Highest priority of a task: below observers and watchdogs, above threaded interrupts (50).
const TOP: i32 = 90;

/// Each task's policy under the baseline, in file order.
pub fn policies(set: &TaskSet, baseline: Baseline) -> Vec<KernelPolicy> {
    match baseline {
        Baseline::Other => vec![KernelPolicy::Other; set.tasks.len()],
        Baseline::Fifo => priorities(set).into_iter().map(KernelPolicy::Fifo).collect(),
        Baseline::Deadline => set
            .tasks
            .iter()
            .map(|task| KernelPolicy::Deadline {
                runtime: task.budget,
                deadline: task.deadline,
                period: task.period,
            })
            .collect(),
    }
}

/// FIFO priorities in the order of the set's own policy. EDF has no fixed priorities: rate
/// monotonic stands in for it. Beyond 90 tasks the least urgent share the lowest level.
fn priorities(set: &TaskSet) -> Vec<i32> {
    let key = |task: &TaskSpec| -> i128 {
        if let Some(order) = set.policy.order.as_ref().filter(|order| !order.uses_release()) {
            return -i128::from(order.priority(&ReleaseAttributes::of_task(task, task.offset)));
        }
        match set.policy.name.as_str() {
            "dm" => i128::from(task.deadline),
            "fp" => -i128::from(task.priority),
            _ => i128::from(task.period),
        }
    };
    let mut order: Vec<usize> = (0..set.tasks.len()).collect();
    order.sort_by_key(|&i| key(&set.tasks[i]));
    let mut priorities = vec![0; set.tasks.len()];
    for (rank, &task) in order.iter().enumerate() {
        priorities[task] = (TOP - i32::try_from(rank).unwrap_or(TOP)).max(1);
    }
    priorities
}

/// The domains that tasks name, once each, in file order.
pub fn domains(set: &TaskSet) -> Vec<DomainId> {
    let mut domains: Vec<DomainId> = Vec::new();
    for task in &set.tasks {
        if !domains.contains(&task.domain) {
            domains.push(task.domain);
        }
    }
    domains
}

/// Whether an observer of `percent` of a CPU fits beside the set's budgets, on each CPU by itself
/// or, unpinned, on so many CPUs together. The kernel usually admits 95 % and keeps 5 of these for
/// its fair server; 1 is for rounding.
pub fn fits_beside_observer(set: &TaskSet, percent: u128, unpinned: Option<usize>) -> bool {
    // The kernel counts the same way: budget / period of each task in 20 bits.
    let ratio = |task: &TaskSpec| (u128::from(task.budget) << 20) / u128::from(task.period.max(1));
    let sum = |test: &dyn Fn(&TaskSpec) -> bool| {
        set.tasks.iter().filter(|task| test(task)).map(ratio).sum::<u128>() * 100
    };
    let domains = domains(set);
    match unpinned {
        Some(shared) => {
            let observers = (percent * domains.len() as u128) << 20;
            sum(&|_| true) + observers <= (89 * shared as u128) << 20
        }
        None => {
            let fits = |&domain| sum(&|task| task.domain == domain) <= (89 - percent) << 20;
            domains.iter().all(fits)
        }
    }
}

/// The kernel's policies know no other releases.
pub fn not_periodic(set: &TaskSet) -> Option<Unsupported> {
    let task = set.tasks.iter().find(|t| t.arrival != Arrival::Periodic)?;
    Some(Unsupported {
        reason: format!(
            "task \"{}\" is not released periodically, and only such tasks are compared",
            task.name
        ),
        help: vec!["leave its arrival away, or compare a set without it".to_owned()],
        unpinned_may_work: false,
    })
}

pub fn nature(body: &Body) -> Option<Nature> {
    match body {
        Body::Spin(Spin::Forever) => Some(Nature::Forever),
        Body::Steps(steps) if steps.contains(&Step::Spin(Spin::Forever)) => Some(Nature::Forever),
        Body::Spin(_) | Body::Steps(_) => Some(Nature::Ends),
        Body::Command(_) => Some(Nature::Command),
        Body::Pid(_) => None,
    }
}

/// Whether its jobs contain sleeps. The observer does not know their times.
pub fn suspends(body: &Body) -> bool {
    matches!(body, Body::Steps(steps) if steps.iter().any(|step| matches!(step, Step::Sleep(_))))
}

/// The CPUs used and, if there is one, another: a watchdog that no task can be above on its own CPU
/// either.
pub fn guarded(cpus: &[u32]) -> Vec<u32> {
    let mut guarded = cpus.to_vec();
    guarded.extend(affinity().into_iter().find(|cpu| !cpus.contains(cpu)));
    guarded
}

/// What an observer reserves must not be what the set then lacks.
pub fn observing(set: &TaskSet, baseline: Baseline, unpinned: bool) -> &'static [KernelPolicy] {
    match baseline {
        Baseline::Deadline if unpinned && fits_beside_observer(set, 20, Some(affinity().len())) => {
            AMONG_DEADLINES_FREE
        }
        Baseline::Deadline if !unpinned && fits_beside_observer(set, 5, None) => AMONG_DEADLINES,
        _ => ABOVE_ALL,
    }
}

/// Three seconds of records, within limits: the caller may get no CPU for that time.
pub fn room(set: &TaskSet, domain: DomainId) -> usize {
    let records: u64 = set
        .tasks
        .iter()
        .filter(|task| task.domain == domain)
        .map(|task| RING_SECONDS * 1_000_000_000 / task.period.max(1) + 64)
        .sum();
    records.clamp(1_024, 1 << 16) as usize
}

pub fn remarks(
    set: &TaskSet,
    baseline: Baseline,
    unpinned: bool,
    natures: &[Option<Nature>],
) -> Vec<String> {
    let mut notes = Vec::new();
    if unpinned {
        notes.push("its tasks are not pinned: they share all CPUs".to_owned());
    }
    if baseline == Baseline::Deadline && observing(set, baseline, unpinned) == ABOVE_ALL {
        notes.push(
            "the observer had no room of its own among these budgets and was often late: see the \
             periods counted apart"
                .to_owned(),
        );
    }
    if natures.contains(&Some(Nature::Command)) {
        let forks = if baseline == Baseline::Deadline {
            "; threads that it creates are ordinary ones"
        } else {
            ""
        };
        notes.push(format!(
            "of a command only the execution time of its first process is known{forks}"
        ));
    }
    if !set.groups.is_empty() || !set.budget_groups.is_empty() {
        notes.push(
            "its groups and budget groups are ignored: all tasks are in one group".to_owned(),
        );
    }
    for task in &set.tasks {
        if let Body::Pid(pid) = task.body {
            notes.push(format!("task \"{}\" (process {pid}) was left as it is", task.name));
        }
    }
    notes
}

#[cfg(test)]
mod tests {
    use super::*;
    use punctual_taskset::{Body, DomainSpec, PolicySpec, Spin};

    fn set(policy: &str) -> TaskSet {
        let task = |period, deadline, priority| TaskSpec {
            deadline,
            priority,
            ..TaskSpec::new("", period, 1, Body::Spin(Spin::Forever))
        };
        TaskSet {
            domains: vec![DomainSpec::of_cpu(3)],
            policy: PolicySpec::named(policy),
            duration: None,
            tasks: vec![task(40, 10, 1), task(10, 9, 7), task(20, 20, 7)],
            groups: Vec::new(),
            budget_groups: Vec::new(),
        }
    }

    #[test]
    fn priorities_follow_the_sets_policy() {
        assert_eq!(priorities(&set("rm")), [88, 90, 89]);
        assert_eq!(priorities(&set("edf")), [88, 90, 89]);
        assert_eq!(priorities(&set("dm")), [89, 90, 88]);
        assert_eq!(priorities(&set("fp")), [88, 90, 89], "ties go to file order");
    }

    #[test]
    fn many_tasks_share_the_lowest_level() {
        let mut set = set("rm");
        let one = set.tasks[0].clone();
        set.tasks = vec![one; 120];
        let priorities = priorities(&set);
        assert_eq!((priorities[0], priorities[89], priorities[119]), (90, 1, 1));
        assert_eq!(domains(&set), [DomainId(0)]);
    }

    #[test]
    fn deadline_parameters_are_the_tasks_own() {
        let want = KernelPolicy::Deadline { runtime: 1, deadline: 10, period: 40 };
        assert_eq!(policies(&set("rm"), Baseline::Deadline)[0], want);
    }

    #[test]
    fn an_observer_takes_only_what_is_left() {
        let mut set = set("rm");
        set.tasks.truncate(1);
        for (budget, alone, on_two) in [(84, true, true), (85, false, true), (100, false, true)] {
            (set.tasks[0].period, set.tasks[0].budget) = (100, budget);
            assert_eq!(fits_beside_observer(&set, 5, None), alone, "{budget}");
            assert_eq!(fits_beside_observer(&set, 20, Some(2)), on_two, "{budget}");
        }
        assert!(!fits_beside_observer(&set, 20, Some(1)));
    }

    #[test]
    fn only_sets_of_periodic_tasks_are_compared() {
        let set = |arrival| {
            let text = format!(
                "cpu = 0\npolicy = \"rm\"\n[[task]]\nname = \"t\"\nperiod = \"5ms\"\n\
                 budget = \"1ms\"\n{arrival}work = {{ spin = \"1ms\" }}"
            );
            TaskSet::parse(&text, "test").expect("it is right")
        };
        assert_eq!(not_periodic(&set("")), None);
        let refusal = not_periodic(&set("arrival = { sporadic = \"9ms\" }\n")).expect("refused");
        assert!(refusal.reason.contains("\"t\"") && !refusal.unpinned_may_work, "{refusal:?}");
    }
}
