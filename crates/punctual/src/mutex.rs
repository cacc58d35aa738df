//! A mutex that keeps budgets true.

use std::cell::UnsafeCell;
use std::fmt;
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};

use punctual_host_user::{LendingMutex, LockError, ThreadTask};

use crate::{Ceiling, Task, Time};

/// Data that one task at a time has.
///
/// While a task waits for the mutex, its jobs execute the holder, which spends the waiter's budget
/// at the waiter's priority (bandwidth inheritance: Lipari, Lamastra and Abeni 2004), through any
/// number of mutexes. So a task waits at most for the critical sections of others, and not for
/// their next budgets, nor for tasks that have nothing to do with the mutex; only those that share
/// a mutex spend time for each other, and need budgets for that. Without contention, locking and
/// unlocking are one atomic instruction each.
///
/// For the tasks of one CPU of the user host, which pass themselves. When several wait, the one
/// whose job comes first is next.
///
/// A task that panics while it holds the mutex, or ends without unlocking it, leaves it unlocked
/// and *poisoned*, as a mutex of the standard library: the data may be inconsistent, and every
/// [`lock`](Self::lock) is an error until [`clear_poison`](Self::clear_poison). The next task, and
/// those that wait already, get that error at once.
///
/// ```no_run
/// # use punctual::{Mutex, Punctual};
/// # use std::{sync::Arc, time::Duration};
/// # fn main() -> Result<(), punctual::Error> {
/// let bus = Arc::new(Mutex::new([0u8; 64]));
/// let mut set = Punctual::on_cpu(1);
/// let shared = bus.clone();
/// set.add("writer").period(Duration::from_millis(20)).budget(Duration::from_millis(4)).spawn(
///     move |task| {
///         for _ in task.releases() {
///             shared.lock(task)?.fill(1);
///         }
///         Ok::<(), punctual::LockError>(())
///     },
/// );
/// # Ok(()) }
/// ```
#[derive(Default)]
pub struct Mutex<T: ?Sized> {
    raw: LendingMutex,
    data: UnsafeCell<T>,
}

// SAFETY: one task at a time has the data.
unsafe impl<T: ?Sized + Send> Send for Mutex<T> {}
// SAFETY: as above.
unsafe impl<T: ?Sized + Send> Sync for Mutex<T> {}

impl<T> Mutex<T> {
    /// A mutex that no task holds.
    pub const fn new(data: T) -> Self {
        Self { raw: LendingMutex::new(), data: UnsafeCell::new(data) }
    }

    /// One with a priority ceiling. A task above the ceiling, or whose policy has no ceilings of
    /// that kind, cannot lock it ([`LockError::Ceiling`]); a task can hold 16 of these at one time
    /// ([`LockError::TooMany`]).
    ///
    /// ```
    /// # use punctual::{Ceiling, Mutex};
    /// # use std::time::Duration;
    /// static BUS: Mutex<[u8; 64]> =
    ///     Mutex::with_ceiling([0; 64], Ceiling::Deadline(Duration::from_millis(10)));
    /// ```
    pub const fn with_ceiling(data: T, ceiling: Ceiling) -> Self {
        let raw = LendingMutex::with_ceiling(ceiling.raw());
        Self { raw, data: UnsafeCell::new(data) }
    }

    /// The data.
    pub fn into_inner(self) -> T {
        self.data.into_inner()
    }
}

