//! The key `server`, of a task and of a group.

use crate::duration::fmt_ns;
use crate::format::{Arrival, Group, Task};
use crate::problems::Problems;
use crate::value::{ns, At, Positive, Word};
use crate::{registry, PolicySpec, ServerKind};

impl ServerKind {
    /// Whether its jobs can compete in a group of this policy.
    #[must_use]
    pub fn suits(self, policy: &PolicySpec) -> bool {
        use ServerKind::{Adaptive, Sporadic};
        use ServerKind::{ConstantUtilization, SoftConstantBandwidth, TotalBandwidth};
        let is_edf = policy.name == registry::EDF.name;
        let fixed = || match &policy.order {
            Some(order) => !order.uses_release(),
            None => [&registry::RM, &registry::DM, &registry::FP]
                .iter()
                .any(|info| info.name == policy.name),
        };
        match self {
            Sporadic => fixed(),
            Adaptive => is_edf || fixed(),
            SoftConstantBandwidth | TotalBandwidth | ConstantUtilization => is_edf,
            ServerKind::Deferrable | ServerKind::Polling | ServerKind::ConstantBandwidth => true,
        }
    }
}

/// Checks the server of a task under the policy that orders its jobs.
pub(crate) fn of_task(task: &Task, policy: Option<&PolicySpec>, problems: &mut Problems<'_>) {
    if let Some(least) = &task.min_budget {
        min_budget(task, least, problems);
    }
    let Some(server) = &task.server else { return };
    use ServerKind::{ConstantUtilization, SoftConstantBandwidth, Sporadic, TotalBandwidth};
    match server.0 {
        ServerKind::Adaptive => return adaptive(task, server, policy, problems),
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

/// An adaptive budget changes what each release receives, and nothing else of a task.
fn adaptive(
    task: &Task,
    server: &At<Word<ServerKind>>,
    policy: Option<&PolicySpec>,
    problems: &mut Problems<'_>,
) {
    if policy.is_some_and(|policy| !server.0.suits(policy)) {
        let help = "put the task into a group with policy = \"edf\", \"rm\", \"dm\" or \"fp\"";
        let cause = "an adaptive budget needs the policy \"edf\" or fixed priorities";
        problems.fault(&server.span, cause, help);
    }
    let apart = task.arrival.as_ref().is_none_or(|arrival| match &arrival.value {
        Arrival::Word(_) => true,
        Arrival::Random(random) => random.aperiodic.is_none(),
        Arrival::List(_) => false,
    });
    if !apart {
        let help = "use periodic or sporadic arrivals, or the server \"total_bandwidth\" or \
                    \"sporadic\"";
        let cause = "an adaptive budget needs releases that are at least a period apart";
        problems.fault(&server.span, cause, help);
    }
}

fn min_budget(task: &Task, least: &At<Positive>, problems: &mut Problems<'_>) {
    if !task.server.as_ref().is_some_and(|server| server.0 == ServerKind::Adaptive) {
        let cause = "min_budget is given, and the server is not \"adaptive\"";
        let help = "add server = \"adaptive\", or remove min_budget";
        problems.fault_of_key(&least.span, cause, help);
    } else if least.0 == 0 {
        let help = "make it at least 1ns, or leave it out: it is then a tenth of the budget";
        problems.fault(&least.span, "min_budget is 0", help);
    } else if let Some(budget) = ns(&task.budget).filter(|&budget| least.0 > budget) {
        let (least_text, budget) = (fmt_ns(least.0), fmt_ns(budget));
        let cause = format!("min_budget {least_text} is more than its budget {budget}");
        problems.fault(&least.span, cause, "make min_budget at most the budget");
    }
}

/// Checks the server of a group under the policy above it.
pub(crate) fn of_group(group: &Group, above: Option<&PolicySpec>, problems: &mut Problems<'_>) {
    let Some(server) = &group.server else { return };
    use ServerKind::{ConstantUtilization, SoftConstantBandwidth, Sporadic, TotalBandwidth};
    match server.0 {
        SoftConstantBandwidth | TotalBandwidth | ConstantUtilization | ServerKind::Adaptive => {
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
