//! FIFOs by number.

use std::ffi::{c_int, c_uint, c_void};
use std::slice;

use crate::fifos::{with_place, OpenFifo};

/// Calls `f` with a FIFO, which another program may have made.
fn with_fifo(number: c_uint, f: impl FnOnce(&mut OpenFifo) -> c_int) -> c_int {
    let used = with_place(number, |place| {
        if place.is_none() {
            *place = OpenFifo::open(number).ok();
        }
        place.as_mut().map_or(-libc::EINVAL, f)
    });
    used.unwrap_or(-libc::ENODEV)
}

fn errno_of(error: &punctual::Error) -> c_int {
    match error.errno {
        Some(libc::ENOSPC | libc::ENOMEM) => -libc::ENOMEM,
        Some(errno) => -errno,
        None => -libc::EINVAL,
    }
}

#[no_mangle]
extern "C" fn rtf_create(number: c_uint, size: c_int) -> c_int {
    let created = with_place(number, |place| {
        let Ok(size @ 1..) = usize::try_from(size) else { return -libc::EINVAL };
        if place.is_none() {
            match OpenFifo::open_or_create(number, size) {
                Ok(opened) => *place = Some(opened),
                Err(error) => return errno_of(&error),
            }
        }
        if let Some(fifo) = place {
            fifo.created += 1;
        }
        0
    });
    created.unwrap_or(-libc::ENODEV)
}

#[no_mangle]
extern "C" fn rtf_destroy(number: c_uint) -> c_int {
    let left = with_place(number, |place| {
        let Some(fifo) = place else { return -libc::EINVAL };
        fifo.created -= 1;
        let left = fifo.created.max(0);
        if left == 0 {
            *place = None;
        }
        left
    });
    left.unwrap_or(-libc::ENODEV)
}

/// The bytes of a call; `None`: there are none.
unsafe fn bytes<'a>(from: *const c_void, count: c_int) -> Option<&'a [u8]> {
    let count = usize::try_from(count).ok().filter(|_| !from.is_null())?;
    // SAFETY: the caller's.
    Some(unsafe { slice::from_raw_parts(from.cast(), count) })
}

unsafe fn bytes_mut<'a>(to: *mut c_void, count: c_int) -> Option<&'a mut [u8]> {
    let count = usize::try_from(count).ok().filter(|_| !to.is_null())?;
    // SAFETY: the caller's.
    Some(unsafe { slice::from_raw_parts_mut(to.cast(), count) })
}

unsafe fn put(number: c_uint, from: *const c_void, count: c_int, is_partial: bool) -> c_int {
    // SAFETY: the caller's.
    match unsafe { bytes(from, count) } {
        Some(bytes) => with_fifo(number, |fifo| fifo.put(bytes, is_partial) as c_int),
        None => -libc::EINVAL,
    }
}

unsafe fn get(number: c_uint, to: *mut c_void, count: c_int, is_partial: bool) -> c_int {
    // SAFETY: the caller's.
    match unsafe { bytes_mut(to, count) } {
        Some(bytes) => with_fifo(number, |fifo| fifo.get(bytes, is_partial) as c_int),
        None => -libc::EINVAL,
    }
}

#[no_mangle]
unsafe extern "C" fn rtf_put(number: c_uint, from: *const c_void, count: c_int) -> c_int {
    // SAFETY: the caller's.
    unsafe { put(number, from, count, true) }
}

#[no_mangle]
unsafe extern "C" fn rtf_put_if(number: c_uint, from: *const c_void, count: c_int) -> c_int {
    // SAFETY: the caller's.
    unsafe { put(number, from, count, false) }
}

#[no_mangle]
unsafe extern "C" fn rtf_ovrwr_put(number: c_uint, from: *const c_void, count: c_int) -> c_int {
    // SAFETY: the caller's.
    let Some(bytes) = (unsafe { bytes(from, count) }) else { return -libc::EINVAL };
    with_fifo(number, |fifo| {
        // Of more than there is ever room for, the last bytes.
        let room = fifo.free() + fifo.used();
        let last = &bytes[bytes.len().saturating_sub(room)..];
        fifo.make_room(last.len());
        // As a mailbox: how many bytes are left.
        (last.len() - fifo.put(last, true)) as c_int
    })
}

#[no_mangle]
unsafe extern "C" fn rtf_get(number: c_uint, to: *mut c_void, count: c_int) -> c_int {
    // SAFETY: the caller's.
    unsafe { get(number, to, count, true) }
}

#[no_mangle]
unsafe extern "C" fn rtf_get_if(number: c_uint, to: *mut c_void, count: c_int) -> c_int {
    // SAFETY: the caller's.
    unsafe { get(number, to, count, false) }
}

#[no_mangle]
extern "C" fn rtf_get_avbs(number: c_uint) -> c_int {
    with_fifo(number, |fifo| fifo.used() as c_int)
}

#[no_mangle]
extern "C" fn rtf_get_frbs(number: c_uint) -> c_int {
    with_fifo(number, |fifo| fifo.free() as c_int)
}

#[no_mangle]
extern "C" fn rtf_reset_lxrt(number: c_uint) -> c_int {
    with_fifo(number, |fifo| {
        fifo.clear();
        0
    })
}
