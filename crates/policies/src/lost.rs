//! Events that had no room in the dispatcher's ring: what they would have told is found by asking.

use punctual_dispatcher::{End, ReservationId};

use crate::allocators::Allocators;
use crate::slot::Phase;
use crate::{Gsi, Told};

impl Allocators {
    /// Looks after every task, so that none stands still: timers are asked for anew, releases in
    /// flight that have ended are told as cancelled, those that were made are told.
    pub(crate) fn look_around(&mut self, gsi: &mut dyn Gsi, at: u64, count: u64, told: &mut dyn FnMut(Told)) {
        told(Told::EventsLost { at, count });
        for s in 0..self.slots.len() {
            let slot = &mut self.slots[s];
            match slot.phase {
                Phase::Waiting => {
                    if let Some(timer) = slot.timer.take() {
                        // It may have come: then there is nothing to cancel.
                        let _ = gsi.cancel_timer(timer);
                        self.go_on(gsi, s, told);
                    }
                }
                Phase::Open if slot.job.is_some_and(|job| gsi.standing(job).is_none()) => {
                    // Its event, if it is still to come, finds another use.
                    slot.use_of = slot.use_of.wrapping_add(1);
                    self.over(gsi, s, at, End::Cancelled, told);
                }
                Phase::Reserved(r) => self.look_at(gsi, s, r, told),
                _ => {}
            }
        }
        self.poll_all(gsi);
    }

    /// A reservation's latest release is where its grid says; whether it has a job can be asked.
    fn look_at(&mut self, gsi: &mut dyn Gsi, s: usize, r: ReservationId, told: &mut dyn FnMut(Told)) {
        let now = gsi.now();
        let job = gsi.job_of(r);
        let slot = &mut self.slots[s];
        let passed = slot.next <= now;
        if slot.open && (passed || job.is_none()) {
            self.tell_end(s, now, End::Cancelled, told);
        }
        let slot = &mut self.slots[s];
        if let Some(job) = job.filter(|_| passed && !slot.open) {
            let period = slot.member.period;
            let more = (now - slot.next) / period;
            // Before its first release it has no latest one.
            let before = if slot.seen { slot.release.number + 1 } else { slot.number };
            slot.release.number = before + more;
            slot.release.at = slot.next + more * period;
            slot.next = slot.release.at.saturating_add(period);
            slot.by = slot.next_by;
            slot.seen = true;
            slot.open = true;
            slot.used = 0;
            slot.cut = false;
            slot.cut_off = 0;
            slot.granted = gsi.used(job) + gsi.remaining(job);
            if self.at_work[slot.by as usize].rows(&slot.member) > 0 {
                // What its earlier windows used was lost; of several, this one has a part only.
                slot.granted = slot.granted.max(slot.member.budget);
            }
            told(self.released_now(s, now));
        }
    }
}
