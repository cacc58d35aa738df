//! Threads, as they become members of tasks.

use std::collections::HashSet;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::time::{Duration, Instant};

use punctual_process::{descendants, threads_of};

use crate::abi::{ABOVE, ELSEWHERE, NO_THREAD};
use crate::diagnostics::OTHERS;
use punctual_diagnostic::Diagnostic;

/// As `PD_EBUSY`.
const BUSY: i64 = -5;
/// Looks at a process that has threads and children; each finds who was started meanwhile by one not yet joined.
const ROUNDS: usize = 50;
/// For the end of a child that was told to.
const PATIENCE: Duration = Duration::from_secs(2);

/// The calling thread, to one CPU.
///
/// # Errors
/// The CPU is not there, or not in our cpuset.
pub(crate) fn pin(cpu: u32) -> Result<(), Diagnostic> {
    let refused = |why: &dyn std::fmt::Display| {
        let cause = format!("CPU {cpu}: no thread of this program may run there ({why})");
        Diagnostic::machine(cause, "choose a CPU that is online and in our cpuset (see punctual doctor)")
    };
    if cpu as usize >= libc::CPU_SETSIZE as usize {
        return Err(refused(&"there is no such CPU"));
    }
    // SAFETY: the set is valid for the call, and written only within its size.
    unsafe {
        let mut cpus: libc::cpu_set_t = std::mem::zeroed();
        libc::CPU_SET(cpu as usize, &mut cpus);
        if libc::sched_setaffinity(0, size_of_val(&cpus), &cpus) != 0 {
            return Err(refused(&std::io::Error::last_os_error()));
        }
    }
    Ok(())
}

/// Whether a process may run on a CPU; true where that cannot be asked.
pub(crate) fn may_run_on(pid: i32, cpu: u32) -> bool {
    // SAFETY: as above.
    unsafe {
        let mut cpus: libc::cpu_set_t = std::mem::zeroed();
        libc::sched_getaffinity(pid, size_of_val(&cpus), &mut cpus) != 0
            || (cpu as usize) < libc::CPU_SETSIZE as usize && libc::CPU_ISSET(cpu as usize, &cpus)
    }
}

/// A process that is there, whatever its number is given to later.
pub(crate) fn pidfd(pid: i32) -> std::io::Result<OwnedFd> {
    // SAFETY: passes no memory.
    let fd = unsafe { libc::syscall(libc::SYS_pidfd_open, pid, 0) };
    if fd < 0 {
        return Err(std::io::Error::last_os_error());
    }
    // SAFETY: a new descriptor of ours.
    Ok(unsafe { OwnedFd::from_raw_fd(fd as i32) })
}

/// Sends a signal; whoever is gone gets nothing.
pub(crate) fn signal(pidfd: &OwnedFd, signal: i32) {
    // SAFETY: passes no memory but a null, for the signal's usual information.
    unsafe { libc::syscall(libc::SYS_pidfd_send_signal, pidfd.as_raw_fd(), signal, std::ptr::null::<u8>(), 0) };
}

/// Waits for a child that ends; whether it has. Not for ever: one that was killed while a debugger held it, and the debugger
/// is stopped, is the debugger's to wait for.
pub(crate) fn reap(pid: i32) -> bool {
    let limit = Instant::now() + PATIENCE;
    // SAFETY: a child of ours that was not waited for; nothing is written.
    while unsafe { libc::waitpid(pid, std::ptr::null_mut(), libc::WNOHANG) } == 0 {
        if Instant::now() > limit {
            return false;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    true
}

/// Why a thread could not become a member.
pub(crate) fn why(thread: i32, refusal: i64) -> String {
    match refusal {
        NO_THREAD => format!("there is no thread {thread}"),
        ABOVE => format!("thread {thread} is in a real-time class, which is above sched_ext"),
        BUSY => format!("thread {thread} is a task's already"),
        ELSEWHERE => "it was asked on another CPU".to_owned(),
        _ => format!("the kernel refused thread {thread} ({refusal})"),
    }
}

fn refused(pid: i32, thread: i32, refusal: i64) -> Diagnostic {
    let cause = format!("process {pid}: {}", why(thread, refusal));
    match refusal {
        ABOVE => Diagnostic::usage(cause, format!("give it up first: chrt -a -o -p 0 {pid}; or {OTHERS}")),
        NO_THREAD => Diagnostic::usage(cause, "name a process that runs"),
        BUSY => Diagnostic::usage(cause, "adopt a process once, and none within another one"),
        _ => Diagnostic::machine(cause, OTHERS),
    }
}

/// A process of one thread.
pub(crate) fn join_one(pid: i32, join: &mut dyn FnMut(i32) -> i64) -> Result<(), Diagnostic> {
    match join(pid) {
        0 => Ok(()),
        refusal => Err(refused(pid, pid, refusal)),
    }
}

/// A process with all its threads, and its children with theirs. Whoever a member starts from here on is one by birth.
pub(crate) fn join_all(pid: i32, join: &mut dyn FnMut(i32) -> i64) -> Result<(), Diagnostic> {
    let mut seen = HashSet::new();
    for _ in 0..ROUNDS {
        let mut new = 0;
        for process in std::iter::once(pid).chain(descendants(&[pid])) {
            for thread in threads_of(process) {
                if !seen.insert(thread) {
                    continue;
                }
                new += 1;
                match join(thread) {
                    0 => {}
                    // It has ended since, or is a member by birth; the first one alone has to be there, and nobody's.
                    NO_THREAD | BUSY if thread != pid => {}
                    refusal => return Err(refused(process, thread, refusal)),
                }
            }
        }
        if seen.is_empty() {
            return Err(refused(pid, pid, NO_THREAD));
        }
        if new == 0 {
            break;
        }
    }
    Ok(())
}
