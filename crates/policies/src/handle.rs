//! From the dispatcher's events to release events: each task's releases, their jobs, their ends.

use punctual_dispatcher::{End, Event, TaskId};

use crate::allocator::Part;
use crate::allocators::Allocators;
use crate::slot::Phase;
use crate::{Gsi, ReleaseEvent};

/// In the cookie of every job that is made here, beside slot and use.
pub(crate) const MADE: u64 = 1 << 63;
const SLOT_BITS: u64 = 0xff_ffff;

impl Allocators {
    /// Handles one event of the dispatcher as its policy defines. Every event must come here, in
    /// order; `report` receives what the host must know.
    pub fn handle(
        &mut self,
        gsi: &mut dyn Gsi,
        event: &Event,
        report: &mut dyn FnMut(ReleaseEvent),
    ) {
        match *event {
            Event::JobEnded { at, end, task, cookie, used, remaining, .. } => {
                if cookie & MADE != 0 && task != TaskId::NONE {
                    self.part_ended(gsi, cookie, at, end, used, report);
                } else if let Some(s) = self.slot_of(task) {
                    self.reserved_ended(s, at, end, used, remaining, report);
                }
            }
            Event::WindowEnded { task, used, .. } => self.window_ended(task, used),
            Event::Timer { timer, cookie, .. } => {
                let s = cookie as usize;
                if self.slots.get(s).is_some_and(|slot| slot.timer == Some(timer)) {
                    self.slots[s].timer = None;
                    self.arm_next_release(gsi, s, report);
                }
            }
            Event::Released { at, job, task, number, release, budget } => {
                if let Some(s) = self.slot_of(task) {
                    self.released(gsi, s, at, number, release, budget, report);
                } else {
                    self.server_released(gsi, job);
                }
            }
            Event::ReleasesLost { at, task, first, count } => {
                self.of_reserved(task, |base, index| {
                    report(ReleaseEvent::Lost { at, task, index, first: base + first, count });
                })
            }
            Event::Overrun { at, task, number } => self.of_reserved(task, |base, index| {
                report(ReleaseEvent::Overrun { at, task, index, number: base + number });
            }),
            Event::Background { at, task, number } => self.of_reserved(task, |base, index| {
                report(ReleaseEvent::Background { at, task, index, number: base + number });
            }),
            Event::DelayedSaturated { at, task } => {
                self.of_reserved(task, |_, index| {
                    report(ReleaseEvent::DelayedSaturated { at, task, index })
                });
            }
            Event::TaskReady { at, task } => self.woke(gsi, task, at),
            Event::GroupIdle { group, .. } => self.poll_away(gsi, group),
            Event::Lost { at, count } => self.resync(gsi, at, count, report),
            Event::SegmentEnded { .. } | Event::TaskBlocked { .. } | Event::GroupActive { .. } => {}
        }
        if self.unarmed > 0 {
            self.arm_again(gsi);
        }
    }

    fn of_reserved(&mut self, task: TaskId, mut report: impl FnMut(u64, u32)) {
        if let Some(s) = self.slot_of(task) {
            report(self.slots[s].number, s as u32);
        }
    }

    /// The dispatcher's reservation released a task.
    #[allow(clippy::too_many_arguments)]
    fn released(
        &mut self,
        gsi: &mut dyn Gsi,
        s: usize,
        at: u64,
        number: u64,
        release: u64,
        budget: u64,
        report: &mut dyn FnMut(ReleaseEvent),
    ) {
        let Phase::Reserved(r) = self.slots[s].phase else { return };
        if self.slots[s].open {
            if self.slots[s].release.number == self.slots[s].number + number {
                // Reported already, when events before this one were lost.
                return;
            }
            // Its end was lost.
            self.report_end(s, at, End::Cancelled, report);
        }
        let next = &self.at_work[self.slots[s].next_by as usize];
        let leaves = next.terms(&self.slots[s].member).is_none() || self.slots[s].no_room;
        let slot = &mut self.slots[s];
        if leaves {
            // The policy was swapped: this release is the new one's. Its job has not run yet.
            slot.delayed = gsi.delayed(r);
            slot.waits |= slot.delayed > 0;
            // What this release was to settle, and what later ones were.
            slot.error = slot.member.budget as i64 - budget as i64 + gsi.enforcement_error(r);
            let _ = gsi.remove_reservation(r);
            slot.phase = Phase::Waiting;
            slot.number += number;
            slot.next = release;
            self.arm_next_release(gsi, s, report);
            return;
        }
        slot.by = slot.next_by;
        slot.open = true;
        slot.seen = true;
        slot.cut = false;
        slot.cut_off = 0;
        slot.granted = budget;
        slot.used = 0;
        slot.release.number = slot.number + number;
        slot.release.at = release;
        slot.next = release.saturating_add(slot.member.period);
        report(self.released_now(s, at));
    }

