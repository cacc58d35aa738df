//! The smallest change that makes a set fit: bisected to the nanosecond, with a whole analysis at
//! each step.
//!
//! The search tries the late tasks' own budgets, deadlines and periods, the budgets of the largest
//! other tasks, the servers above the late tasks, and the budget groups that can be exhausted;
//! where no such change is sufficient, all budgets together. Changes are compared by the part of
//! the present value.

use punctual_taskset::{DomainId, ServerSpec, TaskSet};

use crate::capacity::Capacity;
use crate::change::{Change, ChangeTarget, Help, Quantity};
use crate::domain_utilization::DomainUtilization;
use crate::members::Policy;
use crate::results::{DomainAnalysis, Fit};
use crate::step_limit::{self, StepLimit};
use crate::utilization::{Ppm, WHOLE};
use crate::{analyse_domain, overload};

/// Late tasks for which a change of their own is searched for.
const MOST_LATE: usize = 8;

/// Other tasks and servers whose budgets are tried, the largest first.
const MOST_OTHERS: usize = 5;

/// The most by which a period is multiplied.
const LONGEST: u64 = 64;

/// What would help one domain that does not fit.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Advice {
    /// The domain's number in the set, from 0.
    pub domain: DomainId,
    /// The least change with which all of the domain fits.
    pub help: Help,
    /// Whether the search was completed. `false`: it reached its step limit, and a smaller change
    /// than `help` may be sufficient.
    pub complete: bool,
    /// For the first eight late tasks: the least change of the task's own numbers with which that
    /// task fits, whether or not others do.
    pub own: Vec<Change>,
}

struct Search<'a> {
    set: &'a TaskSet,
    trial: TaskSet,
    domain: DomainId,
    capacity: Capacity,
    steps: StepLimit,
}

/// Searches for changes that make a domain fit. Takes a bounded number of steps (docs/check.md,
/// "Bounds"); what is not found within them is left out.
#[must_use]
pub fn advise(set: &TaskSet, analysis: &DomainAnalysis) -> Advice {
    let domain = analysis.load.domain;
    if analysis.no_cycle {
        return Advice { domain, help: Help::Periods, complete: true, own: Vec::new() };
    }
    let mut tasks = set.tasks.iter().filter(|t| t.domain == domain);
    if analysis.excess.is_none() && tasks.any(|t| Policy::of(set.policy_of(t.group)).is_none()) {
        return Advice { domain, help: Help::NoTest, complete: true, own: Vec::new() };
    }
    if analysis.excess.is_some() && set.policy.takes_weights() {
        return Advice { domain, help: Help::Quantum, complete: true, own: Vec::new() };
    }
    let least = analysis.capacity.costs.least_budget;
    let servers =
        set.groups.iter().filter(|g| g.domain == domain).filter_map(|g| match &g.server {
            ServerSpec::Periodic { budget, .. } => Some(*budget),
            ServerSpec::Windows { .. } => None,
        });
    if set
        .tasks
        .iter()
        .filter(|t| t.domain == domain)
        .map(|t| t.budget)
        .chain(servers)
        .any(|budget| budget < least)
    {
        return Advice {
            domain,
            help: Help::LeastBudget { least },
            complete: true,
            own: Vec::new(),
        };
    }
    let capacity = analysis.capacity;
    let mut search = Search {
        set,
        trial: set.clone(),
        domain,
        capacity,
        steps: StepLimit::new(step_limit::ADVICE),
    };
    let late: Vec<usize> = analysis
        .tasks
        .iter()
        .filter(|t| !t.fit.admitted())
        .map(|t| t.task)
        .take(MOST_LATE)
        .collect();
    let help = search.help(analysis, &late);
    let complete = search.steps.left() > 0;
    let mut own = Vec::new();
    for &task in &late {
        let candidates = search.own(task);
        let fits =
            |now: &DomainAnalysis| now.tasks.iter().any(|t| t.task == task && t.fit == Fit::Fits);
        own.extend(search.smallest(&candidates, &fits));
    }
    Advice { domain, help, complete, own }
}

