//! Which sets the service takes.

use punctual_diagnostic::Diagnostic;
use punctual_service::NAME_LIMIT;
use punctual_taskset::{Body, TaskSet, TaskSpec};

/// The policy of the service's dispatchers.
const POLICY: &str = "edf";

/// Whether the service can execute a set; asks no service.
///
/// # Errors
/// What of the set it does not do.
pub fn accepts(set: &TaskSet) -> Result<(), Diagnostic> {
    if set.policy.name != POLICY {
        return Err(Diagnostic::usage(
            format!("the service schedules by {POLICY}, not by {}", set.policy.name),
            format!("use policy {POLICY}, or another host"),
        ));
    }
    if !set.groups.is_empty() || !set.budget_groups.is_empty() {
        return Err(Diagnostic::usage(
            "the service has no scheduling groups and no budget groups of its clients",
            "use another host for this set",
        ));
    }
    for task in &set.tasks {
        if !task.is_released_each_period() {
            return Err(Diagnostic::usage(
                format!("task {:?} is not released each period", task.name),
                "the service takes periodic tasks; use another host for this set",
            ));
        }
        if matches!(task.body, Body::Spin(_) | Body::Steps(_)) {
            return Err(synthetic(task));
        }
        if task.name.len() > NAME_LIMIT {
            return Err(Diagnostic::usage(
                format!("task {:?}: its name is longer than {NAME_LIMIT} bytes", task.name),
                "choose a shorter one",
            ));
        }
    }
    Ok(())
}

/// A task that is no program.
pub fn synthetic(task: &TaskSpec) -> Diagnostic {
    Diagnostic::usage(
        format!("task {:?} is synthetic, and the service takes commands and processes", task.name),
        "use another host for this set, or give the task a command",
    )
}
