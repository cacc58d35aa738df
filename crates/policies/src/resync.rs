//! Events that had no room in the dispatcher's ring: their effects are found by queries.

use punctual_dispatcher::{End, ReservationId};

use crate::allocators::Allocators;
use crate::slot::Phase;
use crate::{Context, Gsi, PolicyEvent, ReleaseEvent};

impl Allocators {
    /// Resynchronises every member, so that none is lost: timers are requested again, releases
    /// in flight that have ended are reported as cancelled, those that were made are reported.
    pub(crate) fn resync(
        &mut self,
        gsi: &mut dyn Gsi,
        at: u64,
        count: u64,
        report: &mut dyn FnMut(ReleaseEvent),
    ) {
        report(ReleaseEvent::EventsLost { at, count });
        for s in 0..self.slots.len() {
            let slot = &mut self.slots[s];
            match slot.phase {
                Phase::Waiting => {
                    if let Some(timer) = slot.timer.take() {
                        // It may have come: then there is nothing to cancel.
                        let _ = gsi.cancel_timer(timer);
                        self.arm_next_release(gsi, s, report);
                    }
                }
                Phase::Open if slot.job.is_some_and(|job| gsi.standing(job).is_none()) => {
                    // Its event, if it is still to come, finds another use.
                    slot.use_of = slot.use_of.wrapping_add(1);
                    self.end_release(gsi, s, at, End::Cancelled, report);
                }
                Phase::Open => self.resync_policy(gsi, s, report),
                Phase::Reserved(r) if s < self.servers => {
                    self.resync_reservation(gsi, s, r, report)
                }
                _ => {}
            }
        }
        self.resync_group_jobs(gsi, at, report);
        for n in 0..self.observed.len() {
            let s = self.observed[n] as usize;
            if matches!(self.slots[s].phase, Phase::Reserved(_)) {
                self.dispatch_event(gsi, s, PolicyEvent::Lost, report);
            }
        }
    }

    /// Requests the policy's timer of a release in flight again, and reports to the policy that
    /// events may be lost.
    fn resync_policy(&mut self, gsi: &mut dyn Gsi, s: usize, report: &mut dyn FnMut(ReleaseEvent)) {
        if let Some((_, due)) = self.slots[s].policy_timer {
            // Its own timer is free again, or has expired and left its place.
            let slots = &mut self.slots[..];
            let _ = Context { gsi, slots, place: s, rank: 0, wakeup_rule: false }.set_timer(due);
        }
        self.dispatch_event(gsi, s, PolicyEvent::Lost, report);
    }

    /// A reservation's latest release is where its grid says; whether it has a job can be asked.
    fn resync_reservation(
        &mut self,
        gsi: &mut dyn Gsi,
        s: usize,
        r: ReservationId,
        report: &mut dyn FnMut(ReleaseEvent),
    ) {
        let now = gsi.now();
        let job = gsi.job_of(r);
        let slot = &mut self.slots[s];
        let passed = slot.next <= now;
        if slot.open && (passed || job.is_none()) {
            self.report_end(s, now, End::Cancelled, report);
        }
        let slot = &mut self.slots[s];
        if let Some(job) = job.filter(|_| passed && !slot.open) {
            let period = slot.member.period;
            let more = (now - slot.next) / period;
            // Before its first release it has no latest one.
            let before = if slot.seen { slot.release.number + 1 } else { slot.number };
            slot.release.number = before + more;
            slot.release.at = slot.next + more * period;
            slot.release.deadline = slot.release.at.saturating_add(slot.member.deadline);
            slot.assigned = slot.member.budget;
            slot.next = slot.release.at.saturating_add(period);
            slot.by = slot.next_by;
            slot.seen = true;
            slot.open = true;
            slot.used = 0;
            slot.cut = false;
            slot.cut_off = 0;
            slot.idle = 0;
            slot.extended = 0;
            slot.granted = gsi.used(job) + gsi.remaining(job);
            if self.at_work[slot.by as usize].policy.rows(&slot.member) > 0 {
                // The execution in its earlier windows is lost; of several, this has a part only.
                slot.granted = slot.granted.max(slot.member.budget);
            }
            report(self.released_now(s, now));
        }
    }
}
