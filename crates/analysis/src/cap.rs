//! The cap of a host on what jobs execute, and when it delays them.
//!
//! # The mechanism (`domain_cap` in `crates/host-kernel/bpf/decide.h`)
//!
//! A window begins with the first decision at least `window` after the beginning of the last one.
//! What is charged to jobs within it is summed up. Once the sum is `share`, a job that is selected
//! while ordinary programs wait is held back, with all other jobs, until `window` after the
//! window's beginning. Then the next window begins.
//!
//! # What follows
//!
//! A window in which jobs execute less than `share` holds no job back. So the cap counts only where
//! jobs may execute more than that within `window`: a task with budget C, deadline D and period T
//! that executes between its releases and its deadlines does so for at most
//!
//! ```text
//! N * C + min(C, window + D - C - N * T)    where N = floor((window + D - C) / T)
//! ```
//!
//! (the first job as late as it can, the others at once: Bertogna, Cirinei and Lipari 2005). The
//! charge of a task exceeds its budgets by the enforcement error of one job. Where that is more
//! than `share`, the set is tested without the cap, and the response of a task that never suspends
//! itself stands for D: before the first hold nothing is later than without the cap.
//!
//! Otherwise: jobs must execute for `share` after the beginning of a window before they are held
//! back, and each hold ends a window. So a hold is at most `window - share` long, at least `share`
//! lies between two of them, and two are never adjacent. Of any interval, jobs and the host have
//! all but
//!
//! ```text
//! hold | share | hold | share | ...
//! ```
//!
//! with the first hold at its beginning: the supply of a server with a budget of `share` in each
//! `window` and a blackout of one hold (Shin and Lee 2003). Group 0 is tested on it. A hold costs a
//! timer and a switch at each end. The host works during holds, too; the tests subtract all of its
//! work from the supply, as if none fell into a hold, which is the worst case.
//!
//! The kernel limits real-time threads likewise, and with them the user host and what it executes
//! (`sched_rt_runtime_us`, or the fair server of ordinary programs).
//!
//! A time table has no room for a hold: where the cap counts, it is refused.

use std::collections::{BTreeMap, HashMap};

use punctual_taskset::{
    fmt_ns, Arrival, ArrivalGaps, Body, Costs, DomainId, ServerSpec, TaskSet, TaskSpec, Window,
};
use serde::Serialize;

use crate::budget_groups::within;
use crate::members::Policy;
use crate::reserved_time::ReservedTime;
use crate::results::{Fit, TaskAnalysis};
use crate::supply::Supply;
use crate::task_server;
use crate::window_supply::WindowSupply;

/// The most that jobs execute within some time, so that ordinary programs have the rest of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct JobCap {
    /// ns.
    pub window: u64,
    /// Of each window, ns: more than nothing, and less than the window.
    pub share: u64,
}

/// Arrivals of an aperiodic task that are computed at most.
const MOST_ARRIVALS: u64 = 100_000;

/// Whether a cap delays the jobs of a domain.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CapAnalysis {
    /// The length of the intervals for which the cap holds.
    #[serde(rename = "window_ns")]
    pub window: u64,
    /// What jobs may execute in such an interval before they are held back.
    #[serde(rename = "share_ns")]
    pub share: u64,
    /// The most that the jobs of this set can execute in such an interval.
    #[serde(rename = "jobs_ns")]
    pub jobs: u64,
    /// Whether `jobs_ns` is more than `share_ns`, so that the tests count the time for which jobs
    /// are held back.
    pub counts: bool,
}

impl CapAnalysis {
    /// `ends`: by task, an index in the set, when its jobs have ended at the latest, ns after their
    /// releases; its deadline where it has none.
    pub(crate) fn new(
        set: &TaskSet,
        domain: DomainId,
        cap: JobCap,
        costs: &Costs,
        ends: &HashMap<usize, u64>,
    ) -> CapAnalysis {
        let jobs = of_budgets(set, domain, cap.window, costs, ends);
        CapAnalysis { window: cap.window, share: cap.share, jobs: 0, counts: false }.with_jobs(jobs)
    }

    fn with_jobs(self, jobs: u128) -> CapAnalysis {
        let jobs = u64::try_from(jobs).unwrap_or(u64::MAX).min(self.window);
        CapAnalysis { jobs, counts: jobs > self.share, ..self }
    }

