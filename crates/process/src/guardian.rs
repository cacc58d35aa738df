//! The guardian process, which restores the machine when its owner cannot.
//!
//! ```text
//!   owner ── fork ──> guardian: SCHED_FIFO 99, all signals blocked,
//!     │                  │      sleeps until the owner's end (`liveness`) or crash, then
//!     │                  │      poll(owner's pidfd, control pipe)
//!     │                  │ 'D' on the pipe: dismissed, exit
//!     │                  │ owner dead or dying, or the pipe hung up (exec, dropped):
//!     │                  │   tasks demoted (`enforcement`), then
//!     │                  │   restore(journal) in a supervised child (`supervise`), exit
//!     └ polls the guardian's pidfd: dead? restart()
//! ```
//!
//! It does not exec, so it works from a library inside any program. After the fork of a program
//! with threads it uses system calls and the allocator only (glibc makes malloc usable in the child
//! of fork; no environment, no standard streams, no locks), and never returns into the
//! program. The fork makes the owner's pages copy-on-write: the first write to each afterwards
//! costs a page fault. Start it before the dispatcher runs; a restart costs these faults once more.

use crate::enforcement::{Enforcement, Enforcing};
use crate::journal::{Entry, Journal};
use crate::liveness::Liveness;
use crate::lock::CpuLock;
use crate::owner_state::{wait_for_the_end, watch, OwnerState};
use crate::proc::Identity;
use crate::restore::restore;
use crate::supervise::{self, supervised, Outcome};
use punctual_diagnostic::Diagnostic;
use punctual_sys::{pidfd, sched, thread_name};
use rustix::event::{poll, PollFd, PollFlags, Timespec};
use rustix::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use rustix::io::retry_on_intr;
use rustix::pipe::{pipe_with, PipeFlags};
use rustix::process::{pidfd_open, waitpid, Pid, PidfdFlags, WaitOptions};
use std::cell::Cell;
use std::io;

/// The owner's end. Dropping it without [`dismiss`](Self::dismiss) makes the guardian restore at
/// once.
#[derive(Debug)]
pub struct Guardian {
    journal: Journal,
    locks: Vec<CpuLock>,
    process: Forked,
    watched: Watched,
}

/// What the guardian and its child see of their owner.
#[derive(Debug)]
struct Watched {
    liveness: Liveness,
    enforcement: Enforcement,
}

#[derive(Debug)]
struct Forked {
    pid: i32,
    pidfd: OwnedFd,
    control: OwnedFd,
    /// Hangs up when `punctual-watch` ends, which has the other end.
    watch: OwnedFd,
    real_time: bool,
}

impl Guardian {
    /// Forks the guardian and returns when it stands watch. It holds the CPU locks with us until it
    /// has restored. Not real-time safe.
    ///
    /// # Errors
    /// No process or thread can be made. That it may not become real-time is none: see
    /// [`is_real_time`](Self::is_real_time).
    pub fn start(journal: &Journal, locks: &[CpuLock]) -> Result<Self, Diagnostic> {
        let enforcement = Enforcement::new(locks.iter().map(CpuLock::cpu)).map_err(failed)?;
        let liveness = Liveness::start(sched::every()).map_err(failed)?;
        let watched = Watched { liveness, enforcement };
        Ok(Self {
            journal: journal.clone(),
            locks: locks.to_vec(),
            process: fork_one(journal, locks, &watched)?,
            watched,
        })
    }

    /// One for the dispatcher of each CPU, in the order of the locks that were given at the start.
    /// While a dispatcher is stopped or hangs, its tasks are ordinary ones.
    pub fn enforcing(&self) -> impl Iterator<Item = Enforcing> + '_ {
        self.watched.enforcement.dispatchers()
    }

    /// Its pid.
    pub fn pid(&self) -> i32 {
        self.process.pid
    }

    /// Its pidfd: readable (POLLIN) when it has died. Then call [`restart`](Self::restart).
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.process.pidfd.as_fd()
    }

    /// Whether it got SCHED_FIFO 99. Otherwise a real-time runaway on every CPU could keep it from
    /// restoring.
    pub fn is_real_time(&self) -> bool {
        self.process.real_time
    }

    /// Whether it and its child `punctual-watch` live. Two polls: real-time safe.
    pub fn is_alive(&self) -> bool {
        !readable(&self.process.pidfd, 0) && !readable(&self.process.watch, 0)
    }

    /// Forks a new one when it or `punctual-watch` has died; does nothing while both live. Not
    /// real-time safe.
    ///
    /// # Errors
    /// No process can be made; the old state stays and it may be tried again.
    pub fn restart(&mut self) -> Result<(), Diagnostic> {
        if self.is_alive() {
            return Ok(());
        }
        let _ = pidfd::send(&self.process.pidfd, libc::SIGKILL);
        readable(&self.process.pidfd, 1000);
        self.process.reap();
        self.process = fork_one(&self.journal, &self.locks, &self.watched)?;
        Ok(())
    }

    /// Forks a new one when it has died; what happened, in words for people. Not real-time safe.
    pub fn replace_if_dead(&mut self) -> Option<String> {
        if self.is_alive() {
            return None;
        }
        // Its child ends with it, and may have ended already while it is still in its exit.
        let dead = match readable(&self.process.pidfd, 200) {
            true => "the guardian",
            false => "punctual-watch",
        };
        Some(match self.restart() {
            Ok(()) => format!("{dead} was killed; another one watches now"),
            Err(e) => format!("{dead} was killed, and no other can be started: {}", e.cause),
        })
    }

    /// Sends it away without restoring: call it after [`restore`] on an orderly end. Waits until it
    /// is gone, so that the CPU locks are free when this process drops its own.
    pub fn dismiss(self) {
        let Self { journal, process, watched, .. } = self;
        let _ = rustix::io::write(&process.control, b"D");
        // Wakes it.
        drop(watched);
        if !readable(&process.pidfd, 2000) {
            // Stopped by a signal, perhaps. It has no work left that killing it could interrupt.
            let _ = pidfd::send(&process.pidfd, libc::SIGKILL);
            readable(&process.pidfd, 1000);
        }
        process.reap();
        journal.set_guardian(0);
    }
}

