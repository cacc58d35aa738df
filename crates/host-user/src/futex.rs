//! Waiting on a word and waking who waits: the only way that our threads sleep.

use std::ptr;
use std::sync::atomic::AtomicU32;

use crate::clock;

/// Sleeps while `word` is `value`, until woken, interrupted or `until` (CLOCK_MONOTONIC ns;
/// `u64::MAX` for ever). Returns for any reason: look again.
pub fn wait(word: &AtomicU32, value: u32, until: u64) {
    let at = clock::timespec(until);
    let timeout = if until == u64::MAX { ptr::null() } else { &at as *const _ };
    // SAFETY: the word outlives the call; the timeout is null or valid.
    unsafe {
        libc::syscall(
            libc::SYS_futex,
            word.as_ptr(),
            libc::FUTEX_WAIT_BITSET | libc::FUTEX_PRIVATE_FLAG,
            value,
            timeout,
            ptr::null::<u32>(),
            libc::FUTEX_BITSET_MATCH_ANY,
        );
    }
}

/// Wakes everybody who waits on `word`.
pub fn wake(word: &AtomicU32) {
    // SAFETY: the address is only a key.
    unsafe {
        libc::syscall(libc::SYS_futex, word.as_ptr(), libc::FUTEX_WAKE | libc::FUTEX_PRIVATE_FLAG, i32::MAX);
    }
}
