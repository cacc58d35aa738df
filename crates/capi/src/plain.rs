//! Structures and texts that C passes.
//!
//! A structure begins with its size, so that it can grow: what a program that was compiled with
//! another version does not know is 0 where it passes one, and left out where it gets one.

use std::ffi::{c_char, CStr};
use std::mem::size_of;

use punctual::Error;

use crate::error::{error, CallError};

/// A structure of the header that begins with its size.
///
/// # Safety
/// `repr(C)`, begins with a `usize`, and is valid with all bytes 0, or with any that C programs put
/// there.
pub unsafe trait Plain: Copy {
    /// Its size in the first version that had it.
    const FIRST: usize;
}

/// What C passes; all bytes 0 for NULL.
///
/// # Errors
/// EINVAL: its size is too small to be one; E2BIG: it has values that this version does not know.
///
/// # Safety
/// NULL, or the structure is there, as long as its size says.
pub unsafe fn read<T: Plain>(from: *const T) -> Result<T, Error> {
    // SAFETY: as the trait says.
    let mut value: T = unsafe { std::mem::zeroed() };
    if from.is_null() {
        return Ok(value);
    }
    // SAFETY: it begins with its size, and has so many bytes.
    let size = unsafe { size_at(from)? };
    // SAFETY: as above.
    let bytes = unsafe { std::slice::from_raw_parts(from.cast::<u8>(), size) };
    let known = size.min(size_of::<T>());
    if bytes[known..].iter().any(|&byte| byte != 0) {
        return Err(error(
            libc::E2BIG,
            "a structure has values that this version of libpunctual does not know",
            "set its size, and all members that are not used to 0, or install a newer version",
        ));
    }
    // SAFETY: `value` has at least `known` bytes, any of which are valid.
    unsafe { (&raw mut value).cast::<u8>().copy_from_nonoverlapping(bytes.as_ptr(), known) };
    Ok(value)
}

/// Fills what C passes: as much as both know, the rest with 0, and its size with how much that is.
///
/// # Errors
/// EFAULT: it is NULL; EINVAL.
///
/// # Safety
/// As [`read`], and it can be written.
pub unsafe fn write<T: Plain>(to: *mut T, value: &T) -> Result<(), Error> {
    if to.is_null() {
        return Err(null());
    }
    // SAFETY: it begins with its size, and has so many bytes.
    unsafe {
        let size = size_at(to)?;
        let known = size.min(size_of::<T>());
        to.cast::<u8>().write_bytes(0, size);
        to.cast::<u8>().copy_from_nonoverlapping((&raw const *value).cast(), known);
        to.cast::<usize>().write_unaligned(known);
    }
    Ok(())
}

unsafe fn size_at<T: Plain>(at: *const T) -> Result<usize, Error> {
    // A page at most, as the kernel has it: what is beyond is no structure.
    const MOST: usize = 4096;
    // SAFETY: the caller's.
    match unsafe { at.cast::<usize>().read_unaligned() } {
        size if (T::FIRST..=MOST).contains(&size) => Ok(size),
        size => Err(error(
            libc::EINVAL,
            format!("a structure has the size {size}, and at least {} bytes", T::FIRST),
            "set its member `size` to the structure's sizeof",
        )),
    }
}

/// A text of C; `None` for NULL.
///
/// # Errors
/// EINVAL: no UTF-8.
///
/// # Safety
/// NULL, or a text that ends with 0.
pub unsafe fn text<'a>(from: *const c_char, what: &str) -> Result<Option<&'a str>, Error> {
    if from.is_null() {
        return Ok(None);
    }
    // SAFETY: the caller's.
    let text = unsafe { CStr::from_ptr(from) }.to_str();
    text.map(Some).map_err(|_| error(libc::EINVAL, format!("{what} is no UTF-8"), "change it"))
}

/// # Errors
/// EFAULT.
pub fn not_null<T>(argument: *const T) -> Result<(), CallError> {
    match argument.is_null() {
        true => Err(null().into()),
        false => Ok(()),
    }
}

fn null() -> Error {
    error(libc::EFAULT, "an argument is NULL that may not be", "see the man page of the call")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[repr(C)]
    #[derive(Clone, Copy, Debug, PartialEq)]
    struct Small {
        size: usize,
        a: u64,
        b: u64,
    }

    // SAFETY: integers alone.
    unsafe impl Plain for Small {
        const FIRST: usize = 16;
    }

    #[repr(C)]
    #[derive(Clone, Copy, Debug, PartialEq)]
    struct Large {
        small: Small,
        c: u64,
    }

    const SMALL: Small = Small { size: size_of::<Small>(), a: 1, b: 2 };

    fn large(size: usize, c: u64) -> Large {
        Large { small: Small { size, ..SMALL }, c }
    }

    #[test]
    fn older_and_newer_structures_are_read() {
        let number = |result: Result<Small, Error>| result.map_err(|e| e.errno);
        // SAFETY: each has as many bytes as it says, or an impossible size.
        unsafe {
            assert_eq!(number(read(&SMALL)), Ok(SMALL));
            assert_eq!(number(read(std::ptr::null::<Small>())), Ok(Small { size: 0, a: 0, b: 0 }));
            let older = Small { size: 16, ..SMALL };
            assert_eq!(number(read(&older)), Ok(Small { b: 0, ..older }));
            let newer = large(size_of::<Large>(), 0);
            assert_eq!(number(read((&raw const newer).cast())), Ok(newer.small));
            let unknown = large(size_of::<Large>(), 3);
            assert_eq!(number(read((&raw const unknown).cast())), Err(Some(libc::E2BIG)));
            for size in [0, 15, 4097, usize::MAX] {
                let bad = large(size, 0);
                assert_eq!(number(read((&raw const bad).cast())), Err(Some(libc::EINVAL)));
            }
        }
    }

    #[test]
    fn older_and_newer_structures_are_filled() {
        let mut older = Small { size: 16, a: 0, b: 9 };
        let mut newer = large(size_of::<Large>(), 9);
        // SAFETY: as above.
        unsafe {
            assert!(write(&mut older, &SMALL).is_ok());
            assert!(write((&raw mut newer).cast(), &SMALL).is_ok());
            assert_eq!(write(std::ptr::null_mut(), &SMALL).err(), Some(null()));
        }
        assert_eq!(older, Small { size: 16, a: 1, b: 9 });
        assert_eq!(newer, large(size_of::<Small>(), 0));
    }
}
