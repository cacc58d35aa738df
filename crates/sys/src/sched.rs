//! Scheduling attributes of threads and their CPUs. A thread is named by its number; 0 is the
//! calling one.
//!
//! All are raw system calls, because musl's sched_setscheduler and its relatives return ENOSYS.

use serde::{Deserialize, Serialize};
use std::io;

/// All scheduling attributes of a thread: the kernel's `struct sched_attr`, first version (48
/// bytes), which every kernel since 3.14 accepts. Times are ns.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Attributes {
    size: u32,
    /// SCHED_OTHER, SCHED_FIFO, ...
    pub policy: u32,
    /// SCHED_FLAG_RESET_ON_FORK and the like.
    pub flags: u64,
    /// Of an ordinary policy.
    pub nice: i32,
    /// Of SCHED_FIFO and SCHED_RR.
    pub priority: u32,
    /// Budget under SCHED_DEADLINE; the slice of an ordinary thread, 0 for the default.
    pub runtime: u64,
    /// Relative deadline under SCHED_DEADLINE.
    pub deadline: u64,
    /// Period under SCHED_DEADLINE.
    pub period: u64,
}

impl Attributes {
    const SIZE: u32 = 48;

    /// An ordinary thread of nice 0.
    #[must_use]
    pub fn ordinary() -> Self {
        Self { size: Self::SIZE, ..Self::default() }
    }

    /// SCHED_FIFO.
    #[must_use]
    pub fn fifo(priority: u32) -> Self {
        Self { policy: libc::SCHED_FIFO as u32, priority, ..Self::ordinary() }
    }

    /// SCHED_DEADLINE. Without reset-on-fork such a thread may create no others.
    #[must_use]
    pub fn deadline(runtime: u64, deadline: u64, period: u64, children: Children) -> Self {
        let flags = match children {
            Children::Inherit => 0,
            Children::AreOrdinary => libc::SCHED_FLAG_RESET_ON_FORK as u64,
        };
        Self {
            policy: libc::SCHED_DEADLINE as u32,
            flags,
            runtime,
            deadline,
            period,
            ..Self::ordinary()
        }
    }

    /// What a thread has now.
    ///
    /// # Errors
    /// ESRCH.
    pub fn of(tid: i32) -> io::Result<Self> {
        let mut a = Self::default();
        // SAFETY: `a` is a writable struct of exactly SIZE bytes, the size that the call passes.
        let r = unsafe {
            libc::syscall(libc::SYS_sched_getattr, tid, &mut a as *mut Self, Self::SIZE, 0u32)
        };
        if r != 0 {
            return Err(io::Error::last_os_error());
        }
        a.size = Self::SIZE;
        if a.is_fair() && a.runtime == default_slice() {
            // Kernels from 6.12 report the default slice here; setting it back would turn it into a
            // fixed one.
            a.runtime = 0;
        }
        Ok(a)
    }

    /// Gives these to a thread. Real-time safe.
    ///
    /// # Errors
    /// EPERM, ESRCH, EINVAL, EBUSY (SCHED_DEADLINE: more than the CPU has).
    pub fn give(&self, tid: i32) -> io::Result<()> {
        let give = |a: Self| {
            // SAFETY: `a` is a readable struct of SIZE bytes, as its first field says.
            match unsafe { libc::syscall(libc::SYS_sched_setattr, tid, &a as *const Self, 0u32) } {
                0 => Ok(()),
                _ => Err(io::Error::last_os_error()),
            }
        };
        let a = Self { size: Self::SIZE, ..*self };
        let keep_flag =
            || give(Self { flags: a.flags | libc::SCHED_FLAG_RESET_ON_FORK as u64, ..a });
        unless_it_clears_the_flag(give(a), keep_flag)
    }

    fn is_fair(&self) -> bool {
        matches!(self.policy as i32, libc::SCHED_OTHER | libc::SCHED_BATCH | libc::SCHED_IDLE)
    }

    /// SCHED_FIFO, SCHED_RR or SCHED_DEADLINE.
    #[must_use]
    pub fn is_real_time(&self) -> bool {
        matches!(self.policy as i32, libc::SCHED_FIFO | libc::SCHED_RR | libc::SCHED_DEADLINE)
    }
}

/// The slice that init has: init has none of its own.
fn default_slice() -> u64 {
    let mut a = Attributes::default();
    // SAFETY: as in `Attributes::of`.
    let r = unsafe {
        libc::syscall(libc::SYS_sched_getattr, 1, &mut a as *mut Attributes, Attributes::SIZE, 0u32)
    };
    if r == 0 {
        a.runtime
    } else {
        0
    }
}

/// The number of the calling thread. Real-time safe.
#[must_use]
pub fn thread_id() -> i32 {
    // SAFETY: gettid has no preconditions.
    unsafe { libc::gettid() }
}

/// SCHED_FIFO at `priority` for one thread. Real-time safe.
///
/// # Errors
/// EPERM, ESRCH; of each function here.
pub fn set_fifo(tid: i32, priority: i32) -> io::Result<()> {
    set(tid, libc::SCHED_FIFO, priority)
}

/// SCHED_RR at `priority` for one thread: after its time slice (100 ms) it is queued behind the
/// other threads of that priority.
pub fn set_round_robin(tid: i32, priority: i32) -> io::Result<()> {
    set(tid, libc::SCHED_RR, priority)
}

/// SCHED_OTHER for one thread; its nice value stays. Real-time safe.
pub fn set_other(tid: i32) -> io::Result<()> {
    set(tid, libc::SCHED_OTHER, 0)
}

