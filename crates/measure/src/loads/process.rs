//! A load as a process: forked and not exec'd, or stress-ng.

use punctual_sys::clock::monotonic_ns;
#[cfg(test)]
use punctual_sys::clock::CpuClock;
use punctual_sys::process::{kill_group, reap};
use punctual_sys::sched;
use std::io;
use std::os::fd::RawFd;
use std::process::ExitStatus;
use std::time::Duration;

/// What a load does again and again, prepared before the fork: the process that executes it shares
/// the allocator's locks with threads that it does not have, so that a round may not allocate.
pub struct Rounds {
    /// One round: some milliseconds.
    pub round: Box<dyn FnMut() -> io::Result<()>>,
    /// The only descriptor that stays open in the process; the round owns it.
    pub keeps: Option<RawFd>,
    /// What restores the machine after it, in this process.
    pub restore: Option<Box<dyn FnOnce() + Send>>,
}

impl Rounds {
    /// Without a descriptor.
    pub fn new(round: impl FnMut() -> io::Result<()> + 'static) -> Rounds {
        Rounds { round: Box::new(round), keeps: None, restore: None }
    }

    /// With a descriptor that the round owns.
    pub fn keeping(file: RawFd, round: impl FnMut() -> io::Result<()> + 'static) -> Rounds {
        Rounds { keeps: Some(file), ..Rounds::new(round) }
    }
}

/// A load's first process, the leader of its process group; all are killed when this is dropped.
pub struct LoadProcess {
    pid: i32,
    /// How it ended, once it has.
    status: Option<ExitStatus>,
    /// Ends it in order before it is killed, so that it removes what it made.
    terminates: bool,
    restore: Option<Box<dyn FnOnce() + Send>>,
    /// Its temporary files.
    _directory: Option<tempfile::TempDir>,
}

impl std::fmt::Debug for LoadProcess {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LoadProcess").field("pid", &self.pid).field("status", &self.status).finish()
    }
}

/// Longest wait for a load that ends in order.
const PATIENCE: Duration = Duration::from_secs(2);
/// Longest wait for one that was killed.
const KILLED: Duration = Duration::from_secs(10);

impl LoadProcess {
    /// Executes `rounds` on `cpu` for at most `life` ns.
    pub fn fork(rounds: Rounds, cpu: u32, life: u64) -> Result<LoadProcess, String> {
        let Rounds { round, keeps, restore } = rounds;
        let end = monotonic_ns().saturating_add(life);
        // SAFETY: getpid has no preconditions.
        let parent = unsafe { libc::getpid() };
        // SAFETY: the child makes system calls only, allocates nothing and never returns, as fork
        // in a program with threads demands.
        match unsafe { libc::fork() } {
            -1 => Err(format!("no process can be made: {}", io::Error::last_os_error())),
            0 => live(round, keeps, cpu, parent, end),
            pid => {
                // As the child does: whichever is first.
                // SAFETY: a system call without pointers.
                unsafe { libc::setpgid(pid, pid) };
                Ok(LoadProcess { pid, status: None, terminates: false, restore, _directory: None })
            }
        }
    }

    /// A child that is the leader of its process group, with its temporary directory.
    pub fn adopt(pid: i32, directory: tempfile::TempDir) -> LoadProcess {
        LoadProcess {
            pid,
            status: None,
            terminates: true,
            restore: None,
            _directory: Some(directory),
        }
    }

    /// Its process id.
    #[cfg(test)]
    pub fn pid(&self) -> i32 {
        self.pid
    }

    /// The clock of its execution time.
    #[cfg(test)]
    pub fn clock(&self) -> CpuClock {
        CpuClock::of_process(self.pid)
    }

    /// How it ended, if it has.
    pub fn early_end(&mut self) -> Option<String> {
        if self.status.is_none() {
            self.status = punctual_sys::process::try_wait(self.pid);
        }
        self.status.map(|status| format!("the load ended before the measurement did ({status})"))
    }
}

impl Drop for LoadProcess {
    fn drop(&mut self) {
        let mut ended = self.early_end().is_some();
        if self.terminates && !ended {
            // SAFETY: a system call without pointers; the child is not reaped, so the pid is its.
            unsafe { libc::kill(self.pid, libc::SIGTERM) };
            ended = reap(self.pid, PATIENCE);
        }
        // Also after its leader's end: others of the group may live. An empty group is no error.
        kill_group(self.pid);
        if !ended {
            reap(self.pid, KILLED);
        }
        if let Some(restore) = self.restore.take() {
            restore();
        }
    }
}

/// In a child, before it does anything: it dies with the thread that made it, is a process group
/// and an ordinary process. Async-signal-safe calls only.
pub fn become_load(parent: libc::pid_t) -> io::Result<()> {
    // SAFETY: system calls without memory arguments, in a process with one thread.
    unsafe {
        libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
        if libc::getppid() != parent {
            libc::_exit(0);
        }
        libc::setpgid(0, 0);
        // Restored by exec for stress-ng, which has its own handlers.
        for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP, libc::SIGQUIT] {
            libc::signal(signal, libc::SIG_DFL);
        }
    }
    sched::set_other(0)
}

/// The child. Async-signal-safe calls only.
fn live(
    mut round: Box<dyn FnMut() -> io::Result<()>>,
    keeps: Option<RawFd>,
    cpu: u32,
    parent: libc::pid_t,
    end: u64,
) -> ! {
    let begun = become_load(parent).and_then(|()| sched::pin(0, cpu));
    close_others(keeps);
    let mut result = begun;
    while result.is_ok() && monotonic_ns() < end {
        result = round();
    }
    // SAFETY: ends the process, no preconditions; no destructor of the parent's runs here.
    unsafe { libc::_exit(i32::from(result.is_err())) }
}

/// Locks and pipes of the parent must not live on in the child.
fn close_others(kept: Option<RawFd>) {
    let close = |from: u32, to: u32| {
        if from <= to {
            // SAFETY: closes descriptors; nothing in this process uses them any more.
            unsafe { libc::syscall(libc::SYS_close_range, from, to, 0u32) };
        }
    };
    match kept.and_then(|fd| u32::try_from(fd).ok()) {
        Some(fd) if fd >= 3 => {
            close(3, fd - 1);
            close(fd + 1, u32::MAX);
        }
        _ => close(3, u32::MAX),
    }
}
