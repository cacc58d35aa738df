//! The shared page and the pipe between the loader and the processes that it starts.

use std::io;
use std::os::fd::{FromRawFd, OwnedFd};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use punctual_diagnostic::Diagnostic;
use punctual_sys::futex;

#[repr(C)]
struct Page {
    released: AtomicU32,
    over: AtomicBool,
}

/// Holds children from their start until they belong to their tasks.
pub(crate) struct StartBarrier(*mut Page);

impl StartBarrier {
    pub fn new() -> Result<StartBarrier, Diagnostic> {
        // SAFETY: a new mapping of our own.
        let page = unsafe {
            let (prot, flags) =
                (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED | libc::MAP_ANONYMOUS);
            libc::mmap(std::ptr::null_mut(), size_of::<Page>(), prot, flags, -1, 0)
        };
        if page == libc::MAP_FAILED {
            let why = io::Error::last_os_error();
            return Err(Diagnostic::machine(
                format!("no memory for the tasks: {why}"),
                "make room, or run fewer tasks",
            ));
        }
        // All zero: neither released nor over.
        Ok(StartBarrier(page.cast()))
    }

    fn page(&self) -> &Page {
        // SAFETY: mapped until this is dropped; made of atomics, of which all zero is a value.
        unsafe { &*self.0 }
    }

    /// The child's side: waits until it is released. Async-signal-safe.
    pub fn wait(&self) {
        let released = &self.page().released;
        while released.load(Ordering::Acquire) == 0 {
            futex::wait_shared(released, 0, u64::MAX);
        }
    }

    /// Releases all children.
    pub fn release(&self) {
        let released = &self.page().released;
        released.store(1, Ordering::Release);
        futex::wake_shared(released);
    }

    /// True when the run is over.
    pub fn over(&self) -> &AtomicBool {
        &self.page().over
    }
}

impl Drop for StartBarrier {
    fn drop(&mut self) {
        // SAFETY: our mapping; children have their own of the same page.
        unsafe { libc::munmap(self.0.cast(), size_of::<Page>()) };
    }
}

/// A child that dies with us. The caller's code in it ends by `_exit`.
///
/// # Errors
/// The system's.
pub(crate) fn fork() -> Result<Option<i32>, Diagnostic> {
    // SAFETY: getpid and fork take nothing; the child keeps to what its callers promise.
    let (us, pid) = unsafe { (libc::getpid(), libc::fork()) };
    match pid {
        -1 => {
            let why = io::Error::last_os_error();
            Err(Diagnostic::machine(
                format!("no process for a task: {why}"),
                "raise the limit on processes (ulimit -u)",
            ))
        }
        0 => {
            // SAFETY: plain system calls on ourselves. We may be orphaned before the first takes
            // hold.
            unsafe {
                libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
                if libc::getppid() != us {
                    libc::_exit(1);
                }
            }
            Ok(None)
        }
        pid => Ok(Some(pid)),
    }
}

/// Where a child writes what became of it, and its parent reads that: the end to read from, and the
/// one to write to. A program that is executed has neither.
///
/// # Errors
/// The system's.
pub(crate) fn pipe() -> io::Result<(OwnedFd, OwnedFd)> {
    let mut ends = [0; 2];
    // SAFETY: room for two descriptors; they are ours alone then.
    unsafe {
        if libc::pipe2(ends.as_mut_ptr(), libc::O_CLOEXEC) != 0 {
            return Err(io::Error::last_os_error());
        }
        Ok((OwnedFd::from_raw_fd(ends[0]), OwnedFd::from_raw_fd(ends[1])))
    }
}
