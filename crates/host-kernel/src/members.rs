//! Threads, as they become members of tasks.

use std::collections::HashSet;

use punctual_process::{descendants, threads_of};
use punctual_sys::sched;

use crate::abi::{BUSY, NO_THREAD, REAL_TIME, WRONG_CPU};
use crate::diagnostics::OTHERS;
use punctual_diagnostic::Diagnostic;

/// Looks at a process that has threads and children; each finds who was started meanwhile by one
/// not yet joined.
const ROUNDS: usize = 50;

/// The calling thread, to one CPU.
///
/// # Errors
/// The CPU is not there, or not in our cpuset.
pub(crate) fn pin(cpu: u32) -> Result<(), Diagnostic> {
    sched::pin(0, cpu).map_err(|why| {
        let cause = format!("CPU {cpu}: no thread of this program may run there ({why})");
        Diagnostic::machine(
            cause,
            "choose a CPU that is online and in our cpuset (see punctual doctor)",
        )
    })
}

/// Why a thread could not become a member.
pub(crate) fn why(thread: i32, refusal: i64) -> String {
    match refusal {
        NO_THREAD => format!("there is no thread {thread}"),
        REAL_TIME => format!("thread {thread} is in a real-time class, which is above sched_ext"),
        BUSY => format!("thread {thread} is a task's already"),
        WRONG_CPU => "it was asked on another CPU".to_owned(),
        _ => {
            let error = std::io::Error::from_raw_os_error(refusal.unsigned_abs() as i32);
            format!("the kernel refused thread {thread}: {error}")
        }
    }
}

/// A thread of the process cannot join.
pub(crate) fn refused(pid: i32, thread: i32, refusal: i64) -> Diagnostic {
    let cause = format!("process {pid}: {}", why(thread, refusal));
    match refusal {
        REAL_TIME => Diagnostic::usage(
            cause,
            format!("give it up first: chrt -a -o -p 0 {pid}; or {OTHERS}"),
        ),
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

/// Joins a process with all its threads, and its children with theirs. Threads and children that a
/// member starts later are members by birth.
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
                    // It has ended since, or is a member by birth; only the first one must exist
                    // and belong to no task.
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
