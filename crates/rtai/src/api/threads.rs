//! Threads of a program.

use std::ffi::{c_int, c_long, c_void};
use std::mem::MaybeUninit;
use std::ptr;

use crate::hard;

/// The least stack of a thread, bytes (RT_THREAD_STACK_MIN).
const LEAST_STACK: usize = 16 * 1024;

type Function = extern "C" fn(*mut c_void) -> *mut c_void;

#[no_mangle]
extern "C" fn rt_thread_create(
    function: Option<Function>,
    argument: *mut c_void,
    stack_size: c_int,
) -> c_long {
    let Some(function) = function else { return 0 };
    let stack = usize::try_from(stack_size).unwrap_or(0).max(LEAST_STACK);
    let mut attr = MaybeUninit::uninit();
    let mut thread: libc::pthread_t = 0;
    // SAFETY: the attributes are initialized before they are used and destroyed once. The thread
    // begins with the function of C: no frame of Rust is unwound where it ends.
    unsafe {
        if libc::pthread_attr_init(attr.as_mut_ptr()) != 0 {
            return 0;
        }
        let attr = attr.assume_init_mut();
        // A hard task's thread begins where the task came from, not on its CPU.
        if let Some(cpus) = hard::cpus() {
            libc::pthread_attr_setaffinity_np(attr, size_of_val(&cpus), cpus.as_ptr().cast());
        }
        let created = libc::pthread_attr_setstacksize(attr, stack) == 0 && {
            let start: extern "C" fn(*mut c_void) -> *mut c_void = function;
            libc::pthread_create(&mut thread, attr, start, argument) == 0
        };
        libc::pthread_attr_destroy(attr);
        if created {
            thread as c_long
        } else {
            0
        }
    }
}

#[no_mangle]
extern "C" fn rt_thread_join(thread: c_long) -> c_int {
    if thread == 0 {
        return libc::ESRCH;
    }
    // SAFETY: the caller's thread, which was not joined.
    unsafe { libc::pthread_join(thread as libc::pthread_t, ptr::null_mut()) }
}
