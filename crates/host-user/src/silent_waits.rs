//! Threads of this process that wait for their next release without waking the dispatcher.
//!
//! A thread that begins to wait leaves its CPU to the next level, where the next job is. So the
//! dispatcher may find the wait at its next event, which is the release that the thread waits for,
//! at the latest: it sleeps and wakes once in a period, not twice. The thread itself notes when its
//! job was done.
//!
//! At the end of each event the dispatcher permits that where the end of the job need not be known
//! at once:
//!
//! - every ready job is unparked: none waits for the place of this one;
//! - reservations carry out all tasks: no policy decides by the end of a job, and this one is in no
//!   group whose server it may leave idle;
//! - this wait returns with the next release, not at once (it is not late);
//! - the set is not traced: a trace has the events at their times.
//!
//! It withdraws the permission first of all at the next event.

use std::sync::atomic::Ordering::SeqCst;

use crate::engine::Engine;
use crate::member::{Member, RunMode};

impl Engine {
    /// From here on each wait wakes the dispatcher.
    pub(crate) fn forbid_silence(&mut self) {
        let Engine { cpu, members, .. } = self;
        for control in cpu.ranked.iter().filter_map(|&i| members[i as usize].as_deref()?.control())
        {
            control.waits_silently.store(false, SeqCst);
        }
    }

    /// Permits those that may to wait in silence, until the next event.
    pub(crate) fn permit_silence(&mut self) {
        let Engine { cpu, members, allocators, dispatcher, trace, .. } = self;
        if !cpu.all_ranked || trace.is_some() {
            return;
        }
        let may = |m: &&Member| {
            m.run_mode == RunMode::Unparked
                && !m.confined
                && m.periods.params().suspends
                && dispatcher.lender_of(m.task).is_none()
                && allocators.reservation_of(m.task).is_some()
                && allocators.late_waits(dispatcher, m.task) == 0
        };
        let ranked = cpu.ranked.iter().filter_map(|&i| members[i as usize].as_deref());
        let mut may_wait = ranked.filter(|m| m.control().is_some()).filter(may).peekable();
        // Asked last: it looks at all tasks.
        if may_wait.peek().is_none() || allocators.asks_policies() {
            return;
        }
        for control in may_wait.filter_map(Member::control) {
            control.waits_silently.store(true, SeqCst);
        }
    }
}
