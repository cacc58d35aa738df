//! Objective: an expression of the set over the attributes of a release orders the group, the
//! smaller value first (RED-Linux IV-B).
//!
//! Where the expression has neither `release` nor `finish`, its value is the same at each release,
//! so that the dispatcher's reservation carries the member out. Else it is computed at each one,
//! with the times from the start of the run: a simulated run and a real one get the same values.

use punctual_diagnostic::Diagnostic;
use punctual_dispatcher::Attribute;
use punctual_taskset::{registry, GroupSpec, Objective, ReleaseAttributes};

use crate::entry::{PolicyEntry, Setup};
use crate::error::{place, refused};
use crate::policy::{number, MemberParams, PolicyEvent, ReservationParams, SchedulingPolicy};
use crate::{Context, JobParams};

/// The negated value is the priority; a release without a value comes last.
pub(crate) static POLICY: PolicyEntry = PolicyEntry {
    info: &registry::OBJECTIVE,
    order: &[Attribute::Priority],
    // The policy itself ranks servers.
    priority: |_| i64::MIN,
    wakeup_rule: false,
    timers: false,
    make,
};

struct ByObjective(Objective);

fn make(
    _: &'static PolicyEntry,
    setup: &Setup<'_>,
) -> Result<Box<dyn SchedulingPolicy>, Diagnostic> {
    let Some(order) = &setup.policy.order else {
        let help = "add one, such as order = \"finish - budget\"";
        return Err(refused("policy \"objective\"", "it lacks its order", help));
    };
    let competes = |g: &&GroupSpec| g.domain == setup.domain && number(g.parent) == setup.group;
    match setup.set.groups.iter().find(competes).filter(|_| order.uses_release()) {
        Some(g) => Err(refused(
            place("group", &g.name, g.line),
            "the order of its parent's policy \"objective\" uses \"release\" or \"finish\", which \
             its server has not",
            "use period, deadline, budget, priority and offset there, or the policy \"edf\"",
        )),
        None => Ok(Box::new(ByObjective(order.clone()))),
    }
}

impl ByObjective {
    /// Of a release at `release`, ns from the start of the run.
    fn priority(&self, member: &MemberParams, release: u64) -> i64 {
        let MemberParams { period, deadline, budget, priority, offset, .. } = *member;
        self.0.priority(&ReleaseAttributes { release, period, deadline, budget, priority, offset })
    }
}

impl SchedulingPolicy for ByObjective {
    fn reservation(&self, member: &MemberParams) -> Option<ReservationParams> {
        let priority = self.priority(member, member.offset);
        (!self.0.uses_release()).then_some(ReservationParams { priority, wakeup_rule: false })
    }

    fn server_priority(&self, server: &MemberParams) -> Option<i64> {
        Some(self.priority(server, server.offset))
    }

    fn handle(&mut self, context: &mut Context<'_>, event: PolicyEvent) {
        if event != PolicyEvent::Released {
            return;
        }
        let (member, release) = (*context.member(), *context.release());
        let since_start = release.at.saturating_sub(context.start_of_run());
        // One that is refused loses the release: the host learns of it.
        let _ = context.add_job(&JobParams {
            start: release.at,
            finish: release.at.saturating_add(member.deadline),
            budget: release.left,
            priority: self.priority(&member, since_start),
        });
    }
}
