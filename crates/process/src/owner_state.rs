//! The state of the guardian's owner, as /proc has it.

use crate::enforcement::Enforcement;
use crate::guardian::close_all_but;
use crate::journal::Journal;
use crate::liveness::Liveness;
use crate::proc::{Course, Identity};
use punctual_sys::{sched, thread_name};
use rustix::event::{poll, PollFd, PollFlags, Timespec};
use rustix::fd::{AsFd, AsRawFd, BorrowedFd};
use rustix::process::Pid;
use std::time::Duration;

/// A pidfd reports the death of the last thread. A thread below a runaway command never gets the
/// CPU to exit, and only the guardian can end the runaway: while an owner ends, its state is read
/// now and then.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// What /proc says of the owner, opened while it was well: at SCHED_FIFO 99 no name is looked up
/// there, for that may have to wait for a lower thread that is just freeing it (`demote` says how).
pub(crate) struct OwnerState(Option<[std::fs::File; 2]>);

impl OwnerState {
    pub fn open(owner: Identity) -> Self {
        let open = |name| std::fs::File::open(format!("/proc/{}/{name}", owner.pid)).ok();
        let files = open("status").zip(open("stat")).map(|(status, stat)| [status, stat]);
        Self(files.filter(|_| Identity::of(owner.pid) == Some(owner)))
    }

    /// Of its first thread; `None` when all of it was waited for.
    pub fn read(&self) -> Option<Course> {
        // Without these files, the worker has to look it up by name.
        let Some([status, stat]) = &self.0 else { return Some(Course::Ends) };
        let (mut a, mut b) = ([0u8; 16_384], [0u8; 1024]);
        let text = |file, buf: &mut [u8]| rustix::io::pread(file, &mut *buf, 0).ok();
        let (n, m) = (text(status, &mut a)?, text(stat, &mut b)?);
        Some(Course::of(&String::from_utf8_lossy(&a[..n]), &String::from_utf8_lossy(&b[..m])))
    }
}

/// Forks `punctual-watch`, an ordinary process, which takes no time from tasks; returns its pid,
/// if one could be made. It ends with the guardian, and has `kept` open until then. `demotions`: a
/// file of the journal that these two share. For a process of one thread. Now and then it reads
/// - the owner's state, and reports a crash: the kernel ends no thread before the core dump, and
///   dumps only when all threads have stopped;
/// - whether the owner's dispatchers enforce budgets (`enforcement`).
pub(crate) fn watch(
    state: &OwnerState,
    liveness: &Liveness,
    enforcement: &Enforcement,
    demotions: Option<&Journal>,
    kept: BorrowedFd<'_>,
) -> Option<Pid> {
    let guardian = rustix::process::getpid();
    // SAFETY: one thread, so that the child has all that we have, and every lock is free; it never
    // returns.
    let pid = unsafe { libc::fork() };
    if pid != 0 {
        return Pid::from_raw(pid).filter(|p| p.as_raw_pid() > 0);
    }
    // SAFETY: a plain system call on this process.
    unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) };
    thread_name::set(thread_name::WATCH);
    let _ = sched::set_other(0);
    // It must not hold the lock of a CPU.
    let mut keep: Vec<_> = state.0.iter().flatten().map(AsRawFd::as_raw_fd).collect();
    keep.push(kept.as_raw_fd());
    keep.extend(demotions.map(|journal| journal.as_fd().as_raw_fd()));
    keep.sort_unstable();
    close_all_but(&keep);
    // The end of the first thread alone is no end of the owner.
    let killed = || matches!(state.read(), None | Some(Course::Killed));
    while !killed() && rustix::process::getppid() == Some(guardian) {
        demotions.into_iter().for_each(|journal| enforcement.demote_overdue(journal));
        std::thread::sleep(LOOK_EVERY);
    }
    liveness.report();
    // SAFETY: ends this process at once, without the program's exit handlers.
    unsafe { libc::_exit(0) }
}

/// Of an owner that ends or has dropped its [`Guardian`](crate::Guardian): whether to restore.
/// `false` when dismissed, or when `restored_if_dying` has done it.
pub(crate) fn wait_for_the_end(
    state: &OwnerState,
    pidfd: BorrowedFd<'_>,
    control: BorrowedFd<'_>,
    restored_if_dying: impl Fn() -> bool,
) -> bool {
    loop {
        let mut fds = [PollFd::new(&pidfd, PollFlags::IN), PollFd::new(&control, PollFlags::IN)];
        let pause = Timespec { tv_sec: 0, tv_nsec: LOOK_EVERY.subsec_nanos().into() };
        match poll(&mut fds, Some(&pause)) {
            Ok(0) => match state.read() {
                None | Some(Course::Killed) => return true,
                Some(Course::Ends) if restored_if_dying() => return false,
                _ => continue,
            },
            Err(_) => continue,
            Ok(_) => {}
        }
        let (died, spoke) = (!fds[0].revents().is_empty(), !fds[1].revents().is_empty());
        // The pipe first: an owner that dismissed us and ended at once has restored already.
        if spoke {
            let mut byte = [0u8];
            return !(matches!(rustix::io::read(control, &mut byte), Ok(1)) && byte == *b"D");
        }
        if died {
            return true;
        }
    }
}
