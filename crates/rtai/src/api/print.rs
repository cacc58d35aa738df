//! Where the output of `rt_printk` and `rtai_print_to_screen` goes.

use std::ffi::c_char;

/// Writes `length` bytes to standard error. It neither allocates nor locks; the terminal or pipe
/// may make the thread wait.
#[no_mangle]
unsafe extern "C" fn punctual__rtai_print(text: *const c_char, length: usize) {
    // SAFETY: the caller's buffer. What cannot be written is lost, as in RTAI.
    unsafe { libc::write(libc::STDERR_FILENO, text.cast(), length) };
}
