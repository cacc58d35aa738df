//! A mutex between the tasks of one dispatcher: while a task waits for it, the dispatcher lends the
//! task's jobs to the holder (docs/model.md, "Lending").
//!
//! The word of the mutex is the tasks' own as long as no task waits: locking and unlocking are one
//! instruction each. Where a task finds it locked, it asks the dispatcher, which knows the word's
//! meaning: it marks the word, lends, and hands over when the holder asks for that.

use std::fmt;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release, SeqCst};
use std::time::Duration;

use crate::task::ThreadTask;
use crate::task_control::TaskControl;

/// Tasks wait for it.
const WAITED_FOR: u64 = 1 << 31;
const FREE: u64 = 0;
/// Between two attempts of a task whose run is over, which nothing wakes.
const RETRY: Duration = Duration::from_micros(100);

/// A mutex whose waiters lend their jobs to the holder.
#[derive(Debug, Default)]
pub struct LendingMutex {
    /// The holder: its dispatcher's id in the upper half, its slot + 1 in the lower one, and
    /// [`WAITED_FOR`].
    word: AtomicU64,
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
}

impl fmt::Display for LockError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Deadlock => "waiting for this mutex would never end: a deadlock",
            Self::OtherCpu => "a task of another CPU holds this mutex",
        })
    }
}

impl std::error::Error for LockError {}

impl LendingMutex {
    /// A mutex that no task holds.
    #[must_use]
    pub const fn new() -> Self {
        Self { word: AtomicU64::new(FREE) }
    }

    /// Locks it for the calling task, and waits for the holder. Real-time safe.
    ///
    /// # Errors
    /// Waiting would never end, or the holder is a task of another CPU.
    #[inline]
    pub fn lock(&self, task: &ThreadTask) -> Result<(), LockError> {
        let me = word_of(task.control());
        match self.word.compare_exchange(FREE, me, Acquire, Relaxed) {
            Ok(_) => Ok(()),
            Err(_) => self.lock_contended(task.control()),
        }
    }

    /// Locks it, if no task holds it. Real-time safe.
    #[inline]
    pub fn try_lock(&self, task: &ThreadTask) -> bool {
        self.word.compare_exchange(FREE, word_of(task.control()), Acquire, Relaxed).is_ok()
    }

    /// Unlocks it, and hands it over to the best task that waits. Real-time safe.
    ///
    /// # Safety
    /// The calling task has locked it.
    #[inline]
    pub unsafe fn unlock(&self, task: &ThreadTask) {
        let me = word_of(task.control());
        if self.word.compare_exchange(me, FREE, Release, Relaxed).is_err() {
            self.unlock_contended(task.control());
        }
    }

    #[cold]
    #[inline(never)]
    fn lock_contended(&self, control: &TaskControl) -> Result<(), LockError> {
        let me = word_of(control);
        loop {
            match self.word.compare_exchange(FREE, me, Acquire, Relaxed) {
                Ok(_) => return Ok(()),
                Err(word) if word & !WAITED_FOR == me => return Err(LockError::Deadlock),
                Err(_) => {}
            }
            match control.await_mutex(self) {
                Some(result) => return result,
                None => std::thread::sleep(RETRY),
            }
        }
    }

    #[cold]
    #[inline(never)]
    fn unlock_contended(&self, control: &TaskControl) {
        if !control.hand_over_mutex(self) {
            self.word.store(FREE, Release);
        }
    }

    // The dispatcher's side.

    /// The slot of the holder, which is then marked as one for which tasks wait; `None`: there was
    /// none, and the task of `control` holds it now.
    ///
    /// # Errors
    /// The holder is another dispatcher's.
    pub fn wait(&self, control: &TaskControl) -> Result<Option<u32>, LockError> {
        let me = word_of(control);
        let marked = self.word.fetch_update(SeqCst, SeqCst, |word| match word {
            FREE => Some(me),
            held => (held >> 32 == me >> 32).then_some(held | WAITED_FOR),
        });
        match marked {
            Ok(FREE) => Ok(None),
            Ok(held) => Ok(Some((held & !WAITED_FOR) as u32 - 1)),
            Err(_) => Err(LockError::OtherCpu),
        }
    }

    /// The slot of the holder.
    pub fn holder(&self) -> Option<u32> {
        ((self.word.load(SeqCst) & !WAITED_FOR) as u32).checked_sub(1)
    }

    /// Gives it to a task; `waited_for`: others wait still.
    pub fn give(&self, control: &TaskControl, waited_for: bool) {
        self.word.store(word_of(control) | if waited_for { WAITED_FOR } else { 0 }, SeqCst);
    }

    /// No task waits or holds it.
    pub fn free(&self) {
        self.word.store(FREE, SeqCst);
    }
}

fn word_of(control: &TaskControl) -> u64 {
    u64::from(control.doorbell.id()) << 32 | (u64::from(control.slot.load(Relaxed)) + 1)
}
