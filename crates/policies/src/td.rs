//! Time driven: a table says when each task and each group executes (RED-Linux Table 1, Table 2).
//!
//! Each window of the table is a job whose start and finish are the window's, ordered by start: the
//! dispatcher's reservations make them, so that no host needs a round trip for each. A task's
//! windows are specified in the set, or synthesised off line by earliest deadline first, in the
//! time that no other windows reserve (crates/analysis). Synthesised windows have room for what the
//! host takes, if there is a table with it; else (in an overload) for the budgets alone.

use punctual_analysis::{
    HostWork, OutsideServers, ReservedTime, TableError, TableTask, TimeTable, LARGEST_TABLE,
    MOST_WINDOWS,
};
use punctual_dispatcher::{Attribute, End};
use punctual_taskset::{fmt_ns, registry, Arrival, GroupSpec, ServerSpec, TaskSpec, Window};

use crate::entry::{PolicyEntry, Setup};
use crate::error::{place, refused};
use crate::per_release::{per_release, ReleasePolicy};
use crate::policy::{number, MemberParams, Release, ReservationParams, SchedulingPolicy};
use crate::JobParams;
use punctual_diagnostic::Diagnostic;

/// The start of a window decides; no two overlap.
pub(crate) static POLICY: PolicyEntry = PolicyEntry {
    info: &registry::TD,
    order: &[Attribute::Start],
    priority: |_| 0,
    wakeup_rule: false,
    timers: false,
    make,
};

/// Where a task's windows are.
#[derive(Clone)]
enum Source {
    /// Not under this policy.
    Nowhere,
    /// The same at each release.
    Given(Box<[Window]>),
    /// In the table that was found, as this one of its tasks.
    Found(usize),
}

struct TimeDriven {
    table: TimeTable,
    /// By place in the set.
    sources: Vec<Source>,
}

fn make(
    entry: &'static PolicyEntry,
    setup: &Setup<'_>,
) -> Result<Box<dyn SchedulingPolicy>, Diagnostic> {
    let tasks: Vec<(usize, &TaskSpec)> = setup.tasks().collect();
    if let Some((_, t)) = tasks.iter().find(|(_, t)| t.arrival != Arrival::Periodic) {
        return Err(refused(
            place("task", &t.name, t.line),
            "a time table cannot hold releases that are not periodic",
            "put the task into a group with a server that has windows",
        ));
    }
    let mut given = windows_of_groups(setup)?;
    let mut sources = vec![Source::Nowhere; setup.set.tasks.len()];
    for &(index, t) in tasks.iter().filter(|(_, t)| !t.windows.is_empty()) {
        enough(t)?;
        let place = place("task", &t.name, t.line);
        given.extend(ReservedTime::of_task(t).map(|time| Named { place: place.clone(), time }));
        let mut windows = t.windows.clone();
        windows.retain(|w| w.length > 0);
        windows.sort_by_key(|w| w.start);
        sources[index] = Source::Given(windows.into_boxed_slice());
    }
    let closed = outside_servers(setup, !tasks.is_empty())?;
    no_overlaps(&given, &closed)?;

    let free: Vec<(usize, &TaskSpec)> =
        tasks.iter().copied().filter(|(_, t)| t.windows.is_empty()).collect();
    let table = if free.is_empty() {
        TimeTable::default()
    } else {
        let wanted: Vec<TableTask> = free.iter().map(|&(_, t)| t.into()).collect();
        let reserved: Vec<ReservedTime> = given.iter().map(|n| n.time).chain(closed).collect();
        let group = setup.group.checked_sub(1).map(|g| g as usize);
        let host = HostWork::new(setup.set, setup.domain, group, &setup.costs);
        TimeTable::synthesise(&wanted, &reserved, &host)
            .or_else(|_| TimeTable::synthesise(&wanted, &reserved, &HostWork::default()))
            .map_err(|e| explain(e, &free))?
    };
    for (n, (index, _)) in free.iter().enumerate() {
        sources[*index] = Source::Found(n);
    }
    // A task's first release may be in any row; the table counts from its own first one.
    Ok(per_release(entry, TimeDriven { table, sources }))
}

/// A window, and the place of its owner in the set.
struct Named {
    place: String,
    time: ReservedTime,
}

/// The windows of the groups that compete here.
fn windows_of_groups(setup: &Setup<'_>) -> Result<Vec<Named>, Diagnostic> {
    let mut all = Vec::new();
    let competes = |g: &&GroupSpec| g.domain == setup.domain && number(g.parent) == setup.group;
    for g in setup.set.groups.iter().filter(competes) {
        match &g.server {
            ServerSpec::Windows { cycle, windows } => {
                let place = place("group", &g.name, g.line);
                all.extend(
                    ReservedTime::of_windows(*cycle, windows)
                        .map(|time| Named { place: place.clone(), time }),
                );
            }
            ServerSpec::Periodic { .. } => {
                return Err(refused(
                    place("group", &g.name, g.line),
                    "its server has a period and a budget, but its parent's policy \"td\" goes by \
                     windows",
                    "give the group `cycle` and `windows` in place of `period` and `budget`",
                ));
            }
        }
    }
    Ok(all)
}

