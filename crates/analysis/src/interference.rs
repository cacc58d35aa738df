//! What the host itself takes of a CPU (Jeffay and Stone 1993; Burns, Tindell and Wellings 1995).
//!
//! A release interrupts any task that executes, also a more important one, and so does a wake-up.
//! Each is execution above all tasks:
//!
//! ```text
//! within w: sum over all terms of ceil((w + jitter) / period) * amount
//! ```
//!
//! A job that never suspends itself adds two switches (it preempts at most one other job, which
//! resumes once) and one end, by a timer or by a command of its task. They lie within its own
//! execution and count as part of it
//! ([`AnalysedTask::overhead`](crate::analysed_task::AnalysedTask)). Where a job can be deferred,
//! they occur at any time until its deadline: a jitter of its deadline.
//!
//! A task that is released while a less important one is being ended or switched to waits for that
//! once ([`Interference::blocking`]).

use indexmap::IndexMap;
use punctual_taskset::{Arrival, Body, Costs, DomainId, ServerSpec, TaskSet, TaskSpec};

use crate::members::Policy;
use crate::self_suspension::suspensions;
use crate::supply::{Supply, NEVER};
use crate::task_server;
use crate::utilization::Utilization;

/// Iterations to find the time in which the host's own work is supplied as well.
const ITERATIONS: u32 = 1_000;

/// Execution in each period, at most `jitter` late, by (period, jitter): the sum of all that have
/// both. Of these a set has few different ones. Times are ns.
pub(crate) type Terms = IndexMap<(u64, u64), u128>;

/// What the host takes of the time in which one group is tested.
#[derive(Debug, Clone, Default)]
pub(crate) struct Interference {
    pub(crate) terms: Terms,
    /// The end of a less important job and the switch after it, once.
    pub(crate) blocking: u64,
    /// What the host adds to each job of a member that never suspends itself.
    pub(crate) per_job: u64,
    /// The supply lacks nothing but the holds of a cap, which do not depend on what the group
    /// wants: a task that sleeps is not held back once more for each of its segments.
    pub(crate) holds_only: bool,
}

impl Interference {
    /// What all tasks and servers of a domain cause while `group` is tested, on the whole CPU or
    /// within windows. Below a server nothing is added: the response of the server includes it.
    pub(crate) fn new(
        set: &TaskSet,
        domain: DomainId,
        group: Option<usize>,
        costs: &Costs,
    ) -> Interference {
        if costs.is_free() {
            return Interference { holds_only: group.is_none(), ..Interference::default() };
        }
        let mut terms = Terms::default();
        host_work(set, domain, costs, &|task| task.group != group, &mut |work| {
            *terms.entry((work.period, work.jitter)).or_default() += u128::from(work.amount);
        });
        let end = costs.timer.max(costs.command);
        let per_job = costs.switch.saturating_mul(2) + end;
        Interference { terms, blocking: costs.switch + end, per_job, holds_only: group.is_none() }
    }

    /// Whether the host takes nothing.
    pub(crate) fn is_none(&self) -> bool {
        self.terms.is_empty() && self.blocking == 0
    }

    /// The execution within `w`, with the blocking that may have begun before.
    pub(crate) fn within(&self, w: u64) -> u128 {
        u128::from(self.blocking) + self.interrupts(w)
    }

    /// The longest time in which `work` is supplied beside what the host takes, ns.
    pub(crate) fn time_for(&self, work: u128, supply: &Supply) -> u64 {
        let mut time = supply.time_for(work);
        if self.is_none() {
            return time;
        }
        for _ in 0..ITERATIONS {
            let next = supply.time_for(work.saturating_add(self.within(time)));
            if next <= time {
                return time;
            }
            time = next;
        }
        NEVER
    }

    /// The execution of interrupts within `w`.
    pub(crate) fn interrupts(&self, w: u64) -> u128 {
        self.terms.iter().map(|(&term, amount)| u128::from(jobs_within(w, term)) * amount).sum()
    }
}

/// How often a term of this period and jitter can occur within `w`.
pub(crate) fn jobs_within(w: u64, (period, jitter): (u64, u64)) -> u64 {
    w.saturating_add(jitter).div_ceil(period)
}

/// The largest part of a CPU that a host with these costs takes for a set. `tables`: the time
/// tables that were synthesised for it.
pub(crate) fn share(
    set: &TaskSet,
    domain: DomainId,
    costs: &Costs,
    tables: &[TableLoad],
) -> Utilization {
    let found = |task: &TaskSpec| {
        task.windows.is_empty() && tables.iter().any(|table| table.group == task.group)
    };
    let mut terms: Vec<(u128, u64)> = Vec::new();
    if !costs.is_free() {
        host_work(set, domain, costs, &|task| !found(task), &mut |work| {
            terms.push((u128::from(work.amount), work.period));
        });
        let job = u128::from(of_window(costs));
        terms.extend(tables.iter().map(|table| (table.windows as u128 * job, table.cycle)));
    }
    Utilization::sum_wide(terms)
}

