//! Attributes of threads.

use std::ffi::c_int;
use std::ptr;

use crate::hard;
use crate::priority;

/// `struct rtl_pthread_attr`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct ThreadAttr {
    /// That it was initialized.
    magic: u32,
    priority: c_int,
    policy: c_int,
    /// -1: any.
    cpu: c_int,
    detach_state: c_int,
    fp: c_int,
    stack: usize,
}

const MAGIC: u32 = 0x5254_4c41;

/// What a thread has without attributes.
const DEFAULT: ThreadAttr = ThreadAttr {
    magic: MAGIC,
    priority: 0,
    policy: libc::SCHED_FIFO,
    cpu: -1,
    detach_state: libc::PTHREAD_CREATE_JOINABLE,
    fp: 0,
    stack: 0,
};

/// RTL_PTHREAD_STACK_MIN.
const LEAST_STACK: usize = 8192;

/// What a thread is to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ThreadWishes {
    pub priority: i64,
    pub cpu: Option<u32>,
    pub detached: bool,
    /// Bytes; 0: as many as usual.
    pub stack: usize,
}

/// What attributes say; NULL: the defaults.
///
/// # Errors
/// EINVAL: they were not initialized.
///
/// # Safety
/// NULL, or attributes.
pub unsafe fn wishes(attr: *const ThreadAttr) -> Result<ThreadWishes, c_int> {
    // SAFETY: the caller's.
    let attr = unsafe { read(attr) }.unwrap_or(DEFAULT);
    let priority = priority::of_thread(attr.priority).filter(|_| attr.magic == MAGIC);
    Ok(ThreadWishes {
        priority: priority.ok_or(libc::EINVAL)?,
        cpu: u32::try_from(attr.cpu).ok(),
        detached: attr.detach_state == libc::PTHREAD_CREATE_DETACHED,
        stack: attr.stack,
    })
}

unsafe fn read(attr: *const ThreadAttr) -> Option<ThreadAttr> {
    // SAFETY: the caller's.
    unsafe { attr.as_ref().copied() }
}

/// Changes attributes that were initialized.
unsafe fn change(attr: *mut ThreadAttr, f: impl FnOnce(&mut ThreadAttr) -> bool) -> c_int {
    // SAFETY: the caller's.
    let attr = unsafe { attr.as_mut() }.filter(|attr| attr.magic == MAGIC);
    if attr.is_some_and(f) {
        0
    } else {
        libc::EINVAL
    }
}

/// Passes on a part of attributes that were initialized.
unsafe fn pass<T>(
    attr: *const ThreadAttr,
    to: *mut T,
    part: impl FnOnce(&ThreadAttr) -> T,
) -> c_int {
    // SAFETY: the caller's.
    match unsafe { read(attr) } {
        Some(attr) if attr.magic == MAGIC && !to.is_null() => {
            // SAFETY: the caller's.
            unsafe { ptr::write(to, part(&attr)) };
            0
        }
        _ => libc::EINVAL,
    }
}

#[no_mangle]
unsafe extern "C" fn rtl_pthread_attr_init(attr: *mut ThreadAttr) -> c_int {
    if attr.is_null() {
        return libc::EINVAL;
    }
    // SAFETY: the caller's.
    unsafe { attr.write(DEFAULT) };
    0
}

#[no_mangle]
unsafe extern "C" fn rtl_pthread_attr_destroy(attr: *mut ThreadAttr) -> c_int {
    let destroy = |attr: &mut ThreadAttr| {
        attr.magic = 0;
        true
    };
    // SAFETY: the caller's.
    unsafe { change(attr, destroy) }
}

#[no_mangle]
unsafe extern "C" fn rtl_pthread_attr_setschedparam(
    attr: *mut ThreadAttr,
    parameters: *const libc::sched_param,
) -> c_int {
    // SAFETY: the caller's.
    let Some(parameters) = (unsafe { parameters.as_ref() }) else { return libc::EINVAL };
    let set = |attr: &mut ThreadAttr| {
        attr.priority = parameters.sched_priority;
        priority::of_thread(attr.priority).is_some()
    };
    // SAFETY: the caller's.
    unsafe { change_valid(attr, set) }
}

