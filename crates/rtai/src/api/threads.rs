//! Threads of a program.

use std::ffi::{c_int, c_long, c_void};
use std::mem::MaybeUninit;
use std::ptr;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::hard;

/// The least stack of a thread, bytes. RTAI's is RT_THREAD_STACK_MIN, 16 KiB, with which a thread
/// cannot become a task of Punctual.
const LEAST_STACK: usize = 256 * 1024;

type Function = extern "C" fn(*mut c_void) -> *mut c_void;

/// Threads that were made and not joined.
fn threads() -> MutexGuard<'static, Vec<libc::pthread_t>> {
    static THREADS: Mutex<Vec<libc::pthread_t>> = Mutex::new(Vec::new());
    THREADS.lock().unwrap_or_else(PoisonError::into_inner)
}

#[no_mangle]
extern "C" fn rt_thread_create(
    function: Option<Function>,
    argument: *mut c_void,
    stack_size: c_int,
) -> c_long {
    let Some(function) = function else { return 0 };
    let stack = usize::try_from(stack_size).unwrap_or(0).max(LEAST_STACK);
    match create(function, argument, stack) {
        Some(thread) => {
            threads().push(thread);
            thread as c_long
        }
        None => 0,
    }
}

fn create(function: Function, argument: *mut c_void, stack: usize) -> Option<libc::pthread_t> {
    let mut attr = MaybeUninit::uninit();
    let mut thread: libc::pthread_t = 0;
    // SAFETY: the attributes are initialized before they are used and destroyed once. The thread
    // begins with the function of C: no frame of Rust is unwound where it ends.
    unsafe {
        if libc::pthread_attr_init(attr.as_mut_ptr()) != 0 {
            return None;
        }
        let attr = attr.assume_init_mut();
        // A hard task's thread begins where the task came from, not on its CPU.
        if let Some(cpus) = hard::cpus() {
            let bytes = size_of_val(&cpus[..]);
            libc::pthread_attr_setaffinity_np(attr, bytes, cpus.as_ptr().cast());
        }
        let is_set = libc::pthread_attr_setstacksize(attr, stack) == 0;
        let is_made = is_set && libc::pthread_create(&mut thread, attr, function, argument) == 0;
        libc::pthread_attr_destroy(attr);
        is_made.then_some(thread)
    }
}

#[no_mangle]
extern "C" fn rt_thread_join(thread: c_long) -> c_int {
    // Programs that were written for 32 bits keep the lower half of it.
    let is_it = |made: &libc::pthread_t| {
        let half = thread == c_long::from(thread as i32) && *made as i32 == thread as i32;
        *made == thread as libc::pthread_t || half
    };
    let found = {
        let mut threads = threads();
        let place = threads.iter().position(is_it);
        place.map(|place| threads.swap_remove(place))
    };
    match found {
        // SAFETY: a thread that was made here, and not joined here.
        Some(thread) => unsafe { libc::pthread_join(thread, ptr::null_mut()) },
        None => libc::ESRCH,
    }
}
