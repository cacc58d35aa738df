//! Parking without cgroup v2: SIGSTOP and SIGCONT to every process of a task.
//!
//! A stop signal is taken by the process's leader thread, which must run to stop the others. While
//! the other threads keep the CPU busy at the leader's own FIFO level it waits for them, by tens of
//! milliseconds (facts.md). So the leader is raised above them before the signal and lowered before
//! the one that continues.
//!
//! The real-time path reads a fixed table of slots; the housekeeper fills it. A slot's pidfd must
//! not be closed while the real-time path may be using it: `turn` is odd while that path is inside,
//! and the housekeeper closes a retired pidfd only after it has seen `turn` even.

use crate::journal::{Entry, Journal, Purpose};
use crate::proc::{self, Identity, Stat};
use punctual_diagnostic::Diagnostic;
use punctual_sys::clock::CpuClock;
use punctual_sys::pidfd;
use punctual_sys::sched::{self, Children};
use rustix::fd::IntoRawFd;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU32, AtomicU64, Ordering};
use std::sync::Mutex;

/// Level of a leader on its way into the stop: above every task, below the dispatcher (99).
pub const LEADER_LEVEL: i32 = 98;

#[derive(Debug)]
struct Slot {
    pid: AtomicI32,
    fd: AtomicI32,
    /// CPU time as last read, so that a process that ends keeps what it used.
    used: AtomicU64,
}

/// The processes of one task, stopped and continued together.
#[derive(Debug)]
pub struct StopGroup {
    slots: Box<[Slot]>,
    turn: AtomicU32,
    parked: AtomicBool,
    level: AtomicI32,
    gone_ns: AtomicU64,
    purpose: Purpose,
    journal: Journal,
    /// The housekeeper's own table: which process is in which slot. Never locked on the real-time
    /// path.
    members: Mutex<Vec<(Identity, usize)>>,
    /// The first process of it: a command's process group goes by its number, also after its end.
    leader: AtomicI32,
    /// When its first process joined, in ticks since boot: children from before stay out, as with a
    /// cgroup.
    since: u64,
}

impl StopGroup {
    /// A group with room for `capacity` processes. Nothing is allocated afterwards on the real-time
    /// path.
    pub fn new(journal: &Journal, purpose: Purpose, capacity: usize) -> Self {
        let slot =
            || Slot { pid: AtomicI32::new(0), fd: AtomicI32::new(-1), used: AtomicU64::new(0) };
        Self {
            slots: (0..capacity).map(|_| slot()).collect(),
            turn: AtomicU32::new(0),
            parked: AtomicBool::new(false),
            level: AtomicI32::new(0),
            gone_ns: AtomicU64::new(0),
            purpose,
            journal: journal.clone(),
            members: Mutex::new(Vec::new()),
            leader: AtomicI32::new(0),
            since: proc::ticks_now(),
        }
    }

    /// Stops every process. Real-time safe: three system calls for each. All are tried; the first
    /// error is returned, a process that is gone is none.
    pub fn park(&self) -> io::Result<()> {
        self.parked.store(true, Ordering::SeqCst);
        self.each(|pid, fd| {
            // Signal 0 first: were the process gone, its number might be another one's, which must
            // not be raised.
            pidfd::send(&fd, 0)?;
            let raised = sched::set_level(pid, LEADER_LEVEL, Children::AreOrdinary);
            pidfd::send(&fd, libc::SIGSTOP)?;
            raised
        })
    }

    /// Continues every process, with its leader back at the task's level. Real-time safe, as
    /// [`park`](Self::park).
    pub fn resume(&self) -> io::Result<()> {
        self.parked.store(false, Ordering::SeqCst);
        let level = self.level.load(Ordering::Relaxed);
        self.each(|pid, fd| {
            pidfd::send(&fd, 0)?;
            let lowered = sched::set_level(pid, level, Children::AreOrdinary);
            pidfd::send(&fd, libc::SIGCONT)?;
            lowered
        })
    }

    /// The FIFO level (0: ordinary) that leaders get when they are resumed. Real-time safe: one
    /// store.
    pub fn set_level(&self, level: i32) {
        self.level.store(level, Ordering::Relaxed);
    }

    /// CPU time of all its processes, ended ones as they were last read, in nanoseconds. Real-time
    /// safe: one system call for each. What an ended process used after the last reading is lost;
    /// what runs on another CPU is stale by up to a tick.
    pub fn usage_ns(&self) -> io::Result<u64> {
        let mut sum = self.gone_ns.load(Ordering::Relaxed);
        for s in &self.slots {
            let pid = s.pid.load(Ordering::Acquire);
            if pid != 0 {
                if let Some(ns) = CpuClock::of_process(pid).read() {
                    s.used.fetch_max(ns, Ordering::Relaxed);
                }
                sum += s.used.load(Ordering::Relaxed);
            }
        }
        Ok(sum)
    }

    fn each(&self, action: impl Fn(i32, i32) -> io::Result<()>) -> io::Result<()> {
        self.turn.fetch_add(1, Ordering::SeqCst);
        let mut first = Ok(());
        for s in &self.slots {
            let pid = s.pid.load(Ordering::SeqCst);
            if pid == 0 {
                continue;
            }
            if let Err(e) = action(pid, s.fd.load(Ordering::SeqCst)) {
                if e.raw_os_error() != Some(libc::ESRCH) && first.is_ok() {
                    first = Err(e);
                }
            }
        }
        self.turn.fetch_add(1, Ordering::SeqCst);
        first
    }

