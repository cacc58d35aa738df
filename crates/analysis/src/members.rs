//! From a task set to those who compete in one of its groups.

use punctual_taskset::{Arrival, Body, ServerKind, ServerSpec, Step, TaskSet, TaskSpec};

use crate::budgets::Nodes;
use crate::contender::{Contender, PutOff, Who};
use crate::sleepers;

/// How a group's members are ordered, as far as the tests can tell policies apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Policy {
    /// By period.
    Rm,
    /// By relative deadline.
    Dm,
    /// By the set's own priorities.
    Fp,
    Edf,
    /// By the start of windows.
    Table,
    /// A mandatory part above all optional ones.
    Imprecise,
    /// Promoted above the rest at a fixed time after its release.
    Dual,
}

impl Policy {
    /// Its periodic tasks are reservations, which the dispatcher releases without a timer of the
    /// policy.
    pub(crate) fn is_reservation(self) -> bool {
        matches!(self, Policy::Rm | Policy::Dm | Policy::Fp | Policy::Edf)
    }

    pub(crate) fn named(name: &str) -> Option<Policy> {
        Some(match name {
            "rm" => Policy::Rm,
            "dm" => Policy::Dm,
            "fp" => Policy::Fp,
            "edf" => Policy::Edf,
            "td" => Policy::Table,
            "imprecise" => Policy::Imprecise,
            "dual" => Policy::Dual,
            _ => return None,
        })
    }

    /// Larger first. `hard`: whether it has a high band under [`Policy::Dual`].
    fn rank(self, period: u64, deadline: u64, priority: i64, hard: bool) -> i128 {
        match self {
            Policy::Rm | Policy::Imprecise => -i128::from(period),
            Policy::Fp => i128::from(priority),
            Policy::Dm => -i128::from(deadline),
            Policy::Dual if hard => -i128::from(deadline),
            Policy::Dual => i128::from(priority) - BAND,
            Policy::Edf | Policy::Table => 0,
        }
    }
}

/// More than the distance between any two ranks of a band.
const BAND: i128 = 1 << 80;

/// The members of a group (`None`: group 0) on a CPU: tasks first, in file order. `per_job`: what
/// the host takes for a job within its execution, ns.
pub(crate) fn of(
    set: &TaskSet,
    cpu: u32,
    group: Option<usize>,
    policy: Policy,
    nodes: &Nodes,
    per_job: u64,
) -> Vec<Contender> {
    let tasks = set.tasks.iter().enumerate().filter(|(_, t)| t.cpu == cpu && t.group == group);
    let mut members: Vec<Contender> = Vec::new();
    for (index, task) in tasks {
        let mut c = of_task(index, task, policy);
        if c.put_off == PutOff::Never && task.budget_group.is_none() {
            c.overhead = per_job;
        }
        // Where the budget may run dry, what is left of a job's is executed when it comes again.
        c.wet = nodes.wet(task.budget_group);
        if c.wet.is_some() {
            c.put_off = PutOff::Keeps;
        }
        if policy == Policy::Imprecise {
            if let Some(mandatory) = task.mandatory.filter(|&m| m < task.budget) {
                let mut optional = Contender { who: Who::Extra(index), budget: task.budget - mandatory, ..c.clone() };
                optional.rank -= BAND;
                c.budget = mandatory;
                c.stretches = sleepers::stretches(&task.body, mandatory);
                members.push(optional);
            }
        }
        members.push(c);
    }
    let groups = set.groups.iter().enumerate().filter(|(_, g)| g.cpu == cpu && g.parent == group);
    for (index, spec) in groups {
        let mut server = Contender {
            who: Who::Group(index),
            budget: 0,
            overhead: 0,
            period: None,
            deadline: 0,
            jitter: 0,
            blocking: 0,
            sleep: 0,
            stretches: Vec::new(),
            put_off: PutOff::Keeps,
            rank: 0,
            place: None,
            start: None,
            wet: nodes.wet(spec.budget_group),
        };
        match &spec.server {
            ServerSpec::Periodic { period, budget, deadline, start, kind } => {
                server.budget = *budget;
                server.period = Some((*period).max(1));
                server.deadline = (*deadline).min((*period).max(1));
                server.start = Some(*start);
                server.rank = policy.rank(*period, *deadline, spec.priority, false);
                if *kind == ServerKind::Polling && server.wet.is_none() {
                    server.put_off = PutOff::Never;
                }
                members.push(server);
            }
            ServerSpec::Windows { cycle, windows } => {
                for window in windows {
                    members.push(Contender {
                        budget: window.length,
                        period: Some((*cycle).max(1)),
                        deadline: window.length,
                        start: Some(window.start),
                        rank: policy.rank(*cycle, window.length, spec.priority, false),
                        ..server.clone()
                    });
                }
            }
        }
    }
    members
}

