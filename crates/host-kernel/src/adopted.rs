//! Running processes that become tasks, with all their threads and children. Nothing of them is
//! changed, so that there is nothing to restore: when the scheduler goes they are where they were,
//! in the normal class. Only a suspended one is in another cgroup (`host/suspension.rs`).

use std::os::fd::OwnedFd;

use punctual_process::{check_adoptable, check_adoptable_thread, threads_of};
use punctual_sys::{pidfd, sched};

use punctual_diagnostic::Diagnostic;

/// Whether a process can become a task on this CPU, and its pidfd.
///
/// # Errors
/// As of [`check_adoptable`]; one in a real-time class, one that may not run on the CPU.
pub(crate) fn check(pid: i32, cpu: u32) -> Result<OwnedFd, Diagnostic> {
    let (_, pidfd) = check_adoptable(pid)?;
    threads_of(pid).into_iter().try_for_each(|thread| check_class(pid, thread))?;
    check_cpu(pid, pid, cpu)?;
    Ok(pidfd)
}

/// The same for one of its threads, and a pidfd of that.
///
/// # Errors
/// As of [`check`], for that thread alone; no such thread.
pub(crate) fn check_thread(pid: i32, tid: i32, cpu: u32) -> Result<OwnedFd, Diagnostic> {
    check_adoptable_thread(pid, tid)?;
    check_one(pid, tid, cpu)
}

/// The same for a thread of this process. Those of the host itself belong to its dispatchers, or
/// are to be left alone by the caller.
///
/// # Errors
/// As of [`check_thread`], but that it is of this process.
pub(crate) fn check_own_thread(tid: i32, cpu: u32) -> Result<OwnedFd, Diagnostic> {
    check_one(std::process::id() as i32, tid, cpu)
}

fn check_one(pid: i32, tid: i32, cpu: u32) -> Result<OwnedFd, Diagnostic> {
    let pidfd = pidfd::open_thread(tid).ok().filter(|_| threads_of(pid).contains(&tid));
    let pidfd = pidfd.ok_or_else(|| {
        let cause = format!("process {pid} has no thread {tid}");
        Diagnostic::usage(cause, "give the number of one of its threads (ps -L -p PID)")
            .with_errno(libc::ESRCH)
    })?;
    check_class(pid, tid)?;
    check_cpu(pid, tid, cpu)?;
    Ok(pidfd)
}

fn name_of(pid: i32) -> String {
    let name = std::fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
    name.trim_end().to_owned()
}

fn check_class(pid: i32, thread: i32) -> Result<(), Diagnostic> {
    let Some(class) = real_time(thread) else { return Ok(()) };
    let name = name_of(pid);
    let cause = format!(
        "process {pid} ({name}): its thread {thread} is in {class}, above sched_ext's reach"
    );
    let help = format!("give that up first: chrt -a -o -p 0 {pid}; or use --host user");
    Err(Diagnostic::usage(cause, help))
}

/// Of a thread of the process that may have any CPUs. Where it cannot be asked it has ended, which
/// the join finds.
fn check_cpu(pid: i32, thread: i32, cpu: u32) -> Result<(), Diagnostic> {
    if sched::affinity(thread).is_ok_and(|cpus| !sched::cpus(&cpus).any(|one| one == cpu)) {
        let help = format!(
            "choose one of its CPUs (taskset -p {pid}), or give it this one: taskset -acp {cpu} \
             {pid}"
        );
        let cause = format!("process {pid} ({}) may not run on CPU {cpu}", name_of(pid));
        return Err(Diagnostic::usage(cause, help));
    }
    Ok(())
}

/// The name of a thread's class if that is above sched_ext.
fn real_time(thread: i32) -> Option<&'static str> {
    match sched::policy(thread)? & !libc::SCHED_RESET_ON_FORK {
        libc::SCHED_FIFO => Some("SCHED_FIFO"),
        libc::SCHED_RR => Some("SCHED_RR"),
        libc::SCHED_DEADLINE => Some("SCHED_DEADLINE"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::check;

    #[test]
    fn a_process_that_may_not_run_on_the_cpu_is_refused() {
        let mut child = std::process::Command::new("sleep").arg("1000").spawn().expect("sleep");
        let refused =
            check(child.id() as i32, 8_191).expect_err("there is no such CPU").to_string();
        let own = check(std::process::id() as i32, 0).expect_err("it is this process").to_string();
        child.kill().and_then(|()| child.wait()).expect("a child of ours");
        assert!(refused.contains("may not run on CPU 8191"), "{refused}");
        assert!(own.contains("ourselves"), "{own}");
    }
}
