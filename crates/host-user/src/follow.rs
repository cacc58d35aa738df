//! What the engine makes of the dispatcher's events: the allocators hear each, and what they tell is
//! the story of each task's releases.

use std::sync::atomic::Ordering::Relaxed;

use punctual_dispatcher::{End, Event, TaskId};
use punctual_policies::{Native, Told};
use punctual_trace::NEVER;

use crate::engine::{Engine, LATE};
use crate::member::{Member, Standing, Who};
use crate::reports::{Notice, Report};

/// How often at one instant the dispatcher is asked again for what allocators made due by then.
const ROUNDS: usize = 16;

impl Engine {
    /// Until no event is left and nothing is due: what an allocator does in answer to an event takes
    /// effect at the same instant.
    pub(crate) fn follow_events(&mut self, now: u64, late: u64) {
        for _ in 0..ROUNDS {
            let mut any = false;
            let mut service_ended = false;
            while let Some(event) = self.dispatcher.next_event() {
                any = true;
                service_ended |=
                    matches!(event, Event::JobEnded { task: TaskId::NONE, .. } | Event::SegmentEnded { .. });
                let Engine { dispatcher, allocators, told, .. } = self;
                allocators.handle(&mut Native::new(dispatcher, now), &event, &mut |t| told.push(t));
                self.follow_told(now, late);
            }
            let woken = service_ended && self.wake_confined(now);
            if !woken && (!any || self.dispatcher.timer(0, 0, now) > now) {
                return;
            }
            self.dispatcher.advance(now);
        }
    }

    pub(crate) fn follow_told(&mut self, now: u64, late: u64) {
        for k in 0..self.told.len() {
            match self.told[k] {
                Told::Released { task, number, release, deadline, budget, .. } => {
                    self.released(task, number, [release, deadline], budget, late);
                }
                Told::Ended { task, end, unused, .. } => self.ended(task, end, unused, now),
                Told::Lost { task, first, count, .. } => self.lost(task, first, count),
                Told::Overrun { task, .. } => {
                    if let Some(m) = self.member(task) {
                        m.signal_overrun();
                    }
                }
                Told::Background { task, .. } => {
                    if let Some(m) = self.member(task) {
                        m.send_to_background();
                        self.ranked.retain(|&r| r != task.0);
                    }
                }
                Told::DelayedSaturated { task, .. } => {
                    if let Some(m) = self.members.get_mut(task.0 as usize).and_then(|m| m.as_deref_mut()) {
                        if !std::mem::replace(&mut m.saturated, true) {
                            self.notices.send(Notice::Saturated(m.track.index));
                        }
                    }
                }
                Told::EventsLost { count, .. } => self.stats.events_lost(count),
            }
        }
        self.told.clear();
    }

    fn member(&mut self, task: TaskId) -> Option<&mut Member> {
        self.members.get_mut(task.0 as usize)?.as_deref_mut()
    }

    fn ended(&mut self, task: TaskId, end: End, unused: u64, now: u64) {
        let Some(m) = self.member(task) else { return };
        let mut said = None;
        if let Who::Thread(cell) = &m.who {
            if m.track.started == NEVER && cell.started() != 0 {
                m.track.started = cell.started();
            }
            said = Some(cell.done());
        }
        m.track.ended(end, now, said, unused);
    }

    fn released(&mut self, task: TaskId, number: u64, [release, deadline]: [u64; 2], budget: u64, late: u64) {
        let lost = self.allocators.take_lost(&mut self.dispatcher, task);
        let Some(m) = self.members.get_mut(task.0 as usize).and_then(|m| m.as_deref_mut()) else { return };
        if let Who::Thread(cell) = &m.who {
            if m.track.started == NEVER && cell.started() != 0 {
                m.track.started = cell.started();
            }
            cell.lost.fetch_add(lost, Relaxed);
            cell.number.store(number, Relaxed);
            cell.release.store(release, Relaxed);
            cell.deadline.store(deadline, Relaxed);
            cell.exhausted_at.store(m.charged.saturating_add(budget), Relaxed);
            cell.want_stamp();
        }
        let period = m.track.release(number, release, deadline);
        // A late release costs latency; budget only when little time is left for it.
        m.track.woken_late = late > LATE && late > (m.track.deadline - m.track.assigned) / 2;
        if m.standing == Standing::Background {
            // Back among the jobs: what it does from here on is charged.
            m.park();
        }
        if let Some(period) = period {
            self.reports.send(Report::Released(period), &m.unreported);
        }
    }

    fn lost(&mut self, task: TaskId, first: u64, count: u64) {
        let Some(m) = self.members.get(task.0 as usize).and_then(|m| m.as_deref()) else { return };
        let report = Report::NotReleased { first: m.track.lost(first), count, interval: m.track.period };
        self.reports.send(report, &m.unreported);
    }

    /// A server or a segment has ended. Nobody tells us when a task wakes, and one that wakes beside
    /// a server that is gone would run on nobody's budget: those asleep below any are taken for
    /// ready, and stand parked until they are among the best.
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
