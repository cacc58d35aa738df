//! Barriers between processes.

use std::ffi::{c_char, c_int};

use punctual::shared::SharedBarrier;

use crate::error::{returned, CallError};
use crate::handle::HandleKind;
use crate::shared_lock::{give, lifetime, refused, remove};
use crate::shared_table::SharedTable;

/// `struct punctual_shared_barrier`.
pub enum HandleOfSharedBarrier {}

static SHARED_BARRIERS: SharedTable<SharedBarrier, HandleOfSharedBarrier> =
    SharedTable::new(HandleKind::SharedBarrier);

#[no_mangle]
pub unsafe extern "C" fn punctual_shared_barrier_create(
    name: *const c_char,
    parties: u32,
    flags: u32,
    barrier: *mut *mut HandleOfSharedBarrier,
) -> c_int {
    // SAFETY: the caller's.
    unsafe {
        give(&SHARED_BARRIERS, name, barrier, |namespace, name| {
            Ok(SharedBarrier::create(namespace, name, parties, lifetime(flags)?)?)
        })
    }
}

#[no_mangle]
pub unsafe extern "C" fn punctual_shared_barrier_open(
    name: *const c_char,
    barrier: *mut *mut HandleOfSharedBarrier,
) -> c_int {
    // SAFETY: the caller's.
    unsafe {
        give(&SHARED_BARRIERS, name, barrier, |namespace, name| {
            Ok(SharedBarrier::open(namespace, name)?)
        })
    }
}

#[no_mangle]
pub unsafe extern "C" fn punctual_shared_barrier_remove(name: *const c_char) -> c_int {
    // SAFETY: the caller's.
    unsafe { remove(name, SharedBarrier::remove) }
}

#[no_mangle]
pub extern "C" fn punctual_shared_barrier_close(barrier: *mut HandleOfSharedBarrier) -> c_int {
    returned(SHARED_BARRIERS.remove(barrier).map(drop))
}

#[no_mangle]
pub extern "C" fn punctual_shared_barrier_wait(barrier: *mut HandleOfSharedBarrier) -> c_int {
    punctual_shared_barrier_wait_until(barrier, u64::MAX)
}

#[no_mangle]
pub extern "C" fn punctual_shared_barrier_wait_until(
    barrier: *mut HandleOfSharedBarrier,
    until: u64,
) -> c_int {
    let waited = SHARED_BARRIERS
        .with(barrier, |barrier| barrier.wait_until(until).map_err(refused))
        .and_then(|result| result);
    waited.map_or_else(|CallError(number)| number, c_int::from)
}