    /// For a table: its jobs execute within its windows only.
    pub(crate) fn of_table(self, windows: &[ReservedTime]) -> CapAnalysis {
        self.with_jobs(u128::from(self.jobs).min(of_windows(windows, self.window)))
    }

    /// The longest time for which jobs are held back at once, ns.
    #[must_use]
    pub fn hold(&self) -> u64 {
        self.window - self.share
    }

    /// What group 0 is sure to receive.
    pub(crate) fn supply(&self, costs: &Costs) -> Supply {
        if !self.counts {
            return Supply::Whole;
        }
        let ends = 2 * costs.switch.saturating_add(costs.timer);
        let budget = self.share.saturating_sub(ends).max(1);
        Supply::Server { blackout: self.window - budget, budget, period: self.window }
    }

    /// Where the cap counts: why, in one sentence.
    #[must_use]
    pub fn note(&self) -> Option<String> {
        let [jobs, window, hold] = [self.jobs, self.window, self.hold()].map(fmt_ns);
        self.counts.then(|| {
            format!(
                "jobs may use {jobs} of an interval of {window}, and this host leaves {hold} of it \
                 to ordinary programs: it may hold back all jobs for {hold} at a time, which the \
                 tests count"
            )
        })
    }

    /// Where the cap counts: what to do so that it does not.
    #[must_use]
    pub fn help(&self) -> Option<String> {
        let [window, share] = [self.window, self.share].map(fmt_ns);
        self.counts.then(|| {
            format!(
                "no job is held back where jobs need at most {share} of any {window}: divide long \
                 budgets into smaller ones with shorter periods, and put a task whose server uses \
                 idle time into a group"
            )
        })
    }
}

/// When the jobs of each task have ended at the latest by these results: of tasks that never
/// suspend themselves, and whose whole budget the response includes.
pub(crate) fn ends(set: &TaskSet, tasks: &[TaskAnalysis]) -> HashMap<usize, u64> {
    let known = tasks.iter().filter(|result| {
        let task = &set.tasks[result.task];
        result.fit == Fit::Fits
            && task.server.is_none()
            && is_reservation(set, task)
            && task.budget_group.is_none()
            && matches!(task.body, Body::Spin(_))
    });
    known.filter_map(|result| Some((result.task, result.response?))).collect()
}

/// The most that is charged to all jobs of a domain within `window`, by their budgets, ns.
fn of_budgets(
    set: &TaskSet,
    domain: DomainId,
    window: u64,
    costs: &Costs,
    ends: &HashMap<usize, u64>,
) -> u128 {
    let error = costs.switch.saturating_mul(2).saturating_add(costs.timer.max(costs.command));
    let mut below: Vec<u128> = vec![0; set.groups.len()];
    let mut sum = 0u128;
    for (index, task) in set.tasks.iter().enumerate().filter(|(_, t)| t.domain == domain) {
        let reserved = is_reservation(set, task) && task.is_released_each_period();
        // The error of a reservation's job is carried into the next one.
        let budget = task.budget.saturating_add(if reserved { 0 } else { error });
        let end = ends.get(&index).map_or(task.deadline, |&end| end.min(task.deadline));
        let most = u128::from(of_task(set, task, (budget, end), window)) + u128::from(error);
        match task.group {
            None => sum += most,
            Some(group) => {
                // A task that no path connects with group 0 is never executed.
                if let Some(root) = root(set, group) {
                    below[root] += most;
                }
            }
        }
    }
    let roots = set.groups.iter().zip(below).filter(|(g, _)| g.domain == domain);
    for (group, below) in roots.filter(|(g, _)| g.parent.is_none()) {
        sum += below.min(of_server(&group.server, window, error));
    }
    sum
}

/// The group in group 0 that a group is below.
fn root(set: &TaskSet, group: usize) -> Option<usize> {
    let mut at = group;
    // A path is no longer than there are groups.
    for _ in 0..set.groups.len() {
        match set.groups[at].parent {
            None => return Some(at),
            Some(parent) => at = parent,
        }
    }
    None
}

fn is_reservation(set: &TaskSet, task: &TaskSpec) -> bool {
    Policy::of(set.policy_of(task.group)).is_some_and(Policy::is_reservation)
}

