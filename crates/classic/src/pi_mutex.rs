//! What threads of this program share: under a mutex with priority inheritance, so that a thread of
//! a high priority waits for one critical section alone.

use std::cell::UnsafeCell;
use std::mem::MaybeUninit;

use punctual_ipc::RobustMutex;

/// A value that one thread at a time has. It is never moved: the kernel knows the mutex by its
/// address.
pub struct PiMutex<T> {
    mutex: Box<RobustMutex>,
    value: UnsafeCell<T>,
}

// SAFETY: the value is accessed with the mutex locked alone.
unsafe impl<T: Send> Sync for PiMutex<T> {}
// SAFETY: as above.
unsafe impl<T: Send> Send for PiMutex<T> {}

impl<T> PiMutex<T> {
    /// # Panics
    /// The kernel has no priority inheritance for futexes.
    pub fn new(value: T) -> PiMutex<T> {
        // SAFETY: it begins as zeros.
        let mutex = Box::new(unsafe { MaybeUninit::<RobustMutex>::zeroed().assume_init() });
        mutex.init().expect("the kernel has priority inheritance");
        PiMutex { mutex, value: UnsafeCell::new(value) }
    }

    /// Calls `f` with the value. `f` neither calls this nor ends its thread. `None`: the calling
    /// thread has it already, as in a handler of a signal.
    pub fn with<R>(&self, f: impl FnOnce(&mut T) -> R) -> Option<R> {
        let locked = self.mutex.lock().ok()?;
        // SAFETY: the mutex is locked until `locked` is dropped, by this thread, once.
        let result = f(unsafe { &mut *self.value.get() });
        drop(locked);
        Some(result)
    }

    /// The same, unless another thread has the value: `None` then, too.
    pub fn try_with<R>(&self, f: impl FnOnce(&mut T) -> R) -> Option<R> {
        let locked = self.mutex.try_lock().ok()??;
        // SAFETY: as in `with`.
        let result = f(unsafe { &mut *self.value.get() });
        drop(locked);
        Some(result)
    }
}
