//! Tasks that suspend themselves in mid-job. The kernel reports neither the suspension nor the wake-up; both are
//! inferred from CPU time that was available to the task and that it did not use.

use std::sync::atomic::Ordering::Relaxed;

use punctual_dispatcher::Dispatcher;

use crate::engine::{Engine, SWITCHING};
use crate::member::{Member, Standing, Who};

/// A task that could have run and did not for this long is suspended, ns. For shorter times,
/// interrupts or a descheduled virtual CPU are as likely.
pub(crate) const ASLEEP: u64 = 250_000;

impl Engine {
    /// Blocks the unparked tasks that left the CPU to lower-ranked ones, or idle; whether there are any.
    pub(crate) fn find_suspended(&mut self, now: u64) -> bool {
        let mut found = false;
        let mut available = now.saturating_sub(self.slept_at).saturating_sub(SWITCHING);
        for k in 0..self.ranked.len() {
            let i = self.ranked[k];
            let Some(m) = self.members[i as usize].as_deref_mut() else { continue };
            if m.standing == Standing::Unparked && m.ran == 0 && available > 0 && !m.asleep {
                m.asleep = true;
                found = true;
                let _ = self.dispatcher.task_blocked(m.task, now);
            }
            available = available.saturating_sub(m.ran);
        }
        found
    }
}

/// Charges `idle` ns, which the task left unused since the last event (at `since`), to its job, as far
/// as the wake-up rule would have cut the budget at that event.
///
/// The rule (revised CBS) cuts the remaining budget at the wake-up, whose time is unknown here. Charging
/// idle time is as safe for other tasks: the demand is that of a task that was ready throughout, or that
/// woke at the last event. A task that did not run because of an interrupt loses no more than its length.
/// Twice the granularity is left, so that a suspended task does not count as one that overran.
pub(crate) fn charge_idle(
    dispatcher: &mut Dispatcher,
    m: &mut Member,
    idle: u64,
    granularity: u64,
    since: u64,
    now: u64,
) {
    let Some(job) = dispatcher.job_of_task(m.task) else { return };
    let kept = m.track.bandwidth_until_deadline(since).max(2 * granularity);
    let cut = dispatcher.remaining(job).saturating_sub(kept).min(idle);
    if cut > 0 {
        let _ = dispatcher.charge_job(job, cut, now);
        m.track.charged_idle(cut);
        if let Who::Thread(cell) = &m.who {
            cell.exhausted_at.store(m.charged.saturating_add(dispatcher.remaining(job)), Relaxed);
        }
    }
}