    pub(crate) fn released_now(&self, s: usize, at: u64) -> ReleaseEvent {
        let slot = &self.slots[s];
        ReleaseEvent::Released {
            at,
            task: slot.member.task,
            index: s as u32,
            number: slot.release.number,
            release: slot.release.at,
            deadline: slot.release.at.saturating_add(slot.member.deadline),
            budget: slot.granted,
        }
    }

    /// A job of a reservation ended.
    fn reserved_ended(
        &mut self,
        s: usize,
        at: u64,
        end: End,
        used: u64,
        remaining: u64,
        report: &mut dyn FnMut(ReleaseEvent),
    ) {
        let slot = &mut self.slots[s];
        let reserved = matches!(slot.phase, Phase::Reserved(_));
        if !slot.open || !reserved && slot.phase != Phase::Empty {
            // The job of a release that another policy took over before it ran.
            return;
        }
        slot.used += used;
        if end == End::Cancelled && reserved {
            // By the wake-up rule: another one of the same release, with less budget, follows.
            slot.cut = true;
            return;
        }
        if slot.cut {
            let granted = slot.used + remaining;
            slot.cut_off = slot.granted.saturating_sub(granted);
            slot.granted = granted;
        }
        self.report_end(s, at, end, report);
        if end == End::TaskGone {
            self.slots[s].phase = Phase::Empty;
        }
    }

    /// A job of a reservation with windows ended, and another one of the same release follows.
    fn window_ended(&mut self, task: TaskId, used: u64) {
        if let Some(s) = self.slot_of(task).filter(|&s| self.slots[s].open) {
            self.slots[s].used += used;
        }
    }

    pub(crate) fn report_end(
        &mut self,
        s: usize,
        at: u64,
        end: End,
        report: &mut dyn FnMut(ReleaseEvent),
    ) {
        let slot = &mut self.slots[s];
        slot.open = false;
        slot.job = None;
        let remaining = slot.granted.saturating_sub(slot.used);
        // What an exhausted release leaves (at most the granularity) is carried, not given up.
        let left = if end == End::Exhausted { 0 } else { remaining };
        report(ReleaseEvent::Ended {
            at,
            task: slot.member.task,
            index: s as u32,
            number: slot.release.number,
            end,
            used: slot.used,
            remaining,
            unused: slot.cut_off + left,
        });
    }

    /// A job that was made here ended.
    fn part_ended(
        &mut self,
        gsi: &mut dyn Gsi,
        cookie: u64,
        at: u64,
        end: End,
        used: u64,
        report: &mut dyn FnMut(ReleaseEvent),
    ) {
        let s = (cookie >> 32 & SLOT_BITS) as usize;
        let Some(slot) =
            self.slots.get_mut(s).filter(|slot| slot.open && slot.use_of == cookie as u32)
        else {
            return;
        };
        slot.used += used;
        slot.release.left = slot.granted.saturating_sub(slot.used);
        if end == End::Exhausted || end == End::Expired {
            let next = self.at_work[slot.by as usize].next(&slot.member, &slot.release, end);
            if let Some(part) = next {
                if self.put(gsi, s, &part).is_ok() {
                    return;
                }
            }
        }
        self.end_release(gsi, s, at, end, report);
    }

    /// The revised CBS wake-up rule for jobs that are made here: what is left of a task that wakes
    /// in mid-job is cut to its bandwidth, by replacing the job (design, "Reservation").
    fn woke(&mut self, gsi: &mut dyn Gsi, task: TaskId, at: u64) {
        let Some(s) = self.slot_of(task) else { return };
        let slot = &mut self.slots[s];
        let finish = slot.release.at.saturating_add(slot.member.deadline);
        if slot.phase != Phase::Open
            || finish <= at
            || !self.at_work[slot.by as usize].wakeup_rule()
        {
            return;
        }
        let Some(job) = slot.job.filter(|&job| gsi.standing(job).is_some()) else { return };
        let (left, used) = (gsi.remaining(job), gsi.used(job));
        let allowed = u128::from(finish - at) * u128::from(slot.member.budget)
            / u128::from(slot.member.deadline);
        let allowed = u64::try_from(allowed).unwrap_or(u64::MAX);
        if left <= allowed {
            return;
        }
        let part = self.at_work[slot.by as usize].first(&slot.member, &slot.release);
        let _ = gsi.cancel_job(job);
        slot.used += used;
        slot.cut_off += left - allowed;
        slot.granted = slot.used + allowed;
        slot.release.left = allowed;
        // There is room: a job was just taken back.
        let _ = self.put(gsi, s, &Part { budget: allowed, ..part });
    }
}
