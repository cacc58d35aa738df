//! Tasks that suspend themselves in mid-job. The kernel reports neither the suspension nor the
//! wake-up; both are inferred from CPU time that was available to the task and that it did not use.

use std::sync::atomic::Ordering::Relaxed;

use punctual_dispatcher::Dispatcher;
use punctual_policies::{PeriodBuilder, PeriodParams};

use crate::engine::{Engine, SWITCHING};
use crate::lending::paying_lender;
use crate::member::{Member, MemberKind, RunMode};

/// A task that could have run and did not for this long is suspended, ns. For shorter times,
/// interrupts or a descheduled virtual CPU are as likely.
pub(crate) const ASLEEP: u64 = 250_000;

impl Engine {
    /// Blocks the unparked tasks that left the CPU to lower-ranked tasks, or idle, except those
    /// that never suspend themselves; returns whether it found any.
    ///
    /// A blocked task keeps its level, which may be below those of the tasks ranked after it: one
    /// that is ready after all waits for these.
    pub(crate) fn find_suspended(&mut self, now: u64) -> bool {
        let mut found = false;
        let mut available = self.cpu.available;
        for k in 0..self.cpu.ranked.len() {
            let i = self.cpu.ranked[k];
            let Some(m) = self.members[i as usize].as_deref_mut() else { continue };
            let held = m.held_until(self.cpu.slept_at + SWITCHING, now).is_some();
            let could_run = m.run_mode == RunMode::Unparked && available > 0 && !held;
            if could_run && m.ran == 0 && !m.asleep && m.periods.params().suspends {
                m.asleep = true;
                found = true;
                let _ = self.dispatcher.task_blocked(m.task, now);
            }
            available = available.saturating_sub(m.ran);
        }
        found
    }
}

/// Of the `lapse` ns since the last event, how many the ranked tasks could execute in: not while
/// this event was `late`, since not even the dispatcher executed then, and not while parked tasks
/// executed for `parking` ns on their way to their gates.
pub(crate) fn available(lapse: u64, late: u64, parking: u64) -> u64 {
    lapse.saturating_sub(late).saturating_sub(parking).saturating_sub(SWITCHING)
}

/// Charges `idle` ns, which the task left unused since the last event (at `since`), to its job, as
/// far as the wake-up rule would have cut the budget at that event; returns how much, ns.
///
/// The rule (revised CBS) cuts the remaining budget at the wake-up, whose time is unknown here.
/// Charging idle time is as safe for other tasks: the demand is that of a task that was ready
/// throughout, or that woke at the last event. A task that did not run because of an interrupt
/// loses no more than its length. Twice the granularity is left, so that a suspended task does not
/// count as one that overran.
pub(crate) fn charge_idle(
    dispatcher: &mut Dispatcher,
    m: &mut Member,
    idle: u64,
    granularity: u64,
    since: u64,
    now: u64,
) -> u64 {
    if idle == 0 || !m.charges_idle {
        return 0;
    }
    // On the budget of a task that waits for it, whose bandwidth is another, nothing is kept.
    let kept = match paying_lender(dispatcher, m.task) {
        None => bandwidth_until_deadline(&m.periods, since),
        Some(_) => 0,
    };
    let kept = kept.max(2 * granularity);
    let cut = cut_to(dispatcher, m, kept, idle, now);
    m.periods.unused(cut);
    cut
}

/// Cuts the budget of a program whose freezer kept it from executing until `until`; the last event
/// was `lapse` ns ago. To other tasks that is a self-suspension, whose end is known here, so that
/// the wake-up rule applies as it is. To the program it is a stall of the machine: the budget that
/// it loses counts as not received, and its period as woken late. Returns how much that is, ns.
pub(crate) fn charge_held(
    dispatcher: &mut Dispatcher,
    m: &mut Member,
    until: u64,
    granularity: u64,
    lapse: u64,
    now: u64,
) -> u64 {
    m.note_held(until, now);
    if !m.charges_idle {
        return 0;
    }
    let kept =
        bandwidth_until_deadline(&m.periods, until).saturating_sub(m.ran).max(2 * granularity);
    // It may have executed meanwhile: a write that waits has not frozen it yet.
    cut_to(dispatcher, m, kept, lapse.saturating_sub(m.ran), now)
}

/// The task's bandwidth, budget / deadline, times what is left until the latest release's deadline,
/// ns.
fn bandwidth_until_deadline(periods: &PeriodBuilder, now: u64) -> u64 {
    let PeriodParams { deadline, budget, .. } = *periods.params();
    let left = u128::from(periods.latest().deadline.saturating_sub(now)) * u128::from(budget);
    u64::try_from(left / u128::from(deadline.max(1))).unwrap_or(u64::MAX)
}

/// Charges its job down to `kept` ns of budget, by `most` ns at most; so much, ns.
fn cut_to(dispatcher: &mut Dispatcher, m: &mut Member, kept: u64, most: u64, now: u64) -> u64 {
    let Some(job) = dispatcher.job_of_task(m.task) else { return 0 };
    let cut = dispatcher.remaining(job).saturating_sub(kept).min(most);
    if cut > 0 {
        let _ = dispatcher.charge_job(job, cut, now);
        let own = dispatcher.owner_of(job) == Some(m.task);
        if let (MemberKind::Thread(control), true) = (&m.kind, own) {
            control
                .exhausted_at
                .store(m.charged.saturating_add(dispatcher.remaining(job)), Relaxed);
        }
    }
    cut
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_in_which_no_ranked_task_could_execute_is_not_available() {
        let lapse = SWITCHING + 40_000;
        assert_eq!(available(lapse, 0, 0), 40_000);
        assert_eq!(available(lapse, 0, 26_000), 14_000);
        assert_eq!(available(lapse, 100_000, 0), 0);
        assert_eq!(available(10_000, 0, 0), 0);
    }
}
