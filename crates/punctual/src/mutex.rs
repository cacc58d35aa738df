//! A mutex that keeps budgets true.

use std::cell::UnsafeCell;
use std::fmt;
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};

use punctual_host_user::{LendingMutex, LockError, ThreadTask};

use crate::Task;

/// Data that one task at a time has.
///
/// While a task waits for the mutex, its jobs execute the holder, which spends the waiter's budget
/// at the waiter's priority (bandwidth inheritance: Lipari, Lamastra and Abeni 2004), through any
/// number of mutexes. So a task waits at most for the critical sections of others, and not for
/// their next budgets, nor for tasks that have nothing to do with the mutex; only those that share
/// a mutex spend time for each other, and need budgets for that. Without contention, locking and
/// unlocking are one atomic instruction each.
///
/// For the tasks of one CPU, which pass themselves. When several wait, the one whose job comes
/// first is next. A task that panics unlocks what it holds.
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

    /// The data.
    pub fn into_inner(self) -> T {
        self.data.into_inner()
    }
}

impl<T: ?Sized> Mutex<T> {
    /// Locks it, and waits for the holder. Real-time safe.
    ///
    /// # Errors
    /// Waiting would never end; or a task of another CPU holds it.
    pub fn lock<'a>(&'a self, task: &'a Task<'_>) -> Result<MutexGuard<'a, T>, LockError> {
        let task = task.thread();
        self.raw.lock(task)?;
        Ok(MutexGuard { mutex: self, task, _of_this_thread: PhantomData })
    }

    /// Locks it, if no task holds it. Real-time safe.
    pub fn try_lock<'a>(&'a self, task: &'a Task<'_>) -> Option<MutexGuard<'a, T>> {
        let task = task.thread();
        let guard = || MutexGuard { mutex: self, task, _of_this_thread: PhantomData };
        self.raw.try_lock(task).then(guard)
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

/// A [`Mutex`] that is locked until this is dropped. A guard that is leaked unlocks it when its
/// task ends and others wait.
#[must_use = "the mutex is unlocked when this is dropped"]
pub struct MutexGuard<'a, T: ?Sized> {
    mutex: &'a Mutex<T>,
    task: &'a ThreadTask,
    _of_this_thread: PhantomData<*const ()>,
}

// SAFETY: it gives access to the data alone.
unsafe impl<T: ?Sized + Sync> Sync for MutexGuard<'_, T> {}

impl<T: ?Sized> Deref for MutexGuard<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        // SAFETY: this task holds the mutex.
        unsafe { &*self.mutex.data.get() }
    }
}

impl<T: ?Sized> DerefMut for MutexGuard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: as above.
        unsafe { &mut *self.mutex.data.get() }
    }
}

impl<T: ?Sized> Drop for MutexGuard<'_, T> {
    fn drop(&mut self) {
        // SAFETY: locked by this task, whose thread alone has the guard.
        unsafe { self.mutex.raw.unlock(self.task) };
    }
}

impl<T: ?Sized + fmt::Debug> fmt::Debug for MutexGuard<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&**self, f)
    }
}
