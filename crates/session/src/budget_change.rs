//! Another budget for a task of a set that runs: what is possible, and whether the set still fits.

use punctual_diagnostic::Diagnostic;
use punctual_taskset::{fmt_ns, TaskSet};

use crate::{HostKind, Session};

/// Policies whose jobs are reservations of the core, which takes another budget while it runs.
const RESERVED: [&str; 4] = ["edf", "rm", "dm", "fp"];

/// The set with another budget, ns, for the task at `place`, admitted as the set itself was. The
/// caller then gives it to [`RunningSet::change_budget`](crate::RunningSet::change_budget).
///
/// # Errors
/// The budget is 0 or more than the deadline; the task's policy makes each job by itself; the set
/// would not fit any more, and not `overload`.
///
/// # Panics
/// There is no task at `place`.
pub fn with_budget(
    set: &TaskSet,
    place: usize,
    budget: u64,
    host: HostKind,
    overload: bool,
) -> Result<TaskSet, Diagnostic> {
    let task = &set.tasks[place];
    let refuse =
        |cause: String, help: String| Err(Diagnostic::usage(cause, help).of_task(&task.name));
    if budget == 0 || budget > task.deadline {
        return refuse(
            format!("a budget of {} is out of range", fmt_ns(budget)),
            format!("use 1 ns to {}", fmt_ns(task.deadline)),
        );
    }
    let reserved = RESERVED.contains(&set.policy.name.as_str()) && !set.policy.reclaim;
    if !reserved || task.group.is_some() || !task.is_released_each_period() {
        return refuse(
            "its policy makes each job by itself".to_owned(),
            "use edf without reclaim, rm, dm or fp, and periodic releases".to_owned(),
        );
    }
    let mut changed = set.clone();
    changed.tasks[place].budget = budget;
    Session::of_running(changed.clone(), host)?.admit(overload)?;
    Ok(changed)
}
