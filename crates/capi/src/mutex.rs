//! Mutexes that lend.

use std::ffi::c_int;

use punctual::raw::ThreadTask;

use crate::current::with_task;
use crate::error::{failed, returned, CallError};
use crate::fork;
use crate::lock_error::lock_refused;
use crate::mutex_table::{self, find, FoundMutex, HandleOfMutex};
use crate::plain;

#[cold]
fn held_by_another() -> CallError {
    failed(libc::EBUSY, c"a task holds the mutex")
}

#[cold]
pub fn not_held() -> CallError {
    failed(libc::EPERM, c"this task does not hold the mutex")
}

/// Calls `f` with the mutex and the calling task. Real-time safe.
#[inline]
fn with_mutex(
    mutex: *mut HandleOfMutex,
    f: impl FnOnce(FoundMutex, &ThreadTask) -> Result<(), CallError>,
) -> c_int {
    returned(find(mutex).and_then(|found| with_task(|task| f(found, task.thread()))?))
}

#[no_mangle]
pub unsafe extern "C" fn punctual_mutex_create(mutex: *mut *mut HandleOfMutex) -> c_int {
    returned(fork::watch().and_then(|()| plain::not_null(mutex)).and_then(|()| {
        // SAFETY: the caller's.
        unsafe { mutex.write(mutex_table::add()?) };
        Ok(())
    }))
}

#[no_mangle]
pub extern "C" fn punctual_mutex_destroy(mutex: *mut HandleOfMutex) -> c_int {
    returned(mutex_table::remove(mutex))
}

#[no_mangle]
pub extern "C" fn punctual_mutex_lock(mutex: *mut HandleOfMutex) -> c_int {
    punctual_mutex_lock_until(mutex, u64::MAX)
}

#[no_mangle]
pub extern "C" fn punctual_mutex_lock_until(mutex: *mut HandleOfMutex, until: u64) -> c_int {
    with_mutex(mutex, |found, task| found.locked(task, found.mutex().lock_until(task, until)))
}

#[no_mangle]
pub extern "C" fn punctual_mutex_trylock(mutex: *mut HandleOfMutex) -> c_int {
    with_mutex(mutex, |found, task| {
        let locked = found.mutex().try_lock(task).map_err(lock_refused)?;
        let consistent = locked.ok_or_else(held_by_another)?;
        found.locked(task, Ok(consistent))
    })
}

#[no_mangle]
pub extern "C" fn punctual_mutex_unlock(mutex: *mut HandleOfMutex) -> c_int {
    with_mutex(mutex, |found, task| match found.mutex().try_unlock(task) {
        true => Ok(()),
        false => Err(not_held()),
    })
}

#[no_mangle]
pub extern "C" fn punctual_mutex_consistent(mutex: *mut HandleOfMutex) -> c_int {
    with_mutex(mutex, |found, task| {
        let mutex = found.mutex();
        if !mutex.is_held(task) {
            return Err(not_held());
        }
        if !mutex.is_poisoned() {
            return Err(failed(libc::EINVAL, c"no task ended while it held the mutex"));
        }
        mutex.clear_poison();
        Ok(())
    })
}
