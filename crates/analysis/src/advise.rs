//! The smallest change that would make a set fit: bisected to the nanosecond, each step with the
//! whole analysis anew.
//!
//! What is tried: the late tasks' own budgets, deadlines and periods, the budgets of the largest
//! others, the servers above the late ones, the budget groups that may run dry; and, where no such
//! change is enough, all budgets together. Smallest means: the smallest part of what it was.

use punctual_taskset::{ServerSpec, TaskSet};

use crate::analysis::{CpuAnalysis, Fit};
use crate::effort::{self, Effort};
use crate::utilization::{Ppm, WHOLE};
use crate::verdict::{Change, Cure, Quantity, Whose};
use crate::Capacity;
use crate::{analyse_cpu, load};

/// Late tasks that are looked at one by one.
const MOST_LATE: usize = 8;

/// Others whose budgets are tried, the largest first.
const MOST_OTHERS: usize = 5;

/// A period is lengthened to so many times itself at most.
const LONGEST: u64 = 64;

/// What would help one CPU that does not fit.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Advice {
    /// The CPU's number.
    pub cpu: u32,
    /// The least change with which all of the CPU fits.
    pub cure: Cure,
    /// Whether the search came to its end. `false`: it used up its effort, and a smaller change than
    /// `cure` may do.
    pub complete: bool,
    /// For late tasks (the first eight): the least change of its own with which it fits,
    /// whatever becomes of others.
    pub own: Vec<Change>,
}

struct Search<'a> {
    set: &'a TaskSet,
    trial: TaskSet,
    cpu: u32,
    capacity: Capacity,
    effort: Effort,
}

/// What would help a CPU that does not fit. The work is bounded; what was not found in time is left out.
#[must_use]
pub fn advise(set: &TaskSet, analysis: &CpuAnalysis) -> Advice {
    let cpu = analysis.load.cpu;
    if analysis.no_cycle {
        return Advice { cpu, cure: Cure::Periods, complete: true, own: Vec::new() };
    }
    let least = analysis.capacity.costs.least_budget;
    let servers = set.groups.iter().filter(|g| g.cpu == cpu).filter_map(|g| match &g.server {
        ServerSpec::Periodic { budget, .. } => Some(*budget),
        ServerSpec::Windows { .. } => None,
    });
    if set.tasks.iter().filter(|t| t.cpu == cpu).map(|t| t.budget).chain(servers).any(|budget| budget < least) {
        return Advice { cpu, cure: Cure::LeastBudget { least }, complete: true, own: Vec::new() };
    }
    let capacity = analysis.capacity;
    let mut search = Search { set, trial: set.clone(), cpu, capacity, effort: Effort::new(effort::ADVICE) };
    let late: Vec<usize> =
        analysis.tasks.iter().filter(|t| !t.fit.admitted()).map(|t| t.task).take(MOST_LATE).collect();
    let cure = search.cure(analysis, &late);
    let complete = search.effort.left() > 0;
    let mut own = Vec::new();
    for &task in &late {
        let candidates = search.own(task);
        let fits = |now: &CpuAnalysis| now.tasks.iter().any(|t| t.task == task && t.fit == Fit::Fits);
        own.extend(search.smallest(&candidates, &fits));
    }
    Advice { cpu, cure, complete, own }
}

