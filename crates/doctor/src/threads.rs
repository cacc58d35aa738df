//! Threads of others that outrank jobs.

use punctual_sys::thread_name;

use crate::finding::{Evidence, Finding, NO_HELP};
use crate::probe::{Probe, Unread};
use crate::scene::Scene;

/// No machine that is examined has more; beyond it the scan ends.
const MOST: usize = 100_000;
const PF_KTHREAD: u64 = 0x0020_0000;

/// A thread under SCHED_FIFO, SCHED_RR or SCHED_DEADLINE.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RealTimeThread {
    /// Its process.
    pub pid: u32,
    pub tid: u32,
    pub name: String,
    pub policy: u32,
    pub priority: u32,
    pub kernel: bool,
}

impl RealTimeThread {
    /// `name (tid), SCHED_FIFO 50`
    pub fn describe(&self) -> String {
        let policy = match self.policy {
            1 => "SCHED_FIFO",
            2 => "SCHED_RR",
            _ => return format!("{} ({}), SCHED_DEADLINE", self.name, self.tid),
        };
        format!("{} ({}), {policy} {}", self.name, self.tid, self.priority)
    }

    /// A thread of Punctual.
    pub fn ours(&self) -> bool {
        !self.kernel && thread_name::is_ours(&self.name)
    }

    /// A threaded interrupt handler.
    pub fn interrupt(&self) -> bool {
        self.kernel && self.name.starts_with("irq/")
    }
}

/// Every real-time thread of the machine, by thread id.
pub fn real_time(probe: &Probe) -> Result<Vec<RealTimeThread>, Unread> {
    let mut found = Vec::new();
    let mut seen = 0;
    for pid in probe.list("/proc")? {
        let Ok(process) = pid.parse() else { continue };
        let tasks = format!("/proc/{pid}/task");
        for tid in probe.list(&tasks).unwrap_or_default() {
            seen += 1;
            if seen > MOST {
                return Ok(found);
            }
            let stat = probe.read(&format!("{tasks}/{tid}/stat"));
            found.extend(stat.ok().and_then(|s| parse(process, &s.read)));
        }
    }
    Ok(found)
}

/// A line of /proc/PID/stat; the name may hold blanks and parentheses.
fn parse(pid: u32, stat: &str) -> Option<RealTimeThread> {
    let (head, tail) = (stat.get(..stat.find('(')?)?, stat.get(stat.rfind(')')? + 1..)?);
    let name = stat.get(stat.find('(')? + 1..stat.rfind(')')?)?;
    let fields: Vec<&str> = tail.split_whitespace().collect();
    let policy: u32 = fields.get(38)?.parse().ok()?;
    matches!(policy, 1 | 2 | 6).then_some(())?;
    Some(RealTimeThread {
        pid,
        tid: head.trim().parse().ok()?,
        name: name.into(),
        policy,
        priority: fields.get(37)?.parse().ok()?,
        kernel: fields.get(6)?.parse::<u64>().ok()? & PF_KTHREAD != 0,
    })
}

pub fn findings(scene: &Scene) -> Vec<Finding> {
    vec![realtime_threads(scene)]
}

/// Only what can hold up a dispatcher at SCHED_FIFO 99 is a warning.
fn realtime_threads(scene: &Scene) -> Finding {
    let about = Finding::about("realtime-threads", "Real-time threads of others");
    let threads = match &scene.threads {
        Ok(threads) => threads,
        Err(e) => {
            return about.unknown(
                e.to_string(),
                "a thread at SCHED_FIFO 99 delays every dispatcher",
                NO_HELP,
            )
        }
    };
    let user: Vec<_> = threads.iter().filter(|t| !t.kernel && !t.ours()).collect();
    let ours: Vec<_> = threads.iter().filter(|t| t.ours()).collect();
    let top: Vec<_> = user.iter().filter(|t| t.policy == 6 || t.priority >= 99).collect();
    let shown = match (top.is_empty(), user.is_empty()) {
        (false, _) => top.clone(),
        (_, false) => user.iter().collect(),
        _ => ours.iter().collect(),
    };
    let mut about = about;
    for t in shown.iter().take(5) {
        about = about.saw(&Evidence::new(format!("/proc/{}/stat", t.tid), t.describe()));
    }
    if user.is_empty() && !ours.is_empty() {
        return about.note(
            "a Punctual dispatcher runs now",
            "a second one for the same CPU is refused",
            NO_HELP,
        );
    }
    if user.is_empty() {
        let kernel = threads.iter().filter(|t| t.kernel).count();
        return about
            .saw(&Evidence::new(
                "/proc/*/task/*/stat",
                format!("none, but {kernel} kernel threads"),
            ))
            .good("no program competes with jobs at real-time priority");
    }
    if top.is_empty() {
        return about.note(
            format!("{} real-time threads of programs run here", user.len()),
            "nothing limits them: they run before every ordinary program, and before jobs whose \
             level is below theirs",
            programs(&user).iter().map(|pid| profile(scene, *pid)),
        );
    }
    about.warning(
        format!("{} threads have SCHED_FIFO or SCHED_RR 99 or SCHED_DEADLINE", top.len()),
        "on the CPU where one of them runs, a dispatcher and its jobs wait until it stops by \
         itself",
        top.iter().take(5).map(|t| match t.policy {
            6 => format!("chrt --other --pid 0 {}", t.tid),
            2 => format!("chrt --rr --pid 90 {}", t.tid),
            _ => format!("chrt --fifo --pid 90 {}", t.tid),
        }),
    )
}

/// The processes of these threads, five at most.
fn programs(threads: &[&RealTimeThread]) -> Vec<u32> {
    let mut pids: Vec<u32> = threads.iter().map(|t| t.pid).collect();
    pids.dedup();
    pids.truncate(5);
    pids
}

/// The command that finds the budget that a program needs, and writes it as a role.
fn profile(scene: &Scene, pid: u32) -> String {
    let name = scene.probe.read(&format!("/proc/{pid}/comm")).map(|comm| comm.read);
    let is_plain = |name: &String| {
        name.starts_with(|c: char| c.is_ascii_alphanumeric())
            && name.chars().all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c))
    };
    let name = name.ok().filter(is_plain).unwrap_or_else(|| format!("program-{pid}"));
    format!("punctual profile --duration 30s --write-role {name} --pid {pid}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_with_parentheses() {
        let line = |name: &str| {
            format!(
                "50 ({name}) S 2 0 0 0 -1 2129984 0 0 0 0 0 0 0 0 -51 0 1 0 7 0 0 0 0 0 0 0 0 0 0 \
                 0 0 0 0 0 17 0 50 1 0 0 0"
            )
        };
        let t = parse(1, &line("irq/24-a) b")).unwrap();
        assert_eq!(t.describe(), "irq/24-a) b (50), SCHED_FIFO 50");
        assert!(t.kernel && t.interrupt());
        for bad in ["", "1", "1 (", "1 ) (", "x (y) z", "1 (a) S 2"] {
            assert_eq!(parse(1, bad), None);
        }
    }
}
