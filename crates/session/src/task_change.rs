//! Other parameters for a task of a set that runs: what is possible, and whether the set still
//! fits.

use punctual_diagnostic::Diagnostic;
use punctual_taskset::{fmt_ns, Body, Spin, TaskChange, TaskSet, TaskSpec, DURATION_LIMIT};

use crate::{HostKind, Session};

/// Policies whose jobs are reservations of the core, which takes others while it runs.
const RESERVED: [&str; 4] = ["edf", "rm", "dm", "fp"];

/// The set with other parameters for the task at `place`, admitted as the set itself was. The
/// caller then gives the change to [`RunningSet::change`](crate::RunningSet::change).
///
/// What the task gives up counts as free at once, although its present release may still use it:
/// that is the caller's.
///
/// # Errors
/// A value is out of its range; the task's policy makes each job by itself; more than the priority
/// of a task in a group; the set would not fit any more, and not `overload`.
///
/// # Panics
/// There is no task at `place`.
pub fn with_change(
    set: &TaskSet,
    place: usize,
    change: &TaskChange,
    host: HostKind,
    overload: bool,
) -> Result<TaskSet, Diagnostic> {
    let mut changed = set.clone();
    let task = &mut changed.tasks[place];
    change.apply(task);
    check(task).map_err(|e| e.of_task(&task.name))?;
    has_reservation(set, task)?;
    if task.group.is_some() && !change.is_priority_alone() {
        let help = "change its priority alone, or tasks that are in no group";
        return Err(Diagnostic::usage("it is in a group", help).of_task(&task.name));
    }
    Session::of_running(changed.clone(), host)?.admit(overload)?;
    Ok(changed)
}

/// Whether the policy of a task leaves its jobs to a reservation of the dispatcher.
///
/// # Errors
/// It makes each job by itself.
pub fn has_reservation(set: &TaskSet, task: &TaskSpec) -> Result<(), Diagnostic> {
    let policy = set.policy_of(task.group);
    if RESERVED.contains(&policy.name.as_str()) && !policy.reclaim && task.is_released_each_period()
    {
        return Ok(());
    }
    let cause = "its policy makes each job by itself";
    let help = "use edf without reclaim, rm, dm or fp, and periodic releases";
    Err(Diagnostic::usage(cause, help).of_task(&task.name))
}

/// The ranges that a file may give, too.
fn check(task: &TaskSpec) -> Result<(), Diagnostic> {
    let TaskSpec { period, budget, deadline, jitter, .. } = *task;
    let refuse = |cause: String, help: String| Err(Diagnostic::usage(cause, help));
    for (key, value) in [("period", period), ("budget", budget), ("deadline", deadline)] {
        if value >= DURATION_LIMIT {
            return refuse(format!("the {key} is too long"), "use less than 2^62 ns".to_owned());
        }
    }
    if budget == 0 || budget > deadline {
        return refuse(
            format!("a budget of {} is out of range", fmt_ns(budget)),
            format!("use 1 ns to {}", fmt_ns(deadline)),
        );
    }
    if jitter >= period {
        let cause = format!("its jitter of {} is not below the period", fmt_ns(jitter));
        return refuse(cause, "use a longer period".to_owned());
    }
    TaskSet::single(period, budget, Body::Spin(Spin::Forever)).deadline(deadline).build().map(drop)
}
