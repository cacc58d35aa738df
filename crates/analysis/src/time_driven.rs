//! The test of time-driven groups (RED-Linux Table 1, Table 2): whether each task receives its
//! budget within windows that it shares with no other.
//!
//! The test is exact: each window is compared with every other, in all cycles. Where tasks have no
//! windows, the table is synthesised that the policy will use (earliest deadline first, which is
//! optimal). On a host that takes time for itself, the test is sufficient: a task must receive its
//! budget beside what the host takes of its windows at most ([`HostWork`]).

use std::collections::HashMap;

use punctual_taskset::{fmt_ns, Arrival, Body, ServerSpec, TaskSpec, Window};

use crate::hierarchy::Hierarchy;
use crate::interference::TableLoad;
use crate::record::{group_result, task_result};
use crate::reserved_time::{OutsideServers, ReservedTime};
use crate::results::{Fit, GroupAnalysis, TaskAnalysis, Test};
use crate::self_suspension::{self, segments, ExecutionSegment};
use crate::step_limit::Exhausted;
use crate::supply::Supply;
use crate::time_table::{TableError, TableTask, TimeTable, LARGEST_TABLE, MOST_WINDOWS};
use crate::window_costs::{FoundWindows, HostWork};
use crate::window_supply::WindowSupply;

/// The owner of a window, by its index in the set.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Owner {
    Task(usize),
    Group(usize),
}

/// The table of a group's tasks without windows.
#[derive(Default)]
struct Synthesised {
    /// By task (an index in the set): the longest response, ns.
    responses: Vec<(usize, Option<u64>)>,
    windows: FoundWindows,
    times: Vec<ReservedTime>,
}

/// The fault in an owner's windows.
type Fault = (Owner, String);

