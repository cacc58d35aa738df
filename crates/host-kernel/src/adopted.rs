//! Running processes that become tasks, with all their threads and children. Nothing of them is
//! changed, so that there is nothing to restore: when the scheduler goes they are where they were,
//! in the normal class.

use std::os::fd::OwnedFd;

use punctual_process::{check_adoptable, threads_of};
use punctual_sys::sched;

use punctual_diagnostic::Diagnostic;

/// Whether a process can become a task on this CPU, and its pidfd.
///
/// # Errors
/// As of [`check_adoptable`]; one in a real-time class, one that may not run on the CPU.
pub(crate) fn check(pid: i32, cpu: u32) -> Result<OwnedFd, Diagnostic> {
    let (_, pidfd) = check_adoptable(pid)?;
    let name = std::fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
    let name = name.trim_end();
    for thread in threads_of(pid) {
        if let Some(class) = real_time(thread) {
            let cause = format!(
                "process {pid} ({name}): its thread {thread} is in {class}, above sched_ext's \
                 reach"
            );
            let help = format!("give that up first: chrt -a -o -p 0 {pid}; or use --host user");
            return Err(Diagnostic::usage(cause, help));
        }
    }
    // Where it cannot be asked the process has ended, which the join finds.
    if sched::affinity(pid).is_ok_and(|cpus| !sched::cpus(&cpus).any(|one| one == cpu)) {
        let help = format!(
            "choose one of its CPUs (taskset -p {pid}), or give it this one: taskset -acp {cpu} \
             {pid}"
        );
        return Err(Diagnostic::usage(
            format!("process {pid} ({name}) may not run on CPU {cpu}"),
            help,
        ));
    }
    Ok(pidfd)
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
