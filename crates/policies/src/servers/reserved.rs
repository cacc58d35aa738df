//! Servers that a reservation of the dispatcher carries out.

use punctual_diagnostic::Diagnostic;
use punctual_dispatcher::Standing;
use punctual_taskset::registry;

use super::NO_MEMBERS;
use crate::entry::{PolicyEntry, Setup};
use crate::policy::{MemberParams, PolicyEvent, ReservationParams, SchedulingPolicy};
use crate::Context;

/// The dispatcher keeps a server's budget while its group is idle: a reservation is enough.
pub(super) static DEFERRABLE: PolicyEntry = PolicyEntry {
    info: &registry::DEFERRABLE,
    order: NO_MEMBERS,
    priority: |u| u.priority,
    wakeup_rule: false,
    timers: false,
    make: reserved,
};

/// A server's budget is taken back as soon as its group is idle, and at its release if it is idle
/// then.
pub(super) static POLLING: PolicyEntry =
    PolicyEntry { info: &registry::POLLING, make: |_, _| Ok(Box::new(Polling)), ..DEFERRABLE };

/// When its group becomes active again, the dispatcher cuts a server's budget to its bandwidth, so
/// that it demands no more than a periodic task: with hard reservations, for the budget comes back
/// only at the next release.
pub(super) static CONSTANT_BANDWIDTH: PolicyEntry =
    PolicyEntry { info: &registry::CONSTANT_BANDWIDTH, wakeup_rule: true, ..DEFERRABLE };

/// A kind of server that the dispatcher carries out by itself.
struct Reserved {
    wakeup_rule: bool,
}

fn reserved(
    entry: &'static PolicyEntry,
    _: &Setup<'_>,
) -> Result<Box<dyn SchedulingPolicy>, Diagnostic> {
    Ok(Box::new(Reserved { wakeup_rule: entry.wakeup_rule }))
}

impl SchedulingPolicy for Reserved {
    fn reservation(&self, member: &MemberParams) -> Option<ReservationParams> {
        Some(ReservationParams { priority: member.priority, wakeup_rule: self.wakeup_rule })
    }

    fn handle(&mut self, _: &mut Context<'_>, _: PolicyEvent) {}
}

struct Polling;

impl SchedulingPolicy for Polling {
    fn reservation(&self, member: &MemberParams) -> Option<ReservationParams> {
        Reserved { wakeup_rule: false }.reservation(member)
    }

    fn observes(&self, _: &MemberParams) -> bool {
        true
    }

    /// The group may have become active since, so what counts is what the server job does now.
    fn handle(&mut self, context: &mut Context<'_>, event: PolicyEvent) {
        let looks =
            matches!(event, PolicyEvent::Released | PolicyEvent::Blocked | PolicyEvent::Lost);
        if looks && context.standing() == Some(Standing::Idle) {
            // It exists, since it has a standing.
            let _ = context.cancel_job();
        }
    }
}
