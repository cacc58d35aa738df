//! Barriers.

use std::ffi::c_int;

use punctual::{Barrier, Time};

use crate::current::with_task;
use crate::error::{failed, returned, CallError};
use crate::fork;
use crate::handle::HandleKind;
use crate::lock_error::wait_refused;
use crate::plain;
use crate::shared_table::SharedTable;

/// `struct punctual_barrier`.
pub enum HandleOfBarrier {}

static BARRIERS: SharedTable<Barrier, HandleOfBarrier> = SharedTable::new(HandleKind::Barrier);

#[no_mangle]
pub unsafe extern "C" fn punctual_barrier_create(
    tasks: u32,
    barrier: *mut *mut HandleOfBarrier,
) -> c_int {
    returned(fork::watch().and_then(|()| plain::not_null(barrier)).and_then(|()| {
        if tasks == 0 {
            return Err(failed(libc::EINVAL, c"a barrier is for one task at least"));
        }
        // SAFETY: the caller's.
        unsafe { barrier.write(BARRIERS.add(Barrier::new(tasks))?) };
        Ok(())
    }))
}

#[no_mangle]
pub extern "C" fn punctual_barrier_destroy(barrier: *mut HandleOfBarrier) -> c_int {
    returned(BARRIERS.remove(barrier).map(drop))
}

#[no_mangle]
pub extern "C" fn punctual_barrier_wait(barrier: *mut HandleOfBarrier) -> c_int {
    punctual_barrier_wait_until(barrier, u64::MAX)
}

#[no_mangle]
pub extern "C" fn punctual_barrier_wait_until(barrier: *mut HandleOfBarrier, until: u64) -> c_int {
    let waited = BARRIERS.with(barrier, |barrier| {
        let until = Time::from_nanos(until);
        with_task(|task| barrier.wait_until(task, until).map_err(wait_refused))?
    });
    let last = waited.and_then(|result| result);
    last.map_or_else(|CallError(number)| number, c_int::from)
}