impl Search<'_> {
    fn cure(&mut self, analysis: &CpuAnalysis, late: &[usize]) -> Cure {
        if let Some(cure) = load::cure(self.set, self.cpu, &self.capacity, &load::Promised::new(self.set, self.cpu)) {
            // Where the CPU is too full and nothing else is wrong, this is exact.
            let enough = match &cure {
                Cure::Change(change) => self.with(change, change.to, &CpuAnalysis::fits),
                _ => false,
            };
            if enough || analysis.schedulable() {
                return cure;
            }
        }
        let mut candidates: Vec<Change> = late.iter().flat_map(|&task| self.own(task)).collect();
        candidates.extend(self.servers(analysis));
        candidates.extend(self.largest(late));
        match self.smallest(&candidates, &CpuAnalysis::fits) {
            Some(change) => Cure::Change(change),
            None => self.scale(),
        }
    }

    /// The task's own numbers, each with the most that it could become.
    fn own(&self, task: usize) -> Vec<Change> {
        let t = &self.set.tasks[task];
        let new = |what, from, to| Change::new(self.set, Whose::Task, task, what, from, to);
        let mut own = vec![new(Quantity::Budget, t.budget, 1)];
        if t.deadline < t.period {
            own.push(new(Quantity::Deadline, t.deadline, t.period));
        }
        if t.windows.is_empty() {
            own.push(new(Quantity::Period, t.period, t.period.saturating_mul(LONGEST).min(1 << 61)));
        }
        own.retain(|change| change.from != change.to);
        own
    }

    /// The servers above late tasks, and their own, and budget groups that may run dry.
    fn servers(&self, analysis: &CpuAnalysis) -> Vec<Change> {
        let mut found = Vec::new();
        let late = analysis.tasks.iter().filter(|t| !t.fit.admitted()).filter_map(|t| self.set.tasks[t.task].group);
        let late = late.chain(analysis.groups.iter().filter(|g| !g.fit.admitted()).map(|g| g.group));
        for g in late {
            if let ServerSpec::Periodic { period, budget, deadline, .. } = &self.set.groups[g].server {
                let new = |what, from, to| Change::new(self.set, Whose::Group, g, what, from, to);
                found.push(new(Quantity::Budget, *budget, *deadline));
                found.push(new(Quantity::Budget, *budget, 1));
                found.push(new(Quantity::Period, *period, *budget));
            }
        }
        for node in analysis.budget_groups.iter().filter(|b| b.dry) {
            let (from, to) = (node.budget, node.period);
            found.push(Change::new(self.set, Whose::BudgetGroup, node.budget_group, Quantity::Budget, from, to));
        }
        found.retain(|change| change.from != change.to);
        found.sort_by_key(|c| (c.whose as u8, c.index, c.what as u8, c.to));
        found.dedup();
        found.truncate(2 * MOST_LATE);
        found
    }

    /// The budgets of the largest tasks and servers that are not late themselves.
    fn largest(&self, late: &[usize]) -> Vec<Change> {
        let others = self.set.tasks.iter().enumerate().filter(|(n, t)| t.cpu == self.cpu && !late.contains(n));
        let others = others.map(|(n, t)| (Whose::Task, n, t.budget, t.period));
        let groups = self.set.groups.iter().enumerate().filter(|(_, g)| g.cpu == self.cpu);
        let groups = groups.filter_map(|(n, g)| match &g.server {
            ServerSpec::Periodic { period, budget, .. } => Some((Whose::Group, n, *budget, *period)),
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

    /// The smallest of the changes that makes `good` true, each between what is (exclusive) and its
    /// most (inclusive).
    fn smallest(&mut self, candidates: &[Change], good: &dyn Fn(&CpuAnalysis) -> bool) -> Option<Change> {
        let mut best: Option<Change> = None;
        for candidate in candidates {
            let mut most = candidate.to;
            if let Some(best) = &best {
                // No further than what would be as small a part.
                let part = u128::from(candidate.from) * u128::from(best.from.abs_diff(best.to)) / u128::from(best.from);
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
            // Stopped by the effort, it is good but perhaps not the nearest: still a change that helps.
            if best.as_ref().is_none_or(|best| found.is_smaller_than(best)) {
                best = Some(found);
            }
        }
        best
    }

    /// Whether the set is good with one number changed. Not so any more when the effort is used up.
    fn with(&mut self, change: &Change, to: u64, good: &dyn Fn(&CpuAnalysis) -> bool) -> bool {
        if self.effort.left() == 0 {
            return false;
        }
        apply(&mut self.trial, change, to);
        let good = self.now(good);
        restore(&mut self.trial, self.set, change);
        good
    }

    fn now(&mut self, good: &dyn Fn(&CpuAnalysis) -> bool) -> bool {
        let (analysis, spent) = analyse_cpu(&self.trial, self.cpu, &self.capacity, false, self.effort.left());
        self.effort.spend(usize::try_from(spent).unwrap_or(usize::MAX)).is_ok() && good(&analysis)
    }

    /// All budgets of the CPU's tasks together.
    fn scale(&mut self) -> Cure {
        // No larger than what the limit of the CPU leaves; often it is just that.
        let most = load::Promised::new(self.set, self.cpu).utilization.factor_to(self.capacity.limit).0.min(WHOLE);
        let (mut good, mut bad) = (0, most + 1);
        let mut middle = most;
        while bad - good > 1 {
            if self.effort.left() == 0 {
                return Cure::Unknown;
            }
            self.trial = self.set.clone();
            let mut least = u64::MAX;
            for task in self.trial.tasks.iter_mut().filter(|t| t.cpu == self.cpu) {
                let part = |ns: u64| (u128::from(ns) * u128::from(middle) / u128::from(WHOLE)) as u64;
                task.budget = part(task.budget);
                task.mandatory = task.mandatory.map(|m| part(m).max(1));
                least = least.min(task.budget);
            }
            if least > 0 && self.now(&CpuAnalysis::fits) {
                good = middle;
            } else {
                bad = middle;
            }
            middle = good + (bad - good) / 2;
        }
        self.trial = self.set.clone();
        if good == 0 {
            Cure::Unknown
        } else {
            Cure::Scale { to: Ppm(good) }
        }
    }
}

/// Makes a change, with what follows from it: an implicit deadline goes with its period, a mandatory
/// part is no longer than its budget.
pub(crate) fn apply(set: &mut TaskSet, change: &Change, to: u64) {
    match (change.whose, change.what) {
        (Whose::Task, Quantity::Budget) => {
            let task = &mut set.tasks[change.index];
            task.budget = to;
            task.mandatory = task.mandatory.map(|m| m.min(to));
        }
        (Whose::Task, Quantity::Deadline) => set.tasks[change.index].deadline = to,
        (Whose::Task, Quantity::Period) => {
            let task = &mut set.tasks[change.index];
            if task.deadline == task.period {
                task.deadline = to;
            }
            task.period = to;
        }
        (Whose::Group, what) => {
            if let ServerSpec::Periodic { period, budget, deadline, .. } = &mut set.groups[change.index].server {
                match what {
                    Quantity::Budget => *budget = to,
                    Quantity::Deadline => *deadline = to,
                    Quantity::Period => {
                        *deadline = if *deadline == *period { to } else { (*deadline).min(to) };
                        *period = to;
                    }
                }
            }
        }
        (Whose::BudgetGroup, Quantity::Period) => set.budget_groups[change.index].period = to,
        (Whose::BudgetGroup, _) => set.budget_groups[change.index].budget = to,
    }
}

/// Takes back what followed from a change.
fn restore(trial: &mut TaskSet, set: &TaskSet, change: &Change) {
    match change.whose {
        Whose::Task => trial.tasks[change.index].clone_from(&set.tasks[change.index]),
        Whose::Group => trial.groups[change.index].clone_from(&set.groups[change.index]),
        Whose::BudgetGroup => trial.budget_groups[change.index].clone_from(&set.budget_groups[change.index]),
    }
}
