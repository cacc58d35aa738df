//! The functions of the headers in `include/rtlinux`, which describe them. Each has the name of its
//! call; what it does is in the modules below.

mod attributes;
mod fifos;
mod mbuff;
mod paper;
mod periods;
mod programs;
mod rt_fifos;
mod threads;
mod time;

use std::ffi::c_int;

/// -1, and the error number in errno: as the paper's system calls have it.
fn failed(errno: i32) -> c_int {
    // SAFETY: errno of the calling thread.
    unsafe { *libc::__errno_location() = errno };
    -1
}

/// A result of the paper's calls.
fn returned(result: Result<c_int, i32>) -> c_int {
    result.unwrap_or_else(failed)
}
