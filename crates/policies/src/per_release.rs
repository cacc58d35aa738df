//! Policies whose jobs follow from each release by itself: all that RED-Linux's examples need.

use punctual_dispatcher::End;
use punctual_taskset::Window;

use crate::policy::{MemberParams, PolicyEvent, Release, ReservationParams, SchedulingPolicy};
use crate::wakeup::cut_to_bandwidth;
use crate::{Context, JobParams, PolicyEntry};

/// A policy that turns each release of a task into jobs, one after the other.
///
/// [`per_release`] makes a [`SchedulingPolicy`] of it, and adds the wake-up rule where the policy's
/// entry has it.
pub trait ReleasePolicy: Send {
    /// As [`SchedulingPolicy::admits`].
    fn admits(&self, member: &MemberParams) -> bool {
        let _ = member;
        true
    }

    /// As [`SchedulingPolicy::reservation`].
    fn reservation(&self, member: &MemberParams) -> Option<ReservationParams> {
        let _ = member;
        None
    }

    /// As [`SchedulingPolicy::rows`].
    fn rows(&self, member: &MemberParams) -> u64 {
        let _ = member;
        0
    }

    /// As [`SchedulingPolicy::windows`].
    fn windows(&self, member: &MemberParams, number: u64) -> &[Window] {
        let _ = (member, number);
        &[]
    }

    /// The first job of a release.
    fn first(&mut self, member: &MemberParams, release: &Release) -> JobParams;

    /// The job that follows one that was exhausted or expired (a completed one ends its release);
    /// `None` when the release is over.
    fn next(&mut self, member: &MemberParams, release: &Release, end: End) -> Option<JobParams> {
        let _ = (member, release, end);
        None
    }
}

/// A policy that receives events, made of one that turns releases into jobs.
pub fn per_release(
    entry: &'static PolicyEntry,
    policy: impl ReleasePolicy + 'static,
) -> Box<dyn SchedulingPolicy> {
    Box::new(PerRelease { policy, wakeup_rule: entry.wakeup_rule })
}

struct PerRelease<P> {
    policy: P,
    wakeup_rule: bool,
}

impl<P: ReleasePolicy> PerRelease<P> {
    /// The revised CBS wake-up rule: what is left of a task that wakes in mid-job is cut to its
    /// bandwidth, by replacing the job (design, "Reservation").
    fn woke(&mut self, context: &mut Context<'_>) {
        let Some(allowed) = cut_to_bandwidth(context) else { return };
        let job = self.policy.first(context.member(), context.release());
        let _ = context.replace_job(&JobParams { budget: allowed, ..job });
    }
}

impl<P: ReleasePolicy> SchedulingPolicy for PerRelease<P> {
    fn admits(&self, member: &MemberParams) -> bool {
        self.policy.admits(member)
    }

    fn reservation(&self, member: &MemberParams) -> Option<ReservationParams> {
        self.policy.reservation(member)
    }

    fn rows(&self, member: &MemberParams) -> u64 {
        self.policy.rows(member)
    }

    fn windows(&self, member: &MemberParams, number: u64) -> &[Window] {
        self.policy.windows(member, number)
    }

    fn handle(&mut self, context: &mut Context<'_>, event: PolicyEvent) {
        let job = match event {
            PolicyEvent::Released => Some(self.policy.first(context.member(), context.release())),
            PolicyEvent::JobEnded { end: end @ (End::Exhausted | End::Expired), .. } => {
                self.policy.next(context.member(), context.release(), end)
            }
            PolicyEvent::Ready if self.wakeup_rule => return self.woke(context),
            _ => None,
        };
        if let Some(job) = job {
            // One that is refused ends the release, or loses it: the host learns of it.
            let _ = context.add_job(&job);
        }
    }
}
