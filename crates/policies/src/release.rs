//! Releases that are made here rather than by the dispatcher's reservations: the timer of the next
//! one, its jobs, its end.

use punctual_dispatcher::{late_waits, End, OverrunPolicy, Refusal, TaskId, INFINITE};

use crate::allocators::Allocators;
use crate::at_work::AtWork;
use crate::entry::Urgency;
use crate::jobs;
use crate::policy::MemberParams;
use crate::slot::{Phase, Replenished};
use crate::{Context, Gsi, PolicyEvent, ReleaseEvent};

impl Allocators {
    /// Has a member's policy answer an event, and reports the release that it begins.
    pub(crate) fn call_policy(
        &mut self,
        gsi: &mut dyn Gsi,
        s: usize,
        event: PolicyEvent,
        report: &mut dyn FnMut(ReleaseEvent),
    ) {
        let (rank, wakeup_rule) = (self.rank_of(s), self.entry_of_group(s).wakeup_rule);
        let policy = &mut self.at_work[self.slots[s].by as usize].policy;
        let slots = &mut self.slots[..];
        policy.handle(&mut Context { gsi: &mut *gsi, slots, place: s, rank, wakeup_rule }, event);
        let slot = &mut self.slots[s];
        if !std::mem::take(&mut slot.begun) {
            return;
        }
        let (task, index, before) = (slot.member.task(), s as u32, slot.replenished.take());
        slot.open = true;
        if task == TaskId::NONE {
            return;
        }
        if let Some(Replenished { at, number, used, remaining, unused }) = before {
            report(ReleaseEvent::Replenished { at, task, index, number, used, remaining, unused });
        }
        report(self.released_now(s, gsi.now()));
    }

    /// The priority of a member's jobs as the policy of the group has it in which they compete.
    pub(crate) fn rank_of(&self, s: usize) -> i64 {
        let member = &self.slots[s].member;
        let AtWork { entry, policy, .. } =
            &self.at_work[self.groups[member.group as usize] as usize];
        let by_entry = || (entry.priority)(&Urgency::of(member));
        policy.server_priority(member).unwrap_or_else(by_entry)
    }

    /// As [`Allocators::call_policy`]; ends a release that has no job and no timer then.
    pub(crate) fn dispatch_event(
        &mut self,
        gsi: &mut dyn Gsi,
        s: usize,
        event: PolicyEvent,
        report: &mut dyn FnMut(ReleaseEvent),
    ) {
        self.call_policy(gsi, s, event, report);
        let slot = &self.slots[s];
        if slot.phase != Phase::Open || slot.release_continues() {
            return;
        }
        if slot.open {
            let (at, end) = (gsi.now(), slot.last_end);
            self.end_release(gsi, s, at, end, report);
        } else {
            // An arrival for which the policy has no answer any more.
            self.lose_release(gsi, s, report);
            self.arm_next_release(gsi, s, report);
        }
    }

    /// Ends a release and arms the next one.
    pub(crate) fn end_release(
        &mut self,
        gsi: &mut dyn Gsi,
        s: usize,
        at: u64,
        end: End,
        report: &mut dyn FnMut(ReleaseEvent),
    ) {
        self.report_end(s, at, end, report);
        let by_program = self.takes_jobs(s);
        let slot = &mut self.slots[s];
        let (task, index, number) = (slot.member.task(), s as u32, slot.release.number);
        if end == End::Exhausted || slot.used > slot.granted {
            slot.carry_error(slot.used as i64 - slot.granted as i64);
            if by_program {
                // The budget of the task may be far more than that of its jobs.
                slot.limit_error(slot.assigned);
            }
        }
        if end == End::Exhausted || end == End::Expired {
            // A wait is of the job that the task has then: the program knows how each one ended.
            let late = match by_program {
                true => 0,
                false => late_waits::after_release(slot.delayed, slot.waits),
            };
            if late != slot.delayed && late == late_waits::MAX_DELAYED {
                report(ReleaseEvent::DelayedSaturated { at, task, index });
            }
            slot.delayed = late;
            match slot.overrun {
                OverrunPolicy::Signal => report(ReleaseEvent::Overrun { at, task, index, number }),
                OverrunPolicy::Background => {
                    report(ReleaseEvent::Background { at, task, index, number })
                }
                OverrunPolicy::Carry | OverrunPolicy::Skip => {}
            }
        }
        if end == End::TaskGone || slot.phase == Phase::Empty {
            jobs::cancel_policy_timer(gsi, slot);
            slot.phase = Phase::Empty;
            return;
        }
        self.arm_next_release(gsi, s, report);
    }

