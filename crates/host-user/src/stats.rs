//! What the dispatcher thread itself costs and how late it wakes, counted without locks.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

const BUCKETS: usize = 1536;

/// Counters of one engine; times in ns.
#[derive(Debug)]
pub struct EngineStats {
    events: AtomicU64,
    handler_total: AtomicU64,
    handler_max: AtomicU64,
    timed: AtomicU64,
    /// Events that had no room in the dispatcher's ring, not yet taken by the housekeeper.
    events_lost: AtomicU64,
    late_max: AtomicU64,
    /// Freezer writes that took longer than they should. The freezer thread counts them.
    freezer_waits: AtomicU64,
    freezer_wait_max: AtomicU64,
    /// Time in which the dispatcher was paused, or so late that its tasks were demoted.
    stopped: AtomicU64,
    /// Of it, not yet taken by the housekeeper.
    stopped_unread: AtomicU64,
    /// Lateness of timed wake-ups: 32 buckets to each doubling, which is 2 % at most.
    late: [AtomicU64; BUCKETS],
}

/// What an engine has counted so far; times are ns.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct EngineReading {
    /// Instants handled.
    pub events: u64,
    /// Time from waking to being ready to sleep again, mean.
    pub handler_mean: u64,
    /// The longest.
    pub handler_max: u64,
    /// Wake-up after the timer's time: median.
    pub late_p50: u64,
    /// 99th percentile.
    pub late_p99: u64,
    /// The latest.
    pub late_max: u64,
    /// Freezer writes that waited for a lock of the kernel.
    pub freezer_waits: u64,
    /// From the request of such a write to its end, the longest.
    pub freezer_wait_max: u64,
    /// Time in which it did not act, because it was stopped or hung.
    pub stopped: u64,
}

fn bucket(ns: u64) -> usize {
    if ns < 32 {
        return ns as usize;
    }
    let octave = 63 - ns.leading_zeros() as usize;
    ((octave - 4) * 32 + ((ns >> (octave - 5)) & 31) as usize).min(BUCKETS - 1)
}

/// The middle of a bucket.
fn value(bucket: usize) -> u64 {
    if bucket < 32 {
        return bucket as u64;
    }
    let (octave, part) = (bucket / 32 + 4, (bucket % 32) as u64);
    let width = 1u64 << (octave - 5);
    (32 + part) * width + width / 2
}

impl EngineStats {
    /// All zero.
    pub fn new() -> EngineStats {
        EngineStats {
            events: AtomicU64::new(0),
            handler_total: AtomicU64::new(0),
            handler_max: AtomicU64::new(0),
            timed: AtomicU64::new(0),
            events_lost: AtomicU64::new(0),
            late_max: AtomicU64::new(0),
            freezer_waits: AtomicU64::new(0),
            freezer_wait_max: AtomicU64::new(0),
            stopped: AtomicU64::new(0),
            stopped_unread: AtomicU64::new(0),
            late: [const { AtomicU64::new(0) }; BUCKETS],
        }
    }

    /// Counts an instant that took `took` ns and, if `timed`, began `late` ns after its timer's
    /// expiry. Only the engine calls it.
    pub fn handled(&self, took: u64, timed: bool, late: u64) {
        self.events.store(self.events.load(Relaxed) + 1, Relaxed);
        self.handler_total.store(self.handler_total.load(Relaxed) + took, Relaxed);
        if took > self.handler_max.load(Relaxed) {
            self.handler_max.store(took, Relaxed);
        }
        if timed {
            self.timed.store(self.timed.load(Relaxed) + 1, Relaxed);
            let b = &self.late[bucket(late)];
            b.store(b.load(Relaxed) + 1, Relaxed);
            if late > self.late_max.load(Relaxed) {
                self.late_max.store(late, Relaxed);
            }
        }
    }

    /// Counts events that had no room in the dispatcher's ring.
    pub fn events_lost(&self, count: u64) {
        self.events_lost.fetch_add(count, Relaxed);
    }

    /// Events lost since this was last called.
    pub fn take_events_lost(&self) -> u64 {
        self.events_lost.swap(0, Relaxed)
    }

    /// Counts time in which the dispatcher did not act. Only the engine calls it.
    pub fn did_not_act(&self, time: u64) {
        self.stopped.store(self.stopped.load(Relaxed) + time, Relaxed);
        self.stopped_unread.fetch_add(time, Relaxed);
    }

    /// That time since this was last called, ns.
    pub fn take_stopped(&self) -> u64 {
        self.stopped_unread.swap(0, Relaxed)
    }

    /// Records the time from the request of a freezer write to its end. Only the freezer thread
    /// calls it.
    pub fn freezer_written(&self, took: u64, long: u64) {
        if took > long {
            self.freezer_waits.store(self.freezer_waits.load(Relaxed) + 1, Relaxed);
            self.freezer_wait_max.fetch_max(took, Relaxed);
        }
    }

    /// As it stands.
    pub fn read(&self) -> EngineReading {
        let events = self.events.load(Relaxed);
        EngineReading {
            events,
            handler_mean: self.handler_total.load(Relaxed) / events.max(1),
            handler_max: self.handler_max.load(Relaxed),
            late_p50: self.late_at(50),
            late_p99: self.late_at(99),
            late_max: self.late_max.load(Relaxed),
            freezer_waits: self.freezer_waits.load(Relaxed),
            freezer_wait_max: self.freezer_wait_max.load(Relaxed),
            stopped: self.stopped.load(Relaxed),
        }
    }

    fn late_at(&self, percent: u64) -> u64 {
        let wanted = self.timed.load(Relaxed) * percent / 100;
        let mut seen = 0;
        for (i, b) in self.late.iter().enumerate() {
            seen += b.load(Relaxed);
            if seen > wanted {
                return value(i);
            }
        }
        0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_buckets_value_is_within_a_fiftieth_of_what_was_put_in() {
        for ns in (1..40u32).map(|i| 3u64.pow(i / 2) * (i as u64 + 7)) {
            let v = value(bucket(ns));
            assert!(v.abs_diff(ns) <= ns / 50 + 1, "{ns} gave {v}");
        }
    }
}
