//! Until when a dispatcher sleeps.

use crate::engine::Engine;
use crate::member::RunMode;
use crate::self_suspension::ASLEEP;

/// The timer of budgets may expire so much before the end of a budget, ns, or by an eighth of what
/// is left of it: setting it again costs as much, and most jobs end before.
const EARLY: u64 = 20_000;

/// When the dispatcher next acts, CLOCK_MONOTONIC ns.
pub(crate) struct Sleep {
    /// At the latest.
    pub act_by: u64,
    /// When its sleep ends by itself: after `act_by` where the timer of budgets is set to that.
    pub until: u64,
    /// It is the dispatcher's own next time, and not the end of a budget.
    pub is_own: bool,
}

/// When budgets and time slices end, if the tasks that have them execute from now on.
pub(crate) struct Ends {
    first: u64,
    of: u32,
    second: u64,
}

impl Ends {
    const NONE: Ends = Ends { first: u64::MAX, of: u32::MAX, second: u64::MAX };

    fn add(&mut self, slot: u32, end: u64) {
        if end < self.first {
            *self = Ends { first: end, of: slot, second: self.first };
        } else {
            self.second = self.second.min(end);
        }
    }

    /// The first of those of the other tasks.
    pub fn without(&self, slot: u32) -> u64 {
        if self.of == slot {
            self.second
        } else {
            self.first
        }
    }
}

impl Engine {
    /// At the end of an event at `now`, which is handled at `after`: sets the timer of budgets and
    /// permits waits in silence, if that is possible.
    pub(crate) fn prepare_sleep(&mut self, now: u64, after: u64) -> Sleep {
        let nearest = after + self.granularity;
        let next = self.next_time(now).max(nearest);
        let ends = self.budget_ends(now, after);
        let budgets = ends.first.max(nearest);
        let act_by = next.min(budgets);
        let until_then = Sleep { act_by, until: act_by, is_own: next <= budgets };
        let Some(timer) = self.doorbell.budget_timer.get() else { return until_then };
        let covers = || {
            let early = EARLY.max((budgets - after) / 8);
            budgets >= next || timer.cover(budgets.saturating_sub(early), budgets)
        };
        if timer.is_still() && self.some_may_be_silent(now, next) && covers() {
            self.permit_silence(next, &ends);
            return Sleep { act_by, until: next, is_own: true };
        }
        timer.be_quiet_until(act_by);
        until_then
    }

    /// The dispatcher's own next time, whatever executes until then.
    fn next_time(&mut self, now: u64) -> u64 {
        let mut next = self.dispatcher.timer(0, 0, now);
        next = self.queued.iter().map(|queued| queued.until).fold(next, u64::min);
        next = next.min(self.next_timed_lock(now));
        let moving = self.moving.iter().filter_map(|&i| self.members[i as usize].as_deref());
        moving.map(|m| m.poll_at()).fold(next, u64::min).min(self.sample_times.next())
    }

    /// For each unparked task the time at which its budget or its threads' time slice is exhausted
    /// if it executes from now on. The kernel does not report when a task blocks and a lower-ranked
    /// one runs, so only those behind a task that never suspends itself (synthetic execution) are
    /// left out. No task executes before `after`, when the dispatcher has handled the event at
    /// `now`, so budgets are counted from there.
    ///
    /// A task that has not run is polled at growing intervals, up to a thirty-second of its budget,
    /// so that a small remaining budget does not cause a storm of timers. One that was found
    /// suspended may overrun by half of its budget, but at most by the larger of 125 us and a
    /// sixteenth of its budget; enforcement error carries that over.
    fn budget_ends(&self, now: u64, after: u64) -> Ends {
        let place = self
            .cpu
            .ranked
            .iter()
            .position(|&i| self.members[i as usize].as_deref().is_some_and(|m| !m.quiet));
        let expected = place.map(|p| self.cpu.ranked[p]);
        let steady = expected
            .and_then(|i| self.members[i as usize].as_deref())
            .is_some_and(|m| !m.periods.params().suspends);
        let lapse = now.saturating_sub(self.cpu.slept_at);
        let behind = place.map_or(&[][..], |p| &self.cpu.ranked[p + 1..]);
        let mut ends = Ends::NONE;
        for &i in &self.moving {
            let Some(m) = self.members[i as usize].as_deref() else { continue };
            let Some(job) = self.dispatcher.job_of_task(m.task) else { continue };
            if m.run_mode != RunMode::Unparked || (steady && behind.contains(&i)) {
                continue;
            }
            let mut look = self.dispatcher.allowance(job);
            if m.ran == 0 {
                look = look.max(match m.quiet {
                    true => (m.grain / 2).min(ASLEEP / 2).max(m.grain / 16),
                    false => (now.saturating_sub(m.ran_at) / 4).min(m.grain / 32),
                });
            }
            ends.add(i, after.saturating_add(look).min(m.slice_end(now, lapse)));
        }
        ends
    }
}