    /// Makes the next release if it is due; arms its timer otherwise.
    pub(crate) fn arm_next_release(
        &mut self,
        gsi: &mut dyn Gsi,
        s: usize,
        report: &mut dyn FnMut(ReleaseEvent),
    ) {
        let now = gsi.now();
        loop {
            let slot = &mut self.slots[s];
            slot.phase = Phase::Waiting;
            if slot.next > now {
                if self.arm(gsi, s).is_err() {
                    self.unarmed += 1;
                }
                return;
            }
            let (task, index, period) = (slot.member.task(), s as u32, slot.member.period);
            let paced = self.at_work[slot.next_by as usize].policy.paces(&slot.member);
            // A server takes up one arrival after the other, however late.
            if slot.stream.is_periodic() && now - slot.next >= period && !paced {
                let count = (now - slot.next) / period;
                report(ReleaseEvent::Lost { at: now, task, index, first: slot.number, count });
                slot.lost = slot.lost.saturating_add(u32::try_from(count).unwrap_or(u32::MAX));
                slot.number += count;
                slot.next += count * period;
            }
            // Refused by the dispatcher: then the job is made here.
            if self.reserve(gsi, s) == Ok(true) {
                return;
            }
            if self.open(gsi, s, report) {
                return;
            }
            // A task that is always released would try for ever.
            let slot = &mut self.slots[s];
            if slot.stream.is_continual() {
                slot.next = now.saturating_add(period);
            }
        }
    }

    /// Makes the release that is due; `false` when its policy makes nothing of it, or the
    /// dispatcher has no room for its job.
    fn open(&mut self, gsi: &mut dyn Gsi, s: usize, report: &mut dyn FnMut(ReleaseEvent)) -> bool {
        let slot = &mut self.slots[s];
        slot.by = slot.next_by;
        slot.paced = self.at_work[slot.by as usize].policy.paces(&slot.member);
        slot.arrival = slot.next;
        slot.next = slot.stream.after(slot.next, slot.origin, slot.member.period);
        (slot.job, slot.open, slot.phase) = (None, false, Phase::Open);
        let MemberParams { deadline, budget: most, .. } = slot.member;
        let settled = if slot.paced {
            0
        } else {
            let budget = self.at_work[slot.by as usize].policy.budget(&slot.member).clamp(1, most);
            if budget < most {
                slot.limit_error(budget);
            }
            slot.begin_release(slot.arrival, slot.arrival.saturating_add(deadline), budget)
        };
        self.call_policy(gsi, s, PolicyEvent::Released, report);
        let slot = &mut self.slots[s];
        if slot.release_continues() {
            if !slot.paced {
                slot.open = true;
                report(self.released_now(s, gsi.now()));
            }
            return true;
        }
        slot.phase = Phase::Waiting;
        if slot.open {
            // Its policy began a release, and the dispatcher has no room for the job.
            self.report_end(s, gsi.now(), End::Cancelled, report);
        } else {
            slot.error += settled;
            self.lose_release(gsi, s, report);
        }
        false
    }

    /// Reports a release that has no job.
    fn lose_release(&mut self, gsi: &dyn Gsi, s: usize, report: &mut dyn FnMut(ReleaseEvent)) {
        let slot = &mut self.slots[s];
        if slot.paced {
            // No release was begun for it: it has the number that one would have had.
            slot.release.number = slot.number;
            slot.number += 1;
        }
        slot.open = false;
        slot.lost = slot.lost.saturating_add(1);
        let (task, index, first) = (slot.member.task(), s as u32, slot.release.number);
        if task != TaskId::NONE {
            report(ReleaseEvent::Lost { at: gsi.now(), task, index, first, count: 1 });
        }
    }

    /// Requests the timer of a slot's next release.
    pub(crate) fn arm(&mut self, gsi: &mut dyn Gsi, s: usize) -> Result<(), Refusal> {
        let slot = &mut self.slots[s];
        if slot.next == INFINITE {
            slot.phase = Phase::Finished;
            return Ok(());
        }
        slot.timer = Some(gsi.ask_timer(slot.next, s as u64)?);
        Ok(())
    }

    pub(crate) fn arm_again(&mut self, gsi: &mut dyn Gsi) {
        self.unarmed = 0;
        for s in 0..self.slots.len() {
            let slot = &self.slots[s];
            if slot.phase == Phase::Waiting && slot.timer.is_none() && self.arm(gsi, s).is_err() {
                self.unarmed += 1;
            }
        }
    }
}
