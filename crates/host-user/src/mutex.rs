//! A mutex between the tasks of one dispatcher: while a task waits for it, the dispatcher lends the
//! task's jobs to the holder (docs/model.md, "Lending").
//!
//! The word of the mutex is the tasks' own as long as no task waits: locking and unlocking are one
//! instruction each. Where a task finds it locked, it asks the dispatcher, which knows the word's
//! meaning: it marks the word, lends, and hands over when the holder asks for that. The holder may
//! hand over by itself to the only task that waits (`direct.rs`).
//!
//! A task that ends with the mutex locked has unlocked it: the word names the holder, and names of
//! tasks end with them. The next one gets it poisoned, as after a panic of the holder.

use std::fmt;
use std::ptr;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{Relaxed, Release, SeqCst};

use punctual_policies::LockCeiling;
use punctual_sys::{clock, futex};

use crate::ceiling::AtomicCeiling;
use crate::holder::{holder_in, name_in, Holder};
use crate::task::ThreadTask;
use crate::task_control::TaskControl;
use crate::wait_queue::Waited;

/// Tasks wait for it.
const WAITED_FOR: u64 = 1;
/// A holder panicked, or ended.
const POISONED: u64 = 2;
const FREE: u64 = 0;
/// Between two attempts of a task whose run is over, which nothing wakes, ns.
const RETRY: u64 = 100_000;

/// A mutex whose waiters lend their jobs to the holder.
#[derive(Debug, Default)]
pub struct LendingMutex {
    /// The name of the holder, [`WAITED_FOR`] and [`POISONED`].
    word: AtomicU64,
    ceiling: AtomicCeiling,
}

/// Why a mutex is not locked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum LockError {
    /// The task holds it already, or the holder waits, directly or through others, for a mutex that
    /// this task holds.
    Deadlock,
    /// A task of another CPU holds it: budgets cannot be lent from one dispatcher to another.
    OtherCpu,
    /// A task panicked or ended while it held it: what it protects may be inconsistent.
    Poisoned,
    /// The time has come, and another task holds it still.
    TimedOut,
    /// The task is above the ceiling of the mutex, or its policy has no ceilings of that kind.
    Ceiling,
    /// The task holds [`MOST_CEILINGS`](crate::MOST_CEILINGS) mutexes with ceilings.
    TooMany,
    /// The service schedules the task, and lends no jobs.
    NotLent,
}

impl fmt::Display for LockError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Deadlock => "waiting for this mutex would never end: a deadlock",
            Self::OtherCpu => "a task of another CPU holds this mutex",
            Self::Poisoned => "a task panicked or ended while it held this mutex",
            Self::TimedOut => "timed out: another task holds this mutex still",
            Self::Ceiling => {
                "the task is above the ceiling of this mutex, or its policy has none of that kind"
            }
            Self::TooMany => "the task holds as many mutexes with ceilings as it can",
            Self::NotLent => {
                "the service schedules the task, and lends no jobs: locks are for the user host"
            }
        })
    }
}

impl std::error::Error for LockError {}

impl LendingMutex {
    /// A mutex that no task holds.
    #[must_use]
    pub const fn new() -> Self {
        Self { word: AtomicU64::new(FREE), ceiling: AtomicCeiling::new(None) }
    }

    /// The same with a ceiling: a task that holds it is not preempted by one at or below that.
    #[must_use]
    pub const fn with_ceiling(ceiling: LockCeiling) -> Self {
        Self { word: AtomicU64::new(FREE), ceiling: AtomicCeiling::new(Some(ceiling)) }
    }

    /// Locks it for the calling task, and waits for the holder; false: it is poisoned. Real-time
    /// safe.
    ///
    /// # Errors
    /// Waiting would never end, or the holder is a task of another CPU; never that it is poisoned.
    #[inline]
    pub fn lock(&self, task: &ThreadTask) -> Result<bool, LockError> {
        self.lock_until(task, u64::MAX)
    }

    /// The same, waiting until `until` (CLOCK_MONOTONIC ns; `u64::MAX`: for ever) at most: then
    /// lending ends, and the task continues when it is next selected. One that no task holds is
    /// locked whatever the time is. Real-time safe.
    ///
    /// # Errors
    /// [`LockError::TimedOut`], and those of [`lock`](Self::lock).
    // Returning a guard by memory takes as long as locking: both are inlined, without what is rare.
    #[inline(always)]
    pub fn lock_until(&self, task: &ThreadTask, until: u64) -> Result<bool, LockError> {
        let control = task.control();
        if self.ceiling.is_none() && self.lock_free_word(control) {
            return Ok(true);
        }
        self.lock_any(control, until)
    }

