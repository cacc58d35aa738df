//! The child of a fork has none of the objects: their threads are its parent's.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::Once;

use crate::current;
use crate::error::{failed, CallError};

/// This process is the child of one that used the library.
static IS_CHILD: AtomicBool = AtomicBool::new(false);

extern "C" fn in_child() {
    IS_CHILD.store(true, Relaxed);
    current::forget();
}

/// Whether this process is the child of one that used the library. Real-time safe.
#[inline]
pub fn is_child() -> bool {
    IS_CHILD.load(Relaxed)
}

/// Call before an object is made.
pub fn watch() -> Result<(), CallError> {
    static REGISTERED: Once = Once::new();
    if is_child() {
        return Err(failed(
            libc::EPERM,
            c"this is the child of a process that used Punctual; call exec, or fork first",
        ));
    }
    REGISTERED.call_once(|| {
        // SAFETY: the handler does what is safe in the child of a fork: a store, and forgetting.
        unsafe { libc::pthread_atfork(None, None, Some(in_child)) };
    });
    Ok(())
}
