//! Releases that are made here rather than by the dispatcher's reservations: the timer of the next
//! one, its jobs, its end.

use punctual_dispatcher::{
    error_settled, late_waits, End, For, Job, JobId, OverrunPolicy, Refusal, INFINITE,
};

use crate::allocator::Part;
use crate::allocators::Allocators;
use crate::handle::MADE;
use crate::slot::Phase;
use crate::{Gsi, ReleaseEvent};

impl Allocators {
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
        let slot = &mut self.slots[s];
        let (task, index, number) = (slot.member.task, s as u32, slot.release.number);
        if end == End::Exhausted || slot.used > slot.granted {
            slot.carry_error(slot.used as i64 - slot.granted as i64);
        }
        if end == End::Exhausted || end == End::Expired {
            let late = late_waits::after_release(slot.delayed, slot.waits);
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
            let (task, index, period) = (slot.member.task, s as u32, slot.member.period);
            if slot.stream.is_periodic() && now - slot.next >= period {
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
        }
    }

    /// Makes the release that is due; `false` when the dispatcher has no room for its job.
    fn open(&mut self, gsi: &mut dyn Gsi, s: usize, report: &mut dyn FnMut(ReleaseEvent)) -> bool {
        let slot = &mut self.slots[s];
        slot.by = slot.next_by;
        let settled = error_settled(slot.member.budget, slot.error);
        let granted = (slot.member.budget as i64).saturating_sub(settled).max(0) as u64;
        slot.release.number = slot.number;
        slot.release.at = slot.next;
        slot.release.left = granted;
        slot.release.part = 0;
        slot.granted = granted;
        slot.cut_off = 0;
        slot.used = 0;
        slot.number += 1;
        slot.next = slot.stream.after(slot.next, slot.origin, slot.member.period);
        let part = self.at_work[slot.by as usize].first(&slot.member, &slot.release);
        if self.put(gsi, s, &part).is_err() {
            let slot = &mut self.slots[s];
            slot.lost = slot.lost.saturating_add(1);
            report(ReleaseEvent::Lost {
                at: gsi.now(),
                task: slot.member.task,
                index: s as u32,
                first: slot.release.number,
                count: 1,
            });
            return false;
        }
        let slot = &mut self.slots[s];
        slot.error -= settled;
        slot.open = true;
        slot.phase = Phase::Open;
        report(self.released_now(s, gsi.now()));
        true
    }

    /// Adds a job of the release in flight.
    pub(crate) fn put(
        &mut self,
        gsi: &mut dyn Gsi,
        s: usize,
        part: &Part,
    ) -> Result<JobId, Refusal> {
        let slot = &mut self.slots[s];
        let m = &slot.member;
        let id = gsi.add_job(&Job {
            serves: For::Task(m.task),
            start: part.start,
            finish: part.finish,
            budget: part.budget.min(slot.release.left),
            priority: part.priority,
            cookie: MADE | (s as u64) << 32 | u64::from(slot.use_of.wrapping_add(1)),
            group: m.group,
            budget_group: m.budget_group,
        })?;
        slot.use_of = slot.use_of.wrapping_add(1);
        slot.release.part += 1;
        slot.job = Some(id);
        Ok(id)
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
