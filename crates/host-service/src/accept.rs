//! Which sets the service takes.

use punctual_diagnostic::Diagnostic;
use punctual_process::check_privileges;
use punctual_service::{ServiceClient, NAME_LIMIT};
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

/// Whether the service has these options of a run: admission although the set does not fit, and a
/// trace.
///
/// # Errors
/// Which one it does not have.
pub fn accepts_options(overload: bool, trace: bool) -> Result<(), Diagnostic> {
    let refused = match (overload, trace) {
        (true, _) => "the service admits no set that does not fit",
        (_, true) => "the service writes no traces of its clients",
        _ => return Ok(()),
    };
    let option = if overload { "the overload" } else { "the trace" };
    Err(Diagnostic::usage(refused, format!("leave out {option}, or use another host")))
}

/// Whether a service listens that is to execute a set. Connecting to a socket of systemd's starts
/// the service. Of the service's refusals, by which it may still decide, only those are foreseen
/// that another host would not share.
///
/// # Errors
/// Why not, for people.
pub fn takes(set: &TaskSet) -> Result<String, String> {
    accepts(set).map_err(|e| e.cause)?;
    let socket = punctual_service::socket();
    let mut client = match ServiceClient::connect(&socket) {
        Ok(Some(client)) => client,
        Ok(None) => return Err(format!("no punctuald listens at {}", socket.display())),
        Err(e) => return Err(e.cause),
    };
    let status = client.status().map_err(|e| e.cause)?;
    let mut nothing = None;
    for cpu in set.cpus() {
        match status.cpus.iter().find(|of| of.cpu == cpu) {
            None => return Err(format!("punctuald makes no reservations on CPU {cpu}")),
            Some(of) if of.limit_ppm == 0 => nothing = Some(cpu),
            Some(_) => {}
        }
    }
    match nothing {
        // Else its refusal says what is missing; or polkit permits it after all.
        Some(cpu) if check_privileges(&set.cpus()).is_ok() => {
            Err(format!("punctuald permits this user nothing on CPU {cpu}"))
        }
        _ => Ok(format!("punctuald serves at {}", socket.display())),
    }
}

/// A task that is no program.
pub fn synthetic(task: &TaskSpec) -> Diagnostic {
    Diagnostic::usage(
        format!("task {:?} is synthetic, and the service takes commands and processes", task.name),
        "use another host for this set, or give the task a command",
    )
}
