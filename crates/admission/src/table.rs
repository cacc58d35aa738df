//! Time-driven groups (RED-Linux Table 1, Table 2): whether every task has its budget within
//! windows that nobody else has.
//!
//! Windows are exact: each is compared with every other for all time to come, and where a task has
//! none, the table is made that the policy will use (earliest deadline first, which is optimal).

use punctual_taskset::table::{gcd, overlap, TableError, Taken, TimeTable, Wanted, LARGEST_TABLE};
use punctual_taskset::{fmt_ns, Arrival, Body, ServerSpec, TaskSpec};

use crate::analysis::{Fit, GroupResult, TaskResult, Test};
use crate::effort::Exhausted;
use crate::supply::{Supply, Table};
use crate::tree::{group_result, task_result, Walk};
use crate::utilization::Utilization;

/// Windows in one group, at most: each is compared with every other.
const MOST_WINDOWS: usize = 4_096;

/// Whose window it is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Owner {
    Task(usize),
    Group(usize),
}

/// What is wrong with an owner's windows.
type Fault = (Owner, String);

impl Walk<'_> {
    /// Tests a time-driven group, see [`Walk::run`].
    pub(crate) fn table(&mut self, group: Option<usize>) -> Vec<(usize, Supply)> {
        let set = self.set;
        let tasks: Vec<usize> =
            (0..set.tasks.len()).filter(|&t| set.tasks[t].cpu == self.cpu && set.tasks[t].group == group).collect();
        let groups: Vec<usize> =
            (0..set.groups.len()).filter(|&g| set.groups[g].cpu == self.cpu && set.groups[g].parent == group).collect();
        let closed = self.closed(group);
        let mut faults: Vec<Fault> = Vec::new();
        let mut windows: Vec<(Owner, Taken)> = Vec::new();
        for &g in &groups {
            match &set.groups[g].server {
                ServerSpec::Windows { cycle, windows: own } => windows.extend(
                    own.iter().map(|w| (Owner::Group(g), Taken { start: w.start, cycle: *cycle, length: w.length })),
                ),
                ServerSpec::Periodic { .. } => faults.push((
                    Owner::Group(g),
                    "its server has a period and a budget, but its parent's policy \"td\" goes by windows".to_owned(),
                )),
            }
            if self.nodes.wet(set.groups[g].budget_group).is_some() {
                faults.push((Owner::Group(g), "its budget group may run dry within its windows".to_owned()));
            }
        }
        for &t in &tasks {
            let task = &set.tasks[t];
            if let Some(fault) = self.unfit(task) {
                faults.push((Owner::Task(t), fault));
            }
            windows.extend(task.windows.iter().map(|w| {
                let start = task.start % task.period.max(1) + w.start;
                (Owner::Task(t), Taken { start, cycle: task.period.max(1), length: w.length })
            }));
        }
        if closed.is_none() {
            let fault = "a server above it gets its budget at no fixed time, so that windows cannot be kept";
            faults.extend(tasks.iter().map(|&t| (Owner::Task(t), fault.to_owned())));
            faults.extend(groups.iter().map(|&g| (Owner::Group(g), fault.to_owned())));
        }
        let closed = closed.unwrap_or_default();
        let computed = self.overlaps(&windows, &closed, &mut faults).is_ok();

        let free: Vec<usize> = tasks.iter().copied().filter(|&t| set.tasks[t].windows.is_empty()).collect();
        let found = if computed && faults.is_empty() && !free.is_empty() {
            self.found(group, &free, &windows, closed, &mut faults)
        } else {
            Vec::new()
        };
        for &t in &tasks {
            let result = self.of_task(t, &faults, computed, found.iter().find(|f| f.0 == t).map(|f| f.1));
            self.put_task(result);
        }
        groups.into_iter().map(|g| (g, self.of_group(g, &faults, computed))).collect()
    }

    /// When the group cannot execute, whatever its own windows; `None` where that is at no fixed
    /// time.
    fn closed(&self, group: Option<usize>) -> Option<Vec<Taken>> {
        let mut closed = Vec::new();
        let mut at = group;
        for _ in 0..self.set.groups.len() {
            let Some(g) = at else { break };
            let ServerSpec::Windows { cycle, windows } = &self.set.groups[g].server else { return None };
            let mut from = 0;
            for w in windows {
                closed.push(Taken { start: from, cycle: *cycle, length: w.start.saturating_sub(from) });
                from = w.start + w.length;
            }
            closed.push(Taken { start: from, cycle: *cycle, length: cycle.saturating_sub(from) });
            at = self.set.groups[g].parent;
        }
        closed.retain(|t| t.length > 0);
        Some(closed)
    }

    /// What a table cannot hold, and windows that are too short or too late.
    fn unfit(&self, task: &TaskSpec) -> Option<String> {
        if task.period == 0 {
            return Some("its period is 0".to_owned());
        }
        if task.arrival != Arrival::Periodic {
            return Some("a time table cannot hold releases that are not periodic".to_owned());
        }
        if task.jitter > 0 || task.blocking > 0 {
            return Some("a time table leaves no room for jitter or blocking".to_owned());
        }
        if self.nodes.wet(task.budget_group).is_some() {
            return Some("its budget group may run dry within its windows".to_owned());
        }
        if task.windows.is_empty() {
            return None;
        }
        let sum = task.windows.iter().fold(0u64, |sum, w| sum.saturating_add(w.length));
        if sum < task.budget {
            let (sum, budget) = (fmt_ns(sum), fmt_ns(task.budget));
            return Some(format!("its windows are {sum} long together, its budget is {budget}"));
        }
        let end = received(task)?;
        (end > task.deadline).then(|| {
            let (end, deadline) = (fmt_ns(end), fmt_ns(task.deadline));
            format!("in its windows it has its budget after {end}, its deadline is {deadline}")
        })
    }

    fn overlaps(
        &mut self,
        windows: &[(Owner, Taken)],
        closed: &[Taken],
        faults: &mut Vec<Fault>,
    ) -> Result<(), Exhausted> {
        if windows.len() > MOST_WINDOWS {
            return Err(Exhausted);
        }
        for (n, (owner, a)) in windows.iter().enumerate() {
            self.effort.spend(windows.len() - n + closed.len())?;
            for (other, _) in windows[n + 1..].iter().filter(|(other, b)| other != owner && overlap(a, b)) {
                let text = format!("a window of it overlaps one of {}", self.title(*owner));
                faults.push((*other, text));
                let text = format!("a window of it overlaps one of {}", self.title(*other));
                faults.push((*owner, text));
            }
            if closed.iter().any(|c| overlap(a, c)) {
                faults.push((*owner, "a window of it lies outside the windows of the server above it".to_owned()));
            }
        }
        Ok(())
    }

    fn title(&self, owner: Owner) -> String {
        match owner {
            Owner::Task(t) => format!("task {:?}", self.set.tasks[t].name),
            Owner::Group(g) => format!("group {:?}", self.set.groups[g].name),
        }
    }

    /// The longest responses of the tasks without windows, from the table that will be used.
    fn found(
        &mut self,
        group: Option<usize>,
        free: &[usize],
        own: &[(Owner, Taken)],
        closed: Vec<Taken>,
        faults: &mut Vec<Fault>,
    ) -> Vec<(usize, u64)> {
        let taken: Vec<Taken> = own.iter().map(|w| w.1).chain(closed).collect();
        let wanted: Vec<Wanted> = free
            .iter()
            .map(|&t| &self.set.tasks[t])
            .map(|t| Wanted { start: t.start, period: t.period, budget: t.budget, deadline: t.deadline })
            .collect();
        let all = wanted.iter().map(|w| (w.budget, w.period)).chain(own.iter().map(|(_, t)| (t.length, t.cycle)));
        let left = match group.map(|g| &self.set.groups[g].server) {
            Some(ServerSpec::Windows { cycle, windows }) => {
                Utilization::sum(windows.iter().map(|w| (w.length, *cycle)))
            }
            _ => Utilization::sum([(1, 1)]),
        };
        if Utilization::sum(all).exceeds(&left) {
            let text = "no time table can be met: the budgets are more than the time that is left for them";
            faults.extend(free.iter().map(|&t| (Owner::Task(t), text.to_owned())));
            return Vec::new();
        }
        match TimeTable::synthesise(&wanted, &taken) {
            Ok(table) => {
                let cycle = wanted.iter().map(|w| w.period).chain(taken.iter().map(|t| t.cycle));
                let cycle = cycle.fold(1, |all, next| all / gcd(all, next) * next);
                let response = |place: usize| {
                    let rows = 0..cycle / wanted[place].period;
                    rows.filter_map(|n| table.windows(place, n).last()).map(|w| w.start + w.length).max()
                };
                (0..free.len()).filter_map(|place| Some((free[place], response(place)?))).collect()
            }
            Err(error) => {
                self.no_table(error, free, faults);
                Vec::new()
            }
        }
    }

    fn no_table(&self, error: TableError, free: &[usize], faults: &mut Vec<Fault>) {
        let (whose, text) = match error {
            TableError::Late { task, missing, .. } => {
                let text =
                    format!("no time table can be met: {} of its budget is missing at a deadline", fmt_ns(missing));
                (Some(free[task]), text)
            }
            TableError::LongCycle => (None, "no time table: the periods together come again too late".to_owned()),
            TableError::TooLarge => (None, format!("no time table: it would have more than {LARGEST_TABLE} windows")),
        };
        if let Some(late) = whose {
            faults.push((Owner::Task(late), text.clone()));
            let others = format!("no time table can be met, because of task {:?}", self.set.tasks[late].name);
            faults.extend(free.iter().filter(|&&t| t != late).map(|&t| (Owner::Task(t), others.clone())));
        } else {
            faults.extend(free.iter().map(|&t| (Owner::Task(t), text.clone())));
        }
    }

    fn of_task(&self, t: usize, faults: &[Fault], computed: bool, found: Option<u64>) -> TaskResult {
        let task = &self.set.tasks[t];
        let fault = faults.iter().find(|f| f.0 == Owner::Task(t)).map(|f| f.1.clone());
        let response = if task.windows.is_empty() { found } else { received(task) };
        let fit = match (&fault, computed, response) {
            (Some(_), ..) => Fit::Late,
            (None, true, Some(_)) => Fit::Fits,
            (None, ..) => Fit::NotComputed,
        };
        let response = response.filter(|_| fit == Fit::Fits);
        TaskResult {
            fit,
            // A program that sleeps may sleep through its windows.
            exact: matches!(task.body, Body::Spin(_)),
            response,
            reached: response.is_some(),
            slack: response.and_then(|r| task.deadline.checked_sub(r)),
            why: fault,
            ..task_result(self.set, t, Test::Table)
        }
    }

    fn of_group(&mut self, g: usize, faults: &[Fault], computed: bool) -> Supply {
        let fault = faults.iter().find(|f| f.0 == Owner::Group(g)).map(|f| f.1.clone());
        let fit = match (&fault, computed) {
            (Some(_), _) => Fit::Late,
            (None, true) => Fit::Fits,
            (None, false) => Fit::NotComputed,
        };
        let supply = match &self.set.groups[g].server {
            ServerSpec::Windows { cycle, windows } if fit == Fit::Fits => Supply::Table(Table::new(*cycle, windows)),
            _ => Supply::Nothing,
        };
        let blackout = (supply != Supply::Nothing).then(|| supply.time_for(1) - 1);
        self.put_group(GroupResult {
            fit,
            exact: true,
            blackout,
            why: fault,
            ..group_result(self.set, g, Test::Table)
        });
        supply
    }
}

/// When a task has its budget within its own windows, ns after its release.
fn received(task: &TaskSpec) -> Option<u64> {
    let mut left = task.budget;
    task.windows.iter().find_map(|w| {
        if left <= w.length {
            return Some(w.start.saturating_add(left));
        }
        left -= w.length;
        None
    })
}