impl Forked {
    /// Its zombie, unless the program around us ignores SIGCHLD or has waited for it already.
    fn reap(&self) {
        let _ = waitpid(Pid::from_raw(self.pid), WaitOptions::NOHANG);
    }
}

fn failed(e: io::Error) -> Diagnostic {
    Diagnostic::refused(
        "cannot start the guardian",
        e,
        "raise the limits on processes and open files (ulimit -u, ulimit -n)",
    )
}

fn readable(fd: &impl AsFd, timeout_ms: i64) -> bool {
    let mut fds = [PollFd::new(fd, PollFlags::IN)];
    let timeout = Timespec { tv_sec: timeout_ms / 1000, tv_nsec: timeout_ms % 1000 * 1_000_000 };
    retry_on_intr(|| poll(&mut fds, Some(&timeout))).is_ok_and(|n| n > 0)
}

/// Forks it; again, where it is killed before it stands watch.
fn fork_one(journal: &Journal, locks: &[CpuLock], watched: &Watched) -> Result<Forked, Diagnostic> {
    for _ in 1..TRIES {
        if let Some(forked) = fork_once(journal, locks, watched)? {
            return Ok(forked);
        }
    }
    fork_once(journal, locks, watched)?.ok_or_else(|| {
        Diagnostic::machine(
            format!("{TRIES} guardians were killed before they stood watch"),
            "find out what kills them: the OOM killer (dmesg), or a limit on processes",
        )
    })
}

/// `None`: it was killed at once.
fn fork_once(
    journal: &Journal,
    locks: &[CpuLock],
    watched: &Watched,
) -> Result<Option<Forked>, Diagnostic> {
    let owner =
        pidfd_open(rustix::process::getpid(), PidfdFlags::empty()).map_err(|e| failed(e.into()))?;
    let (control_read, control) = pipe_with(PipeFlags::CLOEXEC).map_err(|e| failed(e.into()))?;
    let (ready, ready_write) = pipe_with(PipeFlags::CLOEXEC).map_err(|e| failed(e.into()))?;
    // Everything is in place before the fork; the child only makes system calls until it restores.
    let mut keep: Vec<i32> = locks.iter().map(|l| l.as_fd().as_raw_fd()).collect();
    keep.extend([
        owner.as_raw_fd(),
        control_read.as_raw_fd(),
        ready_write.as_raw_fd(),
        journal.as_fd().as_raw_fd(),
    ]);
    keep.sort_unstable();
    let every = sched::every();

    // No handler of the program may ever run in the guardian, nor anything but SIGKILL and SIGSTOP
    // reach it.
    let mask = SignalMask::block_all();
    // SAFETY: the child runs `stand_watch` alone, which restricts itself as the module says and
    // never returns.
    let pid = unsafe { libc::fork() };
    if pid == 0 {
        stand_watch(
            journal,
            watched,
            &keep,
            &every,
            owner.as_fd(),
            control_read.as_fd(),
            ready_write.as_fd(),
        );
    }
    let error = io::Error::last_os_error();
    drop(mask);
    if pid < 0 {
        return Err(failed(error));
    }
    drop(ready_write);
    let pidfd = Pid::from_raw(pid)
        .ok_or(rustix::io::Errno::SRCH)
        .and_then(|p| pidfd_open(p, PidfdFlags::empty()));
    let pidfd = pidfd.map_err(|e| failed(e.into()))?;
    let mut answer = [0u8];
    let in_time = readable(&ready, 5000);
    if !in_time || rustix::io::read(&ready, &mut answer) != Ok(1) {
        let _ = pidfd::send(&pidfd, libc::SIGKILL);
        readable(&pidfd, 1000);
        let _ = waitpid(Pid::from_raw(pid), WaitOptions::NOHANG);
        return if in_time { Ok(None) } else { Err(failed(io::ErrorKind::TimedOut.into())) };
    }
    journal.set_guardian(pid);
    if let Some(id) = Identity::of(pid) {
        journal.write(&Entry::Guardian { id })?;
    }
    Ok(Some(Forked { pid, pidfd, control, watch: ready, real_time: answer[0] == b'R' }))
}

