//! What a call returns when it fails, and the text that explains it.

use std::cell::{Cell, RefCell};
use std::ffi::{c_char, c_int, CStr, CString};

use punctual::{Error, ErrorKind};

thread_local! {
    /// The text of this thread's last error: static, or that of `OWNED`.
    static TEXT: Cell<*const c_char> = const { Cell::new(c"".as_ptr()) };
    static OWNED: RefCell<CString> = RefCell::default();
}

/// An error of a call: a negative error number, whose text is this thread's last one.
#[derive(Debug, Clone, Copy)]
pub struct CallError(pub c_int);

impl From<Error> for CallError {
    fn from(e: Error) -> CallError {
        let text = e.to_string().replace('\0', " ");
        let text = CString::new(text).unwrap_or_default();
        // At the end of a thread its storage may be gone.
        let _ = OWNED.try_with(|owned| {
            if let Ok(mut owned) = owned.try_borrow_mut() {
                *owned = text;
                TEXT.set(owned.as_ptr());
            }
        });
        CallError(-number(&e))
    }
}

/// As an error of Rust, with this error number.
pub fn error(errno: c_int, cause: impl Into<String>, help: &str) -> Error {
    Error::usage(cause, help).with_errno(errno)
}

/// A fixed text. Real-time safe.
pub fn failed(errno: c_int, text: &'static CStr) -> CallError {
    TEXT.set(text.as_ptr());
    CallError(-errno)
}

fn number(e: &Error) -> c_int {
    e.errno.unwrap_or(match e.kind {
        ErrorKind::Usage | ErrorKind::Command => libc::EINVAL,
        ErrorKind::NotAdmitted => libc::EBUSY,
        _ => libc::EIO,
    })
}

/// What the call returns: 0, or its error.
pub fn returned(result: Result<(), CallError>) -> c_int {
    result.map_or_else(|CallError(number)| number, |()| 0)
}

#[no_mangle]
pub extern "C" fn punctual_last_error() -> *const c_char {
    TEXT.get()
}

#[no_mangle]
pub extern "C" fn punctual_version() -> *const c_char {
    const VERSION: &CStr =
        match CStr::from_bytes_with_nul(concat!(env!("CARGO_PKG_VERSION"), "\0").as_bytes()) {
            Ok(version) => version,
            Err(_) => c"",
        };
    VERSION.as_ptr()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_has_a_number_and_a_text_that_the_next_one_replaces() {
        let text = || {
            // SAFETY: a text of this thread.
            unsafe { CStr::from_ptr(punctual_last_error()) }.to_str().expect("text").to_owned()
        };
        assert_eq!(text(), "");
        assert_eq!(CallError::from(Error::not_admitted("too much", "use less")).0, -libc::EBUSY);
        assert_eq!(text(), "too much; use less");
        assert_eq!(failed(libc::EAGAIN, c"the FIFO is full").0, -libc::EAGAIN);
        assert_eq!(text(), "the FIFO is full");
        assert_eq!(CallError::from(Error::usage("a\0b", "c")).0, -libc::EINVAL);
        assert_eq!(text(), "a b; c");
    }
}
