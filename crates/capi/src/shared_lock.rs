//! What the locks between processes have in common.

use std::ffi::{c_char, c_int};

use punctual::shared::{Lifetime, Name, Namespace, SharedLockError};
use punctual::Error;

use crate::error::{error, failed, returned, CallError};
use crate::fork;
use crate::lock_error::timed_out;
use crate::names;
use crate::plain;
use crate::shared_table::SharedTable;

/// PUNCTUAL_LOCK_PERSISTENT
pub const LOCK_PERSISTENT: u32 = 1;

/// # Errors
/// EINVAL.
pub fn lifetime(flags: u32) -> Result<Lifetime, Error> {
    match flags {
        0 => Ok(Lifetime::Used),
        LOCK_PERSISTENT => Ok(Lifetime::Persistent),
        _ => {
            let cause = format!("the flags {flags:#x} of a lock are unknown");
            Err(error(libc::EINVAL, cause, "use PUNCTUAL_LOCK_PERSISTENT or 0"))
        }
    }
}

/// Passes a handle of the lock of this name that `make` makes or opens to C.
///
/// # Safety
/// `name` is NULL or a text; `to` is NULL or can be written.
pub unsafe fn give<T: Send + Sync, H>(
    table: &SharedTable<T, H>,
    name: *const c_char,
    to: *mut *mut H,
    make: impl FnOnce(&Namespace, &Name) -> Result<T, CallError>,
) -> c_int {
    returned(fork::watch().and_then(|()| plain::not_null(to)).and_then(|()| {
        // SAFETY: the caller's.
        let name = unsafe { names::required(name)? };
        let lock = make(&Namespace::of_user()?, &name)?;
        // SAFETY: the caller's.
        unsafe { to.write(table.add(lock)?) };
        Ok(())
    }))
}

/// Removes the name of a lock.
///
/// # Safety
/// `name` is NULL or a text.
pub unsafe fn remove(
    name: *const c_char,
    remove: impl FnOnce(&Namespace, &Name) -> Result<(), Error>,
) -> c_int {
    // SAFETY: the caller's.
    let name = unsafe { names::required(name) };
    returned(name.and_then(|name| Ok(remove(&Namespace::of_user()?, &name)?)))
}

/// After the death of a holder the mutex is locked, which is an error number here.
///
/// # Errors
/// EOWNERDEAD.
#[inline]
pub fn locked(consistent: bool) -> Result<(), CallError> {
    match consistent {
        true => Ok(()),
        false => Err(shared_owner_dead()),
    }
}

#[cold]
fn shared_owner_dead() -> CallError {
    failed(
        libc::EOWNERDEAD,
        c"a thread ended while it held the mutex, which is locked; repair the data, and call \
          punctual_shared_mutex_consistent",
    )
}

/// An error of a lock as an error number and a text. Real-time safe.
#[cold]
pub fn refused(e: SharedLockError) -> CallError {
    let text = match e {
        SharedLockError::Deadlock => {
            c"this thread holds the mutex, or its holder waits for a mutex of this thread"
        }
        SharedLockError::Busy => c"another thread holds the mutex",
        SharedLockError::NoUnit => c"the semaphore has no unit",
        SharedLockError::Full => c"the semaphore has its maximum",
        SharedLockError::TimedOut => return timed_out(),
        SharedLockError::NotHeld => c"this thread does not hold the mutex",
        SharedLockError::Consistent => c"no thread ended while it held the mutex",
        SharedLockError::TooMany => {
            c"the thread holds as many mutexes between processes as it can: 256"
        }
        SharedLockError::NoRobustList => {
            c"the thread has no robust list; make it by the C library, glibc"
        }
        SharedLockError::Ending => c"the thread is ending; lock nothing in its destructors",
        _ => {
            c"the memory of the lock is damaged: another program wrote into it; remove the lock, \
              and make it again"
        }
    };
    failed(e.errno(), text)
}
