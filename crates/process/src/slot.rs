//! One thread in the table of a task's threads.
//!
//! The housekeeper fills and empties slots, the dispatcher reads them at any time. A slot that is
//! reused while the dispatcher works on it gets at most one turn or one priority of the thread
//! before: that is corrected at the next change of level.

use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU64, Ordering::Relaxed, Ordering::SeqCst};

use crate::exec_clock;
use punctual_sys::sched::{self, Children};
use std::io;

/// A thread, its clock, its level.
#[derive(Debug)]
pub(crate) struct Slot {
    /// 0: the slot is free.
    pub tid: AtomicI32,
    /// File of its clock; negative when there is none.
    pub clock: AtomicI32,
    /// File of what it waits in; negative when there is none.
    pub wait_place: AtomicI32,
    /// Its clock at the end of the latest time slice, ns.
    pub clock_at_slice: AtomicU64,
    /// Number of the latest time slice in which it executed.
    pub slice: AtomicU64,
    /// It is in the queue of [`Turns`](crate::turns::Turns). Only the dispatcher's.
    pub queued: AtomicBool,
    /// The real-time priority that the program chose for it; 0: none.
    pub chosen: AtomicI32,
    /// Its level above that of the task's ordinary threads.
    pub above: AtomicI32,
    /// The level that it was given last.
    pub given: AtomicI32,
    /// What the threads and processes that it creates inherit.
    pub children: Children,
    /// [`requeue`](Self::requeue) is changing its priority: what it has is not the program's
    /// choice.
    pub requeued: AtomicBool,
}

impl Slot {
    /// A free slot.
    pub fn new(children: Children) -> Self {
        Self {
            tid: AtomicI32::new(0),
            clock: AtomicI32::new(-1),
            wait_place: AtomicI32::new(-1),
            clock_at_slice: AtomicU64::new(0),
            slice: AtomicU64::new(0),
            queued: AtomicBool::new(false),
            chosen: AtomicI32::new(0),
            above: AtomicI32::new(0),
            given: AtomicI32::new(0),
            children,
            requeued: AtomicBool::new(false),
        }
    }

    /// Its thread; `None` when it is free.
    pub fn tid(&self) -> Option<i32> {
        Some(self.tid.load(SeqCst)).filter(|t| *t != 0)
    }

    /// What the thread executed since this was last called, ns. Without a clock: 0. Real-time safe.
    pub fn ran(&self) -> u64 {
        let fd = self.clock.load(Relaxed);
        let Some(now) = (fd >= 0).then(|| exec_clock::read(fd)).flatten() else { return 0 };
        now.saturating_sub(self.clock_at_slice.swap(now, Relaxed))
    }

    /// Gives the thread its place in a task whose ordinary threads have this level. Real-time safe.
    pub fn give(&self, tid: i32, level: i32) -> io::Result<()> {
        let own = if level > 0 { level + self.above.load(Relaxed) } else { 0 };
        self.given.store(own, SeqCst);
        sched::set_level(tid, own, self.children)
    }

    /// Puts the thread behind all others of its level: raising it puts it at the tail. Between the
    /// two calls it is below tasks of the next level, so the caller has to be above all of them on
    /// the thread's CPU. The dispatcher may preempt a caller below it and give the thread another
    /// level: repeat until the level stayed the same. Real-time safe.
    pub fn requeue(&self) {
        let Some(tid) = self.tid().filter(|_| self.given.load(SeqCst) > 1) else { return };
        self.requeued.store(true, SeqCst);
        for _ in 0..16 {
            let level = self.given.load(SeqCst);
            if level > 1 {
                let _ = sched::set_level(tid, level - 1, self.children);
            }
            let _ = sched::set_level(tid, level, self.children);
            if self.given.load(SeqCst) == level {
                break;
            }
        }
        self.requeued.store(false, SeqCst);
    }
}
