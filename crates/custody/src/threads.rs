//! The threads of one task, all at one FIFO level and on one CPU.
//!
//! The real-time path goes through a fixed table of thread ids; the housekeeper looks for new threads and fills it. A
//! new thread inherits level and CPU from the thread that made it, so one that is not in the table yet can only lag
//! behind one change of level.

use crate::sched;
use std::io;
use std::sync::atomic::{AtomicI32, AtomicUsize, Ordering};
use std::sync::Mutex;

/// A table of thread ids with the FIFO level that all of them have.
#[derive(Debug)]
pub struct Threads {
    tids: Box<[AtomicI32]>,
    /// No slot from here on was ever used.
    used: AtomicUsize,
    level: AtomicI32,
    mask: sched::Mask,
    housekeeper: Mutex<()>,
}

impl Threads {
    /// A table for `capacity` threads that are to run on `cpu`, at level 0 (SCHED_OTHER) until
    /// [`set_level`](Self::set_level).
    pub fn new(capacity: usize, cpu: u32) -> Self {
        Self {
            tids: (0..capacity).map(|_| AtomicI32::new(0)).collect(),
            used: AtomicUsize::new(0),
            level: AtomicI32::new(0),
            mask: sched::only(cpu),
            housekeeper: Mutex::new(()),
        }
    }

    /// Gives all threads this SCHED_FIFO level (1 to 98), or SCHED_OTHER when it is 0. Real-time safe: one system call
    /// for each thread. Every thread is tried; the first error is returned, a thread that is gone is none.
    pub fn set_level(&self, level: i32) -> io::Result<()> {
        self.level.store(level, Ordering::SeqCst);
        let mut first = Ok(());
        for slot in &self.tids[..self.used.load(Ordering::SeqCst)] {
            let tid = slot.load(Ordering::SeqCst);
            if tid == 0 {
                continue;
            }
            match sched::set_level(tid, level) {
                Err(e) if e.raw_os_error() == Some(libc::ESRCH) => {
                    // Only if the housekeeper has not given the slot to another thread meanwhile.
                    let _ = slot.compare_exchange(tid, 0, Ordering::SeqCst, Ordering::SeqCst);
                }
                Err(e) if first.is_ok() => first = Err(e),
                _ => {}
            }
        }
        first
    }

    /// The level that was set last. Real-time safe.
    pub fn level(&self) -> i32 {
        self.level.load(Ordering::Relaxed)
    }

    /// How many threads are in the table. Real-time safe.
    pub fn count(&self) -> usize {
        self.tids[..self.used.load(Ordering::Relaxed)].iter().filter(|t| t.load(Ordering::Relaxed) != 0).count()
    }

    /// Housekeeping: makes the table hold just these threads ([`Park::threads`](crate::Park::threads)) and gives new
    /// ones the CPU and the level. Returns how many were new. Not real-time safe.
    ///
    /// # Errors
    /// A level or an affinity is refused, or the table is full (ENOSPC): the threads beyond it keep what they inherited.
    pub fn rescan(&self, now: &[i32]) -> io::Result<usize> {
        let _alone = self.housekeeper.lock().unwrap_or_else(|e| e.into_inner());
        let mut known = Vec::new();
        for slot in &self.tids[..self.used.load(Ordering::SeqCst)] {
            let tid = slot.load(Ordering::SeqCst);
            if tid != 0 && !now.contains(&tid) {
                slot.store(0, Ordering::SeqCst);
            } else if tid != 0 {
                known.push(tid);
            }
        }
        let (mut new, mut first) = (0, Ok(()));
        for &tid in now.iter().filter(|t| !known.contains(t)) {
            new += 1;
            let result = match self.publish(tid) {
                true => sched::set_affinity(tid, &self.mask).and_then(|()| self.settle(tid)),
                false => Err(io::Error::from_raw_os_error(libc::ENOSPC)),
            };
            match result {
                Err(e) if e.raw_os_error() != Some(libc::ESRCH) && first.is_ok() => first = Err(e),
                _ => {}
            }
        }
        first.map(|()| new)
    }

    fn publish(&self, tid: i32) -> bool {
        let Some(n) = self.tids.iter().position(|s| s.load(Ordering::SeqCst) == 0) else { return false };
        self.tids[n].store(tid, Ordering::SeqCst);
        self.used.fetch_max(n + 1, Ordering::SeqCst);
        true
    }

    /// Sets the level of a thread that is already in the table, so that a change at the same time is not overwritten
    /// by an older value: repeat until the level stayed the same.
    fn settle(&self, tid: i32) -> io::Result<()> {
        for _ in 0..16 {
            let level = self.level.load(Ordering::SeqCst);
            sched::set_level(tid, level)?;
            if self.level.load(Ordering::SeqCst) == level {
                break;
            }
        }
        Ok(())
    }
}
