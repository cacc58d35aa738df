//! No thread is cancelled within a function of Rust, whose frames must not be unwound.

use std::ffi::c_int;
use std::ptr;

/// PTHREAD_CANCEL_DISABLE.
const DISABLE: c_int = 1;

extern "C" {
    fn pthread_setcancelstate(state: c_int, before: *mut c_int) -> c_int;
}

/// The calling thread is not cancelled while this lives; its cancellation is then at its next
/// cancellation point. For calls that may come to a cancellation point of the C library.
pub struct NoCancellation(c_int);

impl NoCancellation {
    pub fn begin() -> NoCancellation {
        let mut before = 0;
        // SAFETY: writes one int; the state is one of the two that there are.
        unsafe { pthread_setcancelstate(DISABLE, &mut before) };
        NoCancellation(before)
    }
}

impl Drop for NoCancellation {
    fn drop(&mut self) {
        // SAFETY: the state that was read. Cancellation is deferred: nothing is unwound here.
        unsafe { pthread_setcancelstate(self.0, ptr::null_mut()) };
    }
}
