//! Time slices for the threads of one task: at the end of one, each thread that executed in it goes
//! behind the others.
//!
//! SCHED_FIFO has no time slices, and SCHED_RR has one of 100 ms for the whole machine. A thread
//! that waits for another one by spinning would keep it from the CPU.
//!
//! ```text
//!   level of the task:   others, in the kernel's order │ queue: executed lately, the latest last
//!                                end_slice() appends to it, requeue() applies it to the kernel's
//! ```
//!
//! The kernel loses this order: it wakes a task that was stopped or frozen in the order of its
//! table, and a change of level reorders the threads. So the queue is kept here. Threads that did
//! not execute in as many slices as there are threads leave it: they wait for something, or stand
//! first already.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};

use crate::threads::{Threads, CLOCKS};

/// The queue; only the dispatcher changes it.
#[derive(Debug)]
pub(crate) struct Turns {
    /// Indices into the table.
    queue: Box<[AtomicUsize]>,
    length: AtomicUsize,
    /// Number of the latest slice.
    slice: AtomicU64,
}

/// Which threads executed in a time slice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Executed {
    /// How many.
    pub threads: usize,
    /// One of them; 0 when there is none.
    pub tid: i32,
}

impl Turns {
    /// Empty, for a table of so many threads.
    pub fn new(capacity: usize) -> Self {
        Self {
            queue: (0..capacity).map(|_| AtomicUsize::new(0)).collect(),
            length: AtomicUsize::new(0),
            slice: AtomicU64::new(0),
        }
    }

    fn queued(&self) -> impl DoubleEndedIterator<Item = usize> + '_ {
        self.queue[..self.length.load(Relaxed)].iter().map(|n| n.load(Relaxed))
    }

    fn append(&self, n: usize) {
        let length = self.length.load(Relaxed);
        if let Some(place) = self.queue.get(length) {
            place.store(n, Relaxed);
            self.length.store(length + 1, Relaxed);
        }
    }
}

impl Threads {
    /// The table's slots that were ever used, in the order in which their threads are to execute.
    pub(crate) fn in_turn(&self) -> impl DoubleEndedIterator<Item = usize> + '_ {
        let others = (0..self.used()).filter(|&n| !self.slots[n].queued.load(Relaxed));
        others.chain(self.turns.queued())
    }

    /// Ends a time slice: finds the threads that executed for `least` ns or more in it.
    /// [`requeue`](Self::requeue) then puts them behind the others. Real-time safe: two system
    /// calls for each thread.
    pub fn end_slice(&self, least: u64) -> Executed {
        let slice = self.turns.slice.load(Relaxed) + 1;
        self.turns.slice.store(slice, Relaxed);
        let mut executed = Executed { threads: 0, tid: 0 };
        for slot in &self.slots[..self.used().min(CLOCKS)] {
            let Some(tid) = slot.tid() else { continue };
            self.notice_choice(slot, tid);
            if slot.ran() >= least {
                slot.slice.store(slice, Relaxed);
                executed = Executed { threads: executed.threads + 1, tid };
            }
        }
        self.update_queue(slice);
        executed
    }

    /// Drops from the queue what executed in this slice, or not for long; and appends what
    /// executed.
    fn update_queue(&self, slice: u64) {
        let oldest = slice.saturating_sub(self.count_in_turns().max(2) as u64);
        let length = self.turns.length.swap(0, Relaxed);
        for place in &self.turns.queue[..length] {
            let n = place.load(Relaxed);
            let last = self.slots[n].slice.load(Relaxed);
            let stays = last < slice && last > oldest;
            self.slots[n].queued.store(stays, Relaxed);
            if stays {
                self.turns.append(n);
            }
        }
        for (n, slot) in self.slots[..self.used().min(CLOCKS)].iter().enumerate() {
            if slot.slice.load(Relaxed) == slice {
                slot.queued.store(true, Relaxed);
                self.turns.append(n);
            }
        }
    }

    /// Puts the threads that executed in the latest slice behind the others of their level. The
    /// caller is above the task on its CPU. Real-time safe: two system calls for each.
    pub fn requeue(&self, executed: Executed) {
        let length = self.turns.length.load(Relaxed);
        for n in self.turns.queued().skip(length.saturating_sub(executed.threads)) {
            self.slots[n].requeue();
        }
    }

    /// Restores the order of threads that were just woken, all of them, in the order of the table.
    /// The first queued ones that stand behind all others anyway are left alone. Another thread
    /// than the dispatcher may call it, if it is above the task and below the dispatcher on the
    /// task's CPU: a queue that changes meanwhile costs one turn. Real-time safe: as
    /// [`requeue`](Self::requeue).
    pub fn restore_order(&self) {
        if self.turns.length.load(Relaxed) == 0 {
            return;
        }
        let mut last = None;
        for n in self.in_turn() {
            let in_place = !self.slots[n].queued.load(Relaxed) || last.is_none_or(|l| n > l);
            // Once one is moved, all that come after it have to be.
            last = Some(if in_place { n } else { usize::MAX });
            if !in_place {
                self.slots[n].requeue();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use punctual_sys::sched::Children;
    use std::sync::atomic::Ordering::SeqCst;

    /// A table whose threads do not exist: no system call finds them.
    fn table(count: usize) -> Threads {
        let threads = Threads::with_children(Children::Inherit, 8, 0);
        for n in 0..count {
            threads.slots[n].tid.store(i32::MAX - n as i32, SeqCst);
        }
        threads.set_used(count);
        threads
    }

    fn end(threads: &Threads, executed: &[usize]) -> Vec<usize> {
        let slice = threads.turns.slice.load(Relaxed) + 1;
        threads.turns.slice.store(slice, Relaxed);
        for &n in executed {
            threads.slots[n].slice.store(slice, Relaxed);
        }
        threads.update_queue(slice);
        threads.in_turn().collect()
    }

    #[test]
    fn a_thread_that_executed_goes_behind_the_others() {
        let t = table(3);
        assert_eq!(end(&t, &[0]), [1, 2, 0]);
        assert_eq!(end(&t, &[1]), [2, 0, 1]);
        assert_eq!(end(&t, &[2]), [0, 1, 2]);
        assert_eq!(end(&t, &[0, 2]), [1, 0, 2]);
        assert_eq!(t.in_turn().rev().collect::<Vec<_>>(), [2, 0, 1]);
    }

    #[test]
    fn a_thread_that_does_not_execute_for_long_leaves_the_queue() {
        let t = table(3);
        end(&t, &[1]);
        for _ in 0..2 {
            assert_eq!(end(&t, &[0]), [2, 1, 0]);
        }
        assert_eq!(end(&t, &[0]), [1, 2, 0]);
    }
}
