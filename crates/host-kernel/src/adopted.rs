//! Running processes that become tasks, with all their threads and children. Nothing of them is changed, so that there
//! is nothing to give back: when the scheduler goes they are where they were, in the normal class.

use std::os::fd::OwnedFd;

use punctual_process::threads_of;

use crate::members::{may_run_on, pidfd};
use punctual_diagnostic::Diagnostic;

/// A kernel thread, in the flags of /proc/PID/stat.
const KERNEL_THREAD: u64 = 0x0020_0000;

/// Whether a process can become a task on this CPU, and what holds on to it.
///
/// # Errors
/// No such process, one of its threads, a kernel thread, init, ourselves or one that we descend from, somebody else's,
/// one in a real-time class, one that may not run on the CPU.
pub(crate) fn check(pid: i32, cpu: u32) -> Result<OwnedFd, Diagnostic> {
    let refuse = |cause: String, help: &str| Err(Diagnostic::usage(cause, help));
    let file = |name: &str| std::fs::read_to_string(format!("/proc/{pid}/{name}")).unwrap_or_default();
    let (stat, status) = (file("stat"), file("status"));
    let Some(fields) = fields(&stat).filter(|_| pid > 0) else {
        return refuse(format!("there is no process {pid}"), "give the number of a running process (ps -e)");
    };
    let name = stat.split_once('(').and_then(|(_, rest)| rest.rsplit_once(')')).map_or("?", |(name, _)| name);
    let process = status.lines().find_map(|l| l.strip_prefix("Tgid:")).and_then(|t| t.trim().parse().ok());
    if let Some(process) = process.filter(|&p: &i32| p != pid) {
        let help = format!("adopt the whole process: --pid {process}");
        return refuse(format!("{pid} is a thread of process {process} ({name})"), &help);
    }
    if fields.flags & KERNEL_THREAD != 0 {
        return refuse(format!("process {pid} ({name}) is a kernel thread"), "choose a program");
    }
    if pid == 1 {
        return refuse("process 1 is init".to_owned(), "the machine needs it; choose another process");
    }
    if fields.state == 'Z' {
        return refuse(format!("process {pid} ({name}) has ended"), "give the number of a running process (ps -e)");
    }
    if ours().contains(&pid) {
        let help = "we would wait for our own budget; run Punctual from elsewhere, or choose another process";
        return refuse(format!("process {pid} ({name}) is ourselves, or has started us"), help);
    }
    let held = match pidfd(pid) {
        Ok(held) => held,
        Err(_) => return refuse(format!("process {pid} ({name}) has ended"), "give the number of a running process"),
    };
    // SAFETY: signal 0 only asks.
    if unsafe { libc::kill(pid, 0) } != 0 {
        let why = std::io::Error::last_os_error();
        let cause = format!("process {pid} ({name}) may not be adopted: {why}");
        return Err(Diagnostic::machine(cause, "run as root, or as the user whose process it is"));
    }
    for thread in threads_of(pid) {
        if let Some(class) = real_time(thread) {
            let cause = format!("process {pid} ({name}): its thread {thread} is in {class}, above sched_ext's reach");
            let help = format!("give that up first: chrt -a -o -p 0 {pid}; or use --host user");
            return refuse(cause, &help);
        }
    }
    if !may_run_on(pid, cpu) {
        let help = format!("choose one of its CPUs (taskset -p {pid}), or give it this one: taskset -acp {cpu} {pid}");
        return refuse(format!("process {pid} ({name}) may not run on CPU {cpu}"), &help);
    }
    Ok(held)
}

/// Whether a process is one of the kernel's own threads.
pub(crate) fn is_kernel_thread(pid: i32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    fields(&stat).is_some_and(|f| f.flags & KERNEL_THREAD != 0)
}

struct Fields {
    state: char,
    parent: i32,
    flags: u64,
}

/// Of /proc/PID/stat; the name before them may hold anything, ')' too.
fn fields(stat: &str) -> Option<Fields> {
    let f: Vec<&str> = stat.rsplit_once(')')?.1.split_ascii_whitespace().collect();
    Some(Fields { state: f.first()?.chars().next()?, parent: f.get(1)?.parse().ok()?, flags: f.get(6)?.parse().ok()? })
}

/// We, and whom we descend from.
fn ours() -> Vec<i32> {
    let mut all = vec![std::process::id() as i32];
    while let Some(&child) = all.last() {
        let stat = std::fs::read_to_string(format!("/proc/{child}/stat")).unwrap_or_default();
        match fields(&stat) {
            Some(Fields { parent, .. }) if parent > 0 && !all.contains(&parent) => all.push(parent),
            _ => break,
        }
    }
    all
}

/// The name of a thread's class if that is above sched_ext.
fn real_time(thread: i32) -> Option<&'static str> {
    // SAFETY: passes no memory.
    match unsafe { libc::sched_getscheduler(thread) } & !libc::SCHED_RESET_ON_FORK {
        libc::SCHED_FIFO => Some("SCHED_FIFO"),
        libc::SCHED_RR => Some("SCHED_RR"),
        libc::SCHED_DEADLINE => Some("SCHED_DEADLINE"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::{check, fields, ours};

    #[test]
    fn a_name_full_of_parentheses_does_not_confuse_the_fields() {
        let f = fields("7 (a) b) (c) S 12 2 3 0 -1 2129984 0").expect("all there");
        assert_eq!((f.state, f.parent, f.flags), ('S', 12, 0x0020_8040));
    }

    #[test]
    fn who_cannot_be_adopted_is_named_with_a_help() {
        let said = |pid| check(pid, 0).expect_err("it cannot").to_string();
        assert!(said(-1).starts_with("there is no process -1"), "{}", said(-1));
        assert!(said(0).starts_with("there is no process 0"), "{}", said(0));
        let me = std::process::id() as i32;
        assert!(said(me).contains("ourselves"), "{}", said(me));
        assert!(ours().contains(&me));
        assert!(said(1).contains("init"), "{}", said(1));
    }
}
