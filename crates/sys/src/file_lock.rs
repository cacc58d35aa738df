//! Locks on bytes of a file that belong to an open file description: the kernel releases them when
//! its last descriptor is closed, also by the death of the process.

use std::io;
use std::os::fd::{AsFd, AsRawFd};

/// What a lock excludes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// Exclusive locks.
    Shared,
    /// All other locks; the file is open for writing.
    Exclusive,
}

/// Locks byte `at` of `file`, or changes the lock that its open file description has there. Does
/// not wait.
///
/// # Errors
/// `WouldBlock`: another open file description has a lock that excludes this one. EBADF, ENOLCK.
pub fn try_lock(file: impl AsFd, at: i64, access: Access) -> io::Result<()> {
    set(file.as_fd().as_raw_fd(), libc::F_OFD_SETLK, at, access)
}

/// The same, waiting for the others.
///
/// # Errors
/// EBADF, ENOLCK.
pub fn lock(file: impl AsFd, at: i64, access: Access) -> io::Result<()> {
    loop {
        match set(file.as_fd().as_raw_fd(), libc::F_OFD_SETLKW, at, access) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            done => return done,
        }
    }
}

/// Whether another open file description has a lock on byte `at` that excludes `access`.
///
/// # Errors
/// EBADF.
pub fn is_locked(file: impl AsFd, at: i64, access: Access) -> io::Result<bool> {
    let mut lock = request(at, access);
    // SAFETY: the structure outlives the call.
    match unsafe { libc::fcntl(file.as_fd().as_raw_fd(), libc::F_OFD_GETLK, &mut lock) } {
        0 => Ok(libc::c_int::from(lock.l_type) != libc::F_UNLCK),
        _ => Err(io::Error::last_os_error()),
    }
}

fn set(fd: i32, command: libc::c_int, at: i64, access: Access) -> io::Result<()> {
    let lock = request(at, access);
    // SAFETY: the structure outlives the call.
    match unsafe { libc::fcntl(fd, command, &lock) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

fn request(at: i64, access: Access) -> libc::flock {
    let kind = match access {
        Access::Shared => libc::F_RDLCK,
        Access::Exclusive => libc::F_WRLCK,
    };
    // SAFETY: all zeros is a value of this structure of integers.
    let mut lock: libc::flock = unsafe { std::mem::zeroed() };
    // Constants of one byte and two.
    lock.l_type = kind as libc::c_short;
    lock.l_whence = libc::SEEK_SET as libc::c_short;
    lock.l_start = at;
    lock.l_len = 1;
    lock
}