    /// With a ceiling, or contended.
    #[inline(never)]
    fn lock_any(&self, control: &TaskControl, until: u64) -> Result<bool, LockError> {
        let Some(ceiling) = self.ceiling.load() else { return self.lock_word(control, until) };
        let place = control.ceilings.add(self.address(), ceiling)?;
        self.lock_word(control, until).inspect_err(|_| unpublish(control, place))
    }

    /// Names it among the ceilings of a task.
    #[inline]
    fn address(&self) -> usize {
        ptr::from_ref(self).addr()
    }

    /// Locks it, if no task holds it or waits, and it is not poisoned.
    #[inline(always)]
    fn lock_free_word(&self, control: &TaskControl) -> bool {
        // Sequentially consistent, as all but unlocking: a table of mutexes orders its own words by
        // that.
        self.word.compare_exchange(FREE, control.name.word(), SeqCst, Relaxed).is_ok()
    }

    #[inline]
    fn lock_word(&self, control: &TaskControl, until: u64) -> Result<bool, LockError> {
        match self.lock_free_word(control) {
            true => Ok(true),
            false => self.lock_contended(control, until),
        }
    }

    /// Locks it, if no task holds it; then false: it is poisoned. Real-time safe.
    ///
    /// # Errors
    /// [`LockError::Ceiling`], [`LockError::TooMany`].
    #[inline]
    pub fn try_lock(&self, task: &ThreadTask) -> Result<Option<bool>, LockError> {
        let control = task.control();
        let Some(ceiling) = self.ceiling.load() else { return Ok(self.try_lock_word(control)) };
        let place = control.ceilings.add(self.address(), ceiling)?;
        let locked = self.try_lock_word(control);
        if locked.is_none() {
            unpublish(control, place);
        }
        Ok(locked)
    }

    #[inline]
    fn try_lock_word(&self, control: &TaskControl) -> Option<bool> {
        match self.lock_free_word(control) {
            true => Some(true),
            false => self.take(control.name.word(), false),
        }
    }

    /// Unlocks it, and hands it over to the best task that waits. Real-time safe.
    ///
    /// # Safety
    /// The calling task has locked it.
    #[inline(always)]
    pub unsafe fn unlock(&self, task: &ThreadTask) {
        self.unlock_held(task.control());
    }

    /// The task of `control` holds it.
    #[inline(always)]
    fn unlock_held(&self, control: &TaskControl) {
        if !(control.ceilings.is_empty() && self.free_word(control)) {
            self.unlock_any(control);
        }
    }

    /// Unlocks it, if no task waits.
    #[inline(always)]
    fn free_word(&self, control: &TaskControl) -> bool {
        self.word.compare_exchange(control.name.word(), FREE, Release, Relaxed).is_ok()
    }

    /// With a ceiling, or contended.
    #[inline(never)]
    fn unlock_any(&self, control: &TaskControl) {
        let place = control.ceilings.find(self.address());
        if self.free_word(control) {
            if let Some(place) = place {
                unpublish(control, place);
            }
            return;
        }
        // Before the unlocking, which wakes the next holder: that one preempts this task if it
        // comes first without the ceiling.
        let is_seen = place.is_some_and(|place| control.ceilings.remove(place));
        self.unlock_contended(control);
        if is_seen {
            control.doorbell.ring();
        }
    }

    /// The same, if the calling task holds it; false: it does not, and nothing was done. Real-time
    /// safe.
    #[inline]
    pub fn try_unlock(&self, task: &ThreadTask) -> bool {
        let held = self.is_held(task);
        if held {
            self.unlock_held(task.control());
        }
        held
    }

    /// The task has waited without it: its ceiling counts from now on, or not.
    pub(crate) fn waited(&self, task: &ThreadTask, waited: &Waited) {
        let control = task.control();
        let Some(place) = control.ceilings.find(self.address()) else { return };
        match waited {
            Waited::Locked { .. } => control.ceilings.renew(place),
            Waited::Unlocked(_) => unpublish(control, place),
            Waited::NotBegun(_) => {}
        }
    }

    /// The calling task holds it. Real-time safe.
    #[inline]
    pub fn is_held(&self, task: &ThreadTask) -> bool {
        self.is_held_by(Some(task.control()))
    }

    /// No task holds it or waits for it. Real-time safe.
    pub fn is_free(&self) -> bool {
        let word = self.word.load(SeqCst);
        word & WAITED_FOR == 0 && matches!(holder_in(word), Holder::Free | Holder::Ended)
    }

    /// What it protects may be inconsistent.
    pub fn poison(&self) {
        self.word.fetch_or(POISONED, SeqCst);
    }

    /// What it protects is consistent.
    pub fn clear_poison(&self) {
        self.word.fetch_and(!POISONED, SeqCst);
    }