impl Search<'_> {
    /// The least change with which all of the domain fits.
    fn help(&mut self, analysis: &DomainAnalysis, late: &[usize]) -> Help {
        let utilization = DomainUtilization::new(self.set, self.domain);
        if let Some(help) = overload::for_overload(
            self.set,
            self.domain,
            &self.capacity,
            &utilization,
            &analysis.tables,
        ) {
            // Exact where the CPU is too full and no deadline is missed otherwise.
            let enough = match &help {
                Help::Change(change) => self.with(change, change.to, &DomainAnalysis::fits),
                _ => false,
            };
            if enough || analysis.schedulable() {
                return help;
            }
        }
        let mut candidates: Vec<Change> = late.iter().flat_map(|&task| self.own(task)).collect();
        candidates.extend(self.servers(analysis));
        candidates.extend(self.largest(late));
        match self.smallest(&candidates, &DomainAnalysis::fits) {
            Some(change) => Help::Change(change),
            None => self.scale(),
        }
    }

    /// The task's own numbers, each with the farthest value that is tried.
    fn own(&self, task: usize) -> Vec<Change> {
        let t = &self.set.tasks[task];
        if t.weight.is_some() {
            return Vec::new();
        }
        let new = |quantity, from, to| {
            Change::new(self.set, ChangeTarget::Task, task, quantity, from, to)
        };
        let mut own = vec![new(Quantity::Budget, t.budget, 1)];
        if t.deadline < t.period {
            own.push(new(Quantity::Deadline, t.deadline, t.period));
        }
        if t.windows.is_empty() {
            own.push(new(
                Quantity::Period,
                t.period,
                t.period.saturating_mul(LONGEST).min(1 << 61),
            ));
        }
        own.retain(|change| change.from != change.to);
        own
    }

    /// The servers above late tasks, late servers, and the budget groups that can be exhausted.
    fn servers(&self, analysis: &DomainAnalysis) -> Vec<Change> {
        let mut found = Vec::new();
        let late = analysis
            .tasks
            .iter()
            .filter(|t| !t.fit.admitted())
            .filter_map(|t| self.set.tasks[t.task].group);
        let late =
            late.chain(analysis.groups.iter().filter(|g| !g.fit.admitted()).map(|g| g.group));
        for g in late {
            if let ServerSpec::Periodic { period, budget, deadline, .. } =
                &self.set.groups[g].server
            {
                let new = |quantity, from, to| {
                    Change::new(self.set, ChangeTarget::Group, g, quantity, from, to)
                };
                found.push(new(Quantity::Budget, *budget, *deadline));
                found.push(new(Quantity::Budget, *budget, 1));
                found.push(new(Quantity::Period, *period, *budget));
            }
        }
        for node in analysis.budget_groups.iter().filter(|b| b.exhaustible) {
            let (from, to) = (node.budget, node.period);
            found.push(Change::new(
                self.set,
                ChangeTarget::BudgetGroup,
                node.budget_group,
                Quantity::Budget,
                from,
                to,
            ));
        }
        found.retain(|change| change.from != change.to);
        found.sort_by_key(|c| (c.target as u8, c.index, c.quantity as u8, c.to));
        found.dedup();
        found.truncate(2 * MOST_LATE);
        found
    }

    /// The budgets of the largest tasks and servers that are not late themselves.
    fn largest(&self, late: &[usize]) -> Vec<Change> {
        let others =
            self.set.tasks.iter().enumerate().filter(|(n, t)| {
                t.domain == self.domain && t.weight.is_none() && !late.contains(n)
            });
        let others = others.map(|(n, t)| (ChangeTarget::Task, n, t.budget, t.period));
        let groups = self.set.groups.iter().enumerate().filter(|(_, g)| g.domain == self.domain);
        let groups = groups.filter_map(|(n, g)| match &g.server {
            ServerSpec::Periodic { period, budget, .. } => {
                Some((ChangeTarget::Group, n, *budget, *period))
            }
            ServerSpec::Windows { .. } => None,
        });
        let mut all: Vec<_> = others.chain(groups).filter(|o| o.2 > 1).collect();
        all.sort_by(|a, b| {
            let (a, b) = (u128::from(a.2) * u128::from(b.3), u128::from(b.2) * u128::from(a.3));
            b.cmp(&a)
        });
        all.truncate(MOST_OTHERS);
        all.iter().map(|o| Change::new(self.set, o.0, o.1, Quantity::Budget, o.2, 1)).collect()
    }

    /// The smallest of the changes with which `good` holds, each between the present value
    /// (exclusive) and that of the candidate (inclusive).
    fn smallest(
        &mut self,
        candidates: &[Change],
        good: &dyn Fn(&DomainAnalysis) -> bool,
    ) -> Option<Change> {
        let mut best: Option<Change> = None;
        for candidate in candidates {
            let mut most = candidate.to;
            if let Some(best) = &best {
                // No farther than a change by as small a part.
                let part = u128::from(candidate.from) * u128::from(best.from.abs_diff(best.to))
                    / u128::from(best.from);
                let part = u64::try_from(part).unwrap_or(u64::MAX);
                most = if candidate.to < candidate.from {
                    most.max(candidate.from.saturating_sub(part))
                } else {
                    most.min(candidate.from.saturating_add(part))
                };
            }
            if most == candidate.from || !self.with(candidate, most, good) {
                continue;
            }
            let (mut bad, mut fits) = (candidate.from, most);
            while bad.abs_diff(fits) > 1 {
                let middle = bad.min(fits) + bad.abs_diff(fits) / 2;
                if self.with(candidate, middle, good) {
                    fits = middle;
                } else {
                    bad = middle;
                }
            }
            let found = Change { to: fits, ..candidate.clone() };
            // Where the step limit was reached it may not be the nearest value, but it fits.
            if best.as_ref().is_none_or(|best| found.is_smaller_than(best)) {
                best = Some(found);
            }
        }
        best
    }

    /// Whether `good` holds with one number changed; `false` once the step limit is reached.
    fn with(&mut self, change: &Change, to: u64, good: &dyn Fn(&DomainAnalysis) -> bool) -> bool {
        if self.steps.left() == 0 {
            return false;
        }
        apply(&mut self.trial, change, to);
        let good = self.now(good);
        restore(&mut self.trial, self.set, change);
        good
    }

    /// Whether `good` holds for the trial set.
    fn now(&mut self, good: &dyn Fn(&DomainAnalysis) -> bool) -> bool {
        let (analysis, spent) =
            analyse_domain(&self.trial, self.domain, &self.capacity, false, self.steps.left());
        self.steps.spend(usize::try_from(spent).unwrap_or(usize::MAX)).is_ok() && good(&analysis)
    }

    /// The share to which all budgets of the CPU's tasks must be lowered.
    fn scale(&mut self) -> Help {
        // At most what the limit of the CPU leaves, which is tried first.
        let most = DomainUtilization::new(self.set, self.domain)
            .exact
            .factor_to(self.capacity.limit)
            .0
            .min(WHOLE);
        let (mut good, mut bad) = (0, most + 1);
        let mut middle = most;
        while bad - good > 1 {
            if self.steps.left() == 0 {
                return Help::Unknown;
            }
            self.trial = self.set.clone();
            let mut least = u64::MAX;
            for task in self
                .trial
                .tasks
                .iter_mut()
                .filter(|t| t.domain == self.domain && t.weight.is_none())
            {
                let part =
                    |ns: u64| (u128::from(ns) * u128::from(middle) / u128::from(WHOLE)) as u64;
                task.budget = part(task.budget);
                task.mandatory = task.mandatory.map(|m| part(m).max(1));
                least = least.min(task.budget);
            }
            if least > 0 && self.now(&DomainAnalysis::fits) {
                good = middle;
            } else {
                bad = middle;
            }
            middle = good + (bad - good) / 2;
        }
        self.trial = self.set.clone();
        if good == 0 {
            Help::Unknown
        } else {
            Help::Scale { to: Ppm(good) }
        }
    }
}