/// All signals blocked on this thread while it lives.
pub(crate) struct SignalMask(libc::sigset_t);

impl SignalMask {
    pub(crate) fn block_all() -> Self {
        // SAFETY: both sets live here; sigfillset and pthread_sigmask only read and write them.
        unsafe {
            let (mut all, mut old) = (std::mem::zeroed(), std::mem::zeroed());
            libc::sigfillset(&mut all);
            libc::pthread_sigmask(libc::SIG_SETMASK, &all, &mut old);
            Self(old)
        }
    }
}

impl Drop for SignalMask {
    fn drop(&mut self) {
        // SAFETY: restores the set that `block_all` was given.
        unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &self.0, std::ptr::null_mut()) };
    }
}

/// The guardian's whole life.
fn stand_watch(
    journal: &Journal,
    watched: &Watched,
    keep: &[i32],
    every: &[u64],
    owner: BorrowedFd<'_>,
    control: BorrowedFd<'_>,
    ready: BorrowedFd<'_>,
) -> ! {
    let life = std::panic::AssertUnwindSafe(|| {
        let real_time = settle(keep, every);
        let _ = rustix::io::write(ready, if real_time { b"R" } else { b"O" });
        let state = OwnerState::open(journal.owner());
        let Watched { liveness, enforcement } = watched;
        let demotions = Journal::open(journal.path());
        let watch = watch(&state, liveness, enforcement, demotions.as_ref(), ready);
        if watch.is_some() {
            // SAFETY: this process does not use it any more.
            unsafe { libc::close(ready.as_raw_fd()) };
        }
        let watch = Cell::new(watch);
        let act = |only_if_dying: bool| {
            let locked =
                demotions.iter().find_map(|journal| enforcement.demote_before_fork(journal));
            // It could demote a thread that was restored.
            watch.take().into_iter().for_each(|watch| supervise::kill(watch, real_time));
            drop(locked);
            let job = || {
                let wanted = !only_if_dying || !journal.owner().can_act();
                if wanted {
                    restore(journal);
                }
                wanted
            };
            supervised(real_time, job)
        };
        liveness.await_end();
        if wait_for_the_end(&state, owner, control, || act(true) == Outcome::Done(true)) {
            // One that was killed at it is followed by another; every step bears being done twice.
            let _ = (0..TRIES).any(|_| act(false) != Outcome::Died);
        }
    });
    // Nothing in it should panic; if it did, it must not unwind into a copy of the program.
    let status = i32::from(std::panic::catch_unwind(life).is_err());
    // Where init is slow to reap, the zombie at least is not a real-time one.
    let _ = sched::set_other(0);
    // SAFETY: ends this process at once, without the program's exit handlers.
    unsafe { libc::_exit(status) }
}

/// A session, a name, standard streams and descriptors of its own; real-time, on every CPU.
fn settle(keep: &[i32], every: &[u64]) -> bool {
    thread_name::set(thread_name::GUARDIAN);
    // SAFETY: plain system calls on this process; every pointer is to a terminated literal.
    unsafe {
        libc::setsid();
        // The program may ignore SIGCHLD; the guardian is reaped here.
        libc::signal(libc::SIGCHLD, libc::SIG_DFL);
        libc::chdir(c"/".as_ptr());
        // A reader of our owner's output must not wait for the guardian's copy to close.
        let null = libc::open(c"/dev/null".as_ptr(), libc::O_RDWR);
        for fd in 0..3 {
            if !keep.contains(&fd) {
                libc::dup2(null, fd);
            }
        }
        close_all_but(keep);
        let adj =
            libc::open(c"/proc/self/oom_score_adj".as_ptr(), libc::O_WRONLY | libc::O_CLOEXEC);
        if adj >= 0 {
            libc::write(adj, c"-1000".as_ptr().cast(), 5);
            libc::close(adj);
        }
    }
    let _ = sched::set_affinity(0, every);
    sched::set_fifo(0, 99).is_ok()
}

/// Closes all descriptors from 3 on that are not in `keep`, which is in order.
pub(crate) fn close_all_but(keep: &[i32]) {
    let mut from = 3u32;
    // SAFETY: nothing in this process uses these any more.
    unsafe {
        for &fd in keep.iter().filter(|f| **f >= 3) {
            if fd as u32 > from {
                close_range(from, fd as u32 - 1);
            }
            from = fd as u32 + 1;
        }
        close_range(from, u32::MAX);
    }
}

/// Closes a range of descriptors; kernels before 5.9 get each closed one by one, up to a bound.
///
/// # Safety
/// This process does not use them any more.
unsafe fn close_range(first: u32, last: u32) {
    // SAFETY: these descriptors are copies that nothing in this process owns.
    unsafe {
        if libc::syscall(libc::SYS_close_range, first, last, 0u32) != 0 {
            for fd in first..=last.min(65_535) {
                libc::close(fd as i32);
            }
        }
    }
}

/// How often a start or a restoration is tried when the process that does it is killed.
const TRIES: u32 = 3;