/// The time outside the windows of the servers above this group.
fn outside_servers(setup: &Setup<'_>, has_tasks: bool) -> Result<Vec<ReservedTime>, Diagnostic> {
    let outside = OutsideServers::new(setup.set, setup.group.checked_sub(1).map(|g| g as usize));
    if let Some(g) = outside.unfixed.filter(|_| has_tasks).map(|g| &setup.set.groups[g]) {
        return Err(refused(
            place("group", &g.name, g.line),
            "tasks under \"td\" need to know when they execute, but this server above them gets \
             its budget at no fixed time",
            "give it `cycle` and `windows`, or give the group of those tasks another policy",
        ));
    }
    Ok(outside.times)
}

fn enough(t: &TaskSpec) -> Result<(), Diagnostic> {
    let sum: u64 = t.windows.iter().map(|w| w.length).fold(0, u64::saturating_add);
    let end = t.windows.iter().map(|w| w.start.saturating_add(w.length)).max().unwrap_or(0);
    if sum < t.budget {
        return Err(refused(
            place("task", &t.name, t.line),
            format!(
                "its windows are {} long together, its budget is {}",
                fmt_ns(sum),
                fmt_ns(t.budget)
            ),
            "give it longer windows, or a smaller budget",
        ));
    }
    if end > t.deadline {
        return Err(refused(
            place("task", &t.name, t.line),
            format!(
                "a window ends {} after the release, its deadline is {}",
                fmt_ns(end),
                fmt_ns(t.deadline)
            ),
            "end the last window at the deadline or before",
        ));
    }
    Ok(())
}

fn no_overlaps(given: &[Named], closed: &[ReservedTime]) -> Result<(), Diagnostic> {
    if given.len() > MOST_WINDOWS {
        return Err(refused(
            "policy \"td\"",
            format!("{} windows are given for one group, {MOST_WINDOWS} is the most", given.len()),
            "leave windows out: a table is found for tasks that have none",
        ));
    }
    for (n, a) in given.iter().enumerate() {
        if let Some(b) = given[n + 1..].iter().find(|b| a.time.overlaps(&b.time)) {
            return Err(refused(
                b.place.clone(),
                format!("a window of it overlaps one of {}, in this cycle or a later one", a.place),
                "move one of the two; windows whose cycles divide each other never drift together",
            ));
        }
        if closed.iter().any(|c| a.time.overlaps(c)) {
            return Err(refused(
                a.place.clone(),
                "a window of it lies outside the windows of the server above it",
                "move it inside, in every cycle",
            ));
        }
    }
    Ok(())
}

fn explain(error: TableError, tasks: &[(usize, &TaskSpec)]) -> Diagnostic {
    match error {
        TableError::Late { task, deadline, missing } => {
            let t = tasks[task].1;
            refused(
                place("task", &t.name, t.line),
                format!(
                    "no time table can be met: {} of its budget is missing at its deadline, {} \
                     after the start of a cycle",
                    fmt_ns(missing),
                    fmt_ns(deadline)
                ),
                "lower budgets, or lengthen periods or deadlines",
            )
        }
        TableError::Overload { excess } => refused(
            "policy \"td\"",
            format!(
                "no time table can be met: the budgets are {} more than the time that is left for \
                 them, each time all periods have come round",
                fmt_ns(excess)
            ),
            "lower budgets, or lengthen periods",
        ),
        TableError::LongCycle => refused(
            "policy \"td\"",
            "the periods together come again only after more than 36 years (2^60 ns): no table is \
             that long",
            "choose periods that are multiples of each other",
        ),
        TableError::TooLarge => refused(
            "policy \"td\"",
            format!("the table would have more than {LARGEST_TABLE} windows"),
            "choose periods that are multiples of each other, or fewer tasks",
        ),
    }
}

impl TimeDriven {
    /// The window after `part` jobs of a release.
    fn window(&self, m: &MemberParams, r: &Release) -> Option<JobParams> {
        let w = self.windows(m, r.number).get(r.part as usize)?;
        let start = r.at.saturating_add(w.start);
        Some(JobParams {
            start,
            finish: start.saturating_add(w.length),
            budget: w.length.min(r.left),
            priority: 0,
        })
    }
}

impl ReleasePolicy for TimeDriven {
    fn reservation(&self, m: &MemberParams) -> Option<ReservationParams> {
        self.admits(m).then_some(ReservationParams { priority: 0, wakeup_rule: false })
    }

    fn rows(&self, m: &MemberParams) -> u64 {
        match self.sources.get(m.index as usize) {
            None | Some(Source::Nowhere) => 0,
            Some(Source::Given(_)) => 1,
            Some(Source::Found(task)) => self.table.rows(*task),
        }
    }

    fn windows(&self, m: &MemberParams, number: u64) -> &[Window] {
        match self.sources.get(m.index as usize) {
            None | Some(Source::Nowhere) => &[],
            Some(Source::Given(windows)) => windows,
            Some(Source::Found(task)) => self.table.windows(*task, number),
        }
    }

    fn admits(&self, m: &MemberParams) -> bool {
        !matches!(self.sources.get(m.index as usize), None | Some(Source::Nowhere))
    }

    fn first(&mut self, m: &MemberParams, r: &Release) -> JobParams {
        // An admitted task has a window at each release.
        self.window(m, r).unwrap_or(JobParams { start: r.at, finish: r.at, budget: 0, priority: 0 })
    }

    fn next(&mut self, m: &MemberParams, r: &Release, _: End) -> Option<JobParams> {
        if r.left == 0 {
            return None;
        }
        self.window(m, r)
    }
}
