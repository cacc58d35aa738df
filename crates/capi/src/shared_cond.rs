//! Condition variables between processes.

use std::ffi::{c_char, c_int};

use punctual::shared::{ConditionWait, SharedCondvar, SharedLockError, SharedMutex};

use crate::error::{failed, returned, CallError};
use crate::handle::HandleKind;
use crate::lock_error::timed_out;
use crate::shared_lock::{give, lifetime, locked, refused, remove};
use crate::shared_mutex::{HandleOfSharedMutex, SHARED_MUTEXES};
use crate::shared_table::SharedTable;

/// `struct punctual_shared_cond`.
pub enum HandleOfSharedCond {}

static SHARED_CONDS: SharedTable<SharedCondvar, HandleOfSharedCond> =
    SharedTable::new(HandleKind::SharedCond);

#[no_mangle]
pub unsafe extern "C" fn punctual_shared_cond_create(
    name: *const c_char,
    flags: u32,
    cond: *mut *mut HandleOfSharedCond,
) -> c_int {
    // SAFETY: the caller's.
    unsafe {
        give(&SHARED_CONDS, name, cond, |namespace, name| {
            Ok(SharedCondvar::create(namespace, name, lifetime(flags)?)?)
        })
    }
}

#[no_mangle]
pub unsafe extern "C" fn punctual_shared_cond_open(
    name: *const c_char,
    cond: *mut *mut HandleOfSharedCond,
) -> c_int {
    // SAFETY: the caller's.
    unsafe {
        give(&SHARED_CONDS, name, cond, |namespace, name| Ok(SharedCondvar::open(namespace, name)?))
    }
}

#[no_mangle]
pub unsafe extern "C" fn punctual_shared_cond_remove(name: *const c_char) -> c_int {
    // SAFETY: the caller's.
    unsafe { remove(name, SharedCondvar::remove) }
}

#[no_mangle]
pub extern "C" fn punctual_shared_cond_close(cond: *mut HandleOfSharedCond) -> c_int {
    returned(SHARED_CONDS.remove(cond).map(drop))
}

#[no_mangle]
pub extern "C" fn punctual_shared_cond_wait(
    cond: *mut HandleOfSharedCond,
    mutex: *mut HandleOfSharedMutex,
) -> c_int {
    punctual_shared_cond_wait_until(cond, mutex, u64::MAX)
}

#[no_mangle]
pub extern "C" fn punctual_shared_cond_wait_until(
    cond: *mut HandleOfSharedCond,
    mutex: *mut HandleOfSharedMutex,
    until: u64,
) -> c_int {
    let waited = SHARED_CONDS
        .with(cond, |cond| SHARED_MUTEXES.with(mutex, |mutex| wait(cond, mutex, until)));
    returned(waited.and_then(|result| result).and_then(|result| result))
}

/// The thread holds the mutex at the end, but for EPERM and ENOLCK.
fn wait(cond: &SharedCondvar, mutex: &SharedMutex, until: u64) -> Result<(), CallError> {
    match cond.wait_unlocked(mutex, until) {
        Ok(ConditionWait { consistent: true, timed_out: true }) => Err(timed_out()),
        Ok(ConditionWait { consistent, .. }) => locked(consistent),
        Err(e @ SharedLockError::NotHeld) => Err(refused(e)),
        Err(_) => Err(failed(
            libc::ENOLCK,
            c"the mutex cannot be locked again, and is not: a deadlock, or its memory is damaged",
        )),
    }
}

#[no_mangle]
pub extern "C" fn punctual_shared_cond_signal(cond: *mut HandleOfSharedCond) -> c_int {
    returned(SHARED_CONDS.with(cond, SharedCondvar::notify_one))
}

#[no_mangle]
pub extern "C" fn punctual_shared_cond_broadcast(cond: *mut HandleOfSharedCond) -> c_int {
    returned(SHARED_CONDS.with(cond, SharedCondvar::notify_all))
}