/// `end`: when each job has ended at the latest, after its release.
fn of_task(set: &TaskSet, task: &TaskSpec, (budget, end): (u64, u64), window: u64) -> u64 {
    // It uses idle time, without a bound.
    if task.weight.is_some() {
        return window;
    }
    let early = task_server::is_early(task);
    if let Some(kind) = task.server.filter(|_| !early) {
        return task_server::most_within(&TaskSpec { budget, ..task.clone() }, kind, window);
    }
    let times: Vec<u64> = match &task.arrival {
        Arrival::Periodic | Arrival::Sporadic { .. } => {
            return within(window, None, task.period, budget, end);
        }
        Arrival::Aperiodic { mean, seed } => {
            // The sequence of its seed. In one without an end, any number may arrive at once.
            let few = |duration: &u64| duration / (*mean).max(1) < MOST_ARRIVALS;
            let Some(duration) = set.duration.filter(few) else { return window };
            let mut gaps = ArrivalGaps::new(*mean, *seed);
            let next = |at: &u64| Some(at.saturating_add(gaps.draw()));
            let times = std::iter::successors(Some(0), next).skip(1);
            times.take_while(|&at| at <= duration).collect()
        }
        Arrival::List(times) => times.clone(),
    };
    let mut ends: Vec<u64> = times.iter().map(|at| at.saturating_add(end)).collect();
    if early {
        // A total bandwidth server postpones the deadline of a request to a period after the last.
        let mut last = 0;
        for (at, end) in times.iter().zip(&mut ends) {
            last = last.max(*at).saturating_add(task.period);
            *end = last;
        }
    }
    most_within(&times, &ends, window).saturating_mul(budget).min(window)
}

/// The most of the jobs that arrive at `times` and end until `ends`, both in order, that can
/// execute in any `window`.
fn most_within(times: &[u64], ends: &[u64], window: u64) -> u64 {
    let from = |n: usize| {
        let until = ends[n].saturating_add(window);
        times[n..].partition_point(|&at| at < until)
    };
    (0..times.len()).map(from).max().unwrap_or(0) as u64
}

fn of_server(server: &ServerSpec, window: u64, error: u64) -> u128 {
    match server {
        ServerSpec::Periodic { period, budget, deadline, .. } => {
            let budget = budget.saturating_add(error);
            u128::from(within(window, None, *period, budget, *deadline))
        }
        ServerSpec::Windows { cycle, windows } => {
            let windows: Vec<ReservedTime> = ReservedTime::of_windows(*cycle, windows).collect();
            of_windows(&windows, window)
        }
    }
}

/// The most of any interval of length `window` that lies within windows: exact for windows with the
/// same cycle, of which no two overlap.
fn of_windows(windows: &[ReservedTime], window: u64) -> u128 {
    let mut by_cycle: BTreeMap<u64, Vec<Window>> = BTreeMap::new();
    for w in windows {
        let own = by_cycle.entry(w.cycle.max(1)).or_default();
        let (start, cycle) = (w.start % w.cycle.max(1), w.cycle.max(1));
        let length = w.length.min(cycle);
        let first = length.min(cycle - start);
        own.push(Window { start, length: first });
        if length > first {
            own.push(Window { start: 0, length: length - first });
        }
    }
    let most = by_cycle.into_iter().map(|(cycle, mut own)| {
        own.sort_by_key(|w| w.start);
        let supply = WindowSupply::new(cycle, &own);
        // The interval with the most begins with a window.
        let each = own.iter().map(|w| supply.between(w.start, w.start.saturating_add(window)));
        u128::from(each.max().unwrap_or(0))
    });
    most.sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_most_within_windows_is_what_counting_finds() {
        let all = [(1u64, 3u64), (5, 1), (10, 4)];
        let times: Vec<ReservedTime> =
            all.map(|(start, length)| ReservedTime { start, cycle: 12, length }).to_vec();
        let covered = |t: u64| all.iter().any(|(start, length)| (t + 12 - start) % 12 < *length);
        for window in 1..40 {
            let most = (0..12).map(|from| (from..from + window).filter(|&t| covered(t)).count());
            assert_eq!(of_windows(&times, window), most.max().unwrap() as u128, "{window}");
        }
    }
}
