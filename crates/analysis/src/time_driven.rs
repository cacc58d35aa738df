//! The test of time-driven groups (RED-Linux Table 1, Table 2): whether each task receives its
//! budget within windows that it shares with no other.
//!
//! The test is exact: each window is compared with every other, in all cycles. Where tasks have no
//! windows, the table is synthesised that the policy will use (earliest deadline first, which is
//! optimal). On a host that takes time for itself, the test is sufficient: a task must receive its
//! budget beside what the host takes of its windows at most ([`HostWork`]).

mod faults;

use std::collections::HashMap;

use punctual_taskset::{fmt_ns, Body, ServerSpec};

use crate::hierarchy::Hierarchy;
use crate::interference::TableLoad;
use crate::record::{group_result, task_result};
use crate::reserved_time::{OutsideServers, ReservedTime};
use crate::results::{Fit, GroupAnalysis, TaskAnalysis, Test};
use crate::supply::Supply;
use crate::time_table::{TableError, TableTask, TimeTable, LARGEST_TABLE};
use crate::window_costs::{FoundWindows, HostWork};
use crate::window_supply::WindowSupply;
use faults::{late, received};

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
