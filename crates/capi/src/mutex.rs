//! Mutexes that lend.

use std::ffi::c_int;
use std::mem::size_of;

use punctual::raw::{LockCeiling, ThreadTask};
use punctual::Error;

use crate::current::with_task;
use crate::error::{error, failed, returned, CallError};
use crate::fork;
use crate::lock_error::lock_refused;
use crate::mutex_table::{self, find, FoundMutex, HandleOfMutex};
use crate::plain::{self, Plain};

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
    returned(
        find(mutex)
            .and_then(|found| with_task(|task| f(found, task.thread().map_err(lock_refused)?))?),
    )
}

/// PUNCTUAL_CEILING_DEADLINE
pub const CEILING_DEADLINE: u32 = 1;
/// PUNCTUAL_CEILING_PRIORITY
pub const CEILING_PRIORITY: u32 = 2;

/// `struct punctual_mutex_attr`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct CMutexAttr {
    pub size: usize,
    pub flags: u32,
    pub reserved: u32,
    pub ceiling_deadline: u64,
    pub ceiling_priority: i64,
}

// SAFETY: integers.
unsafe impl Plain for CMutexAttr {
    const FIRST: usize = size_of::<CMutexAttr>();
}

fn ceiling_of(attr: &CMutexAttr) -> Result<Option<LockCeiling>, Error> {
    let CMutexAttr { flags, reserved, ceiling_deadline, ceiling_priority, .. } = *attr;
    match flags {
        0 if reserved == 0 => Ok(None),
        CEILING_DEADLINE if reserved == 0 => Ok(Some(LockCeiling::Deadline(ceiling_deadline))),
        CEILING_PRIORITY if reserved == 0 => Ok(Some(LockCeiling::Priority(ceiling_priority))),
        _ => {
            let cause =
                format!("the flags {flags:#x} of a mutex are unknown, or exclude each other");
            let help = "use PUNCTUAL_CEILING_DEADLINE, PUNCTUAL_CEILING_PRIORITY or 0";
            Err(error(libc::EINVAL, cause, help))
        }
    }
}

#[no_mangle]
pub unsafe extern "C" fn punctual_mutex_create(mutex: *mut *mut HandleOfMutex) -> c_int {
    // SAFETY: the caller's.
    unsafe { punctual_mutex_create_with(std::ptr::null(), mutex) }
}

#[no_mangle]
pub unsafe extern "C" fn punctual_mutex_create_with(
    attr: *const CMutexAttr,
    mutex: *mut *mut HandleOfMutex,
) -> c_int {
    returned(fork::watch().and_then(|()| plain::not_null(mutex)).and_then(|()| {
        // SAFETY: the caller's.
        let ceiling = ceiling_of(&unsafe { plain::read(attr)? })?;
        // SAFETY: the caller's.
        unsafe { mutex.write(mutex_table::add(ceiling)?) };
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
