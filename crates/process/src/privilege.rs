//! What the machine permits us, asked before anything is changed.

use crate::proc::{self, Stat};
use punctual_diagnostic::Diagnostic;
use punctual_sys::cgroup::Hierarchy;
use punctual_sys::process::{capabilities, CapabilitySet};
use punctual_sys::{pidfd, sched, thread_name};
use rustix::process::{getrlimit, Resource};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;

/// Has the real-time shares of RT_GROUP_SCHED.
const CPU: Hierarchy = Hierarchy::V1("cpu");

/// Whether a dispatcher can run on these CPUs: they exist, are online and in our cpuset; SCHED_FIFO
/// 99 is permitted; memory can be locked. Nothing is changed: a thread made for it tries and ends.
/// Not real-time safe.
///
/// # Errors
/// The first thing in the way, with its help.
pub fn check_privileges(cpus: &[u32]) -> Result<(), Diagnostic> {
    for &cpu in cpus {
        check_cpu(cpu)?;
    }
    let first = cpus.first().copied();
    // On a thread of its own, which may end in any way.
    let tried = std::thread::Builder::new().name(thread_name::PROBE.into()).spawn(move || {
        sched::set_fifo(0, 99)?;
        first.map_or(Ok(()), |cpu| sched::pin(0, cpu))
    });
    let tried = tried.and_then(|t| t.join().unwrap_or(Ok(())));
    if let Err(e) = tried {
        return Err(real_time_refused(proc::Identity::own().pid, &e));
    }
    check_memory()
}

fn check_cpu(cpu: u32) -> Result<(), Diagnostic> {
    let dir = PathBuf::from(format!("/sys/devices/system/cpu/cpu{cpu}"));
    let online = std::fs::read_to_string("/sys/devices/system/cpu/online").unwrap_or_default();
    let online = online.trim();
    if !dir.exists() {
        return Err(Diagnostic::usage(
            format!("there is no CPU {cpu} on this machine"),
            format!("choose one of {online}"),
        ));
    }
    // CPU 0 often has no such file: it cannot be taken offline.
    if std::fs::read_to_string(dir.join("online")).is_ok_and(|t| t.trim() == "0") {
        return Err(Diagnostic::machine(
            format!("CPU {cpu} is offline"),
            format!("echo 1 > /sys/devices/system/cpu/cpu{cpu}/online, or choose one of {online}"),
        ));
    }
    let tried = std::thread::spawn(move || sched::pin(0, cpu)).join();
    if let Ok(Err(e)) = tried {
        return Err(Diagnostic::refused(
            format!("CPU {cpu} is not in our cpuset"),
            e,
            "choose a CPU of `cat /proc/self/status | grep Cpus_allowed_list`, or start punctual \
             outside of that cpuset (container, systemd AllowedCPUs=)",
        ));
    }
    Ok(())
}

fn check_memory() -> Result<(), Diagnostic> {
    let limit = getrlimit(Resource::Memlock).current;
    if capabilities().contains(CapabilitySet::IPC_LOCK) || limit.is_none() {
        return Ok(());
    }
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let size = status.lines().find_map(|l| {
        l.strip_prefix("VmSize:")?.trim().strip_suffix(" kB")?.trim().parse::<u64>().ok()
    });
    // Room for the stacks and tables that are still to come.
    let need = (size.unwrap_or(0) << 10) + (64 << 20);
    if limit.is_some_and(|l| l < need) {
        return Err(Diagnostic::machine(
            format!(
                "only {} KiB of memory may be locked, some {} KiB are needed",
                limit.unwrap_or(0) >> 10,
                need >> 10
            ),
            "run as root, or give CAP_IPC_LOCK (setcap cap_sys_nice,cap_ipc_lock+ep), or raise \
             memlock in /etc/security/limits.conf",
        ));
    }
    Ok(())
}

