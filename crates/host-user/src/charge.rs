//! What was executed since the last event is charged, and what was left by those that did not
//! execute shows which tasks are suspended, and which have others inherit their levels.

use punctual_dispatcher::{Dispatcher, TaskId};

use crate::engine::{Cpu, Engine, SWITCHING};
use crate::lending::paying_lender;
use crate::member::{Member, RunMode};
use crate::queued::note_remaining;
use crate::self_suspension::{self, ASLEEP};
use crate::task_control::TaskControl;

impl Engine {
    /// Charges execution since the last instant, and finds suspended tasks. When the best ran
    /// through, the clocks of those behind it, each a system call or several, are not read: what
    /// they executed in a gap is charged when they are next read. Not while a request is pending:
    /// the clock of a task that has just completed may not be read again. With `all`, every clock
    /// is read.
    pub(crate) fn charge(&mut self, now: u64, late: u64, all: bool) {
        let Engine { dispatcher, allocators, members, moving, cpu, doorbell, lent, .. } = self;
        let (granularity, pages) = (self.granularity, &self.pages);
        let sample = self.sample_times.take(now);
        let Cpu { ranked, available, unused, slept_at, .. } = cpu;
        let lapse = now.saturating_sub(*slept_at);
        let best = ranked.first().copied();
        let mut through = false;
        if let Some(m) = best.and_then(|i| members[i as usize].as_deref_mut()) {
            charge_member(dispatcher, m, now, lent);
            let gap = lapse.saturating_sub(m.ran);
            through = !all && gap <= SWITCHING.min(lapse / 4);
            through &= doorbell.is_quiet() && pages.is_quiet();
        }
        for &i in moving.iter() {
            let Some(m) = members[i as usize].as_deref_mut() else { continue };
            if through && ranked.contains(&i) {
                m.ran = if best == Some(i) { m.ran } else { 0 };
            } else if best != Some(i) {
                charge_member(dispatcher, m, now, lent);
            }
        }
        for (owner, ran) in lent.drain(..) {
            if let Some(m) = members[owner.0 as usize].as_deref_mut() {
                m.executed_by_another(ran);
            }
        }
        // In order of rank: a task could have used what those above it left. While those below it
        // executed it was suspended, so that time needs no allowance for switches.
        let others = moving.iter().filter(|i| !ranked.contains(i));
        let parking = others
            .filter_map(|&i| members[i as usize].as_deref())
            .map(Member::ran_on_its_way)
            .sum::<u64>();
        *available = self_suspension::available(lapse, late, parking);
        let mut available = *available;
        let mut free = lapse.saturating_sub(late + parking);
        let mut below: u64 =
            ranked.iter().filter_map(|&i| members[i as usize].as_deref()).map(|m| m.ran).sum();
        for &i in ranked.iter() {
            let Some(m) = members[i as usize].as_deref_mut() else { continue };
            below = below.saturating_sub(m.ran);
            free = free.saturating_sub(m.ran);
            // A program whose freezer was not written yet could not execute: it did not suspend
            // itself.
            let held = m.held_until(*slept_at + SWITCHING, now);
            let could_wait = held.is_none() && !pages.has(i);
            if could_wait && m.pays_for_inheritance(dispatcher, free, lapse, sample, now) {
                (free, available) = (0, 0);
                continue;
            }
            let idle = available.saturating_sub(m.ran).max(below.min(lapse));
            // It has completed, at a time that is not known here: it was not suspended.
            let waits = pages.has(i) || m.control().is_some_and(TaskControl::has_asked_to_wait);
            let charged = match held {
                _ if waits => 0,
                Some(until) => {
                    self_suspension::charge_held(dispatcher, m, until, granularity, lapse, now)
                }
                None => {
                    m.periods.suspended(idle);
                    self_suspension::charge_idle(dispatcher, m, idle, granularity, *slept_at, now)
                }
            };
            allocators.charged_idle(m.task, charged);
            let long = available > 0 && now.saturating_sub(m.ran_at) > ASLEEP;
            let unused = held.is_none() && !waits && m.ran == 0 && m.periods.params().suspends;
            m.quiet = unused && (m.quiet || below > 0 || long);
            available = available.saturating_sub(m.ran);
        }
        // One that was found suspended keeps its level.
        for i in moving.iter().filter(|i| !ranked.contains(i)) {
            let Some(m) = members[*i as usize].as_deref_mut().filter(|m| m.asleep) else {
                continue;
            };
            if m.pays_for_inheritance(dispatcher, free, lapse, sample, now) {
                free = 0;
            }
        }
        *unused = free;
    }
}

/// Reads a member's clock and charges what it executed since that was last done.
fn charge_member(
    dispatcher: &mut Dispatcher,
    m: &mut Member,
    now: u64,
    lent: &mut Vec<(TaskId, u64)>,
) {
    let clock = m.clock(now);
    m.ran = clock.saturating_sub(m.charged);
    m.charged = clock;
    if m.ran == 0 || !m.is_charged() {
        return;
    }
    m.ran_at = now;
    m.use_slice();
    if m.asleep {
        m.asleep = false;
        let _ = dispatcher.task_ready(m.task, now);
        note_remaining(dispatcher, m, clock - m.ran);
    }
    if let Some(owner) = paying_lender(dispatcher, m.task) {
        m.executed_for_another(m.ran);
        lent.push((owner, m.ran));
    } else {
        m.periods.executed(m.ran);
    }
    if m.defers_charges && m.run_mode == RunMode::Parked {
        m.deferred += m.ran;
        return;
    }
    let _ = dispatcher.charge_task(m.task, m.ran, now);
}
