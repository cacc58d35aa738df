//! Counting and binary semaphores.

use std::ffi::c_int;
use std::mem::size_of;

use punctual::{Semaphore, Time};

use crate::current::with_task;
use crate::error::{error, failed, returned};
use crate::fork;
use crate::handle::HandleKind;
use crate::lock_error::wait_refused;
use crate::plain::{self, Plain};
use crate::shared_table::SharedTable;

/// `struct punctual_sem`.
pub enum HandleOfSem {}

/// `struct punctual_sem_attr`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct CSemAttr {
    pub size: usize,
    pub units: u32,
    pub maximum: u32,
}

// SAFETY: integers.
unsafe impl Plain for CSemAttr {
    const FIRST: usize = size_of::<CSemAttr>();
}

static SEMS: SharedTable<Semaphore, HandleOfSem> = SharedTable::new(HandleKind::Sem);

#[no_mangle]
pub unsafe extern "C" fn punctual_sem_create(
    attr: *const CSemAttr,
    sem: *mut *mut HandleOfSem,
) -> c_int {
    returned(fork::watch().and_then(|()| plain::not_null(sem)).and_then(|()| {
        // SAFETY: the caller's.
        let CSemAttr { units, maximum, .. } = unsafe { plain::read(attr)? };
        let maximum = if maximum == 0 { u32::MAX } else { maximum };
        if units > maximum {
            let cause = format!("a semaphore of {units} units has a maximum of {maximum}");
            return Err(error(libc::EINVAL, cause, "raise the maximum").into());
        }
        // SAFETY: the caller's.
        unsafe { sem.write(SEMS.add(Semaphore::new(units, maximum))?) };
        Ok(())
    }))
}

#[no_mangle]
pub extern "C" fn punctual_sem_destroy(sem: *mut HandleOfSem) -> c_int {
    returned(SEMS.remove(sem).map(drop))
}

#[no_mangle]
pub extern "C" fn punctual_sem_wait(sem: *mut HandleOfSem) -> c_int {
    punctual_sem_wait_until(sem, u64::MAX)
}

#[no_mangle]
pub extern "C" fn punctual_sem_wait_until(sem: *mut HandleOfSem, until: u64) -> c_int {
    let waited = SEMS.with(sem, |sem| {
        let until = Time::from_nanos(until);
        with_task(|task| sem.acquire_until(task, until).map_err(wait_refused))?
    });
    returned(waited.and_then(|result| result))
}

#[no_mangle]
pub extern "C" fn punctual_sem_trywait(sem: *mut HandleOfSem) -> c_int {
    returned(SEMS.with(sem, Semaphore::try_acquire).and_then(|acquired| match acquired {
        true => Ok(()),
        false => Err(failed(libc::EAGAIN, c"the semaphore has no unit, or tasks wait for it")),
    }))
}

#[no_mangle]
pub extern "C" fn punctual_sem_post(sem: *mut HandleOfSem) -> c_int {
    returned(SEMS.with(sem, Semaphore::release).and_then(|released| match released {
        true => Ok(()),
        false => Err(failed(libc::EOVERFLOW, c"the semaphore has its maximum")),
    }))
}
