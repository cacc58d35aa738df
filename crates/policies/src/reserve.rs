//! Tasks whose releases a reservation of the dispatcher makes.

use punctual_dispatcher::{Refusal, Reservation};

use crate::policy::SchedulingPolicy;
use crate::slot::{Phase, Slot};
use crate::{Allocators, Gsi};

impl Allocators {
    /// Hands a task that waits for its next release to a reservation of the dispatcher, if its
    /// policy leaves it to one.
    pub(crate) fn reserve(&mut self, gsi: &mut dyn Gsi, s: usize) -> Result<bool, Refusal> {
        let slot = &mut self.slots[s];
        // A reservation begins without delayed waits; those that are due are ignored here first.
        if self.options.job_by_job || !slot.stream.is_periodic() || slot.delayed > 0 || slot.no_room
        {
            return Ok(false);
        }
        let policy = self.at_work[slot.next_by as usize].policy.as_ref();
        let Some(reservation) = standing(slot, policy) else {
            return Ok(false);
        };
        let id = match in_windows(gsi, slot, policy, |gsi| gsi.add_reservation(&reservation))? {
            Some(id) => id,
            None => {
                slot.no_room = true;
                return Ok(false);
            }
        };
        slot.by = slot.next_by;
        slot.phase = Phase::Reserved(id);
        slot.seen = false;
        Ok(true)
    }
}

/// The reservation that carries a member out from its next release on.
pub(crate) fn standing(slot: &Slot, policy: &dyn SchedulingPolicy) -> Option<Reservation> {
    let m = &slot.member;
    let params = policy.reservation(m)?;
    Some(Reservation {
        serves: m.serves,
        start: slot.next,
        period: m.period,
        budget: m.budget,
        deadline: m.deadline,
        priority: params.priority,
        group: m.group,
        budget_group: m.budget_group,
        cookie: slot.cookie,
        overrun: slot.overrun,
        wakeup_rule: params.wakeup_rule,
    })
}

/// Drafts the windows of the task's reservation, if any, and requests it through `ask`. The
/// dispatcher counts its releases from the slot's number on. `None`: there is no room for so many
/// windows.
pub(crate) fn in_windows<T>(
    gsi: &mut dyn Gsi,
    slot: &Slot,
    policy: &dyn SchedulingPolicy,
    ask: impl FnOnce(&mut dyn Gsi) -> Result<T, Refusal>,
) -> Result<Option<T>, Refusal> {
    let rows = policy.rows(&slot.member);
    if rows == 0 {
        return ask(gsi).map(Some);
    }
    let mut asked = Ok(());
    for row in 0..rows {
        let windows = policy.windows(&slot.member, slot.number.wrapping_add(row));
        for (place, w) in windows.iter().enumerate() {
            asked = asked.and_then(|()| gsi.draft_window(w.start, w.length, place == 0));
        }
    }
    let asked = asked.and_then(|()| ask(gsi));
    if asked.is_err() {
        gsi.drop_windows();
    }
    match asked {
        Err(Refusal::Full) => Ok(None),
        other => other.map(Some),
    }
}
