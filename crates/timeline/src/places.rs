//! Which task of the set a dispatcher's task is.
//!
//! Hosts may record it after the first records of the task. Records from the first one of such a
//! task on are held until its place is known, so that nothing is out of order.

use std::collections::VecDeque;

use punctual_trace::{kind, kind::event, Record};

/// Records that are held at most, 2.5 MB: a task whose place does not come within them has none.
const MOST_HELD: usize = 65_536;
/// A dispatcher has at most this many tasks (`pd_limits`); larger numbers are no task's.
pub(crate) const MOST_TASKS: u32 = 1 << 20;
const UNKNOWN: u32 = u32::MAX;

/// The places of the dispatcher's tasks, and the records that wait for one.
#[derive(Debug, Default)]
pub(crate) struct Places {
    /// By the dispatcher's task numbers; `None` before the first record of a place.
    places: Vec<Option<u32>>,
    /// With their numbers.
    held: VecDeque<(u64, Record)>,
}

impl Places {
    /// Takes the next record of the trace.
    pub fn push(&mut self, number: u64, record: Record) {
        // Until its first place a task is the one that this names.
        if record.kind == kind::TASK_PLACE && self.is_open(record.small) {
            self.place(&record);
        }
        self.held.push_back((number, record));
    }

    /// The next record whose task is known; with `all`, or if too many are held, any.
    pub fn pop(&mut self, all: bool) -> Option<(u64, Record)> {
        let (_, record) = self.held.front()?;
        if let Some(task) = task_of(record).filter(|&task| self.is_open(task)) {
            if !all && self.held.len() < MOST_HELD {
                return None;
            }
            self.set(task, UNKNOWN);
        }
        self.held.pop_front()
    }

    /// From here on the task is the one that this record of a place names.
    pub fn place(&mut self, record: &Record) {
        self.set(record.small, u32::try_from(record.a).unwrap_or(UNKNOWN));
    }

    /// The task's place in its set; `None` if the trace does not have it.
    pub fn of(&self, task: u32) -> Option<u32> {
        self.places.get(task as usize).copied().flatten().filter(|&place| place != UNKNOWN)
    }

    fn is_open(&self, task: u32) -> bool {
        self.places.get(task as usize).is_none_or(Option::is_none)
    }

    fn set(&mut self, task: u32, place: u32) {
        if task >= MOST_TASKS {
            return;
        }
        let place = if place < MOST_TASKS { place } else { UNKNOWN };
        let task = task as usize;
        if self.places.len() <= task {
            self.places.resize(task + 1, None);
        }
        self.places[task] = Some(place);
    }
}

/// The dispatcher's number of the task that the record is about.
pub(crate) fn task_of(record: &Record) -> Option<u32> {
    let about_a_task = match record.kind {
        kind::TASK_READY..=kind::CHARGE_TASK | kind::JOB_ADD => true,
        kind::TASK_LEND | kind::TASK_RAISE => true,
        kind::RUNNING | kind::STOPPED => true,
        k if k > kind::EVENT => matches!(
            k - kind::EVENT,
            event::COMPLETED..=event::TASK_GONE
                | event::RELEASED..=event::DELAYED_SATURATED
                | event::WINDOW_EXHAUSTED
                | event::WINDOW_EXPIRED
        ),
        _ => false,
    };
    (about_a_task && record.small < MOST_TASKS).then_some(record.small)
}
