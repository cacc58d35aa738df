//! What the host itself takes of a CPU, as the tests see it (Jeffay and Stone 1993; Burns, Tindell
//! and Wellings 1995).
//!
//! A release interrupts whatever executes, also a more important task, and so does a wake-up. Each
//! is execution above all tasks:
//!
//! ```text
//! within w: sum over all terms of ceil((w + jitter) / period) * amount
//! ```
//!
//! A job that never suspends itself also adds two switches (it preempts at most one other job, and
//! that one resumes once) and one end, by a timer or by its task's command. Both lie within its own
//! execution, so that they count as part of it
//! ([`Contender::overhead`](crate::contender::Contender)). Where a job may be put off, they come at
//! any time until its deadline, which is a jitter of its deadline.
//!
//! At last, a task that is released while a less important one is being ended or switched to waits
//! for that once ([`Interference::blocking`]).

use std::collections::HashMap;

use punctual_taskset::{Arrival, Body, Costs, ServerSpec, Step, TaskSet, TaskSpec};

use crate::members::Policy;
use crate::utilization::Utilization;

/// One kind of interruption: so much each period, at most so late in it. Times are ns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Term {
    pub(crate) period: u64,
    pub(crate) jitter: u64,
    pub(crate) amount: u128,
}

/// What the host takes while one group is tested.
#[derive(Debug, Clone, Default)]
pub(crate) struct Interference {
    pub(crate) terms: Vec<Term>,
    /// A less important job's end and the switch after it, once.
    pub(crate) blocking: u64,
    /// What a job of the group adds, of a task that never suspends itself.
    pub(crate) per_job: u64,
}

/// Sums terms of equal period and jitter.
#[derive(Default)]
struct Terms {
    all: Vec<Term>,
    place: HashMap<(u64, u64), usize>,
}

impl Terms {
    fn add(&mut self, period: u64, jitter: u64, amount: u64) {
        if amount == 0 {
            return;
        }
        let at = *self.place.entry((period, jitter)).or_insert_with(|| {
            self.all.push(Term { period, jitter, amount: 0 });
            self.all.len() - 1
        });
        self.all[at].amount += u128::from(amount);
    }
}

impl Interference {
    /// What all tasks and servers of a CPU cause while `group` is tested, on the whole CPU or
    /// within windows. On what a server supplies nothing is added: the server's own response has
    /// all of it.
    pub(crate) fn new(set: &TaskSet, cpu: u32, group: Option<usize>, costs: &Costs) -> Interference {
        if costs.is_free() {
            return Interference::default();
        }
        let mut terms = Terms::default();
        let end = costs.timer.max(costs.command);
        let switches = costs.switch.saturating_mul(2);
        let policy = |group: Option<usize>| Policy::named(&group.map_or(&set.policy, |g| &set.groups[g].policy).name);
        for task in set.tasks.iter().filter(|t| t.cpu == cpu) {
            let policy = policy(task.group);
            let period = distance(task);
            let by_core = task.arrival == Arrival::Periodic && policy.is_some_and(Policy::is_reservation);
            terms.add(period, task.jitter, costs.release + if by_core { 0 } else { costs.timer });
            let late = task.deadline.min(period).saturating_add(task.jitter);
            let sleeps = sleeps(&task.body);
            let jobs = 1 + u64::from(policy == Some(Policy::Imprecise) && task.mandatory.is_some());
            if task.group != group || sleeps > 0 || task.budget_group.is_some() {
                // That a program suspends itself is no command on the user host, and how often is
                // unknown.
                let commands = if matches!(task.body, Body::Steps(_)) { 2 } else { 0 };
                let asleep = switches.saturating_add(costs.command.saturating_mul(commands)).saturating_mul(sleeps);
                terms.add(period, late, asleep.saturating_add((switches + end).saturating_mul(jobs)));
            }
            if policy == Some(Policy::Dual) {
                // Its promotion: a timer, and the job may preempt once more.
                terms.add(period, late, switches + costs.timer);
            }
        }
        for spec in set.groups.iter().filter(|g| g.cpu == cpu) {
            let release = costs.release + costs.timer;
            match &spec.server {
                ServerSpec::Periodic { period, deadline, .. } => {
                    terms.add((*period).max(1), 0, release);
                    terms.add((*period).max(1), *deadline, switches + costs.timer);
                }
                ServerSpec::Windows { cycle, windows } => {
                    for window in windows {
                        terms.add((*cycle).max(1), 0, release);
                        terms.add((*cycle).max(1), window.length, switches + costs.timer);
                    }
                }
            }
        }
        for node in set.budget_groups.iter().filter(|b| b.cpu == cpu) {
            terms.add(node.period.max(1), 0, costs.release);
            terms.add(node.period.max(1), node.period, switches + costs.timer);
        }
        Interference { terms: terms.all, blocking: costs.switch + end, per_job: switches + end }
    }

    pub(crate) fn is_none(&self) -> bool {
        self.terms.is_empty() && self.blocking == 0
    }

    /// All that comes within `w`, the one that was begun before it too.
    pub(crate) fn within(&self, w: u64) -> u128 {
        u128::from(self.blocking) + self.interrupts(w)
    }

    /// All that comes within `w`.
    pub(crate) fn interrupts(&self, w: u64) -> u128 {
        self.terms.iter().map(|t| u128::from(w.saturating_add(t.jitter).div_ceil(t.period)) * t.amount).sum()
    }
}

/// The part of a CPU that a host itself takes at most, of a set with these costs.
pub(crate) fn share(set: &TaskSet, cpu: u32, costs: &Costs) -> Utilization {
    // No task is a direct member of a group beyond the last: all of each job is in the terms.
    let all = Interference::new(set, cpu, Some(usize::MAX), costs);
    Utilization::sum_wide(all.terms.iter().map(|t| (t.amount, t.period)))
}

/// The least time between two releases, ns; where nothing bounds it, the mean.
fn distance(task: &TaskSpec) -> u64 {
    match &task.arrival {
        Arrival::Periodic | Arrival::Sporadic { .. } => task.period,
        Arrival::Aperiodic { mean, .. } => *mean,
        Arrival::List(times) => {
            let span = times.last().zip(times.first()).map_or(0, |(last, first)| last - first);
            span / (times.len().max(2) as u64 - 1)
        }
    }
    .max(1)
}

/// How often a job suspends itself; of a program that is not known, and once is counted.
fn sleeps(body: &Body) -> u64 {
    match body {
        Body::Spin(_) => 0,
        Body::Steps(steps) => steps.iter().filter(|step| matches!(step, Step::Sleep(_))).count() as u64,
        Body::Command(_) | Body::Pid(_) => 1,
    }
}
