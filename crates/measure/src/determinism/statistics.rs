//! What one task measures: it alone writes, and the observer reads at any time.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use punctual_sys::clock::CpuClock;

/// One writer, so that plain loads and stores suffice; a reader may see a cycle in part.
#[derive(Default)]
pub struct TaskStatistics {
    pub cycles: AtomicU64,
    pub late: AtomicU64,
    pub spare: AtomicU64,
    pub current: AtomicU64,
    /// The least latency plus 1; 0 before the first cycle.
    best: AtomicU64,
    pub worst: AtomicU64,
}

/// What a thread used so far.
#[derive(Debug, Clone, Copy, Default)]
pub struct ThreadUse {
    pub executed_ns: u64,
    pub page_faults: u64,
}

impl ThreadUse {
    /// Of a thread of this process; `None` once it has ended. Not real-time safe.
    pub fn of(tid: i32) -> Option<ThreadUse> {
        let stat = std::fs::read_to_string(format!("/proc/self/task/{tid}/stat")).ok()?;
        // Behind the name: state 0, minor faults 7, major faults 9 (proc(5): fields 3, 10, 12).
        let fields: Vec<&str> = stat.rsplit_once(") ")?.1.split(' ').collect();
        let number = |at: usize| fields.get(at)?.parse::<u64>().ok();
        Some(ThreadUse {
            executed_ns: CpuClock::of_thread(tid).read()?,
            page_faults: number(7)? + number(9)?,
        })
    }
}

impl std::iter::Sum for ThreadUse {
    fn sum<I: Iterator<Item = ThreadUse>>(all: I) -> ThreadUse {
        all.fold(ThreadUse::default(), |sum, one| ThreadUse {
            executed_ns: sum.executed_ns + one.executed_ns,
            page_faults: sum.page_faults + one.page_faults,
        })
    }
}

/// The times of a cycle, CLOCK_MONOTONIC ns.
#[derive(Clone, Copy)]
pub struct Cycle {
    pub due: u64,
    pub started: u64,
    pub finished: u64,
    /// Releases that came and went since the cycle before.
    pub lost: u64,
}

impl TaskStatistics {
    /// Counts a cycle of a task with this period, ns. Real-time safe.
    pub fn record(&self, cycle: Cycle, period: u64) {
        let Cycle { due, started, finished, lost } = cycle;
        let latency = started.saturating_sub(due);
        let late = lost + u64::from(finished > due.saturating_add(period));
        self.cycles.store(self.cycles.load(Relaxed) + 1, Relaxed);
        self.late.store(self.late.load(Relaxed) + late, Relaxed);
        self.spare.store(period.saturating_sub(finished.saturating_sub(started)), Relaxed);
        self.current.store(latency, Relaxed);
        let best = self.best.load(Relaxed);
        if best == 0 || latency < best - 1 {
            self.best.store(latency + 1, Relaxed);
        }
        if latency > self.worst.load(Relaxed) {
            self.worst.store(latency, Relaxed);
        }
    }

    /// The least latency, ns; `None` before the first cycle.
    pub fn best(&self) -> Option<u64> {
        self.best.load(Relaxed).checked_sub(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_s_use_is_read_from_outside_until_it_has_ended() {
        let tid = std::thread::spawn(|| {
            let tid = punctual_sys::sched::thread_id();
            assert!(
                ThreadUse::of(tid).is_some_and(|used| used.page_faults > 0 && used.executed_ns > 0)
            );
            tid
        });
        let tid = tid.join().unwrap();
        let end = std::time::Instant::now() + std::time::Duration::from_secs(60);
        while ThreadUse::of(tid).is_some() {
            assert!(std::time::Instant::now() < end, "it ended");
            std::thread::yield_now();
        }
    }

    #[test]
    fn latencies_late_cycles_and_spare_time_are_kept() {
        let of = TaskStatistics::default();
        assert_eq!(of.best(), None);
        let record =
            |started, finished, lost| of.record(Cycle { due: 1_000, started, finished, lost }, 100);
        record(1_020, 1_050, 0);
        assert_eq!((of.best(), of.worst.load(Relaxed), of.spare.load(Relaxed)), (Some(20), 20, 70));
        record(1_000, 1_100, 0);
        assert_eq!((of.best(), of.late.load(Relaxed)), (Some(0), 0), "in time to the nanosecond");
        record(1_090, 1_101, 2);
        assert_eq!(
            (of.cycles.load(Relaxed), of.late.load(Relaxed)),
            (3, 3),
            "itself, and two lost"
        );
        assert_eq!(
            (of.best(), of.worst.load(Relaxed), of.current.load(Relaxed)),
            (Some(0), 90, 90)
        );
        record(1_000, 1_500, 0);
        assert_eq!(of.spare.load(Relaxed), 0);
    }
}
