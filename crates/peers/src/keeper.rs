//! When this program is killed, its commands die with it (PR_SET_PDEATHSIG), but what those had started would live on
//! with the real-time priority that it inherited. The keeper is a process that sleeps until the program is gone, in
//! whatever way, and then kills the commands' groups.

use crate::sys::{errno, kill_group, pipe};
use crate::watchdog::demote_group;
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;

/// A keeper on watch; dismissed when dropped.
#[derive(Debug)]
pub struct Keeper {
    pid: i32,
    /// Closes with this program: that is what the keeper waits for.
    _life: File,
}

impl Keeper {
    /// Watches over these process groups.
    pub fn start(groups: &[i32]) -> io::Result<Keeper> {
        let (watched, life) = pipe()?;
        // SAFETY: the child makes system calls, reads /proc with the allocator (which glibc makes usable there) and never
        // returns.
        match unsafe { libc::fork() } {
            -1 => Err(io::Error::last_os_error()),
            0 => keep(watched.as_raw_fd(), groups),
            pid => Ok(Keeper { pid, _life: life }),
        }
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        // SAFETY: our own child, not reaped yet; no status is asked for. EINTR is tried again.
        unsafe {
            libc::kill(self.pid, libc::SIGKILL);
            while libc::waitpid(self.pid, std::ptr::null_mut(), 0) == -1 && errno() == libc::EINTR {}
        }
    }
}

/// How often what is killed is looked after, a millisecond apart.
const ROUNDS: u32 = 2_000;

/// The keeper's life.
fn keep(watched: i32, groups: &[i32]) -> ! {
    // SAFETY: system calls without memory arguments, but for one writable byte.
    unsafe {
        // Ctrl-C and a closed terminal are for the program that it watches.
        libc::setsid();
        // Everything but the pipe: also its own copy of the end whose closing it waits for.
        libc::dup2(watched, 0);
        libc::syscall(libc::SYS_close_range, 1u32, u32::MAX, 0u32);
        let mut byte = 0u8;
        while libc::read(0, (&raw mut byte).cast(), 1) == -1 && errno() == libc::EINTR {}
    }
    for _ in 0..ROUNDS {
        for &group in groups {
            demote_group(group);
            kill_group(group);
        }
        // SAFETY: signal 0 only asks; a system call without memory arguments.
        if groups.iter().all(|&group| unsafe { libc::kill(-group, 0) } != 0) {
            break;
        }
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
    // SAFETY: ends the process, no preconditions.
    unsafe { libc::_exit(0) }
}
