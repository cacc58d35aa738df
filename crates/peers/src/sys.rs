//! The raw calls, each in its safe dress. All may be made from a real-time thread: none allocates.

use std::fs::File;
use std::io;
use std::mem::size_of;
use std::os::fd::FromRawFd;

/// Execution time of so many ns on a clock of the process or one of its threads.
pub type CpuClock = libc::clockid_t;

/// A policy with what it needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Policy {
    /// SCHED_OTHER.
    Other,
    /// SCHED_FIFO at this priority.
    Fifo(i32),
    /// SCHED_DEADLINE; ns each.
    Deadline {
        /// Budget.
        runtime: u64,
        /// Relative deadline.
        deadline: u64,
        /// Period.
        period: u64,
    },
}

/// The kernel's struct sched_attr, first version.
#[repr(C)]
struct SchedAttr {
    size: u32,
    policy: u32,
    flags: u64,
    nice: i32,
    priority: u32,
    runtime: u64,
    deadline: u64,
    period: u64,
}

/// SCHED_FLAG_RESET_ON_FORK: without it a SCHED_DEADLINE task may not create threads at all.
const RESET_ON_FORK: u64 = 1;

/// Gives a thread (0: the caller) a policy. `forks`: under SCHED_DEADLINE its children become ordinary.
pub fn set_policy(tid: i32, policy: Policy, forks: bool) -> Result<(), i32> {
    let mut attr = SchedAttr {
        size: size_of::<SchedAttr>() as u32,
        policy: libc::SCHED_OTHER as u32,
        flags: 0,
        nice: 0,
        priority: 0,
        runtime: 0,
        deadline: 0,
        period: 0,
    };
    match policy {
        Policy::Other => {}
        Policy::Fifo(priority) => {
            attr.policy = libc::SCHED_FIFO as u32;
            attr.priority = priority as u32;
        }
        Policy::Deadline { runtime, deadline, period } => {
            attr.policy = libc::SCHED_DEADLINE as u32;
            attr.flags = if forks { RESET_ON_FORK } else { 0 };
            (attr.runtime, attr.deadline, attr.period) = (runtime, deadline, period);
        }
    }
    // SAFETY: `attr` is a valid sched_attr of the size it names, which the kernel only reads.
    match unsafe { libc::syscall(libc::SYS_sched_setattr, tid, &attr, 0u32) } {
        0 => Ok(()),
        _ => Err(errno()),
    }
}

/// Binds the calling thread to one CPU, or with `None` to all it may have.
pub fn set_affinity(cpu: Option<u32>) -> Result<(), i32> {
    // SAFETY: an all-zero cpu_set_t is a valid, empty set.
    let mut cpus: libc::cpu_set_t = unsafe { std::mem::zeroed() };
    for i in 0..libc::CPU_SETSIZE as u32 {
        if cpu.is_none_or(|cpu| cpu == i) {
            // SAFETY: `i` is below CPU_SETSIZE.
            unsafe { libc::CPU_SET(i as usize, &mut cpus) };
        }
    }
    // SAFETY: `cpus` is a valid set of the size given, which the kernel only reads.
    match unsafe { libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &cpus) } {
        0 => Ok(()),
        _ => Err(errno()),
    }
}

/// The CPUs the calling thread may use.
pub fn affinity() -> Vec<u32> {
    // SAFETY: an all-zero cpu_set_t is a valid set, writable for the call.
    let mut cpus: libc::cpu_set_t = unsafe { std::mem::zeroed() };
    // SAFETY: `cpus` is writable and of the size given.
    if unsafe { libc::sched_getaffinity(0, size_of::<libc::cpu_set_t>(), &mut cpus) } != 0 {
        return Vec::new();
    }
    // SAFETY: the index is below CPU_SETSIZE.
    (0..libc::CPU_SETSIZE as u32).filter(|&i| unsafe { libc::CPU_ISSET(i as usize, &cpus) }).collect()
}

/// The caller's thread id.
pub fn tid() -> i32 {
    // SAFETY: gettid has no preconditions.
    unsafe { libc::syscall(libc::SYS_gettid) as i32 }
}

/// CPU clock of a thread of this process (the kernel's MAKE_THREAD_CPUCLOCK, CPUCLOCK_SCHED).
pub fn thread_clock(tid: i32) -> CpuClock {
    (!tid << 3) | 6
}

