//! Waiting for a word in memory to change, and waking threads that wait. All real-time safe.

use std::io;
use std::ptr;
use std::sync::atomic::AtomicU32;

use rustix::io::Errno;

use crate::clock::timespec;

/// Sleeps while `word` is `value`, until woken, interrupted or `until` (CLOCK_MONOTONIC ns;
/// `u64::MAX` for ever). Returns for any reason: look again.
pub fn wait(word: &AtomicU32, value: u32, until: u64) {
    let _ = wait_with(word, value, until, libc::FUTEX_PRIVATE_FLAG);
}

/// Sleeps until an instant on CLOCK_MONOTONIC; a signal may end it early. A thread of C is not
/// cancelled here, as it is in [`clock::sleep_until`](crate::clock::sleep_until).
pub fn sleep_until(instant: u64) {
    wait(&AtomicU32::new(0), 0, instant);
}

/// The same for a word in memory that processes share.
pub fn wait_shared(word: &AtomicU32, value: u32, until: u64) {
    let _ = wait_with(word, value, until, 0);
}

/// As [`wait_shared`]; whether a handler of a signal was called meanwhile, as far as the kernel
/// says: a handler with SA_RESTART may have been called in any case, where `until` is `u64::MAX`.
#[must_use]
pub fn wait_shared_interrupted(word: &AtomicU32, value: u32, until: u64) -> bool {
    wait_with(word, value, until, 0) == Err(Errno::INTR)
}

fn wait_with(word: &AtomicU32, value: u32, until: u64, flag: libc::c_int) -> Result<(), Errno> {
    let at = timespec(until);
    let timeout = if until == u64::MAX { ptr::null() } else { &at as *const _ };
    // SAFETY: the word outlives the call; the timeout is null or valid.
    let result = unsafe {
        libc::syscall(
            libc::SYS_futex,
            word.as_ptr(),
            libc::FUTEX_WAIT_BITSET | flag,
            value,
            timeout,
            ptr::null::<u32>(),
            libc::FUTEX_BITSET_MATCH_ANY,
        )
    };
    match result {
        0 => Ok(()),
        _ => Err(Errno::from_io_error(&io::Error::last_os_error()).unwrap_or(Errno::INVAL)),
    }
}

/// Wakes all threads that wait on `word`.
pub fn wake(word: &AtomicU32) {
    wake_with(word, libc::FUTEX_PRIVATE_FLAG, i32::MAX);
}

/// Wakes all threads, of any process, that wait on `word`, which processes share.
pub fn wake_shared(word: &AtomicU32) {
    wake_with(word, 0, i32::MAX);
}

/// Wakes one thread, of any process, that waits on `word`, which processes share.
pub fn wake_one_shared(word: &AtomicU32) {
    wake_with(word, 0, 1);
}

fn wake_with(word: &AtomicU32, flag: libc::c_int, count: i32) {
    // SAFETY: the address is only a key.
    unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), libc::FUTEX_WAKE | flag, count) };
}

/// Buckets of this process's futex hash.
const HASH_SLOTS: libc::c_int = 256;

/// Gives the futex hash of this process a fixed size. Since Linux 6.16 the kernel resizes it as
/// threads are created, under a mutex that a dispatcher would wait for; ordinary threads hold it.
/// Kernels without such a hash refuse, and need nothing.
///
/// A process that has had a second thread waits for a grace period of RCU here, tens of
/// milliseconds: a program calls it first, if it can.
pub fn fix_hash_size() {
    // Of linux/prctl.h.
    const PR_FUTEX_HASH: libc::c_int = 78;
    const SET_SLOTS: libc::c_ulong = 1;
    const GET_SLOTS: libc::c_ulong = 2;
    const NO_FLAGS: libc::c_ulong = 0;
    // SAFETY: system calls without pointers.
    unsafe {
        if libc::prctl(PR_FUTEX_HASH, GET_SLOTS, NO_FLAGS, NO_FLAGS, NO_FLAGS) != HASH_SLOTS {
            libc::prctl(PR_FUTEX_HASH, SET_SLOTS, HASH_SLOTS, NO_FLAGS, NO_FLAGS);
        }
    }
}
