//! The key `server`, of a task and of a group.

use crate::format::{Group, Task};
use crate::problems::Problems;
use crate::value::{ns, At, Positive};
use crate::{registry, PolicySpec, ServerKind};

impl ServerKind {
    /// Whether its jobs can compete in a group of this policy.
    #[must_use]
    pub fn suits(self, policy: &PolicySpec) -> bool {
        use ServerKind::{ConstantUtilization, SoftConstantBandwidth, Sporadic, TotalBandwidth};
        let fixed = [&registry::RM, &registry::DM, &registry::FP];
        match (self, &policy.order) {
            (Sporadic, Some(order)) => !order.uses_release(),
            (Sporadic, None) => fixed.iter().any(|info| info.name == policy.name),
            (SoftConstantBandwidth | TotalBandwidth | ConstantUtilization, _) => {
                policy.name == registry::EDF.name
            }
            (ServerKind::Deferrable | ServerKind::Polling | ServerKind::ConstantBandwidth, _) => {
                true
            }
        }
    }
}

/// Checks the server of a task under the policy that orders its jobs.
pub(crate) fn of_task(task: &Task, policy: Option<&PolicySpec>, problems: &mut Problems<'_>) {
    let Some(server) = &task.server else { return };
    use ServerKind::{ConstantUtilization, SoftConstantBandwidth, Sporadic, TotalBandwidth};
    match server.0 {
        SoftConstantBandwidth | TotalBandwidth | ConstantUtilization => {
            if policy.is_some_and(|policy| !server.0.suits(policy)) {
                let help = "put the task into a group with policy = \"edf\", or use \"sporadic\" \
                            under \"rm\", \"dm\" or \"fp\"";
                problems.fault(&server.span, "this server needs the policy \"edf\"", help);
            }
        }
        Sporadic => needs_fixed(&server.span, policy, problems),
        ServerKind::ConstantBandwidth | ServerKind::Deferrable | ServerKind::Polling => {
            let help = "leave it out: a task keeps the budget of its release (under \"edf\", what \
                        its bandwidth allows); or give it to a [[group]]";
            problems.fault(&server.span, "this kind of server is for groups", help);
        }
    }
    let what = "a task with a server has no deadline of its own";
    has_period_as_deadline(&task.deadline, &task.period, what, problems);
}

/// Checks the server of a group under the policy above it.
pub(crate) fn of_group(group: &Group, above: Option<&PolicySpec>, problems: &mut Problems<'_>) {
    let Some(server) = &group.server else { return };
    use ServerKind::{ConstantUtilization, SoftConstantBandwidth, Sporadic, TotalBandwidth};
    match server.0 {
        SoftConstantBandwidth | TotalBandwidth | ConstantUtilization => {
            let help = "give it to a [[task]], or use \"constant_bandwidth\"";
            problems.fault(&server.span, "this kind of server is for tasks", help);
        }
        Sporadic => {
            needs_fixed(&server.span, above, problems);
            let what = "a sporadic server has no deadline of its own";
            has_period_as_deadline(&group.deadline, &group.period, what, problems);
        }
        ServerKind::ConstantBandwidth | ServerKind::Deferrable | ServerKind::Polling => {}
    }
}

fn has_period_as_deadline(
    deadline: &Option<At<Positive>>,
    period: &Option<At<Positive>>,
    cause: &str,
    problems: &mut Problems<'_>,
) {
    if let Some(found) = deadline.as_ref().filter(|_| ns(deadline) != ns(period)) {
        problems.fault(&found.span, cause, "leave the deadline out: it is the period");
    }
}

fn needs_fixed(at: &crate::value::Span, policy: Option<&PolicySpec>, problems: &mut Problems<'_>) {
    if policy.is_some_and(|policy| !ServerKind::Sporadic.suits(policy)) {
        let help = "use it under \"rm\", \"dm\" or \"fp\"";
        problems.fault(at, "a sporadic server needs fixed priorities", help);
    }
}
