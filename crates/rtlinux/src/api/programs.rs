//! Programs that this one loads.

use std::ffi::{c_char, c_int, CStr, OsString};
use std::os::unix::ffi::OsStringExt;
use std::os::unix::process::ExitStatusExt;

use punctual::{Error, ErrorKind};

use super::{failed, returned};
use crate::cancellation::NoCancellation;
use crate::loader;

fn errno(error: Error) -> c_int {
    match (error.errno, error.kind) {
        (Some(errno), _) => errno,
        (None, ErrorKind::NotAdmitted) => libc::EBUSY,
        (None, ErrorKind::Usage) => libc::EINVAL,
        (None, _) => libc::EIO,
    }
}

#[no_mangle]
unsafe extern "C" fn RTload(file: *const c_char) -> c_int {
    let _not_here = NoCancellation::begin();
    if file.is_null() {
        return failed(libc::EFAULT);
    }
    // SAFETY: the caller's.
    let file = unsafe { CStr::from_ptr(file) }.to_bytes();
    if file.is_empty() {
        return failed(libc::ENOENT);
    }
    returned(loader::load(OsString::from_vec(file.to_vec())).map_err(errno))
}

#[no_mangle]
extern "C" fn RTrun(pid: c_int) -> c_int {
    let _not_here = NoCancellation::begin();
    returned(loader::run(pid).map(|()| 0).map_err(errno))
}

#[no_mangle]
extern "C" fn RTkill(pid: c_int) -> c_int {
    let _not_here = NoCancellation::begin();
    returned(loader::kill(pid).map(|()| 0).map_err(errno))
}

#[no_mangle]
unsafe extern "C" fn punctual__rtlinux_wait_program(pid: c_int, status: *mut c_int) -> c_int {
    let wait = || {
        let ended = loader::wait(pid)?;
        // SAFETY: the caller's.
        if let Some(status) = unsafe { status.as_mut() } {
            *status = ended.into_raw();
        }
        Ok(pid)
    };
    returned(wait().map_err(errno))
}
