//! Scheduling attributes of threads, read and set whole (sched_getattr, sched_setattr), and the two fast calls of the
//! real-time path.

use serde::{Deserialize, Serialize};
use std::io;

/// The kernel's `struct sched_attr`, first version (48 bytes): what every kernel since 3.14 knows.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(crate) struct Attr {
    size: u32,
    pub policy: u32,
    pub flags: u64,
    pub nice: i32,
    pub priority: u32,
    pub runtime: u64,
    pub deadline: u64,
    pub period: u64,
}

impl Attr {
    const SIZE: u32 = 48;

    /// An ordinary thread of nice 0.
    pub fn ordinary() -> Self {
        Self { size: Self::SIZE, ..Self::default() }
    }

    /// What a thread has now.
    pub fn of(tid: i32) -> io::Result<Self> {
        let mut a = Self::default();
        // SAFETY: `a` is a writable struct of exactly SIZE bytes, and SIZE is what the kernel is told.
        let r = unsafe { libc::syscall(libc::SYS_sched_getattr, tid, &mut a as *mut Self, Self::SIZE, 0u32) };
        if r != 0 {
            return Err(io::Error::last_os_error());
        }
        a.size = Self::SIZE;
        if a.is_fair() && a.runtime == default_slice() {
            // Kernels from 6.12 report the default slice here; setting it back would turn it into a fixed one.
            a.runtime = 0;
        }
        Ok(a)
    }

    /// Gives these to a thread.
    pub fn give(&self, tid: i32) -> io::Result<()> {
        let give = |a: Self| {
            // SAFETY: `a` is a readable struct of SIZE bytes, as its first field says.
            match unsafe { libc::syscall(libc::SYS_sched_setattr, tid, &a as *const Self, 0u32) } {
                0 => Ok(()),
                _ => Err(io::Error::last_os_error()),
            }
        };
        let a = Self { size: Self::SIZE, ..*self };
        let keep_flag = || give(Self { flags: a.flags | libc::SCHED_FLAG_RESET_ON_FORK as u64, ..a });
        unless_it_clears_the_flag(give(a), keep_flag)
    }

    fn is_fair(&self) -> bool {
        matches!(self.policy as i32, libc::SCHED_OTHER | libc::SCHED_BATCH | libc::SCHED_IDLE)
    }

    pub fn is_real_time(&self) -> bool {
        matches!(self.policy as i32, libc::SCHED_FIFO | libc::SCHED_RR | libc::SCHED_DEADLINE)
    }
}

/// The slice that init has: nobody gives init a slice of its own.
fn default_slice() -> u64 {
    let mut a = Attr::default();
    // SAFETY: as in `Attr::of`.
    let r = unsafe { libc::syscall(libc::SYS_sched_getattr, 1, &mut a as *mut Attr, Attr::SIZE, 0u32) };
    if r == 0 {
        a.runtime
    } else {
        0
    }
}

/// SCHED_FIFO at `priority` for one thread (0 = the calling one). Real-time safe: one system call.
pub(crate) fn set_fifo(tid: i32, priority: i32) -> io::Result<()> {
    set(tid, libc::SCHED_FIFO, priority)
}

/// SCHED_RR at `priority` for one thread (0 = the calling one): after its time slice (100 ms) it makes room for others of
/// that priority.
pub(crate) fn set_round_robin(tid: i32, priority: i32) -> io::Result<()> {
    set(tid, libc::SCHED_RR, priority)
}

/// SCHED_OTHER for one thread; its nice value stays. Real-time safe: one system call.
pub(crate) fn set_other(tid: i32) -> io::Result<()> {
    set(tid, libc::SCHED_OTHER, 0)
}

/// SCHED_FIFO at `level`, or SCHED_OTHER when it is 0. Real-time safe: one system call, two where it may not clear
/// reset-on-fork.
pub(crate) fn set_level(tid: i32, level: i32, children: Children) -> io::Result<()> {
    match (level, children) {
        (..=0, _) => set_other(tid),
        (_, Children::Inherit) => set_fifo(tid, level),
        (_, Children::AreOrdinary) => set(tid, libc::SCHED_FIFO | RESET_ON_FORK, level),
    }
}

/// SCHED_RESET_ON_FORK of sched.h.
const RESET_ON_FORK: i32 = 0x4000_0000;

/// The class of the threads and processes that a thread creates.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Children {
    /// Its own, and its level.
    Inherit,
    /// SCHED_OTHER: where nothing stops new processes before the housekeeper has found them. At a real-time level they
    /// would keep the CPU from it.
    AreOrdinary,
}

/// Only CAP_SYS_NICE may clear reset-on-fork; without that right, `keep` sets the rest.
fn unless_it_clears_the_flag(result: io::Result<()>, keep: impl FnOnce() -> io::Result<()>) -> io::Result<()> {
    match result {
        Err(e) if e.raw_os_error() == Some(libc::EPERM) => keep(),
        other => other,
    }
}

/// The real-time priority of one thread; 0 for an ordinary one, `None` when it is gone. Real-time safe: one system call.
pub(crate) fn param(tid: i32) -> Option<i32> {
    let mut param = libc::sched_param { sched_priority: 0 };
    // SAFETY: the kernel writes one sched_param, which lives on our stack.
    (unsafe { libc::sched_getparam(tid, &mut param) } == 0).then_some(param.sched_priority)
}

fn set(tid: i32, policy: i32, priority: i32) -> io::Result<()> {
    let param = libc::sched_param { sched_priority: priority };
    let set = |policy: i32| {
        // SAFETY: the kernel reads one sched_param, which lives on our stack.
        match unsafe { libc::sched_setscheduler(tid, policy, &param) } {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    };
    unless_it_clears_the_flag(set(policy), || set(policy | RESET_ON_FORK))
}

/// A CPU mask of any size, 64 CPUs to a word.
pub(crate) type Mask = Vec<u64>;

/// The CPUs that a thread may use.
pub(crate) fn affinity(tid: i32) -> io::Result<Mask> {
    let mut words = vec![0u64; 128];
    // SAFETY: the kernel writes at most the given number of bytes into `words`.
    let n = unsafe { libc::syscall(libc::SYS_sched_getaffinity, tid, words.len() * 8, words.as_mut_ptr()) };
    if n < 0 {
        return Err(io::Error::last_os_error());
    }
    words.truncate((n as usize).div_ceil(8));
    Ok(words)
}

/// Sets the CPUs that a thread may use. Real-time safe: one system call.
pub(crate) fn set_affinity(tid: i32, mask: &[u64]) -> io::Result<()> {
    // SAFETY: the kernel reads the given number of bytes from `mask`.
    if unsafe { libc::syscall(libc::SYS_sched_setaffinity, tid, mask.len() * 8, mask.as_ptr()) } != 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}

/// The mask of one CPU.
pub(crate) fn only(cpu: u32) -> Mask {
    let mut words = vec![0u64; cpu as usize / 64 + 1];
    words[cpu as usize / 64] = 1 << (cpu % 64);
    words
}

/// Every CPU there could be; the kernel cuts it to those that the thread's cpuset has.
pub(crate) fn every() -> Mask {
    vec![u64::MAX; 128]
}
