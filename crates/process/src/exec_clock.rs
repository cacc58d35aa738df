//! The CPU time of single threads of other processes.
//!
//! clock_gettime reads the clock of a thread only within its own process (EINVAL otherwise).
//! /proc/TID/schedstat has the same figure for any thread. The housekeeper opens it, so that the
//! dispatcher looks up no names; a read takes some 0.9 us. The file stays bound to its thread:
//! after the thread's end it reads as an error.
//!
//! A read holds a lock of the open file. An ordinary thread that is preempted with it keeps the
//! dispatcher from reading until it executes again, which real-time tasks may delay without bound.
//! Another reader of such a file opens it for itself. The same holds for the files of a cgroup.

use std::fs::File;
use std::os::fd::AsRawFd;

/// Opens the clock of a thread. Not real-time safe.
pub(crate) fn open(tid: i32) -> Option<File> {
    File::open(format!("/proc/{tid}/schedstat")).ok()
}

/// The same of a thread of the process `pid`, and of none other that has its number.
pub(crate) fn open_in(pid: i32, tid: i32) -> Option<File> {
    File::open(format!("/proc/{pid}/task/{tid}/schedstat")).ok()
}

/// CPU time so far, ns; `None` when the thread is gone. Real-time safe: one system call.
pub(crate) fn read(fd: i32) -> Option<u64> {
    let mut text = [0u8; 64];
    // SAFETY: the kernel writes at most the given number of bytes into `text`.
    let n = unsafe { libc::pread(fd, text.as_mut_ptr().cast(), text.len(), 0) };
    let text = std::str::from_utf8(text.get(..usize::try_from(n).ok()?)?).ok()?;
    text.split(' ').next()?.parse().ok()
}

/// Of a file that [`open`] returned.
pub(crate) fn read_file(file: &File) -> Option<u64> {
    read(file.as_raw_fd())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_clock_of_a_thread_of_another_process_advances_and_ends_with_it() {
        let mut child =
            std::process::Command::new("sh").args(["-c", "while :; do :; done"]).spawn().unwrap();
        let clock = open(child.id() as i32).unwrap();
        let end = std::time::Instant::now() + std::time::Duration::from_secs(60);
        while read_file(&clock).unwrap() < 10_000_000 && std::time::Instant::now() < end {
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        let ran = read_file(&clock).unwrap();
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(ran >= 10_000_000, "{ran}");
        assert_eq!(read_file(&clock), None);
        assert_eq!(read(-1), None);
    }
}
