//! What is requested of the service for a task of a set.

use punctual_diagnostic::Diagnostic;
use punctual_service::{ReservationInfo, TaskRequest};
use punctual_taskset::{fmt_ns, TaskSet, TaskSpec};

/// For a process, or a thread of it, as this task of a set.
pub fn request(set: &TaskSet, task: &TaskSpec, pid: i32, tid: Option<i32>) -> TaskRequest {
    let name = task.name.clone();
    let values = match &task.role {
        Some(role) => TaskRequest::by_role(name, pid, role),
        None => TaskRequest {
            deadline_ns: Some(task.deadline),
            overrun: Some(task.overrun.to_string()),
            ..TaskRequest::new(name, pid, task.period, task.budget)
        },
    };
    let cpu = set.domain(task.domain).cpus.first().copied();
    TaskRequest { cpu, tid, offset_ns: Some(task.offset), ..values }
}

/// What a role gave has to be what the set has, by which results are judged.
pub fn check_role(task: &TaskSpec, info: &ReservationInfo) -> Result<(), Diagnostic> {
    let (own, given) = (
        [task.budget, task.period, task.deadline],
        [info.budget_ns, info.period_ns, info.deadline_ns],
    );
    let (Some(role), true) = (&task.role, own != given) else { return Ok(()) };
    let words = |[budget, period, deadline]: [u64; 3]| {
        let [budget, period, deadline] = [budget, period, deadline].map(fmt_ns);
        format!("{budget} in every {period}, deadline {deadline}")
    };
    Err(Diagnostic::usage(
        format!(
            "the role {role:?} is {} for the service, and {} for this program: they read \
             different files",
            words(given),
            words(own)
        ),
        "unset PUNCTUAL_ROLES, or give --period and --budget in place of the role",
    ))
}
