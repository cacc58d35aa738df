//! Processes by pidfd: unlike its number, it never names a later process.

use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};

use rustix::event::{poll, PollFd, PollFlags, Timespec};
use rustix::process::{pidfd_open, Pid, PidfdFlags};

/// A pidfd of this process; closed on exec.
///
/// # Errors
/// ESRCH: there is none, or it was reaped; EMFILE.
pub fn open(pid: i32) -> io::Result<OwnedFd> {
    open_with(pid, PidfdFlags::empty())
}

/// One of a single thread, also where it is not its process's first; closed on exec. Signals go to
/// that thread. Since Linux 6.9.
///
/// # Errors
/// ESRCH, EMFILE; EINVAL: an older kernel.
pub fn open_thread(tid: i32) -> io::Result<OwnedFd> {
    // PIDFD_THREAD, which the library does not have.
    open_with(tid, PidfdFlags::from_bits_retain(libc::O_EXCL as u32))
}

fn open_with(pid: i32, flags: PidfdFlags) -> io::Result<OwnedFd> {
    // `from_raw` takes no negative number.
    let pid =
        Some(pid).filter(|&pid| pid > 0).and_then(Pid::from_raw).ok_or(rustix::io::Errno::SRCH)?;
    Ok(pidfd_open(pid, flags)?)
}

/// Sends a signal; 0 only checks whether that is permitted. Real-time safe.
///
/// # Errors
/// ESRCH: the process was reaped; EPERM; EBADF.
pub fn send(pidfd: &impl AsRawFd, signal: i32) -> io::Result<()> {
    // SAFETY: no memory is passed (a null siginfo is allowed); a bad descriptor is an error value.
    let sent = unsafe {
        let info = std::ptr::null::<libc::siginfo_t>();
        libc::syscall(libc::SYS_pidfd_send_signal, pidfd.as_raw_fd(), signal, info, 0u32)
    };
    match sent {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Whether all of the process has ended; it need not be reaped. Real-time safe.
pub fn has_ended(pidfd: impl AsFd) -> bool {
    let mut fds = [PollFd::new(&pidfd, PollFlags::IN)];
    poll(&mut fds, Some(&Timespec { tv_sec: 0, tv_nsec: 0 })).is_ok_and(|ready| ready > 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    #[test]
    fn it_names_its_process_until_the_end_and_no_later_one() {
        let mut child = Command::new("sleep").arg("1000").spawn().expect("sleep");
        let held = open(child.id() as i32).expect("it lives");
        assert!(!has_ended(&held));
        send(&held, 0).expect("it may be asked");
        send(&held, libc::SIGKILL).expect("it lives");
        let status = child.wait().expect("a child");
        assert_eq!(std::os::unix::process::ExitStatusExt::signal(&status), Some(libc::SIGKILL));
        assert!(has_ended(&held));
        assert_eq!(send(&held, 0).map_err(|e| e.raw_os_error()), Err(Some(libc::ESRCH)));
        assert_eq!(open(-1).err().and_then(|e| e.raw_os_error()), Some(libc::ESRCH));
    }
}
