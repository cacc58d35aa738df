//! Mutexes between processes.

use std::ffi::{c_char, c_int};

use punctual::shared::SharedMutex;

use crate::error::{failed, returned, CallError};
use crate::handle::HandleKind;
use crate::shared_lock::{give, lifetime, locked, refused, remove};
use crate::shared_table::SharedTable;

/// `struct punctual_shared_mutex`.
pub enum HandleOfSharedMutex {}

pub static SHARED_MUTEXES: SharedTable<SharedMutex, HandleOfSharedMutex> =
    SharedTable::new(HandleKind::SharedMutex);

/// Calls `f` with the mutex of a handle. Real-time safe.
#[inline]
fn with_mutex(
    mutex: *mut HandleOfSharedMutex,
    f: impl FnOnce(&SharedMutex) -> Result<(), CallError>,
) -> c_int {
    returned(SHARED_MUTEXES.with(mutex, f).and_then(|result| result))
}

#[no_mangle]
pub unsafe extern "C" fn punctual_shared_mutex_create(
    name: *const c_char,
    flags: u32,
    mutex: *mut *mut HandleOfSharedMutex,
) -> c_int {
    // SAFETY: the caller's.
    unsafe {
        give(&SHARED_MUTEXES, name, mutex, |namespace, name| {
            Ok(SharedMutex::create(namespace, name, lifetime(flags)?)?)
        })
    }
}

#[no_mangle]
pub unsafe extern "C" fn punctual_shared_mutex_open(
    name: *const c_char,
    mutex: *mut *mut HandleOfSharedMutex,
) -> c_int {
    // SAFETY: the caller's.
    unsafe {
        give(&SHARED_MUTEXES, name, mutex, |namespace, name| {
            Ok(SharedMutex::open(namespace, name)?)
        })
    }
}

#[no_mangle]
pub unsafe extern "C" fn punctual_shared_mutex_remove(name: *const c_char) -> c_int {
    // SAFETY: the caller's.
    unsafe { remove(name, SharedMutex::remove) }
}

#[no_mangle]
pub extern "C" fn punctual_shared_mutex_close(mutex: *mut HandleOfSharedMutex) -> c_int {
    let free = |mutex: &SharedMutex| match mutex.is_held_by_process() {
        false => Ok(()),
        true => Err(failed(libc::EBUSY, c"a thread of this process holds the mutex")),
    };
    returned(SHARED_MUTEXES.remove_if(mutex, free).map(drop))
}

#[no_mangle]
pub extern "C" fn punctual_shared_mutex_lock(mutex: *mut HandleOfSharedMutex) -> c_int {
    punctual_shared_mutex_lock_until(mutex, u64::MAX)
}

#[no_mangle]
pub extern "C" fn punctual_shared_mutex_lock_until(
    mutex: *mut HandleOfSharedMutex,
    until: u64,
) -> c_int {
    with_mutex(mutex, |mutex| mutex.acquire(until).map_err(refused).and_then(locked))
}

#[no_mangle]
pub extern "C" fn punctual_shared_mutex_trylock(mutex: *mut HandleOfSharedMutex) -> c_int {
    with_mutex(mutex, |mutex| mutex.try_acquire().map_err(refused).and_then(locked))
}

#[no_mangle]
pub extern "C" fn punctual_shared_mutex_unlock(mutex: *mut HandleOfSharedMutex) -> c_int {
    with_mutex(mutex, |mutex| mutex.release().map_err(refused))
}

#[no_mangle]
pub extern "C" fn punctual_shared_mutex_consistent(mutex: *mut HandleOfSharedMutex) -> c_int {
    with_mutex(mutex, |mutex| mutex.set_consistent().map_err(refused))
}
