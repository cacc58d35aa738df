//! Dual priority (RED-Linux IV-E.2, Fig. 5; Davis and Wellings 1995).
//!
//! A release runs in the low band until its promotion time, then, with the budget that is left, in
//! the high band. Tasks without a least distance between releases (aperiodic ones, lists) and
//! servers of groups are in the middle band: they are served as soon as possible, and no promoted
//! task is late for it. Fig. 5 leaves the start of the promoted job at the beginning of the period;
//! here it is the promotion time, as the text has it (papers/notes.md).

use punctual_analysis::upper_band_responses;
use punctual_dispatcher::{Attribute, End};
use punctual_taskset::{fmt_ns, registry, TaskSpec};

use crate::band;
use crate::entry::{PolicyEntry, Setup};
use crate::error::{place, refused};
use crate::per_release::{per_release, ReleasePolicy};
use crate::policy::{MemberParams, Release, SchedulingPolicy};
use crate::JobParams;
use punctual_diagnostic::Diagnostic;

/// Within the high and the low band, deadline monotonic; in the middle, the set's priorities.
pub(crate) static POLICY: PolicyEntry = PolicyEntry {
    info: &registry::DUAL,
    order: &[Attribute::Priority],
    priority: |u| band::middle(u.priority),
    wakeup_rule: false,
    timers: false,
    make,
};

struct Dual {
    /// By place in the set: when it is promoted, ns after its release; `None` in the middle band.
    promotion: Vec<Option<u64>>,
}

fn make(
    entry: &'static PolicyEntry,
    setup: &Setup<'_>,
) -> Result<Box<dyn SchedulingPolicy>, Diagnostic> {
    let mut promotion = vec![None; setup.set.tasks.len()];
    let hard: Vec<(usize, &TaskSpec)> =
        setup.tasks().filter(|(_, t)| t.arrival.has_minimum_interarrival()).collect();
    let worst = upper_band_responses(&hard.iter().map(|&(_, t)| t).collect::<Vec<_>>());
    for (&(index, task), worst) in hard.iter().zip(worst) {
        promotion[index] = Some(match task.promotion {
            Some(given) if given >= task.deadline => {
                return Err(refused(
                    place("task", &task.name, task.line),
                    format!(
                        "promotion at {} is not before the deadline, {}",
                        fmt_ns(given),
                        fmt_ns(task.deadline)
                    ),
                    "give an earlier one, or none to have it computed",
                ));
            }
            Some(given) => given,
            None if setup.group != 0 => {
                return Err(refused(
                    place("task", &task.name, task.line),
                    "the promotion time is computed only for tasks of group 0, which have the \
                     whole CPU",
                    "give `promotion`: the deadline less the task's worst response time",
                ));
            }
            // A task that cannot be in time is promoted at its release; the analysis refuses it.
            None => worst.map_or(0, |worst| task.deadline - worst),
        });
    }
    Ok(per_release(entry, Dual { promotion }))
}

impl ReleasePolicy for Dual {
    fn first(&mut self, m: &MemberParams, r: &Release) -> JobParams {
        let end = r.at.saturating_add(m.deadline);
        // A task from outside the set has the promotion that it brings.
        let promotion = self.promotion.get(m.index as usize).copied().unwrap_or(m.promotion);
        let (finish, priority) = match promotion {
            None => (end, band::middle(m.priority)),
            Some(0) => (end, band::high(m.deadline)),
            Some(after) => (r.at.saturating_add(after).min(end), band::low(m.deadline)),
        };
        JobParams { start: r.at, finish, budget: r.left, priority }
    }

    fn next(&mut self, m: &MemberParams, r: &Release, end: End) -> Option<JobParams> {
        let low = self.first(m, r);
        let finish = r.at.saturating_add(m.deadline);
        if r.part > 1 || end != End::Expired || low.finish >= finish || r.left == 0 {
            return None;
        }
        Some(JobParams {
            start: low.finish,
            finish,
            budget: r.left,
            priority: band::high(m.deadline),
        })
    }
}
