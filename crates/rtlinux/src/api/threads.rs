//! Threads: made, joined, cancelled, and their priorities. `c/threads.c` has what their ends
//! unwind.

use std::ffi::{c_int, c_uint, c_void};
use std::mem::size_of_val;
use std::ptr;

use super::attributes::{is_policy, wishes, ThreadAttr};
use crate::cancellation::NoCancellation;
use crate::hard::{self, member_of_thread, SETS};
use crate::priority;
use crate::thread::{self, ThreadError, ThreadIndex};

/// A function of C.
type Function = extern "C" fn(*mut c_void) -> *mut c_void;

/// A stack of less is not enough for this library, bytes.
const LEAST_STACK: usize = 256 << 10;

extern "C" {
    fn pthread_cancel(thread: libc::pthread_t) -> c_int;
    // c/threads.c
    fn punctual__rtlinux_create(
        thread: *mut libc::pthread_t,
        stack: usize,
        detached: bool,
        cpus: *const u64,
        cpus_size: usize,
        start: *mut c_void,
    ) -> c_int;
}

/// What a thread needs to begin.
struct Start {
    thread: ThreadIndex,
    id: u64,
    function: Function,
    argument: *mut c_void,
}

pub(super) fn result(done: Result<(), ThreadError>) -> c_int {
    done.map_or_else(ThreadError::errno, |()| 0)
}

/// Makes a thread that takes part, and returns its identity.
///
/// # Errors
/// EAGAIN: there are as many as there may be.
pub(super) fn create(
    wishes: &super::attributes::ThreadWishes,
    function: Function,
    argument: *mut c_void,
) -> Result<libc::pthread_t, c_int> {
    let claimed = thread::claim(wishes.priority, wishes.cpu, wishes.detached);
    let slot = claimed.map_err(ThreadError::errno)?;
    let id = thread::with_thread(slot, |thread| thread.id).unwrap_or(0);
    let start = Box::into_raw(Box::new(Start { thread: slot, id, function, argument }));
    let cpus: &[u64] = hard::cpus().map_or(&[], |mask| mask);
    let mut pthread: libc::pthread_t = 0;
    // SAFETY: the thread has `start` from here on; the mask outlives the call.
    let refused = unsafe {
        punctual__rtlinux_create(
            &mut pthread,
            wishes.stack.max(LEAST_STACK),
            wishes.detached,
            cpus.as_ptr(),
            size_of_val(cpus),
            start.cast(),
        )
    };
    if refused != 0 {
        // SAFETY: no thread has it.
        drop(unsafe { Box::from_raw(start) });
        thread::give_back(slot);
        return Err(refused);
    }
    // Unless it was faster itself.
    thread::set_name(slot, id, pthread);
    Ok(pthread)
}

#[no_mangle]
unsafe extern "C" fn rtl_pthread_create(
    to: *mut libc::pthread_t,
    attr: *const ThreadAttr,
    function: Option<Function>,
    argument: *mut c_void,
) -> c_int {
    let _not_here = NoCancellation::begin();
    let Some(function) = function.filter(|_| !to.is_null()) else { return libc::EINVAL };
    // SAFETY: the caller's.
    let created = unsafe { wishes(attr) }.and_then(|wishes| create(&wishes, function, argument));
    match created {
        Ok(pthread) => {
            // SAFETY: the caller's.
            unsafe { to.write(pthread) };
            0
        }
        Err(errno) => errno,
    }
}

/// The thread begins: it becomes a task, and what it is to call is passed to C.
#[no_mangle]
unsafe extern "C" fn punctual__rtlinux_begin(
    start: *mut c_void,
    function: *mut Function,
    argument: *mut *mut c_void,
) {
    let _not_here = NoCancellation::begin();
    // SAFETY: what `create` passes, once.
    let start = unsafe { Box::from_raw(start.cast::<Start>()) };
    hard::enter(start.thread, &format!("thread-{}", start.id));
    // SAFETY: the caller's.
    unsafe {
        function.write(start.function);
        argument.write(start.argument);
    }
}

#[no_mangle]
extern "C" fn punctual__rtlinux_begin_join(pthread: libc::pthread_t) -> c_int {
    result(thread::begin_join(pthread))
}

#[no_mangle]
extern "C" fn punctual__rtlinux_end_join(pthread: libc::pthread_t, is_joined: bool) {
    thread::end_join(pthread, is_joined);
}

/// The C library's part is C's.
#[no_mangle]
extern "C" fn punctual__rtlinux_detach(pthread: libc::pthread_t) -> c_int {
    result(thread::detach(pthread))
}

/// Cancels the thread, and has its wait end, so that it comes to a cancellation point.
#[no_mangle]
extern "C" fn rtl_pthread_cancel(pthread: libc::pthread_t) -> c_int {
    let _not_here = NoCancellation::begin();
    result(thread::change(pthread, |thread| {
        // First: a wait that has ended already is followed by no other one.
        // SAFETY: the thread cannot end, and its name not become invalid, before its slot is free.
        unsafe { pthread_cancel(pthread) };
        thread.is_cancelled = true;
    }))
}

/// Whether the calling thread takes part.
#[no_mangle]
extern "C" fn punctual__rtlinux_is_thread() -> bool {
    thread::own().is_some()
}

/// Reports a thread that does not end.
#[no_mangle]
extern "C" fn punctual__rtlinux_report_endless(seconds: c_uint) {
    let _not_here = NoCancellation::begin();
    eprintln!(
        "librtlinux: a thread has not ended {seconds} s after pthread_delete_np: it has to wait, \
         or to come to another cancellation point (pthreads(7))"
    );
}

/// Gives a thread another priority, as a dispatcher has it.
pub(super) fn set_priority(pthread: libc::pthread_t, priority: i64) -> Result<(), ThreadError> {
    let id = thread::change(pthread, |thread| {
        thread.priority = priority;
        thread.id
    })?;
    SETS.change_priority(member_of_thread(id), priority);
    Ok(())
}

#[no_mangle]
unsafe extern "C" fn rtl_pthread_setschedparam(
    pthread: libc::pthread_t,
    policy: c_int,
    parameters: *const libc::sched_param,
) -> c_int {
    let _not_here = NoCancellation::begin();
    // SAFETY: the caller's.
    let Some(parameters) = (unsafe { parameters.as_ref() }) else { return libc::EINVAL };
    match priority::of_thread(parameters.sched_priority).filter(|_| is_policy(policy)) {
        Some(priority) => result(set_priority(pthread, priority)),
        None => libc::EINVAL,
    }
}

#[no_mangle]
unsafe extern "C" fn rtl_pthread_getschedparam(
    pthread: libc::pthread_t,
    policy: *mut c_int,
    parameters: *mut libc::sched_param,
) -> c_int {
    if policy.is_null() || parameters.is_null() {
        return libc::EINVAL;
    }
    match thread::look(pthread, |thread| thread.priority) {
        Ok(priority) => {
            // SAFETY: the caller's.
            unsafe {
                ptr::write(policy, libc::SCHED_FIFO);
                ptr::write(parameters, libc::sched_param { sched_priority: priority as c_int });
            }
            0
        }
        Err(error) => error.errno(),
    }
}

#[no_mangle]
extern "C" fn pthread_setfp_np(pthread: libc::pthread_t, _flag: c_int) -> c_int {
    // SAFETY: no arguments. Each thread has floating point, those that do not take part too.
    let is_own = pthread == unsafe { libc::pthread_self() };
    match is_own {
        true => 0,
        false => result(thread::look(pthread, |_| ())),
    }
}
