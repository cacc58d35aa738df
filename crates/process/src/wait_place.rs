//! Where a thread of another program waits: `wchan` of its folder in /proc, the name of the
//! kernel's function that put it to sleep; 0 of a thread that is ready.
//!
//! The housekeeper opens the file and reads it once. It stays bound to its thread; of the locks
//! that a read takes an ordinary task can hold that of the open file alone, so that only the
//! dispatcher reads it from then on (exec_clock.rs).

use std::fs::File;
use std::io;

/// What a thread, or of several threads any, was seen to do. A later one counts more.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum ObservedWait {
    /// It sleeps, and no other thread executes at its level for it. It executes before that
    /// changes.
    Asleep,
    /// It executes or is ready. The owner of a mutex for which it waited until a time-out keeps its
    /// level until it executes.
    Runnable,
    /// It waits for a mutex with priority inheritance (FUTEX_LOCK_PI, FUTEX_WAIT_REQUEUE_PI), whose
    /// owner executes at its level.
    Inherits,
}

/// Opens it for a thread of the process `pid`. The first read allocates memory. Not real-time safe.
pub(crate) fn open_in(pid: i32, tid: i32) -> io::Result<File> {
    File::open(format!("/proc/{pid}/task/{tid}/wchan"))
}

/// The same for a thread of any process.
pub(crate) fn open(tid: i32) -> io::Result<File> {
    File::open(format!("/proc/{tid}/wchan"))
}

/// What the thread does; one that has ended sleeps. Real-time safe: one system call.
pub(crate) fn read(fd: i32) -> ObservedWait {
    let mut name = [0u8; 64];
    // SAFETY: the kernel writes at most the given number of bytes into `name`.
    let length = unsafe { libc::pread(fd, name.as_mut_ptr().cast(), name.len(), 0) };
    let name = usize::try_from(length).ok().and_then(|length| name.get(..length));
    wait_in(name.unwrap_or_default())
}

/// By the name of a function; 0 of a thread that is not in one. Which of its functions the kernel
/// names depends on its version.
fn wait_in(name: &[u8]) -> ObservedWait {
    let name = std::str::from_utf8(name).unwrap_or_default();
    let inherits = ["rt_mutex", "futex_lock_pi", "requeue_pi"];
    match name {
        "0" => ObservedWait::Runnable,
        name if inherits.iter().any(|part| name.contains(part)) => ObservedWait::Inherits,
        _ => ObservedWait::Asleep,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_is_seen_to_wait_by_the_kernel_s_name_of_it() {
        for name in ["futex_wait_queue", "do_freezer_trap", ""] {
            assert_eq!(wait_in(name.as_bytes()), ObservedWait::Asleep, "{name}");
        }
        for name in ["rt_mutex_schedule", "__futex_lock_pi", "futex_wait_requeue_pi"] {
            assert_eq!(wait_in(name.as_bytes()), ObservedWait::Inherits, "{name}");
        }
        assert_eq!(wait_in(b"0"), ObservedWait::Runnable);
        assert!(
            ObservedWait::Asleep < ObservedWait::Runnable
                && ObservedWait::Runnable < ObservedWait::Inherits
        );
        assert_eq!(read(-1), ObservedWait::Asleep);
    }
}