/// Whether we may make the threads of another process real-time.
pub(crate) fn check_target(pid: i32) -> Result<(), Diagnostic> {
    if let Some(group) = forbidding_group(pid) {
        return Err(group_refusal(pid, &group));
    }
    if capabilities().contains(CapabilitySet::SYS_NICE) {
        return Ok(());
    }
    let name = proc::command_of(pid);
    let uid = rustix::process::geteuid().as_raw();
    if std::fs::metadata(format!("/proc/{pid}")).is_ok_and(|m| m.uid() != uid) {
        return Err(Diagnostic::machine(
            format!("process {pid} ({name}) belongs to another user, and we lack CAP_SYS_NICE"),
            "run as root, or: setcap cap_sys_nice,cap_kill+ep on punctual",
        ));
    }
    // The kernel checks the rlimit of the process whose policy is changed, not that of the caller.
    if real_time_limit(pid).is_some_and(|n| n < 98) {
        return Err(Diagnostic::machine(
            format!(
                "process {pid} ({name}) may not become real-time: its RLIMIT_RTPRIO is below 98, \
                 and we lack CAP_SYS_NICE"
            ),
            format!("run as root, or: prlimit --pid {pid} --rtprio=99"),
        ));
    }
    Ok(())
}

/// The soft RLIMIT_RTPRIO of another process; `None` when it has no bound or cannot be read.
fn real_time_limit(pid: i32) -> Option<u64> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/limits")).ok()?;
    let line = text.lines().find(|l| l.starts_with("Max realtime priority"))?;
    line.split_ascii_whitespace().nth(3)?.parse().ok()
}

/// Why SCHED_FIFO was refused to `pid`, and the help: the capability, or the group of
/// RT_GROUP_SCHED.
pub(crate) fn real_time_refused(pid: i32, error: &io::Error) -> Diagnostic {
    if error.raw_os_error() == Some(libc::EPERM) {
        if let Some(group) = forbidding_group(pid) {
            return group_refusal(pid, &group);
        }
        if capabilities().contains(CapabilitySet::SYS_NICE) {
            return Diagnostic::machine(
                "SCHED_FIFO is refused although we have CAP_SYS_NICE: our cgroup gives no \
                 real-time time (CONFIG_RT_GROUP_SCHED), or a container filters the call",
                "start punctual from the root cgroup, boot with rt_group_sched=0, or allow \
                 sched_setscheduler in the container's seccomp profile",
            )
            .with_errno(libc::EPERM);
        }
    }
    Diagnostic::refused(
        "SCHED_FIFO 99 is refused",
        io::Error::from_raw_os_error(error.raw_os_error().unwrap_or(libc::EPERM)),
        "run as root, or: setcap cap_sys_nice,cap_ipc_lock+ep on punctual, or `@realtime - rtprio \
         99` in /etc/security/limits.conf and log in again",
    )
}

/// The v1 cpu cgroup of a process, if it has no real-time time (a fresh one has none).
fn forbidding_group(pid: i32) -> Option<PathBuf> {
    let dir = CPU.directory_of(pid)?;
    let runtime = std::fs::read_to_string(dir.join("cpu.rt_runtime_us")).ok()?;
    (runtime.trim() == "0").then_some(dir)
}

fn group_refusal(pid: i32, dir: &std::path::Path) -> Diagnostic {
    let name = proc::command_of(pid);
    let point = CPU.mount().map(|m| m.point).unwrap_or_default();
    Diagnostic::machine(
        format!(
            "process {pid} ({name}) is in the cgroup {}, whose cpu.rt_runtime_us is 0: nothing in \
             it may be real-time, root included (CONFIG_RT_GROUP_SCHED)",
            dir.display()
        ),
        format!(
            "echo {pid} > {}/cgroup.procs, or give the group and its parents a share: echo 900000 \
             > {}/cpu.rt_runtime_us",
            point.display(),
            dir.display()
        ),
    )
    .with_errno(libc::EPERM)
}

/// Whether we may signal a process.
pub(crate) fn check_signal(pid: i32, fd: &rustix::fd::OwnedFd) -> Result<(), Diagnostic> {
    match pidfd::send(fd, 0) {
        Err(e) if e.raw_os_error() == Some(libc::EPERM) => Err(Diagnostic::machine(
            format!(
                "process {pid} ({}) belongs to another user, and we lack CAP_KILL",
                proc::command_of(pid)
            ),
            "run as root, or: setcap cap_sys_nice,cap_kill+ep on punctual",
        )
        .with_errno(libc::EPERM)),
        Err(_) => Err(Diagnostic::usage(
            format!("process {pid} has ended"),
            "give the number of a running process",
        )),
        Ok(()) if Stat::of(pid).is_some_and(|s| s.state == 'Z') => Err(Diagnostic::usage(
            format!("process {pid} has ended and waits for its parent"),
            "give the number of a running process",
        )),
        Ok(()) => Ok(()),
    }
}
