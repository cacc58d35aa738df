//! Tasks that share their group by weight: what the group has, and what each of them is sure of.

use std::collections::HashMap;

use crate::duration::fmt_ns;
use crate::format::{self, Task};
use crate::problems::Problems;
use crate::reclaim::PART_FOR_TASKS;
use crate::value::{place, At, Positive, Span};
use crate::{DomainId, PolicySpec, ServerSpec, TaskSet, TaskSpec, DURATION_LIMIT, LEAST_PERIOD};

/// The largest weight of a task.
pub const MOST_WEIGHT: u32 = 10_000;

/// The quantum of a policy that gives none, ns.
pub const DEFAULT_QUANTUM: u64 = 4_000_000;

/// The shortest quantum, ns: as the shortest period, of which it is all where a task is alone.
pub const LEAST_QUANTUM: u64 = LEAST_PERIOD;

/// The longest quantum, ns.
pub const LONGEST_QUANTUM: u64 = 1_000_000_000;

/// The longest time without execution at the top, ns: a hold of the user host's real-time limit
/// (docs/check.md, "The cap"); that of the kernel host is shorter.
const HOLD: u64 = 50_000_000;

/// What a group under a policy with weights is sure to execute, and among which tasks it is shared.
///
/// Within any interval of `t` ns in which a task of it is ready, the group executes at least
/// (`t` - `blackout`) * `budget` / `period` ns: that holds of each server that receives its
/// budget within each period (Shin and Lee 2003), and of windows in a cycle.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FairShare {
    /// The sum of the weights of the group's tasks.
    pub weights: u64,
    /// How many tasks the group has.
    pub tasks: u64,
    /// Execution time in each `period`, ns.
    pub budget: u64,
    /// ns.
    pub period: u64,
    /// ns.
    pub blackout: u64,
}

impl FairShare {
    /// Of a group (`None`: group 0 of the domain), by its server alone: what it is sure of if the
    /// set is admitted.
    #[must_use]
    pub fn of(set: &TaskSet, domain: DomainId, group: Option<usize>) -> FairShare {
        let tasks = set.tasks.iter().filter(|t| t.domain == domain && t.group == group);
        let (mut weights, mut count) = (0, 0);
        for weight in tasks.filter_map(|t| t.weight) {
            weights += u64::from(weight);
            count += 1;
        }
        let (budget, period, blackout) = match group.map(|group| &set.groups[group].server) {
            None => (PART_FOR_TASKS.0, PART_FOR_TASKS.1, HOLD),
            // All of one budget at once, and the next one as late as it can.
            Some(ServerSpec::Periodic { period, budget, .. }) => {
                (*budget, *period, period.saturating_sub(*budget).saturating_add(*period))
            }
            Some(ServerSpec::Windows { cycle, windows }) => {
                (windows.iter().map(|window| window.length).sum(), *cycle, *cycle)
            }
        };
        let (budget, period) = (budget.max(1), period.max(1));
        FairShare { weights: weights.max(1), tasks: count, budget, period, blackout }
    }

    /// The longest time in which the group executes for `ns`, ns.
    #[must_use]
    pub fn time_for(&self, ns: u128) -> u64 {
        u64::try_from(self.time_at_rate(ns)).unwrap_or(u64::MAX).saturating_add(self.blackout)
    }

    /// The time in which the part of a task of this weight is `quantum` ns, rounded up, ns.
    #[must_use]
    pub fn period_of(&self, weight: u32, quantum: u64) -> u64 {
        let parts = u128::from(quantum).saturating_mul(u128::from(self.weights));
        let whole = parts.saturating_mul(u128::from(self.period));
        let period = whole.div_ceil(u128::from(self.budget) * u128::from(weight.max(1)));
        u64::try_from(period).unwrap_or(u64::MAX).clamp(1, DURATION_LIMIT - 1)
    }

    fn time_at_rate(&self, ns: u128) -> u128 {
        ns.saturating_mul(u128::from(self.period)).div_ceil(u128::from(self.budget))
    }
}

