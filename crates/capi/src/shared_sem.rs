//! Semaphores between processes.

use std::ffi::{c_char, c_int};

use punctual::shared::{SharedSemaphore, MOST_UNITS};

use crate::error::returned;
use crate::handle::HandleKind;
use crate::plain;
use crate::semaphore::CSemAttr;
use crate::shared_lock::{give, lifetime, refused, remove};
use crate::shared_table::SharedTable;

/// `struct punctual_shared_sem`.
pub enum HandleOfSharedSem {}

static SHARED_SEMS: SharedTable<SharedSemaphore, HandleOfSharedSem> =
    SharedTable::new(HandleKind::SharedSem);

#[no_mangle]
pub unsafe extern "C" fn punctual_shared_sem_create(
    name: *const c_char,
    attr: *const CSemAttr,
    flags: u32,
    sem: *mut *mut HandleOfSharedSem,
) -> c_int {
    // SAFETY: the caller's.
    unsafe {
        give(&SHARED_SEMS, name, sem, |namespace, name| {
            let CSemAttr { units, maximum, .. } = plain::read(attr)?;
            let maximum = if maximum == 0 { MOST_UNITS } else { maximum };
            Ok(SharedSemaphore::create(namespace, name, units, maximum, lifetime(flags)?)?)
        })
    }
}

#[no_mangle]
pub unsafe extern "C" fn punctual_shared_sem_open(
    name: *const c_char,
    sem: *mut *mut HandleOfSharedSem,
) -> c_int {
    // SAFETY: the caller's.
    unsafe {
        give(&SHARED_SEMS, name, sem, |namespace, name| Ok(SharedSemaphore::open(namespace, name)?))
    }
}

#[no_mangle]
pub unsafe extern "C" fn punctual_shared_sem_remove(name: *const c_char) -> c_int {
    // SAFETY: the caller's.
    unsafe { remove(name, SharedSemaphore::remove) }
}

#[no_mangle]
pub extern "C" fn punctual_shared_sem_close(sem: *mut HandleOfSharedSem) -> c_int {
    returned(SHARED_SEMS.remove(sem).map(drop))
}

#[no_mangle]
pub extern "C" fn punctual_shared_sem_wait(sem: *mut HandleOfSharedSem) -> c_int {
    punctual_shared_sem_wait_until(sem, u64::MAX)
}

#[no_mangle]
pub extern "C" fn punctual_shared_sem_wait_until(sem: *mut HandleOfSharedSem, until: u64) -> c_int {
    let waited = SHARED_SEMS.with(sem, |sem| sem.acquire_until(until).map_err(refused));
    returned(waited.and_then(|result| result))
}

#[no_mangle]
pub extern "C" fn punctual_shared_sem_trywait(sem: *mut HandleOfSharedSem) -> c_int {
    let acquired = SHARED_SEMS.with(sem, |sem| sem.try_acquire().map_err(refused));
    returned(acquired.and_then(|result| result))
}

#[no_mangle]
pub extern "C" fn punctual_shared_sem_post(sem: *mut HandleOfSharedSem) -> c_int {
    let released = SHARED_SEMS.with(sem, |sem| sem.release().map_err(refused));
    returned(released.and_then(|result| result))
}
