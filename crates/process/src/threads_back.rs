//! Giving the threads of an adopted process, or one thread of another, their attributes back.
//!
//! A process that runs meanwhile may start threads, which inherit what we have not yet taken back;
//! so its threads are gone through until one whole pass finds nothing to change. A thread is
//! restored once: what it chooses afterwards, all the time perhaps, is its own.

use crate::journal::{AdoptedThreadRecord, ProcessRecord, ThreadRecord};
use crate::proc::{self, Stat};
use punctual_sys::sched;
use std::collections::HashSet;
use std::time::Duration;

/// How often the threads of one process are gone through at most.
const PASSES: usize = 100;

/// Gives all threads of `pid` back what `record` says, those that came later what its leader had.
/// Returns how many threads were changed; problems are added to `problems`.
pub(crate) fn give_back(
    pid: i32,
    record: Option<&ProcessRecord>,
    problems: &mut Vec<String>,
) -> usize {
    let mut changed = HashSet::new();
    for pass in 0..PASSES {
        let mut quiet = true;
        let mut failed = None;
        for tid in proc::threads_of(pid) {
            if changed.contains(&tid) {
                continue;
            }
            match one(pid, tid, record) {
                Ok(false) => {}
                Ok(true) => {
                    quiet = false;
                    changed.insert(tid);
                }
                Err(e) if e.raw_os_error() == Some(libc::ESRCH) => {}
                Err(e) => failed = Some((tid, e)),
            }
        }
        if quiet {
            if let Some((tid, e)) = failed {
                problems.push(format!(
                    "thread {tid} of process {pid} ({}) did not get its policy back: {e}",
                    proc::command_of(pid)
                ));
            }
            break;
        }
        if pass + 1 == PASSES {
            problems.push(format!(
                "process {pid} ({}) creates threads faster than they can be restored",
                proc::command_of(pid)
            ));
        } else if pass > 10 {
            std::thread::sleep(Duration::from_millis(1));
        }
    }
    changed.len()
}

/// One thread; whether anything had to be changed.
fn one(pid: i32, tid: i32, record: Option<&ProcessRecord>) -> std::io::Result<bool> {
    let own = record.and_then(|r| find(r, pid, tid));
    let ordinary = sched::Attributes::ordinary();
    let want = own.map_or(&ordinary, |t| &t.attr);
    let mut changed = false;
    match own {
        Some(t) if sched::affinity(tid)? != t.affinity => {
            // Its CPUs may be offline or out of its cpuset by now: then any it may use.
            if sched::set_affinity(tid, &t.affinity).is_err() {
                sched::set_affinity(tid, &sched::every())?;
            } else {
                changed = sched::affinity(tid)? == t.affinity;
            }
        }
        None => sched::set_affinity(tid, &sched::every())?,
        _ => {}
    }
    let now = sched::Attributes::of(tid)?;
    // Without a record nothing but real-time priority is taken away.
    if now != *want && (own.is_some() || now.is_real_time()) {
        if let Err(e) = want.give(tid) {
            // A reservation that no longer fits (SCHED_DEADLINE) must not leave the thread at our
            // level.
            ordinary.give(tid)?;
            return Err(e);
        }
        changed = sched::Attributes::of(tid)? == *want;
    }
    Ok(changed)
}

/// Restores a thread that was adopted alone, and what came of it: the first thread of its process,
/// which it is after execve, and the threads and processes that it created. These are on our CPU
/// alone. Problems are added to `problems`.
pub(crate) fn give_thread_back(record: &AdoptedThreadRecord, problems: &mut Vec<String>) {
    let AdoptedThreadRecord { process, at, cpu, pinned, thread } = record;
    let start_of = |pid, tid| Stat::of_thread(pid, tid).map(|stat| stat.start);
    let remains = start_of(process.pid, thread.tid) == Some(thread.start);
    if !process.is_alive() && !remains {
        return;
    }
    let ours = sched::only(*cpu);
    let created = proc::descendants_since(&[(process.pid, *at)]);
    for pid in std::iter::once(process.pid).chain(created.iter().map(|id| id.pid)) {
        for tid in proc::threads_of(pid) {
            let of_process = pid == process.pid;
            let itself = of_process && tid == thread.tid && remains;
            let successor = of_process && tid == pid && !remains && !pinned;
            let policy = sched::policy(tid);
            // At a level, parked, or in the background: all of these have the flag, and what they
            // create has it no more.
            let has_flag = policy.is_some_and(|policy| policy & libc::SCHED_RESET_ON_FORK != 0);
            let on_our_cpu = || sched::affinity(tid).is_ok_and(|mask| mask == ours);
            // Reading a start takes the time of ten other system calls.
            let is_new = || start_of(pid, tid).is_some_and(|start| start >= *at);
            let came_of_it = || (successor || !has_flag) && on_our_cpu() && (successor || is_new());
            if !(itself || came_of_it()) {
                continue;
            }
            // Others were demoted, were never raised, or chose their attributes.
            let is_ours = successor && has_flag;
            let attributes = itself || is_ours || policy == Some(libc::SCHED_IDLE);
            match restore_one(tid, thread, attributes) {
                Err(e) if e.raw_os_error() != Some(libc::ESRCH) => problems.push(format!(
                    "thread {tid} of process {pid} ({}) did not get its policy back: {e}",
                    proc::command_of(pid)
                )),
                _ => {}
            }
        }
    }
}

/// The CPUs of `record`; with `attributes`, its scheduling attributes, too.
fn restore_one(tid: i32, record: &ThreadRecord, attributes: bool) -> std::io::Result<()> {
    // Its CPUs may be offline or out of its cpuset by now: then any it may use.
    if sched::set_affinity(tid, &record.affinity).is_err() {
        sched::set_affinity(tid, &sched::every())?;
    }
    if !attributes {
        return Ok(());
    }
    record.attr.give(tid).or_else(|e| {
        sched::Attributes::ordinary().give(tid)?;
        Err(e)
    })
}

/// The record of this very thread, not of an earlier one with its number; else the leader's.
fn find(record: &ProcessRecord, pid: i32, tid: i32) -> Option<&ThreadRecord> {
    let listed = record.threads.iter().find(|t| t.tid == tid && record.id.pid == pid);
    let same = listed.filter(|t| Stat::of_thread(pid, tid).is_some_and(|s| s.start == t.start));
    same.or(record.threads.first())
}