/// CPU clock of a whole process (MAKE_PROCESS_CPUCLOCK, CPUCLOCK_SCHED).
pub fn process_clock(pid: i32) -> CpuClock {
    (!pid << 3) | 2
}

/// Reads a CPU clock, ns; `None` when whoever it belonged to is gone.
pub fn read_clock(clock: CpuClock) -> Option<u64> {
    let mut t = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `t` is a valid, writable timespec.
    let failed = unsafe { libc::clock_gettime(clock, &mut t) } != 0;
    (!failed).then_some(t.tv_sec as u64 * 1_000_000_000 + t.tv_nsec as u64)
}

/// Sleeps until an instant on CLOCK_MONOTONIC, ns; a signal may end it early.
pub fn sleep_until(instant: u64) {
    let t = libc::timespec {
        tv_sec: (instant / 1_000_000_000) as libc::time_t,
        tv_nsec: (instant % 1_000_000_000) as libc::c_long,
    };
    // SAFETY: `t` is a valid timespec; no remaining time is asked for.
    unsafe { libc::clock_nanosleep(libc::CLOCK_MONOTONIC, libc::TIMER_ABSTIME, &t, std::ptr::null_mut()) };
}

/// Locks all memory there is now, which also brings in every stack. Not that of the future: it would stay with the
/// process after the run.
pub fn lock_memory() -> Result<(), i32> {
    // SAFETY: mlockall has no memory preconditions.
    match unsafe { libc::mlockall(libc::MCL_CURRENT) } {
        0 => Ok(()),
        _ => Err(errno()),
    }
}

/// Whether a child has ended, without reaping it: its pid stays its own.
pub fn has_ended(pid: i32) -> bool {
    // SAFETY: an all-zero siginfo_t is valid and writable; P_PID with WNOWAIT changes no state.
    unsafe {
        let mut info: libc::siginfo_t = std::mem::zeroed();
        let flags = libc::WEXITED | libc::WNOHANG | libc::WNOWAIT;
        libc::waitid(libc::P_PID, pid as libc::id_t, &mut info, flags) != 0 || info.si_pid() == pid
    }
}

/// Kills a process group.
pub fn kill_group(pgid: i32) {
    if pgid > 1 {
        // SAFETY: a system call without memory arguments.
        unsafe { libc::kill(-pgid, libc::SIGKILL) };
    }
}

/// A pipe (end to read, end to write) that closes at exec.
pub fn pipe() -> io::Result<(File, File)> {
    let mut ends = [0; 2];
    // SAFETY: two writable descriptors.
    if unsafe { libc::pipe2(ends.as_mut_ptr(), libc::O_CLOEXEC) } != 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: both are open, and nobody else has them.
    Ok(unsafe { (File::from_raw_fd(ends[0]), File::from_raw_fd(ends[1])) })
}

/// The last error's number.
pub fn errno() -> i32 {
    io::Error::last_os_error().raw_os_error().unwrap_or(0)
}

/// RLIMIT_RTTIME for as long as it lives: real-time execution without a pause beyond it kills the process. The soft
/// limit alone is set, because it can be given back.
pub struct RtTimeLimit {
    before: Option<libc::rlimit>,
}

impl RtTimeLimit {
    /// At most `ns` of real-time execution at a stretch.
    pub fn set(ns: u64) -> RtTimeLimit {
        let mut before = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
        // SAFETY: `before` is a valid, writable rlimit.
        if unsafe { libc::getrlimit(libc::RLIMIT_RTTIME, &mut before) } != 0 || before.rlim_cur <= ns / 1_000 {
            return RtTimeLimit { before: None };
        }
        let now = libc::rlimit { rlim_cur: ns / 1_000, ..before };
        // SAFETY: `now` is a valid rlimit, which the kernel only reads.
        let set = unsafe { libc::setrlimit(libc::RLIMIT_RTTIME, &now) } == 0;
        RtTimeLimit { before: set.then_some(before) }
    }
}

impl Drop for RtTimeLimit {
    fn drop(&mut self) {
        if let Some(before) = self.before {
            // SAFETY: `before` is a valid rlimit, which the kernel only reads.
            unsafe { libc::setrlimit(libc::RLIMIT_RTTIME, &before) };
        }
    }
}