fn of_task(index: usize, task: &TaskSpec, policy: Policy) -> Contender {
    let (who, period, start) = match &task.arrival {
        // No file has a period of 0; a program that has one gets an answer all the same.
        Arrival::Periodic => (Who::Task(index), Some(task.period.max(1)), Some(task.start)),
        Arrival::Sporadic { .. } => (Who::Task(index), Some(task.period.max(1)), None),
        Arrival::Aperiodic { .. } => (Who::Extra(index), None, None),
        Arrival::List(times) => {
            // As sporadic with the least distance in the list, if each job has room before the next.
            let least = times.windows(2).map(|pair| pair[1].saturating_sub(pair[0])).min().unwrap_or(LONG);
            if least < task.deadline {
                (Who::Extra(index), None, None)
            } else {
                (Who::Task(index), Some(least.min(LONG)), None)
            }
        }
    };
    let reserved = policy.is_reservation();
    let (sleeps, known) = sleep(&task.body);
    let put_off = match (sleeps, policy) {
        (false, _) => PutOff::Never,
        (true, Policy::Edf) => PutOff::Cut,
        (true, _) => PutOff::Keeps,
    };
    Contender {
        who,
        budget: task.budget,
        overhead: 0,
        period,
        deadline: task.deadline.min(period.unwrap_or(task.deadline)),
        jitter: task.jitter,
        blocking: task.blocking,
        sleep: known,
        stretches: sleepers::stretches(&task.body, task.budget),
        put_off,
        rank: policy.rank(task.period, task.deadline, task.priority, is_hard(&task.arrival)),
        // Jobs of reservations go in the order of the file; those that a policy makes itself may not.
        place: (reserved && task.arrival == Arrival::Periodic).then_some(index),
        start,
        wet: None,
    }
}

/// By group: the first release of any task in it or below it, ns; those without any: 0.
pub(crate) fn first_releases(set: &TaskSet) -> Vec<u64> {
    let mut first = vec![u64::MAX; set.groups.len()];
    for task in &set.tasks {
        let release = match &task.arrival {
            Arrival::List(times) => times.first().copied().unwrap_or(0),
            _ => task.start,
        };
        let mut at = task.group;
        // A path is no longer than there are groups.
        for _ in 0..set.groups.len() {
            let Some(g) = at.filter(|&g| g < first.len()) else { break };
            first[g] = first[g].min(release);
            at = set.groups[g].parent;
        }
    }
    first.into_iter().map(|first| if first == u64::MAX { 0 } else { first }).collect()
}

/// Promoted under `dual`; others are in its middle band.
pub(crate) fn is_hard(arrival: &Arrival) -> bool {
    matches!(arrival, Arrival::Periodic | Arrival::Sporadic { .. })
}

/// The period of what comes once, ns: no set is older.
const LONG: u64 = 1 << 62;

/// Whether the task may sleep in mid-job, and for how long in all, ns, where that is known. Programs
/// may do what they like.
fn sleep(body: &Body) -> (bool, u64) {
    match body {
        Body::Spin(_) => (false, 0),
        Body::Steps(steps) => steps.iter().fold((false, 0), |(any, sum), step| match step {
            Step::Spin(_) => (any, sum),
            Step::Sleep(ns) => (true, u64::saturating_add(sum, *ns)),
        }),
        Body::Command(_) | Body::Pid(_) => (true, 0),
    }
}
