//! The ceilings of the mutexes that a task holds (docs/model.md, "Ceilings").
//!
//! The task publishes each before it locks; the engine reads them at its next instant, before it
//! selects, and raises the task. Nothing is released between two instants, so that is early enough,
//! and an uncontended lock needs no system call. A task whose ceiling the engine has seen rings the
//! doorbell when it unlocks, since a better one may wait.

use std::sync::atomic::Ordering::{Relaxed, Release, SeqCst};
use std::sync::atomic::{compiler_fence, AtomicU32, AtomicU64, AtomicUsize};

use punctual_dispatcher::TaskCeiling;
use punctual_policies::LockCeiling;

use crate::engine::Engine;
use crate::member::MemberKind;
use crate::mutex::LockError;

/// Mutexes with ceilings that a task can hold at one time.
pub const MOST_CEILINGS: usize = 16;

const NONE: u32 = 0;
const DEADLINE: u32 = 1;
const PRIORITY: u32 = 2;

/// A ceiling, or none, that one thread writes and others read.
#[derive(Debug, Default)]
pub struct AtomicCeiling {
    kind: AtomicU32,
    value: AtomicU64,
}

impl AtomicCeiling {
    pub const fn new(ceiling: Option<LockCeiling>) -> Self {
        let (kind, value) = Self::words(ceiling);
        Self { kind: AtomicU32::new(kind), value: AtomicU64::new(value) }
    }

    const fn words(ceiling: Option<LockCeiling>) -> (u32, u64) {
        match ceiling {
            None => (NONE, 0),
            Some(LockCeiling::Deadline(ns)) => (DEADLINE, ns),
            Some(LockCeiling::Priority(priority)) => (PRIORITY, priority as u64),
        }
    }

    #[inline]
    pub fn is_none(&self) -> bool {
        self.kind.load(Relaxed) == NONE
    }

    #[inline]
    pub fn load(&self) -> Option<LockCeiling> {
        match self.kind.load(Relaxed) {
            NONE => None,
            DEADLINE => Some(LockCeiling::Deadline(self.value.load(Relaxed))),
            _ => Some(LockCeiling::Priority(self.value.load(Relaxed) as i64)),
        }
    }

    #[inline]
    pub fn store(&self, ceiling: Option<LockCeiling>) {
        let (kind, value) = Self::words(ceiling);
        self.value.store(value, Relaxed);
        self.kind.store(kind, Relaxed);
    }
}

/// Whether a task with this value may lock what has this ceiling.
fn covers(ceiling: LockCeiling, own: Option<LockCeiling>) -> bool {
    match (ceiling, own) {
        (LockCeiling::Deadline(ceiling), Some(LockCeiling::Deadline(own))) => ceiling <= own,
        (LockCeiling::Priority(ceiling), Some(LockCeiling::Priority(own))) => ceiling >= own,
        _ => false,
    }
}

/// The better of two. All of a task are of one kind.
fn better(a: TaskCeiling, b: TaskCeiling) -> TaskCeiling {
    match (a, b) {
        (TaskCeiling::Finish(a), TaskCeiling::Finish(b)) => TaskCeiling::Finish(a.min(b)),
        (TaskCeiling::Priority(a), TaskCeiling::Priority(b)) => TaskCeiling::Priority(a.max(b)),
        _ => a,
    }
}

/// [`HeldCeiling::finish`] until the dispatcher has seen it, and since it was renewed.
const UNSEEN: u64 = 0;
const RENEWED: u64 = 1;

/// The ceiling of a mutex that a task holds, or is about to lock.
#[derive(Debug, Default)]
struct HeldCeiling {
    /// The address of the mutex.
    of: AtomicUsize,
    ceiling: AtomicCeiling,
    /// The ceiling as a finish, ns, which the dispatcher finds when it first sees it; `u64::MAX` of
    /// one that is none.
    finish: AtomicU64,
}

/// The ceilings of a task, as its dispatcher and it see them. An instant of the dispatcher comes
/// between two instructions of the thread: both are on one CPU.
#[derive(Debug, Default)]
pub struct HeldCeilings {
    /// The task's own value: the dispatcher's to write.
    own: AtomicCeiling,
    held: [HeldCeiling; MOST_CEILINGS],
    /// Which of these are in use, a bit for each.
    used: AtomicU32,
}

