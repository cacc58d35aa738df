//! Time-driven groups (RED-Linux Table 1, Table 2): whether every task has its budget within
//! windows that nobody else has.
//!
//! Windows are exact: each is compared with every other for all time to come, and where a task has
//! none, the table is made that the policy will use (earliest deadline first, which is optimal).

use std::collections::HashMap;

use punctual_taskset::table::{gcd, overlap, TableError, Taken, TimeTable, Wanted, LARGEST_TABLE};
use punctual_taskset::{fmt_ns, Arrival, Body, ServerSpec, TaskSpec};

use crate::analysis::{Fit, GroupResult, TaskResult, Test};
use crate::effort::Exhausted;
use crate::sleepers::{self, stretches, Awake};
use crate::supply::{Supply, Table};
use crate::tree::{group_result, task_result, Walk};

/// Windows in one group, at most: each is compared with every other.
const MOST_WINDOWS: usize = 4_096;

/// Whose window it is.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
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
            self.found(&free, &windows, closed, &mut faults)
        } else {
            Vec::new()
        };
        let mut first: HashMap<Owner, String> = HashMap::new();
        for (owner, fault) in faults {
            first.entry(owner).or_insert(fault);
        }
        let found: HashMap<usize, u64> = found.into_iter().collect();
        for &t in &tasks {
            let result = self.of_task(t, first.remove(&Owner::Task(t)), computed, found.get(&t).copied());
            self.put_task(result);
        }
        groups.into_iter().map(|g| (g, self.of_group(g, first.remove(&Owner::Group(g)), computed))).collect()
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
        if sleepers::ends_asleep(&task.body, task.budget) {
            return Some(sleepers::ENDS_ASLEEP.to_owned());
        }
        if task.windows.is_empty() {
            // The table is made for jobs that never sleep.
            let sleeps = !stretches(&task.body, task.budget).is_empty();
            return sleeps.then(|| sleepers::MISSED_WINDOWS.to_owned());
        }
        let sum = task.windows.iter().fold(0u64, |sum, w| sum.saturating_add(w.length));
        if sum < task.budget {
            let (sum, budget) = (fmt_ns(sum), fmt_ns(task.budget));
            return Some(format!("its windows are {sum} long together, its budget is {budget}"));
        }
        let Some(end) = received(task) else { return Some(sleepers::MISSED_WINDOWS.to_owned()) };
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
            let count = windows.len();
            let text = format!("{count} windows are given beside each other, {MOST_WINDOWS} is the most: give fewer");
            faults.extend(windows.iter().map(|(owner, _)| (*owner, text.clone())));
            return Ok(());
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

    fn no_table(&mut self, error: TableError, free: &[usize], faults: &mut Vec<Fault>) {
        let (whose, text) = match error {
            TableError::Late { task, missing, .. } => {
                let text =
                    format!("no time table can be met: {} of its budget is missing at a deadline", fmt_ns(missing));
                (Some(free[task]), text)
            }
            TableError::Overload { .. } => {
                (None, "no time table can be met: the budgets are more than the time that is left for them".to_owned())
            }
            TableError::LongCycle => {
                self.no_cycle = true;
                (None, "no time table: the periods together come again only after more than 36 years".to_owned())
            }
            TableError::TooLarge => {
                self.no_cycle = true;
                (None, format!("no time table: it would have more than {LARGEST_TABLE} windows"))
            }
        };
        if let Some(late) = whose {
            faults.push((Owner::Task(late), text.clone()));
            let others = format!("no time table can be met, because of task {:?}", self.set.tasks[late].name);
            faults.extend(free.iter().filter(|&&t| t != late).map(|&t| (Owner::Task(t), others.clone())));
        } else {
            faults.extend(free.iter().map(|&t| (Owner::Task(t), text.clone())));
        }
    }

    fn of_task(&self, t: usize, fault: Option<String>, computed: bool, found: Option<u64>) -> TaskResult {
        let task = &self.set.tasks[t];
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

    fn of_group(&mut self, g: usize, fault: Option<String>, computed: bool) -> Supply {
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

/// When a task has its budget within its own windows, ns after its release; `None`: they end before.
fn received(task: &TaskSpec) -> Option<u64> {
    let mut stretches = stretches(&task.body, task.budget);
    if stretches.is_empty() {
        stretches.push(Awake { after: 0, spin: task.budget });
    }
    let mut at = 0u64;
    for stretch in stretches {
        at = at.saturating_add(stretch.after);
        let mut left = stretch.spin.max(1);
        at = task.windows.iter().find_map(|w| {
            let (from, end) = (at.max(w.start), w.start.saturating_add(w.length));
            let room = end.saturating_sub(from);
            if left <= room {
                return Some(from + left);
            }
            left -= room;
            None
        })?;
    }
    Some(at)
}
