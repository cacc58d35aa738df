//! The overrun signal of tasks that are threads of this process.

use std::ffi::c_void;
use std::io;
use std::ptr;

use crate::park_signal;
use crate::signal;

/// What a task's thread calls when one of its jobs has overrun.
#[derive(Debug, Clone, Copy)]
pub struct OverrunHandler {
    function: extern "C" fn(*mut c_void),
    argument: *mut c_void,
}

// SAFETY: `new` says that the task's thread may call it; no other does.
unsafe impl Send for OverrunHandler {}
// SAFETY: as above.
unsafe impl Sync for OverrunHandler {}

impl OverrunHandler {
    /// `function`, called with `argument`.
    ///
    /// # Safety
    /// A handler of a signal in the task's thread may call it with that, until the task ends.
    pub unsafe fn new(function: extern "C" fn(*mut c_void), argument: *mut c_void) -> Self {
        OverrunHandler { function, argument }
    }
}

extern "C" fn overran(_: i32) {
    // SAFETY: errno's place is this thread's own; the interrupted code must find its value again.
    let errno = unsafe { *libc::__errno_location() };
    park_signal::with_mine(|control| {
        if let Some(handler) = control.overrun_handler.get() {
            (handler.function)(handler.argument);
        }
    });
    // SAFETY: as above.
    unsafe { *libc::__errno_location() = errno };
}

/// Has the overrun signal call the handlers of tasks, and do nothing in other threads.
///
/// # Errors
/// The program handles SIGXCPU itself already; its handler stays.
pub fn call_overrun_handlers() -> io::Result<()> {
    signal::handle(libc::SIGXCPU, overran)
}

/// SIGXCPU would end the process of a synthetic task that overruns with the policy `signal`. Unless
/// the program does something about that signal already, it calls the handlers of tasks from here
/// on; in commands that are started it is as ever.
///
/// # Errors
/// The system's.
pub fn survive() -> io::Result<()> {
    // SAFETY: reads only; a zeroed sigaction is a valid place for the answer.
    let now = unsafe {
        let mut now: libc::sigaction = std::mem::zeroed();
        if libc::sigaction(libc::SIGXCPU, ptr::null(), &mut now) != 0 {
            return Err(io::Error::last_os_error());
        }
        now.sa_sigaction
    };
    match now {
        // A handler and not SIG_IGN, which commands would inherit.
        libc::SIG_DFL => call_overrun_handlers(),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_without_a_handler_survives_its_overrun_signal() {
        survive().expect("the system permits it");
        // SAFETY: signals this thread; its handler does nothing.
        assert_eq!(unsafe { libc::raise(libc::SIGXCPU) }, 0);
        call_overrun_handlers().expect("it is ours already");
    }
}