/// Makes a change with its consequences: an implicit deadline follows its period, a mandatory part
/// is at most the budget.
pub(crate) fn apply(set: &mut TaskSet, change: &Change, to: u64) {
    match (change.target, change.quantity) {
        (ChangeTarget::Task, Quantity::Budget) => {
            let task = &mut set.tasks[change.index];
            task.budget = to;
            task.mandatory = task.mandatory.map(|m| m.min(to));
        }
        (ChangeTarget::Task, Quantity::Deadline) => set.tasks[change.index].deadline = to,
        (ChangeTarget::Task, Quantity::Period) => {
            let task = &mut set.tasks[change.index];
            if task.deadline == task.period {
                task.deadline = to;
            }
            task.period = to;
        }
        (ChangeTarget::Group, quantity) => {
            if let ServerSpec::Periodic { period, budget, deadline, .. } =
                &mut set.groups[change.index].server
            {
                match quantity {
                    Quantity::Budget => *budget = to,
                    Quantity::Deadline => *deadline = to,
                    Quantity::Period => {
                        *deadline = if *deadline == *period { to } else { (*deadline).min(to) };
                        *period = to;
                    }
                }
            }
        }
        (ChangeTarget::BudgetGroup, Quantity::Period) => {
            set.budget_groups[change.index].period = to
        }
        (ChangeTarget::BudgetGroup, _) => set.budget_groups[change.index].budget = to,
    }
}

/// Undoes a change and its consequences.
fn restore(trial: &mut TaskSet, set: &TaskSet, change: &Change) {
    match change.target {
        ChangeTarget::Task => trial.tasks[change.index].clone_from(&set.tasks[change.index]),
        ChangeTarget::Group => trial.groups[change.index].clone_from(&set.groups[change.index]),
        ChangeTarget::BudgetGroup => {
            trial.budget_groups[change.index].clone_from(&set.budget_groups[change.index])
        }
    }
}