    /// It is as new, with this ceiling, unless a task that lives holds it.
    pub fn renew(&self, ceiling: Option<LockCeiling>) {
        self.ceiling.store(ceiling);
        let _ = self.word.fetch_update(SeqCst, SeqCst, |word| match holder_in(word) {
            Holder::Task { .. } => Some(word & !POISONED),
            Holder::Free | Holder::Ended => Some(FREE),
        });
    }

    /// A task panicked or ended while it held it.
    pub fn is_poisoned(&self) -> bool {
        let word = self.word.load(SeqCst);
        word & POISONED != 0 || holder_in(word) == Holder::Ended
    }

    /// Takes it if no task that lives holds it, and with `alone` even where tasks are marked as
    /// waiting: their dispatcher is gone. `None`: another task holds it.
    #[cold]
    fn take(&self, me: u64, alone: bool) -> Option<bool> {
        let taken = self.word.fetch_update(SeqCst, SeqCst, |word| match holder_in(word) {
            Holder::Free => Some(me | word & POISONED),
            Holder::Ended if alone || word & WAITED_FOR == 0 => Some(me | POISONED),
            _ => None,
        });
        taken.ok().map(|word| word == FREE)
    }

    #[cold]
    #[inline(never)]
    fn lock_contended(&self, control: &TaskControl, until: u64) -> Result<bool, LockError> {
        let me = control.name.word();
        let mut alone = false;
        loop {
            if let Some(consistent) = self.take(me, alone) {
                return Ok(consistent);
            }
            if name_in(self.word.load(SeqCst)) == me {
                if !alone {
                    return Err(LockError::Deadlock);
                }
                // The holder has handed it over after all.
                control.await_direct();
                return Ok(!self.is_poisoned());
            }
            if let Some(result) = control.await_mutex(self, until) {
                return result.map(|()| !self.is_poisoned());
            }
            if clock::monotonic_ns() >= until {
                return Err(LockError::TimedOut);
            }
            alone = true;
            futex::sleep_until(clock::monotonic_ns() + RETRY);
        }
    }

    #[cold]
    #[inline(never)]
    fn unlock_contended(&self, control: &TaskControl) {
        let unmarked = |word: u64| (word & WAITED_FOR == 0).then_some(word & POISONED);
        if self.word.fetch_update(SeqCst, SeqCst, unmarked).is_err()
            && !control.hand_over_directly(self)
            && !control.hand_over_mutex(self)
        {
            self.free();
        }
    }

    // The dispatcher's side.

    /// Who holds it, then marked as waited for, if that is a task of the same dispatcher; `Free`:
    /// the task of `control` holds it now, and `Ended`: it holds it, poisoned.
    ///
    /// # Errors
    /// The holder is another dispatcher's.
    pub fn wait(&self, control: &TaskControl) -> Result<Holder, LockError> {
        let me = control.name.word();
        let marked = self.word.fetch_update(SeqCst, SeqCst, |word| match holder_in(word) {
            Holder::Free => Some(me | word & POISONED),
            Holder::Ended => Some(me | word & WAITED_FOR | POISONED),
            Holder::Task { doorbell, .. } => {
                (doorbell == control.doorbell.id()).then_some(word | WAITED_FOR)
            }
        });
        marked.map(holder_in).map_err(|_| LockError::OtherCpu)
    }

    /// The slot of the holder, a task of this doorbell.
    pub fn held_by(&self, doorbell: u32) -> Option<u32> {
        match holder_in(self.word.load(SeqCst)) {
            Holder::Task { doorbell: of, slot } if of == doorbell => Some(slot),
            _ => None,
        }
    }

    /// The task of `control` holds it.
    pub fn is_held_by(&self, control: Option<&TaskControl>) -> bool {
        control.is_some_and(|c| name_in(self.word.load(SeqCst)) == c.name.word())
    }

    /// Gives it to a task; `waited_for`: others wait still.
    pub fn give(&self, control: &TaskControl, waited_for: bool) {
        let word = control.name.word() | if waited_for { WAITED_FOR } else { 0 };
        let _ = self.word.fetch_update(SeqCst, SeqCst, |old| Some(word | old & POISONED));
    }

    /// No task waits for it any more.
    pub fn unmark(&self) {
        self.word.fetch_and(!WAITED_FOR, SeqCst);
    }

    /// No task waits or holds it.
    pub fn free(&self) {
        self.word.fetch_and(POISONED, SeqCst);
    }
}

/// The task does not hold the mutex whose ceiling has this place.
#[inline]
fn unpublish(control: &TaskControl, place: usize) {
    if control.ceilings.remove(place) {
        control.doorbell.ring();
    }
}
