//! The events of both sides, translated to the same names and compared.

use std::collections::VecDeque;

use punctual_dispatcher::{Dispatcher, Event, JobId, TimerId};

use crate::model::ModelEvent;
use crate::pair::same;

/// Which of the real dispatcher's names stands for which of the reference's.
#[derive(Clone, Default)]
pub struct Names {
    pub jobs: Vec<(u64, JobId)>,
    pub timers: Vec<(u64, TimerId)>,
}

impl Names {
    pub fn job(&self, model: u64) -> JobId {
        self.jobs.iter().rev().find(|n| n.0 == model).expect("a job that was named").1
    }

    pub fn model_job(&self, real: JobId) -> Option<u64> {
        self.jobs.iter().rev().find(|n| n.1 == real).map(|n| n.0)
    }

    pub fn name_job(&mut self, model: u64, real: JobId) {
        match self.model_job(real) {
            Some(known) => same(known, model, "one id, two jobs"),
            None => self.jobs.push((model, real)),
        }
    }

    /// Jobs that reservations make get their names from their first event.
    fn learn(&mut self, event: Option<Event>, model: Option<ModelEvent>) {
        use ModelEvent::{Ended, Released, SegmentEnded, WindowEnded};
        let real = match event {
            Some(
                Event::Released { job, .. }
                | Event::JobEnded { job, .. }
                | Event::WindowEnded { job, .. }
                | Event::SegmentEnded { job, .. },
            ) => job,
            _ => return,
        };
        let Some(
            Released { job, .. }
            | Ended { job, .. }
            | WindowEnded { job, .. }
            | SegmentEnded { job, .. },
        ) = model
        else {
            return;
        };
        if self.model_job(real).is_none() && !self.jobs.iter().any(|n| n.0 == job) {
            self.jobs.push((job, real));
        }
    }

    pub fn timer(&self, model: u64) -> TimerId {
        self.timers.iter().rev().find(|n| n.0 == model).expect("a timer that was named").1
    }

    fn translate(&self, event: Event) -> ModelEvent {
        let job =
            |real| self.model_job(real).unwrap_or_else(|| panic!("{event:?} names an unknown job"));
        match event {
            Event::JobEnded { at, end, job: id, task, cookie, used, remaining } => {
                ModelEvent::Ended {
                    at,
                    end: end.into(),
                    job: job(id),
                    task: task.0,
                    cookie,
                    used,
                    remaining,
                }
            }
            Event::WindowEnded { at, end, job: id, task, cookie, used, remaining } => {
                ModelEvent::WindowEnded {
                    at,
                    end: end.into(),
                    job: job(id),
                    task: task.0,
                    cookie,
                    used,
                    remaining,
                }
            }
            Event::SegmentEnded { at, end, job: id, node, cookie, used, remaining } => {
                ModelEvent::SegmentEnded {
                    at,
                    end: end.into(),
                    job: job(id),
                    node,
                    cookie,
                    used,
                    remaining,
                }
            }
            Event::Timer { at, timer, cookie, due } => {
                let known = self.timers.iter().rev().find(|n| n.1 == timer);
                let timer = known.unwrap_or_else(|| panic!("{event:?} names an unknown timer")).0;
                ModelEvent::Timer { at, timer, cookie, due }
            }
            Event::Released { at, job: id, task, number, release, budget } => {
                ModelEvent::Released { at, job: job(id), task: task.0, number, release, budget }
            }
            Event::ReleasesLost { at, task, first, count } => {
                ModelEvent::ReleasesLost { at, task: task.0, first, count }
            }
            Event::Overrun { at, task, number } => ModelEvent::Overrun { at, task: task.0, number },
            Event::Background { at, task, number } => {
                ModelEvent::Background { at, task: task.0, number }
            }
            Event::DelayedSaturated { at, task } => ModelEvent::Saturated { at, task: task.0 },
            Event::TaskReady { at, task } => ModelEvent::Ready { at, task: task.0 },
            Event::TaskBlocked { at, task } => ModelEvent::Blocked { at, task: task.0 },
            Event::GroupActive { at, group } => ModelEvent::Active { at, group },
            Event::GroupIdle { at, group } => ModelEvent::Idle { at, group },
            Event::Lost { at, count } => ModelEvent::Lost { at, count },
        }
    }
}

/// What the reference says stands in the real one's ring of events.
#[derive(Clone)]
pub struct Ring {
    room: usize,
    waiting: VecDeque<ModelEvent>,
    lost: u64,
    lost_at: u64,
    /// Sum of all counts in reported `Lost` events.
    pub lost_ever: u64,
}

impl Ring {
    pub fn new(room: u32) -> Ring {
        Ring { room: room as usize, waiting: VecDeque::new(), lost: 0, lost_at: 0, lost_ever: 0 }
    }

    pub fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    pub fn put(&mut self, events: impl Iterator<Item = ModelEvent>, now: u64) {
        for event in events {
            if self.waiting.len() < self.room {
                self.waiting.push_back(event);
            } else {
                (self.lost, self.lost_at) = (self.lost + 1, now);
            }
        }
    }

    fn take(&mut self) -> Option<ModelEvent> {
        let event = self.waiting.pop_front()?;
        if self.lost > 0 {
            self.waiting.push_back(ModelEvent::Lost { at: self.lost_at, count: self.lost });
            self.lost_ever += self.lost;
            self.lost = 0;
        }
        Some(event)
    }

    /// Takes up to `most` events of both and compares them, one by one; those of groups, which come
    /// in any order, as a set where there is more than one group. Returns the dispatcher's.
    pub fn compare(
        &mut self,
        real: &mut Dispatcher,
        names: &mut Names,
        most: usize,
        groups: u32,
    ) -> Vec<ModelEvent> {
        let mut expected = Vec::new();
        let mut reported = Vec::new();
        for _ in 0..most {
            let (event, model) = (real.next_event(), self.take());
            names.learn(event, model);
            reported.extend(event.map(|e| names.translate(e)));
            expected.extend(model);
            if event.is_none() && model.is_none() {
                break;
            }
        }
        if groups == 1 {
            same(&reported, &expected, "events");
        } else {
            let apart = |all: &[ModelEvent]| {
                let (mut of_groups, others): (Vec<ModelEvent>, Vec<ModelEvent>) =
                    all.iter().partition(|t| t.is_of_group());
                of_groups.sort();
                (of_groups, others)
            };
            same(apart(&reported), apart(&expected), "events (of groups in any order; others)");
        }
        reported
    }
}
