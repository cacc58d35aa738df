//! The paper's FIFOs: all or nothing.

use std::ffi::{c_char, c_int, c_uint};

use super::rt_fifos::{bytes, room};
use super::{failed, returned};
use crate::cancellation::NoCancellation;
use crate::fifo::{self, FifoError};

fn errno(error: FifoError) -> c_int {
    match error {
        FifoError::Number => libc::ENODEV,
        FifoError::Missing | FifoError::Size => libc::EINVAL,
        FifoError::InUse => libc::EBUSY,
        FifoError::Memory => libc::ENOMEM,
        FifoError::NotNow => libc::EAGAIN,
        FifoError::TooLarge => libc::EMSGSIZE,
        FifoError::Damaged => libc::EBADMSG,
    }
}

#[no_mangle]
extern "C" fn RTfifo_create(fifo: c_uint, size: c_int) -> c_int {
    let _not_here = NoCancellation::begin();
    let size = usize::try_from(size).unwrap_or(0);
    returned(fifo::create(fifo, size).map(|()| 0).map_err(errno))
}

#[no_mangle]
extern "C" fn RTfifo_destroy(fifo: c_uint) -> c_int {
    let _not_here = NoCancellation::begin();
    returned(fifo::destroy(fifo).map(|()| 0).map_err(errno))
}

#[no_mangle]
unsafe extern "C" fn RTfifo_put(fifo: c_uint, buffer: *const c_char, count: c_int) -> c_int {
    let _not_here = NoCancellation::begin();
    // SAFETY: the caller's.
    let Some(bytes) = (unsafe { bytes(buffer.cast(), count) }) else {
        return failed(libc::EINVAL);
    };
    returned(fifo::put(fifo, bytes).map(|()| count).map_err(errno))
}

#[no_mangle]
unsafe extern "C" fn RTfifo_get(fifo: c_uint, buffer: *mut c_char, count: c_int) -> c_int {
    let _not_here = NoCancellation::begin();
    // SAFETY: the caller's.
    let Some(room) = (unsafe { room(buffer.cast(), count) }) else {
        return failed(libc::EINVAL);
    };
    returned(fifo::get(fifo, room).map(|got| got as c_int).map_err(errno))
}
