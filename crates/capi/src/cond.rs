//! Condition variables.

use std::ffi::c_int;

use punctual::raw::{ThreadTask, WaitQueue, Waited};
use punctual::WaitError;

use crate::current::{is_to_end, with_task};
use crate::error::{returned, CallError};
use crate::fork;
use crate::handle::HandleKind;
use crate::lock_error::{lock_refused, not_locked, timed_out, wait_refused};
use crate::mutex::not_held;
use crate::mutex_table::{find, FoundMutex, HandleOfMutex};
use crate::plain;
use crate::shared_table::SharedTable;

/// `struct punctual_cond`.
pub enum HandleOfCond {}

static CONDS: SharedTable<WaitQueue, HandleOfCond> = SharedTable::new(HandleKind::Cond);

#[no_mangle]
pub unsafe extern "C" fn punctual_cond_create(cond: *mut *mut HandleOfCond) -> c_int {
    returned(fork::watch().and_then(|()| plain::not_null(cond)).and_then(|()| {
        // SAFETY: the caller's.
        unsafe { cond.write(CONDS.add(WaitQueue::new(0))?) };
        Ok(())
    }))
}

#[no_mangle]
pub extern "C" fn punctual_cond_destroy(cond: *mut HandleOfCond) -> c_int {
    returned(CONDS.remove(cond).map(drop))
}

#[no_mangle]
pub extern "C" fn punctual_cond_wait(cond: *mut HandleOfCond, mutex: *mut HandleOfMutex) -> c_int {
    punctual_cond_wait_until(cond, mutex, u64::MAX)
}

#[no_mangle]
pub extern "C" fn punctual_cond_wait_until(
    cond: *mut HandleOfCond,
    mutex: *mut HandleOfMutex,
    until: u64,
) -> c_int {
    let waited = CONDS.with(cond, |queue| {
        let mutex = find(mutex)?;
        with_task(|task| wait(queue, mutex, task.thread().map_err(lock_refused)?, until))?
    });
    returned(waited.and_then(|result| result))
}

/// The task holds the mutex at the end, but for ENOLCK, or if the mutex was destroyed meanwhile.
fn wait(
    queue: &WaitQueue,
    found: FoundMutex,
    task: &ThreadTask,
    until: u64,
) -> Result<(), CallError> {
    let mutex = found.mutex();
    if !mutex.is_held(task) {
        return Err(not_held());
    }
    // SAFETY: it holds it.
    match unsafe { queue.wait_unlocked(mutex, task, until) } {
        Waited::Locked { consistent, timed_out: is_late } => {
            found.locked(task, Ok(consistent))?;
            if is_late {
                return Err(timed_out());
            }
            Ok(())
        }
        Waited::NotBegun(e) => Err(wait_refused(e)),
        Waited::Unlocked(WaitError::Lock(_)) => Err(not_locked()),
        Waited::Unlocked(_) => {
            let locked = mutex.lock(task).map_err(|_| not_locked())?;
            found.locked(task, Ok(locked))?;
            Err(is_to_end())
        }
    }
}

#[no_mangle]
pub extern "C" fn punctual_cond_signal(cond: *mut HandleOfCond) -> c_int {
    returned(CONDS.with(cond, |queue| queue.put_for_waiters(1)))
}

#[no_mangle]
pub extern "C" fn punctual_cond_broadcast(cond: *mut HandleOfCond) -> c_int {
    returned(CONDS.with(cond, |queue| queue.put_for_waiters(u32::MAX)))
}
