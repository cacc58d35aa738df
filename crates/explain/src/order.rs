//! Why one task executed before another: the order of their policy.

use std::cmp::Ordering;

use punctual_taskset::{GroupSpec, ServerSpec, TaskSet};
use serde::{Deserialize, Serialize};

use crate::history::{ancestors, History};

/// Why a task executed before the one that waited.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Reason {
    /// Its `priority` is larger (`fp`).
    HigherPriority,
    /// Its period is shorter (`rm`).
    ShorterPeriod,
    /// Its relative deadline is shorter (`dm`).
    ShorterDeadline,
    /// Its absolute deadline is nearer (`edf`).
    EarlierDeadline,
    /// It is equal in the policy's order, and came first.
    ArrivedFirst,
    /// The table says so (`td`).
    Table,
    /// Its band comes first: a mandatory part, or a job after its promotion (`imprecise`,
    /// `dual`).
    Band,
    /// The set's order says so (`objective`).
    Objective,
    /// The program's order says so (`jobs`).
    Program,
    /// Its share is due earlier (`wfq`, `sfq`).
    FairShare,
    /// It comes later in the policy's order: the one that waited could not execute.
    Later,
}

/// A task or a group where both compete.
enum Entity<'s> {
    Task(u32),
    Group(u32, &'s GroupSpec),
}

/// Why `other` executed before `task` at `at`, ns; and, if it competes by a group's server, which.
pub(crate) fn reason(
    set: &TaskSet,
    history: &History,
    other: u32,
    task: u32,
    at: u64,
) -> (Reason, Option<u32>) {
    let (a, b) = (ancestors(set, other), ancestors(set, task));
    let common = a.iter().copied().find(|group| b.contains(group));
    let ours = entity(set, &b, common, task);
    let theirs = entity(set, &a, common, other);
    let group = match theirs {
        Entity::Group(group, _) => Some(group),
        Entity::Task(_) => None,
    };
    let of_set = set.policy_of(common.map(|group| group as usize));
    let swapped = history.swapped_policy(common.map_or(0, |group| group + 1), at);
    let policy = swapped.unwrap_or(&of_set.name);
    let key = |e: &Entity<'_>| key(policy, set, history, e, at);
    let first = match policy {
        "fp" => Reason::HigherPriority,
        "rm" => Reason::ShorterPeriod,
        "dm" => Reason::ShorterDeadline,
        "edf" => Reason::EarlierDeadline,
        "td" => return (Reason::Table, group),
        "objective" => return (Reason::Objective, group),
        "jobs" => return (Reason::Program, group),
        // No swap gives or takes weights.
        _ if of_set.takes_weights() => return (Reason::FairShare, group),
        _ => return (Reason::Band, group),
    };
    let reason = match key(&theirs).cmp(&key(&ours)) {
        Ordering::Less => first,
        Ordering::Equal => Reason::ArrivedFirst,
        Ordering::Greater => Reason::Later,
    };
    (reason, group)
}

/// What stands for a task in the group `common`: itself, or the group on its way up.
fn entity<'s>(set: &'s TaskSet, chain: &[u32], common: Option<u32>, task: u32) -> Entity<'s> {
    let below = chain.iter().take_while(|&&group| Some(group) != common).last();
    below.map_or(Entity::Task(task), |&group| Entity::Group(group, &set.groups[group as usize]))
}

/// Its place in the policy's order, the smaller first.
fn key(policy: &str, set: &TaskSet, history: &History, entity: &Entity<'_>, at: u64) -> i128 {
    match *entity {
        Entity::Task(n) => {
            let task = &set.tasks[n as usize];
            let deadline =
                || history.tasks[n as usize].period_at(at).map_or(u64::MAX, |p| p.deadline);
            match policy {
                "fp" => -i128::from(task.priority),
                "rm" => task.period.into(),
                "dm" => task.deadline.into(),
                _ => deadline().into(),
            }
        }
        Entity::Group(n, group) => {
            let (period, deadline) = match &group.server {
                ServerSpec::Periodic { period, deadline, .. } => (*period, *deadline),
                ServerSpec::Windows { cycle, windows } => {
                    (*cycle, windows.first().map_or(*cycle, |w| w.length))
                }
            };
            match policy {
                "fp" => -i128::from(group.priority),
                "rm" => period.into(),
                "dm" => deadline.into(),
                _ => history.groups[n as usize].replenished(at).map_or(u64::MAX, |r| r.1).into(),
            }
        }
    }
}
