//! What hosts refuse to a program that adds jobs.

use punctual_diagnostic::Diagnostic;
use punctual_policies::JOBS;
use punctual_taskset::TaskSet;

use crate::group_takes_jobs;

/// Whether the jobs of a group (`None`: the top one) are the program's.
///
/// # Errors
/// Its policy makes them.
pub fn check_takes_jobs(set: &TaskSet, group: Option<usize>) -> Result<(), Diagnostic> {
    if group_takes_jobs(set, group) {
        return Ok(());
    }
    let cause = format!("the group is not under the policy \"{}\"", JOBS.info.name);
    Err(Diagnostic::usage(cause, "name one that is, and leave the order of others to their policy"))
}

/// Whether the program adds jobs to a task; `takes_jobs`: whether it does; `None`: the task has
/// ended.
///
/// # Errors
/// It does not.
pub fn check_task_takes_jobs(takes_jobs: Option<bool>) -> Result<(), Diagnostic> {
    match takes_jobs {
        Some(true) => Ok(()),
        Some(false) => {
            let cause = format!("the task is not under the policy \"{}\"", JOBS.info.name);
            Err(Diagnostic::usage(cause, "put it into a group of that policy"))
        }
        None => Err(Diagnostic::usage("the task has ended", "add jobs to another one")
            .with_errno(libc::ESRCH)),
    }
}

/// A handle that can be taken once was taken: what adds jobs.
#[must_use]
pub fn jobs_taken() -> Diagnostic {
    Diagnostic::usage("another part of the program adds these jobs", "use that one")
        .with_errno(libc::EBUSY)
}

/// The same of what reads their events.
#[must_use]
pub fn events_taken() -> Diagnostic {
    Diagnostic::usage("another part of the program reads the events", "use that one")
        .with_errno(libc::EBUSY)
}

/// No group of the set takes jobs of the program.
pub(crate) fn no_group() -> Diagnostic {
    let cause = format!("no group is under the policy \"{}\"", JOBS.info.name);
    Diagnostic::usage(cause, "give one that policy")
}
