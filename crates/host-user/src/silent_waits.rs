//! Threads of this process that wait for their next release without waking the dispatcher.
//!
//! A thread that begins to wait leaves its CPU to the next level, where the next job is. So the
//! dispatcher may find the wait at its next event, which is the release that the thread waits for,
//! at the latest: it sleeps and wakes once in a period, not twice. The thread itself notes when its
//! job was done, and moves the timer that would wake the dispatcher at the end of its budget.
//!
//! At the end of each event the dispatcher permits that where the end of the job need not be known
//! at once:
//!
//! - every ready job is unparked: none waits for the place of this one;
//! - reservations carry out all tasks: no policy decides by the end of a job, and this one is in no
//!   group whose server it may leave idle;
//! - this wait returns with the next release, not at once (it is not late);
//! - the set is not traced: a trace has the events at their times;
//! - the next event comes soon: until then `punctual-watch` takes the end of the budget for the
//!   time at which the dispatcher acts.
//!
//! It takes the permission back first of all at the next event.

use std::sync::atomic::Ordering::SeqCst;

use crate::engine::Engine;
use crate::member::{Member, RunMode};
use crate::sleep::Ends;

/// Half of what `punctual-watch` takes for a dispatcher that is stopped, ns.
const SOON: u64 = 50_000_000;

impl Engine {
    /// From here on each wait wakes the dispatcher.
    pub(crate) fn forbid_silence(&mut self) {
        let Engine { cpu, members, .. } = self;
        for control in cpu.ranked.iter().filter_map(|&i| members[i as usize].as_deref()?.control())
        {
            control.silent_until.store(0, SeqCst);
        }
    }

    /// Whether there are some that may wait in silence until `next`, the dispatcher's own next
    /// time.
    pub(crate) fn some_may_be_silent(&self, now: u64, next: u64) -> bool {
        self.cpu.all_ranked
            && self.trace.is_none()
            && next.saturating_sub(now) <= SOON
            && self.ranked_members().any(|(_, m)| self.may_be_silent(m))
            // Asked last: it looks at all tasks.
            && !self.allocators.asks_policies()
    }

    /// Permits those that may to wait in silence, until the next event. Each moves the timer to
    /// where it will be wanted then: at the ends of the others' budgets, and at the end of its own
    /// next one if its release is that event.
    pub(crate) fn permit_silence(&self, next: u64, ends: &Ends) {
        for (i, m) in self.ranked_members().filter(|(_, m)| self.may_be_silent(m)) {
            let Some(control) = m.control() else { continue };
            let release = control.release.load(SeqCst).saturating_add(m.periods.params().period);
            let own = match release == next {
                true => next.saturating_add(self.cpu.delay).saturating_add(m.grain),
                false => u64::MAX,
            };
            control.silent_until.store(ends.without(i).min(own), SeqCst);
        }
    }

    fn ranked_members(&self) -> impl Iterator<Item = (u32, &Member)> {
        self.cpu.ranked.iter().filter_map(|&i| Some((i, self.members[i as usize].as_deref()?)))
    }

    fn may_be_silent(&self, m: &Member) -> bool {
        m.control().is_some()
            && m.run_mode == RunMode::Unparked
            && !m.confined
            && m.periods.params().suspends
            && self.dispatcher.lender_of(m.task).is_none()
            && self.allocators.reservation_of(m.task).is_some()
            && self.allocators.late_waits(&self.dispatcher, m.task) == 0
    }
}
