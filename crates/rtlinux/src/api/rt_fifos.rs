//! The FIFOs of RT-Linux 2 and 3.

use std::ffi::{c_int, c_uint, c_void};

use crate::cancellation::NoCancellation;
use crate::fifo::{self, FifoError, FifoHandler};

/// What C puts; `None`: NULL, or a negative count.
pub(super) unsafe fn bytes<'a>(from: *const c_void, count: c_int) -> Option<&'a [u8]> {
    let count = usize::try_from(count).ok()?;
    match (from.is_null(), count) {
        (_, 0) => Some(&[]),
        (true, _) => None,
        // SAFETY: the caller's.
        _ => Some(unsafe { std::slice::from_raw_parts(from.cast(), count) }),
    }
}

/// Where C gets something; `None`: NULL, or a negative count.
pub(super) unsafe fn room<'a>(to: *mut c_void, count: c_int) -> Option<&'a mut [u8]> {
    let count = usize::try_from(count).ok()?;
    match (to.is_null(), count) {
        (_, 0) => Some(&mut []),
        (true, _) => None,
        // SAFETY: the caller's.
        _ => Some(unsafe { std::slice::from_raw_parts_mut(to.cast(), count) }),
    }
}

fn errno(error: FifoError) -> c_int {
    -match error {
        FifoError::Number => libc::ENODEV,
        FifoError::Missing | FifoError::Size => libc::EINVAL,
        FifoError::InUse => libc::EBUSY,
        FifoError::Memory => libc::ENOMEM,
        FifoError::NotNow | FifoError::TooLarge => libc::ENOSPC,
        FifoError::Damaged => libc::EBADMSG,
    }
}

fn result(done: Result<(), FifoError>) -> c_int {
    done.map_or_else(errno, |()| 0)
}

#[no_mangle]
extern "C" fn rtf_create(fifo: c_uint, size: c_int) -> c_int {
    let _not_here = NoCancellation::begin();
    result(fifo::create(fifo, usize::try_from(size).unwrap_or(0)))
}

#[no_mangle]
extern "C" fn rtf_destroy(fifo: c_uint) -> c_int {
    let _not_here = NoCancellation::begin();
    result(fifo::destroy(fifo))
}

#[no_mangle]
unsafe extern "C" fn rtf_put(fifo: c_uint, buffer: *const c_void, count: c_int) -> c_int {
    let _not_here = NoCancellation::begin();
    // SAFETY: the caller's.
    let Some(bytes) = (unsafe { bytes(buffer, count) }) else { return -libc::EINVAL };
    match fifo::put(fifo, bytes) {
        Ok(()) => {
            fifo::call_rt_handler(fifo);
            count
        }
        Err(error) => errno(error),
    }
}

#[no_mangle]
unsafe extern "C" fn rtf_get(fifo: c_uint, buffer: *mut c_void, count: c_int) -> c_int {
    let _not_here = NoCancellation::begin();
    // SAFETY: the caller's.
    let Some(room) = (unsafe { room(buffer, count) }) else { return -libc::EINVAL };
    match fifo::get_some(fifo, room) {
        Ok(got) => {
            if got > 0 {
                fifo::call_rt_handler(fifo);
            }
            got as c_int
        }
        Err(error) => errno(error),
    }
}

#[no_mangle]
extern "C" fn rtf_flush(fifo: c_uint) -> c_int {
    let _not_here = NoCancellation::begin();
    result(fifo::flush(fifo))
}

#[no_mangle]
extern "C" fn rtf_isempty(fifo: c_uint) -> c_int {
    let _not_here = NoCancellation::begin();
    fifo::is_empty(fifo).map_or_else(errno, c_int::from)
}

#[no_mangle]
extern "C" fn rtf_create_handler(fifo: c_uint, handler: Option<FifoHandler>) -> c_int {
    let _not_here = NoCancellation::begin();
    let installed = handler.ok_or(FifoError::Missing);
    handler_result(installed.and_then(|handler| fifo::set_handler(fifo, handler)))
}

#[no_mangle]
extern "C" fn rtf_create_rt_handler(fifo: c_uint, handler: Option<FifoHandler>) -> c_int {
    let _not_here = NoCancellation::begin();
    let installed = handler.ok_or(FifoError::Missing);
    handler_result(installed.and_then(|handler| fifo::set_rt_handler(fifo, handler)))
}

/// Numbers that are none are -EINVAL here (rtf_create_handler(3)).
fn handler_result(installed: Result<(), FifoError>) -> c_int {
    match installed {
        Err(FifoError::Number) => -libc::EINVAL,
        installed => result(installed),
    }
}
