//! What both sides tell, brought to the same names and compared.

use std::collections::VecDeque;

use punctual_dispatcher::{Dispatcher, Event, JobId, TimerId};

use crate::model::Told;
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

    /// Jobs that reservations make are first heard of in events.
    fn learn(&mut self, event: Option<Event>, model: Option<Told>) {
        use Told::{Ended, Released, SegmentEnded, WindowEnded};
        let real = match event {
            Some(
                Event::Released { job, .. }
                | Event::JobEnded { job, .. }
                | Event::WindowEnded { job, .. }
                | Event::SegmentEnded { job, .. },
            ) => job,
            _ => return,
        };
        let Some(Released { job, .. } | Ended { job, .. } | WindowEnded { job, .. } | SegmentEnded { job, .. }) = model
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

    fn told(&self, event: Event) -> Told {
        let job = |real| self.model_job(real).unwrap_or_else(|| panic!("{event:?} names an unknown job"));
        match event {
            Event::JobEnded { at, end, job: id, task, cookie, used, remaining } => {
                Told::Ended { at, end: end.into(), job: job(id), task: task.0, cookie, used, remaining }
            }
            Event::WindowEnded { at, end, job: id, task, cookie, used, remaining } => {
                Told::WindowEnded { at, end: end.into(), job: job(id), task: task.0, cookie, used, remaining }
            }
            Event::SegmentEnded { at, end, job: id, node, cookie, used, remaining } => {
                Told::SegmentEnded { at, end: end.into(), job: job(id), node, cookie, used, remaining }
            }
            Event::Timer { at, timer, cookie, due } => {
                let known = self.timers.iter().rev().find(|n| n.1 == timer);
                let timer = known.unwrap_or_else(|| panic!("{event:?} names an unknown timer")).0;
                Told::Timer { at, timer, cookie, due }
            }
            Event::Released { at, job: id, task, number, release, budget } => {
                Told::Released { at, job: job(id), task: task.0, number, release, budget }
            }
            Event::ReleasesLost { at, task, first, count } => Told::ReleasesLost { at, task: task.0, first, count },
            Event::Overrun { at, task, number } => Told::Overrun { at, task: task.0, number },
            Event::Background { at, task, number } => Told::Background { at, task: task.0, number },
            Event::DelayedSaturated { at, task } => Told::Saturated { at, task: task.0 },
            Event::TaskReady { at, task } => Told::Ready { at, task: task.0 },
            Event::TaskBlocked { at, task } => Told::Blocked { at, task: task.0 },
            Event::GroupActive { at, group } => Told::Active { at, group },
            Event::GroupIdle { at, group } => Told::Idle { at, group },
            Event::Lost { at, count } => Told::Lost { at, count },
        }
    }
}

/// What the reference says stands in the real one's ring of events.
#[derive(Clone)]
pub struct Ring {
    room: usize,
    waiting: VecDeque<Told>,
    lost: u64,
    lost_at: u64,
    /// Of all that were told so.
    pub lost_ever: u64,
}

impl Ring {
    pub fn new(room: u32) -> Ring {
        Ring { room: room as usize, waiting: VecDeque::new(), lost: 0, lost_at: 0, lost_ever: 0 }
    }

    pub fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    pub fn put(&mut self, told: impl Iterator<Item = Told>, now: u64) {
        for event in told {
            if self.waiting.len() < self.room {
                self.waiting.push_back(event);
            } else {
                (self.lost, self.lost_at) = (self.lost + 1, now);
            }
        }
    }

    fn take(&mut self) -> Option<Told> {
        let event = self.waiting.pop_front()?;
        if self.lost > 0 {
            self.waiting.push_back(Told::Lost { at: self.lost_at, count: self.lost });
            self.lost_ever += self.lost;
            self.lost = 0;
        }
        Some(event)
    }

    /// Takes up to `most` events of both and compares them, one by one; those of groups, which come
    /// in any order, as a set where there is more than one group. Returns what was told.
    pub fn compare(&mut self, real: &mut Dispatcher, names: &mut Names, most: usize, groups: u32) -> Vec<Told> {
        let mut expected = Vec::new();
        let mut told = Vec::new();
        for _ in 0..most {
            let (event, model) = (real.next_event(), self.take());
            names.learn(event, model);
            told.extend(event.map(|e| names.told(e)));
            expected.extend(model);
            if event.is_none() && model.is_none() {
                break;
            }
        }
        if groups == 1 {
            same(&told, &expected, "events");
        } else {
            let apart = |all: &[Told]| {
                let (mut of_groups, others): (Vec<Told>, Vec<Told>) = all.iter().partition(|t| t.is_of_group());
                of_groups.sort();
                (of_groups, others)
            };
            same(apart(&told), apart(&expected), "events (of groups in any order; others)");
        }
        told
    }
}