/// The bits of the places that are in use, as places.
fn places(mut used: u32) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let place = used.trailing_zeros();
        used &= used.wrapping_sub(1);
        (place < MOST_CEILINGS as u32).then_some(place as usize)
    })
}

impl HeldCeilings {
    // The thread's side.

    /// Before the task locks the mutex of this address, which has this ceiling: its place.
    ///
    /// # Errors
    /// [`LockError::Ceiling`], [`LockError::TooMany`].
    #[inline]
    pub fn add(&self, of: usize, ceiling: LockCeiling) -> Result<usize, LockError> {
        if !covers(ceiling, self.own.load()) {
            return Err(LockError::Ceiling);
        }
        let used = self.used.load(Relaxed);
        let place = used.trailing_ones() as usize;
        let held = self.held.get(place).ok_or(LockError::TooMany)?;
        held.of.store(of, Relaxed);
        held.ceiling.store(Some(ceiling));
        held.finish.store(UNSEEN, Relaxed);
        self.used.store(used | 1 << place, Release);
        Ok(place)
    }

    /// The task holds no mutex with a ceiling.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.used.load(Relaxed) == 0
    }

    /// The place of the mutex of this address, if it has a ceiling.
    #[inline]
    pub fn find(&self, of: usize) -> Option<usize> {
        places(self.used.load(Relaxed)).find(|&place| self.held[place].of.load(Relaxed) == of)
    }

    /// The task does not hold that mutex; whether the dispatcher has seen its ceiling.
    #[inline]
    pub fn remove(&self, place: usize) -> bool {
        // The thread alone writes it. Not seen later than that: the dispatcher comes between two
        // instructions of this CPU, so that only the compiler could reorder them.
        self.used.store(self.used.load(Relaxed) & !(1 << place), Relaxed);
        compiler_fence(SeqCst);
        self.held[place].finish.load(Relaxed) != UNSEEN
    }

    /// The task has locked that mutex again.
    pub fn renew(&self, place: usize) {
        let seen = |finish| (finish != UNSEEN).then_some(RENEWED);
        let _ = self.held[place].finish.fetch_update(SeqCst, SeqCst, seen);
    }

    // The dispatcher's side.

    /// The value of the task itself, by its policy.
    pub fn set_own(&self, own: Option<LockCeiling>) {
        self.own.store(own);
    }

    /// The best of all, by the policy of the task, which makes a ceiling since a time a finish.
    /// Those that were not seen before were added after `since`.
    ///
    /// While the task holds any, all count from the time of the first: `held_since`, from one call
    /// to the next. Mutexes that overlap are one critical section, in whatever order they are
    /// unlocked. A ceiling from the time of its own locking would come after a job that the first
    /// mutex has delayed.
    fn best(
        &self,
        held_since: &mut Option<u64>,
        since: u64,
        by_policy: impl Fn(LockCeiling, u64) -> Option<TaskCeiling>,
    ) -> Option<TaskCeiling> {
        let used = self.used.load(SeqCst);
        if places(used).any(|place| self.held[place].finish.load(SeqCst) == RENEWED) {
            *held_since = None;
        }
        let since = *held_since.get_or_insert(since);
        let all = places(used).filter_map(|place| {
            let held = &self.held[place];
            let ceiling = by_policy(held.ceiling.load()?, since);
            let mut finish = held.finish.load(SeqCst);
            if finish <= RENEWED {
                finish = match ceiling {
                    Some(TaskCeiling::Finish(finish)) => finish.max(RENEWED + 1),
                    _ => u64::MAX,
                };
                held.finish.store(finish, SeqCst);
            }
            Some(match ceiling? {
                TaskCeiling::Finish(_) => TaskCeiling::Finish(finish),
                priority => priority,
            })
        });
        let best = all.reduce(better);
        *held_since = best.map(|_| since);
        best
    }
}

