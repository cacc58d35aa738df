//! Memory that stays in RAM.

use std::io;

/// Locks all that is mapped now and brings it in, every stack too. Mappings to come are not locked.
///
/// # Errors
/// EPERM, ENOMEM: beyond RLIMIT_MEMLOCK.
pub fn lock_present() -> io::Result<()> {
    lock(libc::MCL_CURRENT)
}

/// Locks each page, now and in future, when it is first touched: an untouched page costs nothing.
///
/// # Errors
/// As of [`lock_present`].
pub fn lock_touched() -> io::Result<()> {
    lock(libc::MCL_CURRENT | libc::MCL_FUTURE | libc::MCL_ONFAULT)
}

/// Locks all that is mapped now or in future, and brings it in.
///
/// # Errors
/// As of [`lock_present`].
pub fn lock_all() -> io::Result<()> {
    lock(libc::MCL_CURRENT | libc::MCL_FUTURE)
}

/// Unlocks everything.
pub fn unlock_all() {
    // SAFETY: a system call without arguments.
    unsafe { libc::munlockall() };
}

fn lock(flags: libc::c_int) -> io::Result<()> {
    // SAFETY: a system call without pointers.
    match unsafe { libc::mlockall(flags) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}