impl<T: ?Sized> Mutex<T> {
    /// Locks it, and waits for the holder. Real-time safe.
    ///
    /// # Errors
    /// Waiting would never end; a task of another CPU holds it; it is poisoned, and not locked; the
    /// task may not lock it because of its ceiling, or because the service schedules it.
    #[inline(always)]
    pub fn lock<'a>(&'a self, task: &'a Task<'_>) -> Result<MutexGuard<'a, T>, LockError> {
        self.lock_until_ns(task, u64::MAX)
    }

    /// The same, waiting until `until` at most: then lending ends. A mutex that no task holds is
    /// locked whatever the time is. Real-time safe.
    ///
    /// # Errors
    /// [`LockError::TimedOut`], and those of [`lock`](Self::lock).
    #[inline(always)]
    pub fn lock_until<'a>(
        &'a self,
        task: &'a Task<'_>,
        until: Time,
    ) -> Result<MutexGuard<'a, T>, LockError> {
        self.lock_until_ns(task, until.as_nanos())
    }

    #[inline(always)]
    fn lock_until_ns<'a>(
        &'a self,
        task: &'a Task<'_>,
        until: u64,
    ) -> Result<MutexGuard<'a, T>, LockError> {
        let task = task.thread()?;
        let consistent = self.raw.lock_until(task, until)?;
        let guard = self.guard(task);
        // Dropping the guard unlocks.
        consistent.then_some(guard).ok_or(LockError::Poisoned)
    }

    /// Locks it also where it is poisoned, to make the data consistent again and then to call
    /// [`clear_poison`](Self::clear_poison). Real-time safe.
    ///
    /// # Errors
    /// Waiting would never end, a task of another CPU holds it, or the service schedules the task.
    pub fn lock_poisoned<'a>(&'a self, task: &'a Task<'_>) -> Result<MutexGuard<'a, T>, LockError> {
        let task = task.thread()?;
        self.raw.lock(task)?;
        Ok(self.guard(task))
    }

    /// Locks it, if no task holds it, it is not poisoned, its ceiling permits that, and the service
    /// does not schedule the task. Real-time safe.
    #[inline]
    pub fn try_lock<'a>(&'a self, task: &'a Task<'_>) -> Option<MutexGuard<'a, T>> {
        let task = task.thread().ok()?;
        let consistent = self.raw.try_lock(task).ok()??;
        let guard = self.guard(task);
        consistent.then_some(guard)
    }

    /// A task panicked or ended while it held the mutex, so that the data may be inconsistent.
    pub fn is_poisoned(&self) -> bool {
        self.raw.is_poisoned()
    }

    /// The data is consistent again: [`lock`](Self::lock) succeeds from here on.
    pub fn clear_poison(&self) {
        self.raw.clear_poison();
    }

    /// The task has locked it.
    #[inline(always)]
    fn guard<'a>(&'a self, task: &'a ThreadTask) -> MutexGuard<'a, T> {
        let panicking = std::thread::panicking();
        MutexGuard { mutex: self, task, panicking, _of_this_thread: PhantomData }
    }

    /// The data; no task can hold it.
    pub fn get_mut(&mut self) -> &mut T {
        self.data.get_mut()
    }
}

impl<T: ?Sized> fmt::Debug for Mutex<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Mutex").field("raw", &self.raw).finish_non_exhaustive()
    }
}

/// A [`Mutex`] that is locked until this is dropped. A mutex whose guard is leaked is unlocked, and
/// poisoned, when the task ends.
#[must_use = "the mutex is unlocked when this is dropped"]
pub struct MutexGuard<'a, T: ?Sized> {
    mutex: &'a Mutex<T>,
    task: &'a ThreadTask,
    /// The task was panicking when it locked the mutex.
    panicking: bool,
    _of_this_thread: PhantomData<*const ()>,
}

impl<'a, T: ?Sized> MutexGuard<'a, T> {
    /// The mutex, and the task that has locked it.
    pub(crate) fn parts(&self) -> (&'a LendingMutex, &'a ThreadTask) {
        (&self.mutex.raw, self.task)
    }
}

// SAFETY: it gives access to the data alone.
unsafe impl<T: ?Sized + Sync> Sync for MutexGuard<'_, T> {}

impl<T: ?Sized> Deref for MutexGuard<'_, T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: this task holds the mutex.
        unsafe { &*self.mutex.data.get() }
    }
}

impl<T: ?Sized> DerefMut for MutexGuard<'_, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: as above.
        unsafe { &mut *self.mutex.data.get() }
    }
}

impl<T: ?Sized> Drop for MutexGuard<'_, T> {
    #[inline(always)]
    fn drop(&mut self) {
        if !self.panicking && std::thread::panicking() {
            self.mutex.raw.poison();
        }
        // SAFETY: locked by this task, whose thread alone has the guard.
        unsafe { self.mutex.raw.unlock(self.task) };
    }
}

impl<T: ?Sized + fmt::Debug> fmt::Debug for MutexGuard<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&**self, f)
    }
}
