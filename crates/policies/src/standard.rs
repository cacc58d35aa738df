//! The standard periodic policies: one job per release, by the attributes of RED-Linux Table 1.

use punctual_dispatcher::Attribute;

use crate::allocator::{Allocator, Part, Release, ReservationParams, TaskParams};
use crate::policy::{PolicyEntry, Setup, Urgency};
use punctual_diagnostic::Diagnostic;

/// Start = the beginning of the period, finish = the deadline, budget = all of it (RED-Linux
/// Table 1). What tells one from another stands in its table entry.
struct Standard(&'static PolicyEntry);

/// Any set of tasks will do.
pub(crate) fn make(
    policy: &'static PolicyEntry,
    _: &Setup<'_>,
) -> Result<Box<dyn Allocator>, Diagnostic> {
    Ok(Box::new(Standard(policy)))
}

impl Standard {
    fn priority(&self, m: &TaskParams) -> i64 {
        (self.0.priority)(&Urgency { period: m.period, deadline: m.deadline, priority: m.priority })
    }
}

impl Allocator for Standard {
    fn order(&self) -> &[Attribute] {
        self.0.order
    }

    fn terms(&self, member: &TaskParams) -> Option<ReservationParams> {
        Some(ReservationParams { priority: self.priority(member), wakeup_rule: self.0.wakeup_rule })
    }

    fn first(&mut self, member: &TaskParams, release: &Release) -> Part {
        Part {
            start: release.at,
            finish: release.at.saturating_add(member.deadline),
            budget: release.left,
            priority: self.priority(member),
        }
    }

    fn wakeup_rule(&self) -> bool {
        self.0.wakeup_rule
    }
}
