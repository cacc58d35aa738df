//! From the dispatcher's events to those of policies, and to release events: each task's releases,
//! their jobs, their ends.

use punctual_dispatcher::{End, Event, For, TaskId, TimerId};

use crate::allocators::Allocators;
use crate::group_jobs::group_job;
use crate::jobs::{self, POLICY_TIMER};
use crate::slot::Phase;
use crate::{Gsi, PolicyEvent, ReleaseEvent};

impl Allocators {
    /// Handles one event of the dispatcher as its policy defines. Every event must come here, in
    /// order; `report` receives what the host must know. Does not allocate unless a policy of the
    /// program panics.
    pub fn handle(
        &mut self,
        gsi: &mut dyn Gsi,
        event: &Event,
        report: &mut dyn FnMut(ReleaseEvent),
    ) {
        match *event {
            Event::JobEnded { at, end, task, cookie, used, remaining, .. } => {
                let ended = PolicyEvent::JobEnded { end, used, remaining };
                if let Some(place) = group_job(cookie) {
                    self.group_job_ended(place, (at, end), (used, remaining), report);
                } else if let Some((s, use_of)) = jobs::made(cookie) {
                    self.made_ended(gsi, (s, use_of), at, ended, report);
                } else if let Some(s) = self.slot_of(task) {
                    self.reserved_ended(s, at, end, used, remaining, report);
                    self.observe(gsi, s, ended, report);
                } else {
                    self.notify_servers(gsi, ended, report, |_, slot| slot.cookie == Some(cookie));
                }
            }
            Event::WindowEnded { task, used, .. } => self.window_ended(task, used),
            Event::Timer { timer, cookie, .. } => self.timer_expired(gsi, timer, cookie, report),
            Event::Released { at, job, task, number, release, budget } => {
                if let Some(s) = self.slot_of(task) {
                    self.released(gsi, s, at, number, release, budget, report);
                    self.observe(gsi, s, PolicyEvent::Released, report);
                } else {
                    self.notify_servers(gsi, PolicyEvent::Released, report, |gsi, slot| {
                        slot.current_job(gsi) == Some(job)
                    });
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
            Event::SegmentEnded { at, end, cookie, used, remaining, .. } => {
                if let Some(place) = group_job(cookie) {
                    self.group_job_ended(place, (at, end), (used, remaining), report);
                } else {
                    let ended = PolicyEvent::JobEnded { end, used, remaining };
                    self.notify_servers(gsi, ended, report, |_, slot| slot.cookie == Some(cookie));
                }
            }
            Event::TaskReady { task, .. } => {
                self.task_changed(gsi, task, PolicyEvent::Ready, report);
            }
            Event::TaskBlocked { task, .. } => {
                self.task_changed(gsi, task, PolicyEvent::Blocked, report);
            }
            Event::GroupActive { group, .. } => {
                self.group_changed(gsi, group, PolicyEvent::Ready, report);
            }
            Event::GroupIdle { group, .. } => {
                self.group_changed(gsi, group, PolicyEvent::Blocked, report);
            }
            Event::Lost { at, count } => self.resync(gsi, at, count, report),
        }
        if self.unarmed > 0 {
            self.arm_again(gsi);
        }
        if self.guarded {
            self.replace_stopped(gsi, report);
        }
    }

    /// A task woke or fell asleep.
    fn task_changed(
        &mut self,
        gsi: &mut dyn Gsi,
        task: TaskId,
        event: PolicyEvent,
        report: &mut dyn FnMut(ReleaseEvent),
    ) {
        let Some(s) = self.slot_of(task) else { return };
        if self.slots[s].phase == Phase::Open {
            self.dispatch_event(gsi, s, event, report);
        } else {
            self.observe(gsi, s, event, report);
        }
    }

    /// A group got its first ready member, or lost its last.
    fn group_changed(
        &mut self,
        gsi: &mut dyn Gsi,
        group: u32,
        event: PolicyEvent,
        report: &mut dyn FnMut(ReleaseEvent),
    ) {
        self.notify_servers(gsi, event, report, |_, slot| slot.member.serves == For::Group(group));
    }

    /// An event of a task that a reservation releases, for a policy that wants those, too.
    fn observe(
        &mut self,
        gsi: &mut dyn Gsi,
        s: usize,
        event: PolicyEvent,
        report: &mut dyn FnMut(ReleaseEvent),
    ) {
        let slot = &self.slots[s];
        if matches!(slot.phase, Phase::Reserved(_))
            && self.at_work[slot.by as usize].policy.observes(&slot.member)
        {
            self.dispatch_event(gsi, s, event, report);
        }
    }

    /// A timer of a task's next release has expired, or one of a policy.
    fn timer_expired(
        &mut self,
        gsi: &mut dyn Gsi,
        timer: TimerId,
        cookie: u64,
        report: &mut dyn FnMut(ReleaseEvent),
    ) {
        let s = (cookie & !POLICY_TIMER) as usize;
        let Some(slot) = self.slots.get_mut(s) else { return };
        if cookie & POLICY_TIMER == 0 && slot.timer == Some(timer) {
            slot.timer = None;
            self.arm_next_release(gsi, s, report);
        } else if cookie & POLICY_TIMER != 0
            && slot.policy_timer.is_some_and(|(set, _)| set == timer)
        {
            slot.policy_timer = None;
            self.dispatch_event(gsi, s, PolicyEvent::Timer, report);
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
        let suspended = self.slots[s].suspended;
        let next = &self.at_work[self.slots[s].next_by as usize].policy;
        let leaves = next.reservation(&self.slots[s].member).is_none() || self.slots[s].no_room;
        let slot = &mut self.slots[s];
        if leaves && !suspended {
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
        slot.cancelled = false;
        slot.cut_off = 0;
        slot.idle = 0;
        slot.extended = 0;
        slot.granted = budget;
        slot.used = 0;
        slot.release.number = slot.number + number;
        slot.release.at = release;
        slot.release.deadline = release.saturating_add(slot.member.deadline);
        slot.assigned = slot.member.budget;
        slot.next = release.saturating_add(slot.member.period);
        if suspended {
            slot.lose_job(gsi, r);
        }
        report(self.released_now(s, at));
    }

    pub(crate) fn released_now(&self, s: usize, at: u64) -> ReleaseEvent {
        let slot = &self.slots[s];
        ReleaseEvent::Released {
            at,
            task: slot.member.task(),
            index: s as u32,
            number: slot.release.number,
            release: slot.release.at,
            deadline: slot.release.deadline,
            budget: slot.granted,
            assigned: slot.assigned,
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
        slot.executed = slot.executed.saturating_add(used);
        // Of a suspended task, also where it came before it could be cancelled.
        let end = if slot.suspended && end != End::TaskGone { End::Cancelled } else { end };
        let is_lost = std::mem::take(&mut slot.cancelled) || slot.suspended;
        if end == End::Cancelled && reserved && !is_lost {
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
            let slot = &mut self.slots[s];
            slot.used += used;
            slot.executed = slot.executed.saturating_add(used);
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
        let all = slot.take_back_extension() && slot.used >= slot.granted;
        // Its own budget was executed, and what it had beyond that was not promised.
        let end = if end == End::Expired && all { End::Exhausted } else { end };
        let remaining = slot.granted.saturating_sub(slot.used);
        if slot.member.task() == TaskId::NONE {
            return;
        }
        // What an exhausted release leaves (at most the granularity) is carried, not given up.
        let left = if end == End::Exhausted { 0 } else { remaining };
        report(ReleaseEvent::Ended {
            at,
            task: slot.member.task(),
            index: s as u32,
            number: slot.release.number,
            end,
            used: slot.used,
            remaining,
            unused: slot.cut_off + left,
            extended: slot.extended,
        });
        if let Some((job, left)) = slot.added.end(left) {
            report(job.ended(at, s as u32, end, slot.used, left));
        }
    }

    /// A job that a policy made ended.
    fn made_ended(
        &mut self,
        gsi: &mut dyn Gsi,
        (s, use_of): (usize, u32),
        at: u64,
        ended: PolicyEvent,
        report: &mut dyn FnMut(ReleaseEvent),
    ) {
        let PolicyEvent::JobEnded { end, used, .. } = ended else { return };
        let Some(slot) = self.slots.get_mut(s).filter(|slot| slot.open && slot.use_of == use_of)
        else {
            return;
        };
        slot.charge(used);
        slot.job = None;
        (slot.last_end, slot.ended_at) = (end, at);
        self.call_policy(gsi, s, ended, report);
        let slot = &self.slots[s];
        let goes_on = slot.job.is_some()
            || slot.policy_timer.is_some() && matches!(end, End::Exhausted | End::Expired);
        if !goes_on {
            self.end_release(gsi, s, at, end, report);
        }
    }
}
