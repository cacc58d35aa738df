//! Adopting one thread of a running process, and restoring it. The process and its other threads
//! stay what they are.
//!
//! A thread of another process takes no gate signal, and the freezer is for whole processes. So it
//! is parked by SCHED_IDLE: it executes then only where the CPU has nothing else to do, which is
//! not charged. Its clock is `schedstat` of its folder in /proc, opened once: the file stays bound
//! to this thread, and reads as an error when the thread has ended.
//!
//! What the thread may do meanwhile:
//!
//! - *create threads and processes*: they are ordinary (reset-on-fork), or in SCHED_IDLE where the
//!   thread was parked; they inherit its CPU. Restoring the thread restores them.
//! - *execute another program*, if it is not the first of its process: it becomes the first one,
//!   under the number of the process, and keeps its level. The next read of the clock returns
//!   ESRCH; the process is demoted then.
//! - *wait for a mutex with priority inheritance*: the kernel has the mutex's owner execute at this
//!   thread's level (wait_place.rs).

use crate::adopt;
use crate::exec_clock;
use crate::journal::{AdoptedThreadRecord, Entry, Journal, ThreadRecord};
use crate::privilege;
use crate::proc::{self, Stat};
use crate::threads_back;
use crate::wait_place::{self, ObservedWait};
use punctual_diagnostic::Diagnostic;
use punctual_sys::pidfd;
use punctual_sys::sched::{self, Children};
use rustix::fd::OwnedFd;
use std::fs::File;
use std::os::fd::AsRawFd;

/// Reset-on-fork in each class, as of [`sched::set_level`].
pub(crate) const OUR_POLICY: i32 = libc::SCHED_FIFO | libc::SCHED_RESET_ON_FORK;
const PARKED: i32 = libc::SCHED_IDLE | libc::SCHED_RESET_ON_FORK;

/// An adopted thread. Dropping it changes nothing: the journal has its record.
#[derive(Debug)]
pub struct AdoptedThread {
    pidfd: OwnedFd,
    /// The dispatcher's: no other thread reads it (exec_clock.rs).
    clock: File,
    /// The housekeeper's.
    own_clock: File,
    /// The dispatcher's.
    wait_place: Option<File>,
    mask: sched::Mask,
    record: AdoptedThreadRecord,
    journal: Journal,
}

/// Adopts one thread of the process `pid`: writes down how it is, parks it, and moves it to `cpu`.
/// Not real-time safe.
///
/// # Errors
/// As of [`adopt`](crate::adopt), and no such thread. Nothing is changed then.
pub fn adopt_thread(
    journal: &Journal,
    pid: i32,
    tid: i32,
    cpu: u32,
) -> Result<AdoptedThread, Diagnostic> {
    let (process, pidfd) = adopt::check_part_adoptable(pid, Some(tid))?;
    adopt::refuse_guardian(journal, pid)?;
    privilege::check_target(tid)?;
    let found = || {
        let clocks = (exec_clock::open_in(pid, tid)?, exec_clock::open_in(pid, tid)?);
        let start = Stat::of_thread(pid, tid)?.start;
        let attr = sched::Attributes::of(tid).ok()?;
        let affinity = sched::affinity(tid).ok()?;
        // It has not ended, so all of this is of one thread.
        exec_clock::read_file(&clocks.0).and(exec_clock::read_file(&clocks.1))?;
        Some((clocks, ThreadRecord { tid, start, attr, affinity }))
    };
    let ((clock, own_clock), thread) =
        found().filter(|_| !pidfd::has_ended(&pidfd)).ok_or_else(|| {
            Diagnostic::usage(
                format!("process {pid} has no thread {tid}"),
                "give the number of one of its threads (ps -L -p PID)",
            )
            .with_errno(libc::ESRCH)
        })?;
    let mask = sched::only(cpu);
    let pinned = tid != pid && sched::affinity(pid).is_ok_and(|first| first == mask);
    let record = AdoptedThreadRecord { process, at: proc::ticks_now(), cpu, pinned, thread };
    journal.write(&Entry::AdoptedThread { thread: record.clone() })?;
    let journal = journal.clone();
    let wait_place = wait_place::open_in(pid, tid).ok();
    let adopted = AdoptedThread { pidfd, clock, own_clock, wait_place, mask, record, journal };
    // The first read of such a file allocates memory.
    adopted.sample_wait();
    // Off its CPU at a real-time level it would be charged late.
    let parked = sched::set(tid, PARKED, 0).and_then(|()| sched::set_affinity(tid, &adopted.mask));
    if let Err(e) = parked {
        adopted.give_back();
        return Err(Diagnostic::refused(
            format!("thread {tid} of process {pid} cannot be parked on CPU {cpu}"),
            e,
            "see punctual doctor; a cpuset may keep the process from this CPU",
        ));
    }
    Ok(adopted)
}

