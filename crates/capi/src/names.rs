//! Names of objects in shared memory, as C passes them.

use std::ffi::c_char;

use punctual::shared::Name;
use punctual::Error;

use crate::error::{error, CallError};
use crate::plain;

/// A name; `None` for NULL.
///
/// # Errors
/// EINVAL: it is no name.
///
/// # Safety
/// NULL, or a text that ends with 0.
pub unsafe fn optional(name: *const c_char) -> Result<Option<Name>, Error> {
    // SAFETY: the caller's.
    let name = unsafe { plain::text(name, "the name of an object")? };
    name.map(|name| name.parse().map_err(|e: Error| e.with_errno(libc::EINVAL))).transpose()
}

/// A name.
///
/// # Errors
/// EFAULT: it is NULL; EINVAL.
///
/// # Safety
/// As of [`optional`].
pub unsafe fn required(name: *const c_char) -> Result<Name, CallError> {
    plain::not_null(name)?;
    let none = || error(libc::EFAULT, "the object has no name", "name it");
    // SAFETY: the caller's.
    Ok(unsafe { optional(name)? }.ok_or_else(none)?)
}
