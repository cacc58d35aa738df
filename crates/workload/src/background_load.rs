//! The greedy ordinary process: SCHED_OTHER, pinned, wants everything. What it gets is what is
//! left.
//!
//! It is a process and not a thread, because that is what it stands for; forked and not exec'd, so
//! that it needs no program. It lives until dropped, until the thread that started it ends
//! (PR_SET_PDEATHSIG), or until its time is up, whichever is first: nothing can leave it behind.

use punctual_sys::clock::{monotonic_ns, CpuClock};
use punctual_sys::sched;
use std::io;

/// A running background load; killed when dropped.
#[derive(Debug)]
pub struct BackgroundLoad {
    pid: libc::pid_t,
    started: u64,
}

/// What a load got.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LoadTime {
    /// Execution time, ns.
    pub received: u64,
    /// Wall time it lived, ns.
    pub wall: u64,
}

impl LoadTime {
    /// Its share of the CPU, parts per million.
    #[must_use]
    pub fn share_ppm(&self) -> u64 {
        if self.wall == 0 {
            return 0;
        }
        (u128::from(self.received) * 1_000_000 / u128::from(self.wall)) as u64
    }
}

impl BackgroundLoad {
    /// Starts one on `cpu`, to live at most `life` ns.
    ///
    /// # Errors
    /// The system's error when it cannot fork. A `cpu` that does not exist shows as a load that got
    /// nothing.
    pub fn start(cpu: u32, life: u64) -> io::Result<BackgroundLoad> {
        let started = monotonic_ns();
        let end = started.saturating_add(life);
        // SAFETY: getpid has no preconditions.
        let parent = unsafe { libc::getpid() };
        // SAFETY: the child calls only async-signal-safe functions and never returns, as fork in a
        // program with threads demands.
        match unsafe { libc::fork() } {
            -1 => Err(io::Error::last_os_error()),
            0 => live(cpu, parent, end),
            pid => Ok(BackgroundLoad { pid, started }),
        }
    }

    /// Its process id.
    #[must_use]
    pub fn pid(&self) -> i32 {
        self.pid
    }

    /// What it got so far; while it runs on another CPU this is up to a tick old.
    #[must_use]
    pub fn so_far(&self) -> LoadTime {
        // The child is not reaped while self lives, so the pid is still its own.
        let received = CpuClock::of_process(self.pid).read().unwrap_or(0);
        LoadTime { received, wall: monotonic_ns() - self.started }
    }

    /// Ends it and tells what it got.
    #[must_use]
    pub fn stop(mut self) -> LoadTime {
        self.end()
    }

    fn end(&mut self) -> LoadTime {
        let wall = monotonic_ns() - self.started;
        let mut used = LoadTime { received: 0, wall };
        if self.pid == 0 {
            return used;
        }
        let mut status = 0;
        // SAFETY: it is a child of this process and not reaped yet; an all-zero rusage is a valid
        // value and writable.
        unsafe {
            libc::kill(self.pid, libc::SIGKILL);
            let mut usage: libc::rusage = std::mem::zeroed();
            while libc::wait4(self.pid, &mut status, 0, &mut usage) == -1
                && io::Error::last_os_error().kind() == io::ErrorKind::Interrupted
            {}
            for t in [usage.ru_utime, usage.ru_stime] {
                used.received += t.tv_sec as u64 * 1_000_000_000 + t.tv_usec as u64 * 1_000;
            }
        }
        self.pid = 0;
        used
    }
}

impl Drop for BackgroundLoad {
    fn drop(&mut self) {
        self.end();
    }
}

/// The child. Async-signal-safe calls only.
fn live(cpu: u32, parent: libc::pid_t, end: u64) -> ! {
    // SAFETY: plain system calls with valid arguments in a single-threaded child; no memory is
    // shared with the parent.
    unsafe {
        libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
        if libc::getppid() != parent {
            libc::_exit(0);
        }
        // Any process that started it may be a real-time thread: it must not inherit that.
        if sched::set_other(0).is_err() {
            libc::_exit(1);
        }
        // Locks and pipes of the parent must not live on in it.
        libc::syscall(libc::SYS_close_range, 3u32, u32::MAX, 0u32);
        // Ctrl-C is the parent's to handle; everything else does what it always does.
        libc::signal(libc::SIGINT, libc::SIG_IGN);
        libc::signal(libc::SIGTERM, libc::SIG_DFL);
        if sched::pin(0, cpu).is_err() {
            libc::_exit(1);
        }
    }
    let mut x = 1u64;
    while monotonic_ns() < end {
        for _ in 0..100_000 {
            x = std::hint::black_box(x.wrapping_mul(3));
        }
    }
    // SAFETY: ends the process, no preconditions.
    unsafe { libc::_exit(0) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn gets_something_and_is_gone_afterwards() {
        let load = BackgroundLoad::start(0, 2_000_000_000).unwrap();
        let pid = load.pid();
        std::thread::sleep(Duration::from_millis(100));
        let live = load.so_far();
        let time = load.stop();
        assert!(time.received > 0 && time.share_ppm() <= 1_000_000, "{time:?}, before {live:?}");
        // SAFETY: signal 0 only checks whether the process exists.
        assert_eq!(unsafe { libc::kill(pid, 0) }, -1);
    }

    #[test]
    fn its_life_is_bounded() {
        let load = BackgroundLoad::start(0, 20_000_000).unwrap();
        std::thread::sleep(Duration::from_millis(300));
        assert!(load.stop().received < 200_000_000);
    }

    #[test]
    fn a_cpu_that_is_not_there_gets_nothing() {
        let load = BackgroundLoad::start(5_000, 1_000_000_000).unwrap();
        std::thread::sleep(Duration::from_millis(20));
        assert!(load.stop().received < 10_000_000);
    }
}
