//! Counting and binary semaphores of tasks.

use std::fmt;

use punctual_host_user::{WaitError, WaitQueue};

use crate::{Task, Time};

/// A number of units that tasks acquire and any thread releases.
///
/// A task that finds none is blocked, as in any self-suspension, and others execute. Of several
/// that wait, the one whose job comes first gets the next unit, and none that comes later takes it
/// before them. Nothing is lent: a semaphore has no holder. Tasks that exclude each other use a
/// [`Mutex`](crate::Mutex).
///
/// Tasks of several CPUs may wait for one semaphore; a unit then goes to the CPU that is first to
/// take it.
pub struct Semaphore {
    queue: WaitQueue,
    maximum: u32,
}

impl Semaphore {
    /// One that has `units` and at most `maximum`, which is 1 for a binary semaphore.
    ///
    /// # Panics
    /// There are more units than the maximum.
    #[must_use]
    pub const fn new(units: u32, maximum: u32) -> Self {
        assert!(units <= maximum, "a semaphore has no more units than its maximum");
        Self { queue: WaitQueue::new(units), maximum }
    }

    /// Takes a unit, and waits for one. Real-time safe.
    ///
    /// # Errors
    /// The run is over, the task was asked to end, or the service schedules it.
    pub fn acquire(&self, task: &Task<'_>) -> Result<(), WaitError> {
        self.acquire_until_ns(task, u64::MAX)
    }

    /// The same until `until` at most. Real-time safe.
    ///
    /// # Errors
    /// [`WaitError::TimedOut`], and those of [`acquire`](Self::acquire).
    pub fn acquire_until(&self, task: &Task<'_>, until: Time) -> Result<(), WaitError> {
        self.acquire_until_ns(task, until.as_nanos())
    }

    #[inline]
    fn acquire_until_ns(&self, task: &Task<'_>, until: u64) -> Result<(), WaitError> {
        let thread = task.thread()?;
        if self.queue.try_take() {
            return Ok(());
        }
        self.queue.wait(thread, until)
    }

    /// Takes a unit, unless there is none or tasks wait for it. Any thread may call it. Real-time
    /// safe.
    #[inline]
    pub fn try_acquire(&self) -> bool {
        self.queue.try_take()
    }

    /// Adds a unit; false: it has its maximum already. Any thread may call it. Real-time safe.
    #[inline]
    pub fn release(&self) -> bool {
        self.queue.put(1, self.maximum)
    }
}

impl fmt::Debug for Semaphore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Semaphore").field("maximum", &self.maximum).finish_non_exhaustive()
    }
}
