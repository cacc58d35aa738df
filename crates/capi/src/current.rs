//! The calling thread as a task. Its own calls are real-time safe: they read this thread's storage,
//! and neither allocate nor lock.

use std::cell::{Cell, RefCell};
use std::ffi::c_int;
use std::ptr;

use punctual::{Attached, Released, Task};

use crate::error::{failed, returned, CallError};
use crate::task::HandleOfTask;

/// `struct punctual_period`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct CPeriod {
    pub number: u64,
    pub release: u64,
    pub deadline: u64,
    pub lost: u32,
    pub reserved: u32,
}

/// The task that this thread is.
struct Current {
    _attached: Box<Attached>,
    /// Its handle; NULL where the program wanted none.
    handle: *mut HandleOfTask,
}

thread_local! {
    /// For the calls of the task: `CURRENT`'s, without its destructor.
    static TASK: Cell<*const Attached> = const { Cell::new(ptr::null()) };
    /// Ends the task when the thread ends.
    static CURRENT: RefCell<Option<Current>> = const { RefCell::new(None) };
}

impl Drop for Current {
    fn drop(&mut self) {
        TASK.set(ptr::null());
    }
}

/// The calling thread is this task until [`leave`], or its end.
pub fn enter(attached: Attached, handle: *mut HandleOfTask) {
    let attached = Box::new(attached);
    let task = ptr::from_ref(&*attached);
    CURRENT.with_borrow_mut(|current| *current = Some(Current { _attached: attached, handle }));
    TASK.set(task);
}

/// Ends the task that the calling thread is.
///
/// # Errors
/// EPERM: it is none.
pub fn leave() -> Result<(), CallError> {
    let current = CURRENT.try_with(|current| current.borrow_mut().take()).ok().flatten();
    current.map(drop).ok_or_else(no_task)
}

/// In the child of a fork: the task is the parent's.
pub fn forget() {
    TASK.set(ptr::null());
    let current = CURRENT.try_with(|current| current.try_borrow_mut().ok()?.take());
    std::mem::forget(current);
}

/// Whether this handle is that of the calling thread.
pub fn is(handle: *mut HandleOfTask) -> bool {
    !handle.is_null() && own_handle() == handle
}

fn own_handle() -> *mut HandleOfTask {
    let own = |current: &RefCell<Option<Current>>| Some(current.borrow().as_ref()?.handle);
    CURRENT.try_with(own).ok().flatten().unwrap_or(ptr::null_mut())
}

/// Calls `f` with the task of the calling thread. Real-time safe.
///
/// # Errors
/// EPERM: it is none.
#[inline]
pub fn with_task<T>(f: impl FnOnce(&Task<'_>) -> T) -> Result<T, CallError> {
    // SAFETY: `CURRENT` of this thread keeps it, and its drop clears the pointer first.
    match unsafe { TASK.get().as_ref() } {
        Some(attached) => Ok(f(&attached.task())),
        None => Err(no_task()),
    }
}

#[cold]
fn no_task() -> CallError {
    failed(libc::EPERM, c"the calling thread is no task; call punctual_attach first")
}

/// Real-time safe.
#[cold]
pub fn is_to_end() -> CallError {
    failed(libc::ECANCELED, c"the task is to end: it was stopped, or its run was")
}

unsafe fn give(released: Released, to: *mut CPeriod) {
    if !to.is_null() {
        let period = CPeriod {
            number: released.number,
            release: released.release.as_nanos(),
            deadline: released.deadline.as_nanos(),
            lost: released.lost,
            reserved: 0,
        };
        // SAFETY: the caller's.
        unsafe { to.write(period) };
    }
}

#[no_mangle]
pub extern "C" fn punctual_detach() -> c_int {
    returned(leave())
}

/// What ends a job returns.
unsafe fn next(released: Result<Option<Released>, CallError>, to: *mut CPeriod) -> c_int {
    returned(released.and_then(|released| {
        // SAFETY: the caller's.
        unsafe { give(released.ok_or_else(is_to_end)?, to) };
        Ok(())
    }))
}

#[no_mangle]
pub unsafe extern "C" fn punctual_wait_period(period: *mut CPeriod) -> c_int {
    // SAFETY: the caller's.
    unsafe { next(with_task(|task| task.wait_period()), period) }
}

#[no_mangle]
pub unsafe extern "C" fn punctual_suspend(period: *mut CPeriod) -> c_int {
    // SAFETY: the caller's.
    unsafe { next(with_task(|task| task.suspend()), period) }
}

#[no_mangle]
pub unsafe extern "C" fn punctual_current_period(period: *mut CPeriod) -> c_int {
    // SAFETY: the caller's.
    returned(with_task(|task| unsafe { give(task.current(), period) }))
}

#[no_mangle]
pub extern "C" fn punctual_remaining_budget() -> i64 {
    let budget = |task: &Task<'_>| task.remaining_budget().as_nanos().try_into();
    match with_task(budget) {
        Ok(ns) => ns.unwrap_or(i64::MAX),
        Err(CallError(number)) => number.into(),
    }
}

#[no_mangle]
pub extern "C" fn punctual_is_over() -> c_int {
    with_task(|task| task.is_over()).map_or_else(|CallError(number)| number, c_int::from)
}

#[no_mangle]
pub extern "C" fn punctual_self() -> *mut HandleOfTask {
    own_handle()
}