impl Hierarchy<'_> {
    /// Tests a time-driven group; returns the groups below it, with what each is sure to receive.
    pub(crate) fn test_table(&mut self, group: Option<usize>) -> Vec<(usize, Supply)> {
        let set = self.set;
        let domain = self.domain;
        let tasks: Vec<usize> = (0..set.tasks.len())
            .filter(|&t| set.tasks[t].domain == domain && set.tasks[t].group == group)
            .collect();
        let groups: Vec<usize> = (0..set.groups.len())
            .filter(|&g| set.groups[g].domain == domain && set.groups[g].parent == group)
            .collect();
        let host = HostWork::new(set, domain, group, &self.costs);
        let mut faults: Vec<Fault> = Vec::new();
        let mut windows: Vec<(Owner, ReservedTime)> = Vec::new();
        for &g in &groups {
            match &set.groups[g].server {
                ServerSpec::Windows { cycle, windows: own } => {
                    windows.extend(
                        ReservedTime::of_windows(*cycle, own).map(|w| (Owner::Group(g), w)),
                    );
                }
                ServerSpec::Periodic { .. } => faults.push((
                    Owner::Group(g),
                    "its server has a period and a budget, but its parent's policy \"td\" goes by \
                     windows"
                        .to_owned(),
                )),
            }
            if self.budget_groups.supply(set.groups[g].budget_group).is_some() {
                faults.push((
                    Owner::Group(g),
                    "its budget group may run dry within its windows".to_owned(),
                ));
            }
        }
        for &t in &tasks {
            let task = &set.tasks[t];
            if let Some(fault) = self.unfit(task) {
                faults.push((Owner::Task(t), fault));
            }
            windows.extend(ReservedTime::of_task(task).map(|w| (Owner::Task(t), w)));
        }
        let outside = OutsideServers::new(set, group);
        if outside.unfixed.is_some() {
            let fault = "a server above it gets its budget at no fixed time, so that windows \
                         cannot be kept";
            faults.extend(tasks.iter().map(|&t| (Owner::Task(t), fault.to_owned())));
            faults.extend(groups.iter().map(|&g| (Owner::Group(g), fault.to_owned())));
        }
        let closed = if outside.unfixed.is_some() { Vec::new() } else { outside.times };
        let computed = self.steps.spend(windows.len().saturating_mul(host.terms())).is_ok()
            && self.find_overlaps(&windows, &closed, &mut faults).is_ok();

        let free: Vec<usize> =
            tasks.iter().copied().filter(|&t| set.tasks[t].windows.is_empty()).collect();
        let table = if computed && faults.is_empty() && !free.is_empty() {
            self.synthesise(group, &free, &windows, closed, &host, &mut faults)
        } else {
            None
        };
        let table = table.unwrap_or_default();
        let given = tasks.iter().filter(|&&t| !set.tasks[t].windows.is_empty());
        let mut responses: HashMap<usize, Option<u64>> = table.responses.into_iter().collect();
        for &t in given {
            let received = received(&set.tasks[t], &host, &table.windows);
            if let Some(fault) = late(&set.tasks[t], received, &host, &table.windows) {
                faults.push((Owner::Task(t), fault));
            }
            responses.insert(t, received);
        }
        if let Some(fault) = self.held_back(group, &windows, &table.times) {
            let owners = tasks.iter().map(|&t| Owner::Task(t));
            let owners = owners.chain(groups.iter().map(|&g| Owner::Group(g)));
            faults.extend(owners.map(|owner| (owner, fault.clone())));
        }
        let mut first: HashMap<Owner, String> = HashMap::new();
        for (owner, fault) in faults {
            first.entry(owner).or_insert(fault);
        }
        for &t in &tasks {
            let result = self.of_task(
                t,
                first.remove(&Owner::Task(t)),
                computed,
                responses.get(&t).copied().flatten(),
                host.is_none(),
            );
            self.put_task(result);
        }
        groups
            .into_iter()
            .map(|g| (g, self.of_group(g, first.remove(&Owner::Group(g)), computed)))
            .collect()
    }

    /// Why no window is sure: the host's cap may hold back jobs.
    fn held_back(
        &mut self,
        group: Option<usize>,
        given: &[(Owner, ReservedTime)],
        found: &[ReservedTime],
    ) -> Option<String> {
        // Windows below group 0 lie within those of its table, or are not sure anyway.
        let cap = self.cap.as_mut().filter(|cap| group.is_none() && cap.counts)?;
        let windows: Vec<ReservedTime> =
            given.iter().map(|w| w.1).chain(found.iter().copied()).collect();
        *cap = cap.of_table(&windows);
        cap.counts.then(|| {
            let [jobs, window, share] = [cap.jobs, cap.window, cap.share].map(fmt_ns);
            format!(
                "jobs may execute for {jobs} within {window}, more than the {share} after which \
                 this host holds all of them back, whatever their windows"
            )
        })
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
        if self.budget_groups.supply(task.budget_group).is_some() {
            return Some("its budget group may run dry within its windows".to_owned());
        }
        if self_suspension::ends_suspended(&task.body, task.budget) {
            return Some(self_suspension::ENDS_SUSPENDED.to_owned());
        }
        // A table is synthesised for jobs that never suspend themselves.
        let suspends = || !segments(&task.body, task.budget).is_empty();
        if task.windows.is_empty() && suspends() {
            return Some(self_suspension::MISSED_WINDOWS.to_owned());
        }
        None
    }

    /// Reports windows that overlap each other, or lie outside those of the servers above.
    fn find_overlaps(
        &mut self,
        windows: &[(Owner, ReservedTime)],
        closed: &[ReservedTime],
        faults: &mut Vec<Fault>,
    ) -> Result<(), Exhausted> {
        if windows.len() > MOST_WINDOWS {
            let count = windows.len();
            let text = format!(
                "{count} windows are given in one group, more than {MOST_WINDOWS}: give \
                 fewer"
            );
            faults.extend(windows.iter().map(|(owner, _)| (*owner, text.clone())));
            return Ok(());
        }
        for (n, (owner, a)) in windows.iter().enumerate() {
            self.steps.spend(windows.len() - n + closed.len())?;
            for (other, _) in
                windows[n + 1..].iter().filter(|(other, b)| other != owner && a.overlaps(b))
            {
                let text = format!("a window of it overlaps one of {}", self.title(*owner));
                faults.push((*other, text));
                let text = format!("a window of it overlaps one of {}", self.title(*other));
                faults.push((*owner, text));
            }
            if closed.iter().any(|c| a.overlaps(c)) {
                faults.push((
                    *owner,
                    "a window of it lies outside the windows of the server above it".to_owned(),
                ));
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

    /// Synthesises the table of the tasks without windows (`free`).
    fn synthesise(
        &mut self,
        group: Option<usize>,
        free: &[usize],
        windows: &[(Owner, ReservedTime)],
        closed: Vec<ReservedTime>,
        host: &HostWork,
        faults: &mut Vec<Fault>,
    ) -> Option<Synthesised> {
        let reserved: Vec<ReservedTime> = windows.iter().map(|w| w.1).chain(closed).collect();
        let tasks: Vec<TableTask> = free.iter().map(|&t| (&self.set.tasks[t]).into()).collect();
        match TimeTable::synthesise(&tasks, &reserved, host) {
            Ok(table) => {
                let windows = table.found(&tasks);
                self.tables.push(TableLoad {
                    group,
                    windows: table.count(),
                    cycle: windows.cycle(),
                });
                let responses = free.iter().enumerate();
                let responses = responses.map(|(n, &t)| (t, table.response(n))).collect();
                let times = table.times(&tasks).collect();
                Some(Synthesised { responses, windows, times })
            }
            Err(error) => {
                self.report_no_table(error, free, host, faults);
                None
            }
        }
    }

    fn report_no_table(
        &mut self,
        error: TableError,
        free: &[usize],
        host: &HostWork,
        faults: &mut Vec<Fault>,
    ) {
        self.no_cycle |= matches!(error, TableError::LongCycle | TableError::TooLarge);
        let text = match error {
            TableError::Late { task, missing, .. } => {
                let missing = fmt_ns(missing);
                let needed = if host.is_none() { "" } else { ", with what the host takes," };
                let text = format!(
                    "no time table can be met: {missing} of its budget{needed} is missing at a \
                    deadline"
                );
                // The first fault of a task counts.
                faults.push((Owner::Task(free[task]), text));
                format!(
                    "no time table can be met, because of task {:?}",
                    self.set.tasks[free[task]].name
                )
            }
            TableError::Overload { .. } => {
                let needed = if host.is_none() { "" } else { ", with what the host takes," };
                format!(
                    "no time table can be met: the budgets{needed} are more than the time that is \
                    left for them"
                )
            }
            TableError::LongCycle => {
                "no time table: the periods together come again only after more than 36 years"
                    .to_owned()
            }
            TableError::TooLarge => {
                format!("no time table: it would have more than {LARGEST_TABLE} windows")
            }
        };
        faults.extend(free.iter().map(|&t| (Owner::Task(t), text.clone())));
    }

    fn of_task(
        &self,
        t: usize,
        fault: Option<String>,
        computed: bool,
        response: Option<u64>,
        exact: bool,
    ) -> TaskAnalysis {
        let task = &self.set.tasks[t];
        let fit = fit(&fault, computed && response.is_some());
        let response = response.filter(|_| fit == Fit::Fits);
        TaskAnalysis {
            fit,
            // A program may suspend itself throughout its windows.
            exact: exact && matches!(task.body, Body::Spin(_)),
            response,
            reached: exact && response.is_some(),
            slack: response.and_then(|r| task.deadline.checked_sub(r)),
            why: fault,
            ..task_result(self.set, t, Test::Table)
        }
    }

    fn of_group(&mut self, g: usize, fault: Option<String>, computed: bool) -> Supply {
        let fit = fit(&fault, computed);
        let supply = match &self.set.groups[g].server {
            ServerSpec::Windows { cycle, windows } if fit == Fit::Fits => {
                Supply::Windows(WindowSupply::new(*cycle, windows))
            }
            _ => Supply::Nothing,
        };
        let blackout = (supply != Supply::Nothing).then(|| supply.time_for(1) - 1);
        self.put_group(GroupAnalysis {
            fit,
            exact: true,
            blackout,
            why: fault,
            ..group_result(self.set, g, Test::Table)
        });
        supply
    }
}

fn fit(fault: &Option<String>, computed: bool) -> Fit {
    match (fault, computed) {
        (Some(_), _) => Fit::Late,
        (None, true) => Fit::Fits,
        (None, false) => Fit::NotComputed,
    }
}

/// The most that the host takes of a window that the set specifies, ns. `found`: the windows of the
/// group's synthesised table.
fn taken(task: &TaskSpec, window: &Window, host: &HostWork, found: &FoundWindows) -> u64 {
    let period = task.period.max(1);
    let start = (task.offset % period).saturating_add(window.start);
    host.within((start, period, window.length), found)
}

/// Why a task with windows of its own is late; `received`: when it has its budget.
fn late(
    task: &TaskSpec,
    received: Option<u64>,
    host: &HostWork,
    found: &FoundWindows,
) -> Option<String> {
    let windows = &task.windows;
    let sum = windows.iter().fold(0u64, |sum, w| sum.saturating_add(w.length));
    let taken = windows.iter().fold(0u64, |sum, w| sum.saturating_add(taken(task, w, host, found)));
    if sum.saturating_sub(taken) < task.budget {
        let (sum, budget) = (fmt_ns(sum), fmt_ns(task.budget));
        let taken = match taken {
            0 => String::new(),
            _ => format!(", of which the host takes up to {}", fmt_ns(taken)),
        };
        return Some(format!("its windows are {sum} long together{taken}, its budget is {budget}"));
    }
    let Some(end) = received else {
        return Some(self_suspension::MISSED_WINDOWS.to_owned());
    };
    (end > task.deadline).then(|| {
        let (end, deadline) = (fmt_ns(end), fmt_ns(task.deadline));
        format!("in its windows it has its budget after {end}, its deadline is {deadline}")
    })
}

/// When a task has received its budget within its own windows, at the latest, ns after its release;
/// `None`: its windows end before.
fn received(task: &TaskSpec, host: &HostWork, found: &FoundWindows) -> Option<u64> {
    let mut segments = segments(&task.body, task.budget);
    if segments.is_empty() {
        segments.push(ExecutionSegment { suspension: 0, execution: task.budget });
    }
    let mut at = 0u64;
    for segment in segments {
        at = at.saturating_add(segment.suspension);
        let mut left = segment.execution.max(1);
        at = task.windows.iter().find_map(|w| {
            let (from, end) = (at.max(w.start), w.start.saturating_add(w.length));
            // Of a window with two segments the host may take its time in either.
            let taken = if from < end { taken(task, w, host, found) } else { 0 };
            let room = end.saturating_sub(from).saturating_sub(taken);
            if left <= room {
                return Some(from + taken + left);
            }
            left -= room;
            None
        })?;
    }
    Some(at)
}