impl TaskSet {
    /// Gives each task with a weight its budget, period and deadline: the quantum of its policy,
    /// and the time in which its part of its group is one quantum. For sets made by a program; in
    /// those that were read it is done.
    pub fn apply_weights(&mut self) {
        let mut shares: HashMap<(DomainId, Option<usize>), FairShare> = HashMap::new();
        for index in 0..self.tasks.len() {
            let TaskSpec { domain, group, weight, .. } = self.tasks[index];
            let Some(weight) = weight else { continue };
            let quantum = self.policy_of(group).quantum_ns();
            let share = || FairShare::of(self, domain, group);
            let share = shares.entry((domain, group)).or_insert_with(share);
            let period = share.period_of(weight, quantum);
            let task = &mut self.tasks[index];
            (task.budget, task.period, task.deadline) = (quantum, period, period);
        }
    }
}

/// Checks the quantum of a policy.
pub(crate) fn quantum(
    name: &str,
    takes_weights: bool,
    quantum: &Option<At<Positive>>,
    problems: &mut Problems<'_>,
) {
    let Some(found) = quantum else { return };
    let limits = [("less", LEAST_QUANTUM, "least"), ("more", LONGEST_QUANTUM, "most")];
    let beyond = match found.0 {
        ..LEAST_QUANTUM => Some(limits[0]),
        ns if ns > LONGEST_QUANTUM => Some(limits[1]),
        _ => None,
    };
    if !takes_weights {
        let cause = format!("the policy \"{name}\" takes no quantum");
        problems.fault_of_key(&found.span, cause, "remove it, or use \"wfq\" or \"sfq\"");
    } else if let Some((than, limit, at)) = beyond {
        let (quantum, limit) = (fmt_ns(found.0), fmt_ns(limit));
        let cause = format!("quantum {quantum} is {than} than {limit}");
        problems.fault(&found.span, cause, format!("make it at {at} {limit}"));
    }
}

/// Checks the weight of a task, and that it has none of what follows from a weight, under the
/// policy that orders its jobs. The weight.
pub(crate) fn weight(
    task: &Task,
    policy: Option<&PolicySpec>,
    problems: &mut Problems<'_>,
) -> Option<u32> {
    let weight = task.weight.as_ref().map(|weight| weight.unsigned());
    let policy = policy?;
    if !policy.takes_weights() {
        if let Some(at) = place(&task.weight) {
            let cause = format!("the policy \"{}\" takes no weight", policy.name);
            let help =
                "remove it, or put the task into a [[group]] with policy = \"wfq\" or \"sfq\"";
            problems.fault_of_key(at, cause, help);
        }
        return weight;
    }
    for (key, at) in keys_of_periods(task) {
        if let Some(at) = at {
            let cause = format!("a task under \"{}\" has no {key}", policy.name);
            let help = match weight {
                Some(_) => "remove it: its weight and the quantum of the policy decide",
                None => "give it a weight in its place, such as weight = 1",
            };
            problems.fault_of_key(at, cause, help);
        }
    }
    if let Some(found) = &task.arrival {
        let at_any_time = match &found.value {
            format::Arrival::Word(_) => false,
            format::Arrival::Random(table) => table.sporadic.is_none(),
            format::Arrival::List(_) => true,
        };
        if !at_any_time {
            let cause = format!("a task under \"{}\" has no period between arrivals", policy.name);
            let help = "remove it: without arrivals the task executes whenever it can; or write \
                        { aperiodic = \"MEAN\" } or a list of times";
            problems.fault_of_key(&found.span, cause, help);
        }
    }
    weight
}

fn keys_of_periods(task: &Task) -> [(&'static str, Option<&Span>); 9] {
    [
        ("role", place(&task.role)),
        ("period", place(&task.period)),
        ("budget", place(&task.budget)),
        ("deadline", place(&task.deadline)),
        ("overrun", place(&task.overrun)),
        ("server", place(&task.server)),
        ("min_budget", place(&task.min_budget)),
        ("jitter", place(&task.jitter)),
        ("blocking", place(&task.blocking)),
    ]
}
