//! When a task is released: periodic, sporadic, aperiodic, or at given times.

use punctual_dispatcher::INFINITE;
use punctual_taskset::Arrival;

/// A task's releases, one after the other.
pub(crate) enum Stream {
    /// Each period.
    Periodic,
    /// At these times after the origin; the place of the next one.
    List(Box<[u64]>, usize),
}

impl Stream {
    pub(crate) fn of(arrival: &Arrival) -> Stream {
        match arrival {
            Arrival::List(times) => Stream::List(times.clone().into_boxed_slice(), 0),
            _ => Stream::Periodic,
        }
    }

    /// Whether a reservation could make these releases.
    pub(crate) fn is_periodic(&self) -> bool {
        matches!(self, Stream::Periodic)
    }

    /// The first release at or after `now`; `start` is the task's offset, all from `origin`, ns.
    pub(crate) fn first(&mut self, origin: u64, start: u64, period: u64, now: u64) -> u64 {
        let begin = origin.saturating_add(start);
        match self {
            Stream::Periodic => begin.saturating_add(now.saturating_sub(begin).div_ceil(period).saturating_mul(period)),
            Stream::List(..) => {
                let mut at = self.after(origin, origin, period);
                while at < now {
                    at = self.after(at, origin, period);
                }
                at
            }
        }
    }

    /// The release that follows the one at `at`; [`INFINITE`] when there is none.
    pub(crate) fn after(&mut self, at: u64, origin: u64, period: u64) -> u64 {
        match self {
            Stream::Periodic => at.saturating_add(period),
            Stream::List(times, place) => match times.get(*place) {
                Some(&time) => {
                    *place += 1;
                    origin.saturating_add(time)
                }
                None => INFINITE,
            },
        }
    }
}
