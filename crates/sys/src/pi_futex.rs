//! Futexes that inherit priority, in memory that processes share: the kernel has the owner execute
//! at the level of the thread that waits best (futex(2), "Priority-inheritance futexes"). All
//! real-time safe.
//!
//! The word is 0, or the number of the thread that has it, with [`WAITERS`] and [`OWNER_DIED`]
//! set by the kernel. Without contention it is locked and unlocked by one atomic instruction each,
//! 0 to the number and back; else by the calls below.

use std::io;
use std::ptr;
use std::sync::atomic::AtomicU32;

use crate::clock::{self, timespec};

/// Threads wait in the kernel, which unlocks.
pub const WAITERS: u32 = libc::FUTEX_WAITERS;
/// The owner ended while it had it; stays until the next owner clears it.
pub const OWNER_DIED: u32 = libc::FUTEX_OWNER_DIED;
/// The thread that has it.
pub const OWNER: u32 = libc::FUTEX_TID_MASK;

/// Of linux/futex.h since Linux 5.14.
const FUTEX_LOCK_PI2: libc::c_int = 13;

/// Locks it for the calling thread, waiting until `until` (CLOCK_MONOTONIC ns; `u64::MAX` for
/// ever).
///
/// # Errors
/// ETIMEDOUT; EDEADLK: the thread would wait for itself; ESRCH: the word names no thread; EINVAL,
/// EPERM, EAGAIN: what the kernel knows of the word and what it says do not fit.
pub fn lock(word: &AtomicU32, until: u64) -> io::Result<()> {
    if until == u64::MAX {
        return call(word, libc::FUTEX_LOCK_PI, ptr::null());
    }
    match call(word, FUTEX_LOCK_PI2, &timespec(until)) {
        // An older kernel, whose clock here is CLOCK_REALTIME.
        Err(error) if error.raw_os_error() == Some(libc::ENOSYS) => {
            let left = until.saturating_sub(clock::monotonic_ns());
            let at = timespec(clock::realtime_ns().saturating_add(left));
            call(word, libc::FUTEX_LOCK_PI, &at)
        }
        done => done,
    }
}

/// Locks it for the calling thread, if no thread has it.
///
/// # Errors
/// EWOULDBLOCK: another thread has it; and those of [`lock`].
pub fn try_lock(word: &AtomicU32) -> io::Result<()> {
    call(word, libc::FUTEX_TRYLOCK_PI, ptr::null())
}

/// Unlocks it, and gives it to the best thread that waits.
///
/// # Errors
/// EPERM: the word does not name the calling thread; EINVAL: as of [`lock`].
pub fn unlock(word: &AtomicU32) -> io::Result<()> {
    call(word, libc::FUTEX_UNLOCK_PI, ptr::null())
}

fn call(word: &AtomicU32, operation: libc::c_int, until: *const libc::timespec) -> io::Result<()> {
    // SAFETY: the word outlives the call; the time is null or valid.
    match unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), operation, 0, until) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}