/// As [`change`], where `f` may have changed a part by the time that it refuses.
unsafe fn change_valid(attr: *mut ThreadAttr, f: impl FnOnce(&mut ThreadAttr) -> bool) -> c_int {
    let whole = |attr: &mut ThreadAttr| {
        let mut changed = *attr;
        let is_valid = f(&mut changed);
        if is_valid {
            *attr = changed;
        }
        is_valid
    };
    // SAFETY: the caller's.
    unsafe { change(attr, whole) }
}

#[no_mangle]
unsafe extern "C" fn rtl_pthread_attr_getschedparam(
    attr: *const ThreadAttr,
    parameters: *mut libc::sched_param,
) -> c_int {
    let part = |attr: &ThreadAttr| libc::sched_param { sched_priority: attr.priority };
    // SAFETY: the caller's.
    unsafe { pass(attr, parameters, part) }
}

/// Whether there is such a policy.
pub fn is_policy(policy: c_int) -> bool {
    [libc::SCHED_OTHER, libc::SCHED_FIFO, libc::SCHED_RR].contains(&policy)
}

#[no_mangle]
unsafe extern "C" fn rtl_pthread_attr_setschedpolicy(
    attr: *mut ThreadAttr,
    policy: c_int,
) -> c_int {
    let set = |attr: &mut ThreadAttr| {
        attr.policy = policy;
        is_policy(policy)
    };
    // SAFETY: the caller's.
    unsafe { change_valid(attr, set) }
}

#[no_mangle]
unsafe extern "C" fn rtl_pthread_attr_getschedpolicy(
    attr: *const ThreadAttr,
    policy: *mut c_int,
) -> c_int {
    // SAFETY: the caller's.
    unsafe { pass(attr, policy, |attr| attr.policy) }
}

#[no_mangle]
unsafe extern "C" fn rtl_pthread_attr_setstacksize(attr: *mut ThreadAttr, size: usize) -> c_int {
    let set = |attr: &mut ThreadAttr| {
        attr.stack = size;
        size >= LEAST_STACK
    };
    // SAFETY: the caller's.
    unsafe { change_valid(attr, set) }
}

#[no_mangle]
unsafe extern "C" fn rtl_pthread_attr_getstacksize(
    attr: *const ThreadAttr,
    size: *mut usize,
) -> c_int {
    // SAFETY: the caller's.
    unsafe { pass(attr, size, |attr| attr.stack) }
}

#[no_mangle]
unsafe extern "C" fn rtl_pthread_attr_setdetachstate(attr: *mut ThreadAttr, state: c_int) -> c_int {
    let set = |attr: &mut ThreadAttr| {
        attr.detach_state = state;
        [libc::PTHREAD_CREATE_JOINABLE, libc::PTHREAD_CREATE_DETACHED].contains(&state)
    };
    // SAFETY: the caller's.
    unsafe { change_valid(attr, set) }
}

#[no_mangle]
unsafe extern "C" fn rtl_pthread_attr_getdetachstate(
    attr: *const ThreadAttr,
    state: *mut c_int,
) -> c_int {
    // SAFETY: the caller's.
    unsafe { pass(attr, state, |attr| attr.detach_state) }
}

#[no_mangle]
unsafe extern "C" fn pthread_attr_setcpu_np(attr: *mut ThreadAttr, cpu: c_int) -> c_int {
    let set = |attr: &mut ThreadAttr| {
        attr.cpu = cpu;
        let is_there =
            |mask| punctual_sys::sched::cpus(mask).any(|one| u32::try_from(cpu) == Ok(one));
        hard::cpus().is_some_and(|mask| is_there(mask))
    };
    // SAFETY: the caller's.
    unsafe { change_valid(attr, set) }
}

#[no_mangle]
unsafe extern "C" fn pthread_attr_getcpu_np(attr: *const ThreadAttr, cpu: *mut c_int) -> c_int {
    // SAFETY: the caller's.
    unsafe { pass(attr, cpu, |attr| attr.cpu) }
}

#[no_mangle]
unsafe extern "C" fn pthread_attr_setfp_np(attr: *mut ThreadAttr, flag: c_int) -> c_int {
    let set = |attr: &mut ThreadAttr| {
        attr.fp = flag;
        true
    };
    // SAFETY: the caller's.
    unsafe { change(attr, set) }
}

#[no_mangle]
unsafe extern "C" fn pthread_attr_getfp_np(attr: *const ThreadAttr, flag: *mut c_int) -> c_int {
    // SAFETY: the caller's.
    unsafe { pass(attr, flag, |attr| attr.fp) }
}