impl Engine {
    /// Raises the tasks that lock mutexes with ceilings, and no longer those that have unlocked
    /// them.
    ///
    /// What was released since the last instant was due after that instant, and so has a later
    /// finish than the time of the last instant + its relative deadline. That is as good a ceiling
    /// as the time of locking + the relative deadline, which is later and not known here.
    pub(crate) fn follow_ceilings(&mut self, now: u64) {
        let since = self.advanced_to;
        let Engine { dispatcher, allocators, members, moving, .. } = self;
        for &i in moving.iter() {
            let Some(m) = members[i as usize].as_deref_mut() else { continue };
            let MemberKind::Thread(control) = &m.kind else { continue };
            if control.ceilings.used.load(SeqCst) == 0 && m.raised_since.is_none() {
                continue;
            }
            let task = m.task;
            let by_policy = |held, since| allocators.task_ceiling(task, held, since);
            let best = control.ceilings.best(&mut m.raised_since, since, by_policy);
            // The task is there.
            let _ = dispatcher.raise(task, best, now);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use LockCeiling::{Deadline, Priority};

    fn with_own(own: LockCeiling) -> HeldCeilings {
        let ceilings = HeldCeilings::default();
        ceilings.set_own(Some(own));
        ceilings
    }

    fn by_policy(ceiling: LockCeiling, since: u64) -> Option<TaskCeiling> {
        match ceiling {
            Deadline(ns) => Some(TaskCeiling::Finish(since + ns)),
            Priority(priority) => Some(TaskCeiling::Priority(priority)),
        }
    }

    /// The best of those that were added after `since`.
    fn best(ceilings: &HeldCeilings, since: u64) -> Option<TaskCeiling> {
        ceilings.best(&mut None, since, by_policy)
    }

    #[test]
    fn the_best_of_those_that_are_held_counts_in_any_order_of_unlocking() {
        let ceilings = with_own(Deadline(90));
        let mut held_since = None;
        let mut best = |since| ceilings.best(&mut held_since, since, by_policy);
        let add = |ns: u64| ceilings.add(ns as usize, Deadline(ns)).expect("it is covered");
        let [first, second] = [50, 30].map(add);
        assert_eq!(best(100), Some(TaskCeiling::Finish(130)));
        ceilings.remove(first);
        let third = add(70);
        // All count from when the first was seen.
        assert_eq!(best(200), Some(TaskCeiling::Finish(130)));
        assert_eq!(ceilings.find(30), Some(second));
        ceilings.remove(second);
        assert_eq!((ceilings.find(30), ceilings.find(70)), (None, Some(third)));
        assert_eq!(best(300), Some(TaskCeiling::Finish(170)));
        ceilings.renew(third);
        let fourth = add(80);
        assert_eq!(best(400), Some(TaskCeiling::Finish(470)));
        ceilings.remove(third);
        assert_eq!(best(500), Some(TaskCeiling::Finish(480)));
        ceilings.remove(fourth);
        assert_eq!(best(600), None);
        add(60);
        assert_eq!(best(700), Some(TaskCeiling::Finish(760)));
        let ceilings = with_own(Priority(-5));
        for priority in [1, 7, -5] {
            ceilings.add(1, Priority(priority)).expect("it is covered");
        }
        assert_eq!(ceilings.best(&mut None, 100, by_policy), Some(TaskCeiling::Priority(7)));
    }

    #[test]
    fn a_task_above_the_ceiling_or_of_another_kind_is_refused() {
        for (own, ceiling) in [
            (Some(Deadline(10)), Deadline(11)),
            (Some(Priority(10)), Priority(9)),
            (Some(Priority(10)), Deadline(1)),
            (Some(Deadline(10)), Priority(11)),
            (None, Deadline(1)),
        ] {
            let ceilings = HeldCeilings::default();
            ceilings.set_own(own);
            assert_eq!(ceilings.add(1, ceiling), Err(LockError::Ceiling), "{own:?} {ceiling:?}");
            assert_eq!(best(&ceilings, 100), None);
        }
    }

    #[test]
    fn the_number_of_ceilings_is_bounded() {
        let ceilings = with_own(Deadline(10));
        let places = std::array::from_fn::<_, MOST_CEILINGS, _>(|of| {
            ceilings.add(of, Deadline(10)).expect("there is room")
        });
        assert_eq!(ceilings.add(99, Deadline(10)), Err(LockError::TooMany));
        ceilings.remove(places[5]);
        assert_eq!(ceilings.add(99, Deadline(10)), Ok(places[5]));
    }

    #[test]
    fn a_task_rings_where_the_dispatcher_has_seen_its_ceiling() {
        let ceilings = with_own(Priority(10));
        let unseen = ceilings.add(1, Priority(10)).expect("it is covered");
        assert!(!ceilings.remove(unseen));
        for renewed in [false, true] {
            let seen = ceilings.add(1, Priority(10)).expect("it is covered");
            best(&ceilings, 100);
            if renewed {
                ceilings.renew(seen);
            }
            assert!(ceilings.remove(seen));
        }
    }
}