/// SCHED_IDLE for one thread: it executes when no other ordinary one is ready.
pub fn set_idle(tid: i32) -> io::Result<()> {
    set(tid, libc::SCHED_IDLE, 0)
}

/// SCHED_FIFO at `level`, or SCHED_OTHER when it is 0. Real-time safe: one system call, two where
/// the thread may not clear reset-on-fork.
///
/// That flag is set at level 0, too. A fork copies the class at one instant and the priority at a
/// later one: of a thread that had no flag and got a level in between, the child would have that
/// level, under the name of an ordinary class.
pub fn set_level(tid: i32, level: i32, children: Children) -> io::Result<()> {
    let policy = if level > 0 { libc::SCHED_FIFO } else { libc::SCHED_OTHER };
    let flag = match children {
        Children::Inherit => 0,
        Children::AreOrdinary => RESET_ON_FORK,
    };
    set(tid, policy | flag, level.max(0))
}

/// SCHED_RESET_ON_FORK of sched.h.
const RESET_ON_FORK: i32 = 0x4000_0000;

/// The class of the threads and processes that a thread creates.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Children {
    /// Its own, and its level.
    Inherit,
    /// SCHED_OTHER (reset-on-fork).
    AreOrdinary,
}

/// Only CAP_SYS_NICE may clear reset-on-fork; without that right, `keep` sets the rest.
fn unless_it_clears_the_flag(
    result: io::Result<()>,
    keep: impl FnOnce() -> io::Result<()>,
) -> io::Result<()> {
    match result {
        Err(e) if e.raw_os_error() == Some(libc::EPERM) => keep(),
        other => other,
    }
}

/// The real-time priority of one thread; 0 for an ordinary one, `None` when it is gone. Real-time
/// safe.
#[must_use]
pub fn priority(tid: i32) -> Option<i32> {
    let mut param = libc::sched_param { sched_priority: 0 };
    // SAFETY: the kernel writes one sched_param, which lives on our stack.
    (unsafe { libc::syscall(libc::SYS_sched_getparam, tid, &raw mut param) } == 0)
        .then_some(param.sched_priority)
}

/// The policy of one thread, with SCHED_RESET_ON_FORK where it has that; `None` when it is gone.
/// Real-time safe.
#[must_use]
pub fn policy(tid: i32) -> Option<i32> {
    // SAFETY: a system call without pointers.
    Some(unsafe { libc::syscall(libc::SYS_sched_getscheduler, tid) } as i32)
        .filter(|policy| *policy >= 0)
}

/// Sets the policy of one thread, with SCHED_RESET_ON_FORK or without, and its priority (0 for an
/// ordinary policy). Real-time safe.
pub fn set(tid: i32, policy: i32, priority: i32) -> io::Result<()> {
    let param = libc::sched_param { sched_priority: priority };
    let set = |policy: i32| {
        // SAFETY: the kernel reads one sched_param, which lives on our stack.
        match unsafe { libc::syscall(libc::SYS_sched_setscheduler, tid, policy, &raw const param) }
        {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    };
    unless_it_clears_the_flag(set(policy), || set(policy | RESET_ON_FORK))
}

/// A set of CPUs of any size, 64 to a word; the last word is not 0, so that equal sets compare so.
pub type Mask = Vec<u64>;

/// As many as any kernel is built for.
const MOST_WORDS: usize = 128;

/// The CPUs that a thread may use.
pub fn affinity(tid: i32) -> io::Result<Mask> {
    let mut words = vec![0u64; MOST_WORDS];
    let length = words.len() * 8;
    // SAFETY: the kernel writes at most the given number of bytes into `words`.
    if unsafe { libc::syscall(libc::SYS_sched_getaffinity, tid, length, words.as_mut_ptr()) } < 0 {
        return Err(io::Error::last_os_error());
    }
    // The kernel returns as many words as it was built, or started, for.
    let used = words.iter().rposition(|&word| word != 0).map_or(0, |last| last + 1);
    words.truncate(used);
    Ok(words)
}

/// The numbers of the CPUs in a set, from the lowest on.
pub fn cpus(mask: &[u64]) -> impl Iterator<Item = u32> + '_ {
    (0..mask.len() as u32 * 64).filter(|cpu| mask[*cpu as usize / 64] & 1 << (cpu % 64) != 0)
}

/// Sets the CPUs that a thread may use. Real-time safe.
pub fn set_affinity(tid: i32, mask: &[u64]) -> io::Result<()> {
    // SAFETY: the kernel reads the given number of bytes from `mask`.
    if unsafe { libc::syscall(libc::SYS_sched_setaffinity, tid, mask.len() * 8, mask.as_ptr()) }
        != 0
    {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}

/// Lets a thread use one CPU alone. Real-time safe.
pub fn pin(tid: i32, cpu: u32) -> io::Result<()> {
    let mut words = [0u64; MOST_WORDS];
    let word = words.get_mut(cpu as usize / 64).ok_or(io::ErrorKind::InvalidInput)?;
    *word = 1 << (cpu % 64);
    set_affinity(tid, &words)
}

/// Lets a thread use all the CPUs that its cpuset has. Real-time safe.
pub fn unpin(tid: i32) -> io::Result<()> {
    set_affinity(tid, &[u64::MAX; MOST_WORDS])
}

/// The set of one CPU.
#[must_use]
pub fn only(cpu: u32) -> Mask {
    let mut words = vec![0u64; cpu as usize / 64 + 1];
    words[cpu as usize / 64] = 1 << (cpu % 64);
    words
}

/// Every CPU there could be; the kernel cuts it to those that the thread's cpuset has.
#[must_use]
pub fn every() -> Mask {
    vec![u64::MAX; MOST_WORDS]
}