/// How many windows a synthesised table has in its cycle, ns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TableLoad {
    pub(crate) group: Option<usize>,
    pub(crate) windows: usize,
    pub(crate) cycle: u64,
}

/// Work of the host that occurs once in each period. Times are ns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Work {
    /// The earliest time in a period, from the start of the run; `None`: at any time.
    pub(crate) at: Option<u64>,
    pub(crate) period: u64,
    /// By how much it may be later.
    pub(crate) jitter: u64,
    pub(crate) amount: u64,
}

/// What the host takes for a job in a window of a table: its start, its end, and the switches to it
/// and from it.
pub(crate) fn of_window(costs: &Costs) -> u64 {
    costs.release + costs.switch.saturating_mul(2) + costs.timer.max(costs.command)
}

/// Adds all that a host does for a domain. Of a task whose jobs the caller counts by itself
/// (`jobs`: false), the releases only; jobs in windows that the set specifies are always added.
pub(crate) fn host_work(
    set: &TaskSet,
    domain: DomainId,
    costs: &Costs,
    jobs: &dyn Fn(&TaskSpec) -> bool,
    add: &mut dyn FnMut(Work),
) {
    let mut add = |at: Option<u64>, period: u64, jitter: u64, amount: u64| {
        if amount > 0 {
            add(Work { at, period, jitter, amount });
        }
    };
    let end = costs.timer.max(costs.command);
    let switches = costs.switch.saturating_mul(2);
    let policy = |group| Policy::of(set.policy_of(group));
    let is_table = |task: &TaskSpec| policy(task.group) == Some(Policy::Table);
    // A window that the set specifies may split one of a table that is not known yet.
    let unknown =
        |t: &TaskSpec| t.domain == domain && is_table(t) && t.windows.is_empty() && jobs(t);
    let splits = if set.tasks.iter().any(unknown) { of_window(costs) } else { 0 };
    for task in set.tasks.iter().filter(|t| t.domain == domain) {
        let policy = policy(task.group);
        let period = distance(task);
        let each_period = task.is_released_each_period();
        let in_dispatcher = each_period && policy.is_some_and(Policy::is_reservation);
        let at = (each_period && task.jitter == 0).then_some(task.offset);
        let release = costs.release + if in_dispatcher { 0 } else { costs.timer };
        add(at, period, task.jitter, release);
        let late = task.deadline.min(period).saturating_add(task.jitter);
        let suspensions = suspensions(&task.body);
        // The suspension of a program is no command on the user host, and how often it occurs is
        // unknown.
        let commands = if matches!(task.body, Body::Steps(_)) { 2 } else { 0 };
        let suspended = switches
            .saturating_add(costs.command.saturating_mul(commands))
            .saturating_mul(suspensions);
        if policy == Some(Policy::Table) {
            add(None, period, late, suspended);
            for window in &task.windows {
                let at = task.offset.saturating_add(window.start);
                add(Some(at), period, window.length, of_window(costs) + splits);
            }
            if task.windows.is_empty() && jobs(task) {
                // Each release has a window, and splits at most one other.
                add(None, period, late, of_window(costs).saturating_mul(2));
            }
            continue;
        }
        let parts = 1 + u64::from(policy == Some(Policy::Imprecise) && task.mandatory.is_some());
        if jobs(task) || suspensions > 0 || task.budget_group.is_some() {
            let all = (switches + end).saturating_mul(parts);
            add(None, period, late, suspended.saturating_add(all));
        }
        if task.weight.is_some() {
            // A wake-up begins a quantum.
            add(None, period, late, release.saturating_mul(suspensions));
        }
        if let Some(kind) = task.server {
            let parts = task_server::releases_each_period(kind);
            let period = task.period.max(1);
            add(None, period, 0, (costs.release + costs.timer).saturating_mul(parts));
            add(None, period, period, (switches + end).saturating_mul(parts));
        }
        if policy == Some(Policy::Reclaiming) {
            // The 0-lag time, of a release and of each suspension. Further jobs are on the budget.
            add(None, period, late, costs.timer.saturating_mul(1 + suspensions));
        }
        if policy == Some(Policy::Dual) {
            // The promotion: a timer, and the job may preempt once more.
            add(None, period, late, switches + costs.timer);
        }
    }
    for spec in set.groups.iter().filter(|g| g.domain == domain) {
        let release = costs.release + costs.timer;
        match &spec.server {
            ServerSpec::Periodic { period, deadline, .. } => {
                add(None, (*period).max(1), 0, release);
                add(None, (*period).max(1), *deadline, switches + costs.timer);
            }
            ServerSpec::Windows { cycle, windows } => {
                for window in windows {
                    let (at, cycle) = (Some(window.start), (*cycle).max(1));
                    add(at, cycle, 0, release);
                    add(at, cycle, window.length, switches + costs.timer + splits);
                }
            }
        }
    }
    for node in set.budget_groups.iter().filter(|b| b.domain == domain) {
        add(None, node.period.max(1), 0, costs.release);
        add(None, node.period.max(1), node.period, switches + costs.timer);
    }
}

/// The least time between two releases, ns; where it is unbounded, the mean.
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
