//! The dispatcher's events: each goes to the allocators, whose release events make the tasks'
//! periods.

use std::sync::atomic::Ordering::Relaxed;

use punctual_dispatcher::{End, Event, TaskId};
use punctual_policies::{LocalDispatcher, NewRelease, PeriodBuilder, PeriodParams, ReleaseEvent};

use crate::engine::{Engine, LATE};
use crate::member::{Member, MemberKind, RunMode};
use crate::reports::{Notice, Report};
use crate::task_control::TaskControl;

/// Rounds at one instant, each for the timers that the allocators' responses made expire by then.
const ROUNDS: usize = 16;

impl Engine {
    /// Handles events until none is left and no timer has expired: an allocator's response to an
    /// event takes effect at the same instant.
    pub(crate) fn follow_events(&mut self, now: u64, late: u64) {
        for _ in 0..ROUNDS {
            let mut any = false;
            let mut service_ended = false;
            while let Some(event) = self.dispatcher.next_event() {
                any = true;
                service_ended |= matches!(
                    event,
                    Event::JobEnded { task: TaskId::NONE, .. } | Event::SegmentEnded { .. }
                );
                let Engine { dispatcher, allocators, release_events, .. } = self;
                allocators.handle(&mut LocalDispatcher::new(dispatcher, now), &event, &mut |e| {
                    release_events.push(e)
                });
                self.handle_release_events(now, late);
            }
            let woken = service_ended && self.wake_confined(now);
            if !woken && (!any || self.dispatcher.timer(0, 0, now) > now) {
                return;
            }
            self.dispatcher.advance(now);
        }
    }

    pub(crate) fn handle_release_events(&mut self, now: u64, late: u64) {
        for k in 0..self.release_events.len() {
            match self.release_events[k] {
                ReleaseEvent::Released {
                    task,
                    number,
                    release,
                    deadline,
                    budget,
                    assigned,
                    ..
                } => {
                    let next = NewRelease { number, release, deadline, assigned };
                    self.released(task, next, budget, late);
                }
                ReleaseEvent::Ended { task, end, unused, extended, .. } => {
                    self.ended(task, end, (unused, extended), now)
                }
                ReleaseEvent::Replenished { at, task, unused, .. } => {
                    if let Some(m) = self.member(task) {
                        m.periods.unused(unused);
                        m.periods.replenished(at);
                    }
                }
                ReleaseEvent::Lost { task, first, count, .. } => self.lost(task, first, count),
                ReleaseEvent::Overrun { task, .. } => {
                    if let Some(m) = self.member(task) {
                        m.signal_overrun();
                    }
                }
                ReleaseEvent::Background { task, .. } => {
                    if let Some(m) = self.member(task) {
                        m.send_to_background();
                        self.cpu.ranked.retain(|&r| r != task.0);
                    }
                }
                ReleaseEvent::DelayedSaturated { task, .. } => {
                    if let Some(m) =
                        self.members.get_mut(task.0 as usize).and_then(|m| m.as_deref_mut())
                    {
                        if !std::mem::replace(&mut m.saturated, true) {
                            self.notices.send(Notice::Saturated(m.periods.params().task));
                        }
                    }
                }
                ReleaseEvent::EventsLost { count, .. } => self.stats.events_lost(count),
                ended @ ReleaseEvent::JobEnded { .. } => {
                    self.job_events.iter_mut().for_each(|events| events.send_end(&ended));
                }
                ReleaseEvent::PolicyStopped(stop) => self.policy_stopped(stop),
            }
        }
        self.release_events.clear();
    }

    fn member(&mut self, task: TaskId) -> Option<&mut Member> {
        self.members.get_mut(task.0 as usize)?.as_deref_mut()
    }

    fn ended(&mut self, task: TaskId, end: End, (unused, extended): (u64, u64), now: u64) {
        let Some(m) = self.member(task) else { return };
        let mut completed = now;
        if let MemberKind::Thread(control) = &m.kind {
            note_start(&mut m.periods, control);
            completed = Some(control.done())
                .filter(|at| (m.periods.latest().release..=now).contains(at))
                .unwrap_or(now);
        } else if let Some(page) = &m.page {
            completed = Some(page.asked_at())
                .filter(|at| (m.periods.latest().release..=now).contains(at))
                .unwrap_or(now);
        }
        m.periods.unused(unused);
        m.periods.extended(extended);
        m.periods.ended(end.into(), completed);
    }

    fn released(&mut self, task: TaskId, next: NewRelease, budget: u64, late: u64) {
        if self.swapped {
            self.follow_swap(task.0);
        }
        let lost = self.allocators.take_lost(&mut self.dispatcher, task);
        let late_waits = self.allocators.late_waits(&self.dispatcher, task);
        let Some(m) = self.members.get_mut(task.0 as usize).and_then(|m| m.as_deref_mut()) else {
            return;
        };
        if let MemberKind::Thread(control) = &m.kind {
            note_start(&mut m.periods, control);
            control.lost.fetch_add(lost, Relaxed);
            control.number.store(next.number, Relaxed);
            control.release.store(next.release, Relaxed);
            control.deadline.store(next.deadline, Relaxed);
            control.exhausted_at.store(m.charged.saturating_add(budget), Relaxed);
            control.want_stamp();
        }
        self.pages.answered |= m.publish(&next, (budget, lost), late_waits);
        m.waiting &= m.suspended;
        let period = m.periods.released(next);
        // A late release costs latency; budget only when little time is left for it.
        let PeriodParams { deadline, budget, .. } = *m.periods.params();
        if late > LATE && late > (deadline - budget) / 2 {
            m.periods.woken_late();
        }
        if m.run_mode == RunMode::Background {
            // Back among the jobs: what it does from here on is charged.
            m.park();
        }
        if let Some(period) = period {
            self.reports.send(Report::Released(period), &m.unreported);
        }
    }

    fn lost(&mut self, task: TaskId, first: u64, count: u64) {
        let Some(m) = self.members.get(task.0 as usize).and_then(|m| m.as_deref()) else { return };
        let report = Report::NotReleased {
            first: m.periods.lost(first),
            count,
            interval: m.periods.next_params().period,
        };
        self.reports.send(report, &m.unreported);
    }

    /// Makes suspended tasks below servers ready when a server or a segment has ended. The kernel
    /// does not report a wake-up, and a task that wakes after its server has ended would execute
    /// without a budget. Ready, they are parked until they are among the best.
    fn wake_confined(&mut self, now: u64) -> bool {
        let Engine { dispatcher, members, moving, .. } = self;
        let mut woken = false;
        for &i in moving.iter() {
            let Some(m) = members[i as usize].as_deref_mut() else { continue };
            if m.asleep && m.confined {
                m.asleep = false;
                woken = true;
                let _ = dispatcher.task_ready(m.task, now);
            }
        }
        woken
    }
}

/// Takes the start that the task's thread has stamped.
fn note_start(periods: &mut PeriodBuilder, control: &TaskControl) {
    match control.started() {
        0 => {}
        at => periods.started(at),
    }
}
