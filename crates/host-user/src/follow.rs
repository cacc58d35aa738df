//! What the engine makes of the dispatcher's events: the story of each task's releases.

use std::sync::atomic::Ordering::Relaxed;

use punctual_dispatcher::{End, Event, TaskId};
use punctual_trace::NEVER;

use crate::engine::{Engine, Note, LATE};
use crate::member::{Member, Standing, Who};

/// Releases lost in one go that are told one by one.
const LOST_TOLD: u64 = 64;

impl Engine {
    pub(crate) fn follow_events(&mut self, now: u64, late: u64) {
        while let Some(event) = self.dispatcher.next_event() {
            match event {
                Event::JobEnded { end, task, .. } => self.job_ended(task, end, now),
                Event::Released { task, number, release, budget, .. } => {
                    self.released(task, number, release, budget, late);
                }
                Event::ReleasesLost { task, first, count, .. } => self.lost(task, first, count),
                Event::Overrun { task, .. } => {
                    if let Some(m) = self.member(task) {
                        m.signal_overrun();
                    }
                }
                Event::Background { task, .. } => {
                    if let Some(m) = self.member(task) {
                        m.send_to_background();
                        self.ranked.retain(|&r| r != task.0);
                    }
                }
                Event::DelayedSaturated { task, .. } => {
                    if let Some(index) = self.member(task).map(|m| m.track.index) {
                        drop(self.notes.push(Note::Saturated(index)));
                    }
                }
                _ => {}
            }
        }
    }

    fn member(&mut self, task: TaskId) -> Option<&mut Member> {
        self.members.get_mut(task.0 as usize)?.as_deref_mut()
    }

    fn job_ended(&mut self, task: TaskId, end: End, now: u64) {
        let Some(m) = self.member(task) else { return };
        let mut said = None;
        if let Who::Thread(cell) = &m.who {
            if m.track.started == NEVER && cell.started() != 0 {
                m.track.started = cell.started();
            }
            said = Some(cell.done());
        }
        m.track.ended(end, now, said);
    }

    fn released(&mut self, task: TaskId, number: u64, release: u64, budget: u64, late: u64) {
        let Some(i) = self.member(task).map(|m| m.reservation) else { return };
        let lost = self.dispatcher.take_lost(i);
        let Some(m) = self.member(task) else { return };
        if let Who::Thread(cell) = &m.who {
            if m.track.started == NEVER && cell.started() != 0 {
                m.track.started = cell.started();
            }
            cell.lost.fetch_add(lost, Relaxed);
            cell.number.store(number, Relaxed);
            cell.release.store(release, Relaxed);
            cell.deadline.store(release.saturating_add(m.track.deadline), Relaxed);
            cell.exhausted_at.store(m.charged.saturating_add(budget), Relaxed);
            cell.want_stamp();
        }
        let period = m.track.release(number, release);
        // A late release costs latency; budget only when little time is left for it.
        m.track.woken_late = late > LATE && late > (m.track.deadline - m.track.assigned) / 2;
        if m.standing == Standing::Background {
            // Back among the jobs: what it does from here on is charged.
            m.park();
        }
        if let Some(period) = period {
            drop(self.notes.push(Note::Period(period)));
        }
    }

    fn lost(&mut self, task: TaskId, first: u64, count: u64) {
        let Some(track) = self.member(task).map(|m| m.track) else { return };
        for number in first..first + count.min(LOST_TOLD) {
            drop(self.notes.push(Note::Period(track.lost(number))));
        }
    }
}
