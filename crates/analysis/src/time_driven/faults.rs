//! What is wrong with tasks and windows of a time-driven group: what a table cannot hold, windows
//! that overlap, are too short or too late, and a host that may hold back their jobs.

use punctual_taskset::{fmt_ns, Arrival, TaskSpec, Window};

use super::{Fault, Owner};
use crate::hierarchy::Hierarchy;
use crate::reserved_time::ReservedTime;
use crate::self_suspension::{self, segments, ExecutionSegment};
use crate::step_limit::Exhausted;
use crate::time_table::MOST_WINDOWS;
use crate::window_costs::{FoundWindows, HostWork};

impl Hierarchy<'_> {
    /// Why no window is sure: the host's cap may hold back jobs.
    pub(super) fn held_back(
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
    pub(super) fn unfit(&self, task: &TaskSpec) -> Option<String> {
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
    pub(super) fn find_overlaps(
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
}

/// The most that the host takes of a window that the set specifies, ns. `found`: the windows of the
/// group's synthesised table.
fn taken(task: &TaskSpec, window: &Window, host: &HostWork, found: &FoundWindows) -> u64 {
    let period = task.period.max(1);
    let start = (task.offset % period).saturating_add(window.start);
    host.within((start, period, window.length), found)
}

/// Why a task with windows of its own is late; `received`: when it has its budget.
pub(super) fn late(
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
pub(super) fn received(task: &TaskSpec, host: &HostWork, found: &FoundWindows) -> Option<u64> {
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
