//! The jobs that policies make: their cookies, and how they come to the dispatcher.

use punctual_dispatcher::{Job, Refusal};

use crate::slot::Slot;
use crate::{Gsi, JobParams, JobPlace};

/// In the cookie of every job of a task that a policy made, beside slot and use.
const MADE: u64 = 1 << 63;
/// In a server job's cookie, beside its place in the list of servers.
pub(crate) const SERVER: u64 = 1 << 62;
/// In the cookie of a timer that a policy set, beside its slot. Those of releases have the slot
/// alone.
pub(crate) const POLICY_TIMER: u64 = 1 << 32;
const SLOT_BITS: u64 = 0xff_ffff;

/// Adds a job of the release in flight.
pub(crate) fn add(gsi: &mut dyn Gsi, slot: &mut Slot, job: &JobParams) -> Result<(), Refusal> {
    let m = &slot.member;
    let of_member = JobPlace { group: m.group, budget_group: m.budget_group };
    let JobPlace { group, budget_group } = slot.added.place().unwrap_or(of_member);
    let number = slot.use_of.wrapping_add(1);
    let id = gsi.add_job(&Job {
        serves: m.serves,
        start: job.start,
        finish: job.finish,
        budget: job.budget.min(slot.release.left),
        priority: job.priority,
        cookie: MADE | u64::from(m.index) << 32 | u64::from(number),
        group,
        budget_group,
    })?;
    slot.use_of = number;
    slot.release.part += 1;
    slot.job = Some(id);
    Ok(())
}

/// The slot and the use of a job that a policy made, by its cookie.
pub(crate) fn made(cookie: u64) -> Option<(usize, u32)> {
    (cookie & MADE != 0).then_some(((cookie >> 32 & SLOT_BITS) as usize, cookie as u32))
}

/// Cancels the timer that a policy set for a member, if there is one.
pub(crate) fn cancel_policy_timer(gsi: &mut dyn Gsi, slot: &mut Slot) {
    if let Some((timer, _)) = slot.policy_timer.take() {
        // It may have expired already; its event then finds none.
        let _ = gsi.cancel_timer(timer);
    }
}
