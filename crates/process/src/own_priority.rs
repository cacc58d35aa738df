//! Real-time priorities that a program chose for threads of its own: within the task's levels their
//! order holds.
//!
//! The task's ordinary threads have its level; a thread with a priority of its own is one level
//! higher for each lower priority that the program chose, eight at most. A thread's choice shows as
//! a priority that it was not given.

use std::sync::atomic::{AtomicBool, AtomicI32, AtomicUsize, Ordering::Relaxed, Ordering::SeqCst};

use crate::slot::Slot;
use crate::stop::LEADER_LEVEL;
use crate::threads::Threads;
use punctual_sys::sched;

/// Levels above the task's own that its threads may have.
pub const OWN_LEVELS: i32 = 8;

/// Levels that were given lately.
const RECENT: usize = 4;

/// The known choices of one table.
#[derive(Debug)]
pub(crate) struct OwnPriorities {
    /// The latest levels of the task: threads inherit them from their creators.
    recent: [AtomicI32; RECENT],
    next: AtomicUsize,
    /// Levels that are in use above the task's own.
    height: AtomicI32,
    /// A choice was noticed that has no level yet.
    changed: AtomicBool,
    /// The threads were demoted, and have not been given levels since.
    pub demoted: AtomicBool,
}

impl OwnPriorities {
    /// No choices.
    pub fn new() -> Self {
        Self {
            recent: [const { AtomicI32::new(0) }; RECENT],
            next: AtomicUsize::new(0),
            height: AtomicI32::new(0),
            changed: AtomicBool::new(false),
            demoted: AtomicBool::new(false),
        }
    }

    /// The task has this level from now on. Only the dispatcher calls it, and the thread that made
    /// the table before.
    pub fn note_level(&self, level: i32) {
        if level > 0 && self.recent.iter().all(|r| r.load(Relaxed) != level) {
            let n = self.next.load(Relaxed);
            self.recent[n % RECENT].store(level, Relaxed);
            self.next.store(n + 1, Relaxed);
        }
    }

    /// Whether a thread may have this priority without having chosen it.
    fn is_ours(&self, priority: i32) -> bool {
        let height = self.height.load(Relaxed);
        let inherited = |r: &AtomicI32| (0..=height).contains(&(priority - r.load(Relaxed)));
        priority == LEADER_LEVEL || priority <= 0 || self.recent.iter().any(inherited)
    }
}

impl Threads {
    /// Notices what the program chose for this thread since it was given a level, and gives it that
    /// level back. An ordinary thread would never execute beside one that spins at the task's
    /// level. Real-time safe: one system call, or two.
    pub(crate) fn notice_choice(&self, slot: &Slot, tid: i32) {
        if slot.requeued.load(SeqCst) {
            return;
        }
        let given = slot.given.load(Relaxed);
        let Some(priority) = sched::priority(tid).filter(|p| *p != given) else { return };
        if priority == 0 || !self.own.is_ours(priority) {
            self.choose(slot, priority);
            let _ = sched::set_level(tid, given, slot.children);
        }
    }

    fn choose(&self, slot: &Slot, priority: i32) {
        if slot.chosen.swap(priority, Relaxed) != priority {
            self.own.changed.store(true, SeqCst);
        }
    }

    /// Notices the priority with which a new thread was found: its own, or inherited from its
    /// creator. Not real-time safe.
    pub(crate) fn notice_new(&self, slot: &Slot, tid: i32) {
        let priority = sched::priority(tid).unwrap_or(0);
        let of = |s: &&Slot| s.tid().is_some_and(|t| t != tid) && s.given.load(Relaxed) == priority;
        let chosen = match self.slots[..self.used()].iter().find(of) {
            Some(creator) => creator.chosen.load(Relaxed),
            None if self.own.is_ours(priority) => 0,
            None => priority,
        };
        slot.above.store(0, Relaxed);
        self.choose(slot, chosen);
    }

    /// Gives each choice its level above the task's own; whether anything changed, so that
    /// [`set_level`](Self::set_level) has to be called. Only the dispatcher calls it. Real-time
    /// safe: no system call.
    pub fn rank_choices(&self) -> bool {
        if !self.own.changed.load(Relaxed) || !self.own.changed.swap(false, SeqCst) {
            return false;
        }
        let slots = || self.slots[..self.used()].iter().filter(|s| s.tid().is_some());
        let (mut above, mut done, mut changed) = (0, 0, false);
        for slot in slots().filter(|s| s.chosen.load(Relaxed) == 0) {
            changed |= slot.above.swap(0, Relaxed) != 0;
        }
        // One level for each priority, from the lowest on; the highest share the last one.
        while let Some(next) = slots().map(|s| s.chosen.load(Relaxed)).filter(|c| *c > done).min() {
            above += i32::from(above < OWN_LEVELS);
            for slot in slots().filter(|s| s.chosen.load(Relaxed) == next) {
                changed |= slot.above.swap(above, Relaxed) != above;
            }
            done = next;
        }
        self.own.height.store(above, Relaxed);
        changed
    }

    /// How many levels above the task's own its threads have. Real-time safe.
    pub fn height(&self) -> i32 {
        self.own.height.load(Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use punctual_sys::sched::Children;

    fn table(chosen: &[i32]) -> Threads {
        let threads = Threads::with_children(Children::Inherit, 16, 0);
        threads.set_used(chosen.len());
        for (n, &c) in chosen.iter().enumerate() {
            threads.slots[n].tid.store(i32::MAX - n as i32, SeqCst);
            threads.choose(&threads.slots[n], c);
        }
        threads
    }

    fn above(threads: &Threads) -> Vec<i32> {
        threads.slots[..threads.used()].iter().map(|s| s.above.load(Relaxed)).collect()
    }

    #[test]
    fn each_priority_has_a_level_above_the_lower_ones() {
        let t = table(&[0, 80, 50, 0, 80, 99]);
        assert!(t.rank_choices());
        assert_eq!((above(&t), t.height()), (vec![0, 2, 1, 0, 2, 3], 3));
        assert!(!t.rank_choices(), "nothing was chosen since");
        t.choose(&t.slots[2], 0);
        assert!(t.rank_choices());
        assert_eq!((above(&t), t.height()), (vec![0, 1, 0, 0, 1, 2], 2));
    }

    #[test]
    fn more_priorities_than_levels_share_the_highest() {
        let t = table(&[1, 2, 3, 4, 5, 6, 7, 8, 9, 10]);
        assert!(t.rank_choices());
        assert_eq!((above(&t), t.height()), (vec![1, 2, 3, 4, 5, 6, 7, 8, 8, 8], OWN_LEVELS));
    }

    #[test]
    fn a_recent_level_of_the_task_is_no_choice() {
        let own = OwnPriorities::new();
        for level in [60, 70, 71, 72, 73] {
            own.note_level(level);
        }
        assert!(!own.is_ours(60), "too long ago");
        assert!([70, 71, 72, 73, LEADER_LEVEL, 0].into_iter().all(|p| own.is_ours(p)));
        assert!(!own.is_ours(74));
        own.height.store(1, Relaxed);
        assert!(own.is_ours(74));
    }
}
