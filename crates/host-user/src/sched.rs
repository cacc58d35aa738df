//! Levels of SCHED_FIFO, affinity and locked memory, for threads of this process.

use std::io;

/// The dispatcher's own level, above every job.
pub const DISPATCHER: i32 = 99;
/// The freezer thread's level: below the dispatcher, above every job.
pub const FREEZER: i32 = 98;
/// The highest level of a job.
pub const HIGHEST: i32 = 96;
/// The lowest level of a job: above the kernel's interrupt threads (50) and what real-time programs
/// commonly choose, for a budget is promised whatever else runs, and bounds what it takes from them.
pub const LOWEST: i32 = 60;
/// SCHED_RESET_ON_FORK of sched.h.
const RESET_ON_FORK: i32 = 0x4000_0000;

/// SCHED_FIFO at `level`, or SCHED_OTHER for 0. `tid` 0 is the calling thread. Real-time safe.
///
/// Threads and processes that it creates do not inherit the class: no budget would hold them.
pub fn set_level(tid: i32, level: i32) -> io::Result<()> {
    let param = libc::sched_param { sched_priority: level };
    let policy = if level > 0 { libc::SCHED_FIFO } else { libc::SCHED_OTHER };
    // SAFETY: `param` is valid for the call.
    if unsafe { libc::sched_setscheduler(tid, policy | RESET_ON_FORK, &param) } == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}

/// The calling thread runs only when nobody else wants to.
pub fn to_idle_class() -> io::Result<()> {
    let param = libc::sched_param { sched_priority: 0 };
    // SAFETY: `param` is valid for the call.
    if unsafe { libc::sched_setscheduler(0, libc::SCHED_IDLE, &param) } == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}

/// Pins a thread to one CPU. `tid` 0 is the calling thread.
pub fn pin(tid: i32, cpu: u32) -> io::Result<()> {
    // SAFETY: the set is valid for the call, and the CPU is within it.
    let code = unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        libc::CPU_SET((cpu as usize).min(libc::CPU_SETSIZE as usize - 1), &mut set);
        libc::sched_setaffinity(tid, std::mem::size_of_val(&set), &set)
    };
    if code == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}

/// Keeps what we touch in memory. What is never touched costs nothing.
pub fn lock_memory() -> io::Result<()> {
    // SAFETY: a system call without pointers.
    let code = unsafe { libc::mlockall(libc::MCL_CURRENT | libc::MCL_FUTURE | libc::MCL_ONFAULT) };
    if code == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}