    /// Takes a process in, written down first. Not real-time safe.
    pub(crate) fn add(&self, id: Identity) -> Result<(), Diagnostic> {
        let mut members = self.members.lock().unwrap_or_else(|e| e.into_inner());
        if members.iter().any(|m| m.0 == id) {
            return Ok(());
        }
        let Some(n) = self
            .slots
            .iter()
            .position(|s| s.pid.load(Ordering::SeqCst) == 0 && s.fd.load(Ordering::SeqCst) < 0)
        else {
            return Err(Diagnostic::machine(
                format!("a task has more than {} processes", self.slots.len()),
                "mount cgroup v2, where there is no limit",
            ));
        };
        self.journal.write(&Entry::Stopping { id })?;
        let Some(fd) = id.open() else { return Ok(()) };
        let slot = &self.slots[n];
        slot.used.store(0, Ordering::SeqCst);
        slot.fd.store(fd.into_raw_fd(), Ordering::SeqCst);
        slot.pid.store(id.pid, Ordering::SeqCst);
        members.push((id, n));
        let _ = self.leader.compare_exchange(0, id.pid, Ordering::Relaxed, Ordering::Relaxed);
        // Published first, looked at afterwards: a park that missed it is made up for here.
        if self.parked.load(Ordering::SeqCst) {
            let fd = slot.fd.load(Ordering::SeqCst);
            // The signal first: once raised, the process is above this ordinary thread, which may
            // not get the CPU again before the process has stopped.
            let _ = pidfd::send(&fd, libc::SIGSTOP);
            let _ = sched::set_level(id.pid, LEADER_LEVEL, Children::AreOrdinary);
            if !self.parked.load(Ordering::SeqCst) {
                let _ = sched::set_level(
                    id.pid,
                    self.level.load(Ordering::Relaxed),
                    Children::AreOrdinary,
                );
                let _ = pidfd::send(&fd, libc::SIGCONT);
            }
        }
        Ok(())
    }

    /// Housekeeping: adds new descendants of its members, removes ended ones. Call it every few
    /// milliseconds from an ordinary thread. Returns how many it took in.
    pub fn rescan(&self) -> Result<usize, Diagnostic> {
        let before: Vec<(Identity, usize)> =
            self.members.lock().unwrap_or_else(|e| e.into_inner()).clone();
        let cookie = format!("PUNCTUAL_RUN={}", self.journal.mark());
        let roots: Vec<(i32, u64)> = before.iter().map(|m| (m.0.pid, self.since)).collect();
        let mut found = proc::descendants_since(&roots);
        if self.purpose == Purpose::Command {
            // A child whose parent ended has another one now, but still our process group and
            // environment.
            let ours =
                |s: Stat| s.start >= self.since && self.leader.load(Ordering::Relaxed) == s.pgrp;
            let orphans = proc::pids()
                .into_iter()
                .filter(|p| Stat::of(*p).is_some_and(ours) && proc::environment_has(*p, &cookie));
            found.extend(orphans.filter_map(Identity::of));
        }
        let mut taken = 0;
        for id in found {
            if before.iter().any(|m| m.0 == id) {
                continue;
            }
            match (self.purpose, before.first()) {
                (Purpose::Adopted, Some(first)) => {
                    self.journal.write(&Entry::Joined { id, like: first.0.pid })?
                }
                _ => self.journal.write(&Entry::Child { id })?,
            }
            self.add(id)?;
            taken += 1;
        }
        self.retire();
        Ok(taken)
    }

    fn retire(&self) {
        let mut members = self.members.lock().unwrap_or_else(|e| e.into_inner());
        members.retain(|(id, n)| {
            if id.is_alive() {
                return true;
            }
            let slot = &self.slots[*n];
            slot.pid.store(0, Ordering::SeqCst);
            self.gone_ns.fetch_add(slot.used.swap(0, Ordering::SeqCst), Ordering::SeqCst);
            // The slot is reused only once its pidfd is closed, and that waits for the real-time
            // path to be outside.
            for _ in 0..1000 {
                if self.turn.load(Ordering::SeqCst) % 2 == 0 {
                    close(slot.fd.swap(-1, Ordering::SeqCst));
                    break;
                }
                std::thread::sleep(std::time::Duration::from_micros(50));
            }
            false
        });
    }

    /// Its processes. Not real-time safe.
    pub fn procs(&self) -> Vec<i32> {
        let members = self.members.lock().unwrap_or_else(|e| e.into_inner());
        members.iter().filter(|m| m.0.is_alive()).map(|m| m.0.pid).collect()
    }

    /// Its threads. Not real-time safe.
    pub fn threads(&self) -> Vec<i32> {
        self.procs().into_iter().flat_map(proc::threads_of).collect()
    }

    /// Kills all its processes. Not real-time safe.
    pub fn kill(&self) -> io::Result<()> {
        self.each(|_, fd| pidfd::send(&fd, libc::SIGKILL))
    }

    /// Whether every process has stopped. Not real-time safe: reads /proc.
    pub fn is_stopped(&self) -> bool {
        self.threads()
            .into_iter()
            .all(|t| Stat::of(t).is_none_or(|s| matches!(s.state, 'T' | 'Z' | 'X')))
    }
}

impl Drop for StopGroup {
    fn drop(&mut self) {
        for s in &self.slots {
            close(s.fd.load(Ordering::SeqCst));
        }
    }
}

fn close(fd: i32) {
    if fd >= 0 {
        // SAFETY: the slot owned this descriptor and has just let go of it.
        drop(unsafe { <rustix::fd::OwnedFd as rustix::fd::FromRawFd>::from_raw_fd(fd) });
    }
}
