//! What /proc and the cgroups tell about processes.

pub use punctual_test_support::{cgroup_mount, groups_of};
use std::path::{Path, PathBuf};

use punctual_test_support::comes_true;

/// Waits until `holds`; fails with `what` if that never happens.
pub fn eventually(what: &str, holds: impl FnMut() -> bool) {
    assert!(comes_true(holds), "never: {what}");
}

pub fn pids() -> Vec<i32> {
    numbers(Path::new("/proc"))
}

pub fn threads_of(pid: i32) -> Vec<i32> {
    numbers(&PathBuf::from(format!("/proc/{pid}/task")))
}

fn numbers(dir: &Path) -> Vec<i32> {
    let entries = std::fs::read_dir(dir).into_iter().flatten().flatten();
    entries.filter_map(|e| e.file_name().to_str()?.parse().ok()).collect()
}

/// Processes with this in their environment; zombies have none.
pub fn marked(mark: &str) -> Vec<i32> {
    let has = |pid: &i32| {
        std::fs::read(format!("/proc/{pid}/environ"))
            .is_ok_and(|e| e.split(|b| *b == 0).any(|v| v.ends_with(mark.as_bytes())))
    };
    pids().into_iter().filter(has).collect()
}

/// The fields of its stat behind the name: state, parent, …
fn stat(pid: i32) -> Option<Vec<String>> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    Some(text[text.rfind(')')? + 2..].split(' ').map(str::to_owned).collect())
}

/// Its state's letter; `None` when it is gone, zombies count as gone.
pub fn state_of(pid: i32) -> Option<char> {
    stat(pid)?[0].chars().next().filter(|s| !matches!(s, 'Z' | 'X'))
}

pub fn parent_of(pid: i32) -> Option<i32> {
    stat(pid)?[1].parse().ok()
}

pub fn name_of(pid: i32) -> String {
    std::fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default().trim().to_owned()
}

/// One line for the message of a failed test.
pub fn describe(pid: i32) -> String {
    let policies: Vec<String> = threads_of(pid)
        .into_iter()
        .map(|t| {
            let at = std::fs::read_to_string(format!("/proc/{t}/wchan")).unwrap_or_default();
            format!(
                "{t}: {} {at}",
                attributes(t).map_or("gone".into(), |a| format!("{}/{}", a.policy, a.priority))
            )
        })
        .collect();
    // The last field: of a zombie, as wait(2) has it.
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    format!(
        "{pid} ({}) state {:?} in {} [{}], exit status {}",
        name_of(pid),
        state_of(pid),
        cgroup_of(pid),
        policies.join(", "),
        stat.split_whitespace().last().unwrap_or("unknown")
    )
}

/// How a thread is scheduled: policy with its reset-on-fork flag, priority, nice value, CPUs.
#[derive(Debug, Clone, PartialEq)]
pub struct Attributes {
    pub policy: i32,
    pub priority: i32,
    pub nice: i32,
    pub cpus: Vec<u8>,
}

pub fn attributes(tid: i32) -> Option<Attributes> {
    // SAFETY: each call writes one value that lives here.
    unsafe {
        let policy = libc::sched_getscheduler(tid);
        let mut p: libc::sched_param = std::mem::zeroed();
        let mut cpus = vec![0u8; 128];
        if policy < 0
            || libc::sched_getparam(tid, &mut p) != 0
            || libc::syscall(libc::SYS_sched_getaffinity, tid, 128, cpus.as_mut_ptr()) < 0
        {
            return None;
        }
        cpus.truncate(cpus.iter().rposition(|c| *c != 0).map_or(0, |last| last + 1));
        Some(Attributes {
            policy,
            priority: p.sched_priority,
            nice: libc::getpriority(libc::PRIO_PROCESS, tid as u32),
            cpus,
        })
    }
}

/// How often its threads went to sleep: grows while it lives.
pub fn switches(pid: i32) -> u64 {
    let of = |t: i32| {
        let text = std::fs::read_to_string(format!("/proc/{pid}/task/{t}/status")).ok()?;
        text.lines()
            .find_map(|l| l.strip_prefix("voluntary_ctxt_switches:"))?
            .trim()
            .parse::<u64>()
            .ok()
    };
    threads_of(pid).into_iter().filter_map(of).sum()
}

/// Its cgroup in v2's hierarchy.
pub fn cgroup_of(pid: i32) -> String {
    let text = std::fs::read_to_string(format!("/proc/{pid}/cgroup")).unwrap_or_default();
    text.lines().find_map(|l| l.strip_prefix("0::")).unwrap_or("").to_owned()
}

/// The journals of a Punctual with this pid, run by root without PUNCTUAL_STATE_DIR.
pub fn journals_of(pid: i32) -> Vec<PathBuf> {
    let files =
        std::fs::read_dir("/run/punctual").into_iter().flatten().flatten().map(|e| e.path());
    let ours = |p: &PathBuf| {
        let name = p.file_name().unwrap_or_default().to_string_lossy().into_owned();
        name.starts_with(&format!("{pid}-")) && name.ends_with(".journal")
    };
    files.filter(ours).collect()
}

pub fn kill(pid: i32, signal: i32) {
    // SAFETY: passes no memory.
    unsafe { libc::kill(pid, signal) };
}
