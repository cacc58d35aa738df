//! The standard periodic policies: one job per release, by the attributes of RED-Linux Table 1.

use punctual_diagnostic::Diagnostic;

use crate::entry::{PolicyEntry, Setup, Urgency};
use crate::per_release::{per_release, ReleasePolicy};
use crate::policy::{MemberParams, Release, ReservationParams, SchedulingPolicy};
use crate::JobParams;

/// Start = the beginning of the period, finish = the deadline, budget = all of it (RED-Linux
/// Table 1). What tells one from another stands in its table entry.
struct Standard(&'static PolicyEntry);

/// Any set of tasks will do.
pub(crate) fn make(
    entry: &'static PolicyEntry,
    _: &Setup<'_>,
) -> Result<Box<dyn SchedulingPolicy>, Diagnostic> {
    Ok(per_release(entry, Standard(entry)))
}

impl ReleasePolicy for Standard {
    fn reservation(&self, member: &MemberParams) -> Option<ReservationParams> {
        let priority = (self.0.priority)(&Urgency::of(member));
        Some(ReservationParams { priority, wakeup_rule: self.0.wakeup_rule })
    }

    fn first(&mut self, member: &MemberParams, release: &Release) -> JobParams {
        JobParams {
            start: release.at,
            finish: release.at.saturating_add(member.deadline),
            budget: release.left,
            priority: (self.0.priority)(&Urgency::of(member)),
        }
    }
}
