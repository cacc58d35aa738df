//! A condition variable of tasks.

use std::fmt;

use punctual_host_user::{LockError, WaitError, WaitQueue, Waited};

use crate::{MutexGuard, Time};

/// Tasks wait for a condition of what a [`Mutex`](crate::Mutex) protects.
///
/// Waiting is a self-suspension: the task's jobs are blocked, and others execute. Of several that
/// wait, the one is woken whose job comes first, with what is lent to it; it locks the mutex again
/// before it executes, and lends for that. A task is woken for no other reason than a notification;
/// another one may nevertheless have made the condition false by then.
///
/// For the tasks of one CPU; any thread may notify. Unlocking and waiting are one step, so that no
/// notification is lost that comes after the condition was looked at.
///
/// ```no_run
/// # use punctual::{Condvar, Mutex, Task, WaitError};
/// # use std::collections::VecDeque;
/// # type Queue = Mutex<VecDeque<u32>>;
/// # fn next(queue: &Queue, filled: &Condvar, task: &Task<'_>) -> Result<u32, WaitError> {
/// let mut held = queue.lock(task)?;
/// loop {
///     match held.pop_front() {
///         Some(next) => return Ok(next),
///         None => held = filled.wait(held)?,
///     }
/// }
/// # }
/// ```
pub struct Condvar {
    queue: WaitQueue,
}

impl Condvar {
    /// One for which no task waits.
    #[must_use]
    pub const fn new() -> Self {
        Self { queue: WaitQueue::new(0) }
    }

    /// Unlocks the mutex, waits for a notification, and locks it again. Real-time safe.
    ///
    /// # Errors
    /// The run is over, or the task was asked to end; tasks of another CPU wait; or an error of
    /// [`lock`](crate::Mutex::lock). The mutex is then unlocked.
    pub fn wait<'a, T: ?Sized>(
        &self,
        guard: MutexGuard<'a, T>,
    ) -> Result<MutexGuard<'a, T>, WaitError> {
        self.wait_until_ns(guard, u64::MAX).map(|(guard, _)| guard)
    }

    /// The same until `until` at most; true: that time came first. Real-time safe.
    ///
    /// # Errors
    /// As of [`wait`](Self::wait).
    pub fn wait_until<'a, T: ?Sized>(
        &self,
        guard: MutexGuard<'a, T>,
        until: Time,
    ) -> Result<(MutexGuard<'a, T>, bool), WaitError> {
        self.wait_until_ns(guard, until.as_nanos())
    }

    fn wait_until_ns<'a, T: ?Sized>(
        &self,
        guard: MutexGuard<'a, T>,
        until: u64,
    ) -> Result<(MutexGuard<'a, T>, bool), WaitError> {
        let (mutex, task) = guard.parts();
        // SAFETY: the guard says that this task has locked it.
        match unsafe { self.queue.wait_unlocked(mutex, task, until) } {
            // Dropping the guard unlocks.
            Waited::Locked { consistent: false, .. } => Err(WaitError::Lock(LockError::Poisoned)),
            Waited::Locked { timed_out, .. } => Ok((guard, timed_out)),
            Waited::NotBegun(e) => Err(e),
            Waited::Unlocked(e) => {
                std::mem::forget(guard);
                Err(e)
            }
        }
    }

    /// Wakes the task whose job comes first of those that wait, if one does. Any thread may call
    /// it. Real-time safe.
    pub fn notify_one(&self) {
        self.queue.put_for_waiters(1);
    }

    /// Wakes all tasks that wait. Any thread may call it. Real-time safe.
    pub fn notify_all(&self) {
        self.queue.put_for_waiters(u32::MAX);
    }
}

impl Default for Condvar {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for Condvar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Condvar").finish_non_exhaustive()
    }
}