impl AdoptedThread {
    /// Its process.
    pub fn process(&self) -> i32 {
        self.record.process.pid
    }

    /// Its number.
    pub fn tid(&self) -> i32 {
        self.record.thread.tid
    }

    /// Its CPU time, ns; `None` when it has ended, and then what has become of it is demoted. As
    /// long as it executes on another CPU, late by up to a tick. For one thread, the dispatcher.
    /// Real-time safe.
    pub fn clock(&self) -> Option<u64> {
        self.read(&self.clock)
    }

    fn read(&self, clock: &File) -> Option<u64> {
        let time = exec_clock::read_file(clock);
        if time.is_none() {
            self.demote_successor();
        }
        time
    }

    /// After execve it has the number of the process, and its class with reset-on-fork: no first
    /// thread has these of itself, but for a program that chose them.
    fn demote_successor(&self) {
        let first = self.process();
        if self.tid() != first
            && !pidfd::has_ended(&self.pidfd)
            && matches!(sched::policy(first), Some(OUR_POLICY | PARKED))
        {
            // Refused only where the process has ended meanwhile.
            let _ = sched::set_other(first);
        }
    }

    /// What it does. For the dispatcher. Real-time safe.
    pub fn sample_wait(&self) -> ObservedWait {
        self.wait_place
            .as_ref()
            .map_or(ObservedWait::Asleep, |file| wait_place::read(file.as_raw_fd()))
    }

    /// Keeps it from executing where the CPU has anything else to do. Real-time safe.
    pub fn park(&self) {
        let _ = sched::set(self.tid(), PARKED, 0);
    }

    /// SCHED_FIFO at this level, or the ordinary class for 0. Real-time safe.
    pub fn set_level(&self, level: i32) {
        let _ = sched::set_level(self.tid(), level, Children::AreOrdinary);
    }

    /// Sends it a signal. Real-time safe.
    pub fn signal(&self, signal: i32) {
        // SAFETY: a system call without memory; a thread that is gone is an error that changes
        // nothing.
        unsafe { libc::syscall(libc::SYS_tgkill, self.process(), self.tid(), signal) };
    }

    /// Moves it back to its CPU where it has left it, which needs no privileges. Not real-time
    /// safe.
    pub fn keep_on_cpu(&self) {
        if sched::affinity(self.tid()).is_ok_and(|mask| mask != self.mask) && !self.has_ended() {
            let _ = sched::set_affinity(self.tid(), &self.mask);
        }
    }

    /// Whether it has ended. Not real-time safe.
    pub fn has_ended(&self) -> bool {
        let is_dead = |stat: Stat| matches!(stat.state, 'Z' | 'X');
        self.read(&self.own_clock).is_none()
            || Stat::of_thread(self.process(), self.tid()).is_none_or(is_dead)
    }

    /// Restores it, what it has become, and the threads and processes that it created; what could
    /// not be restored. No dispatcher may have it any more. Not real-time safe.
    pub fn give_back(&self) -> Vec<String> {
        let mut problems = Vec::new();
        threads_back::give_thread_back(&self.record, &mut problems);
        if problems.is_empty() {
            let _ = self.journal.write(&Entry::ThreadGivenBack { id: self.record.id() });
        }
        problems
    }
}
