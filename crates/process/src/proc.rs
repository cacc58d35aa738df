//! What /proc shows of processes, and the identity of a process.
//!
//! A pid alone identifies no process for long: the kernel reuses it. An [`Identity`] is a pid with
//! the start time of the process that had it, and every signal goes through a pidfd whose start
//! time was compared.

use punctual_diagnostic::is_printable;
use punctual_sys::pidfd;
use rustix::fd::OwnedFd;
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::Read;
use std::path::PathBuf;

/// A kernel thread, in the flags of /proc/PID/stat.
const PF_KTHREAD: u64 = 0x0020_0000;
/// A thread in its exit, likewise.
const PF_EXITING: u64 = 0x4;

/// One process and no later one that got its number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Identity {
    /// The process id.
    pub pid: i32,
    /// Its start in clock ticks since boot: field 22 of /proc/PID/stat.
    pub start: u64,
}

impl Identity {
    /// The process that has this pid now, if there is one (a zombie counts).
    pub fn of(pid: i32) -> Option<Self> {
        Stat::of(pid).map(|s| Self { pid, start: s.start })
    }

    /// This process itself.
    pub fn own() -> Self {
        let pid = rustix::process::getpid().as_raw_pid();
        // /proc may be missing in a broken container; a start of 0 then matches no process, which
        // errs towards leaving alone.
        Self::of(pid).unwrap_or(Self { pid, start: 0 })
    }

    /// Whether it still runs (a zombie does not; a process whose first thread alone has ended
    /// does).
    pub fn is_alive(&self) -> bool {
        let ended = |s: Stat| {
            matches!(s.state, 'Z' | 'X') && threads_of(self.pid).iter().all(|t| *t == self.pid)
        };
        Stat::of(self.pid).is_some_and(|s| s.start == self.start && !ended(s))
    }

    /// Whether it can still do anything: it lives, and no SIGKILL is on its way through its
    /// threads. A killed thread needs the CPU to die, and below a real-time runaway it never gets
    /// it; the process then counts as alive for the kernel (its pidfd stays silent) until the
    /// runaway is ended.
    pub(crate) fn can_act(&self) -> bool {
        self.is_alive() && !is_doomed(self.pid)
    }

    /// A pidfd for it, or `None` when it is gone or its number belongs to another process now.
    pub fn open(&self) -> Option<OwnedFd> {
        let fd = pidfd::open(self.pid).ok()?;
        // The comparison comes after the opening: the pidfd then holds on to the very process that
        // was compared.
        (Stat::of(self.pid)?.start == self.start).then_some(fd)
    }
}

/// Whether SIGKILL is pending for a process: for its first thread, or where that has ended already,
/// for the others.
fn is_doomed(pid: i32) -> bool {
    let read = |of: String| {
        let status = std::fs::read_to_string(format!("{of}/status")).ok()?;
        Some(Course::of(&status, &std::fs::read_to_string(format!("{of}/stat")).ok()?))
    };
    match read(format!("/proc/{pid}")) {
        Some(Course::Ends) => {
            // Of a first thread that has ended, only the others still tell.
            let mut others = threads_of(pid).into_iter().filter(|t| *t != pid);
            others.all(|t| read(format!("/proc/{pid}/task/{t}")) != Some(Course::Lives))
        }
        course => course == Some(Course::Killed),
    }
}

/// Where a thread is on its way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Course {
    Lives,
    /// SIGKILL is pending, or a signal that kills is on the way to all threads of its process.
    Killed,
    /// It is in its exit (SIGKILL is no longer pending then), or has ended.
    Ends,
}

impl Course {
    /// From its status and stat files.
    pub fn of(status: &str, stat: &str) -> Self {
        let field = |name: &str| status.lines().find_map(|l| l.strip_prefix(name)).map(str::trim);
        let pending = |name| field(name).and_then(|v| u64::from_str_radix(v, 16).ok()).unwrap_or(0);
        let killed = (pending("SigPnd:") | pending("ShdPnd:")) >> (libc::SIGKILL - 1) & 1 == 1;
        match Stat::parse(stat) {
            Some(s) if matches!(s.state, 'Z' | 'X') || s.flags & PF_EXITING != 0 => Self::Ends,
            Some(s) if s.is_killed() => Self::Killed,
            _ if killed => Self::Killed,
            _ => Self::Lives,
        }
    }
}

/// The fields of /proc/PID/stat that this crate needs.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Stat {
    pub state: char,
    pub ppid: i32,
    pub pgrp: i32,
    pub flags: u64,
    pub start: u64,
    /// In the file of the process: the signal that ends or stops it, 0 while there is none. Once it
    /// ends the process, 0x80 is added if memory is dumped; an exit's status is above the low byte.
    pub exit_code: i32,
}

impl Stat {
    pub fn of(pid: i32) -> Option<Self> {
        Self::read(&format!("/proc/{pid}/stat"))
    }

    /// The same of one thread.
    pub fn of_thread(pid: i32, tid: i32) -> Option<Self> {
        Self::read(&format!("/proc/{pid}/task/{tid}/stat"))
    }

    fn read(path: &str) -> Option<Self> {
        // 52 numbers and a name: one system call reads all of it.
        let mut text = [0u8; 2048];
        let length = File::open(path).and_then(|mut file| file.read(&mut text)).ok()?;
        Self::parse(&String::from_utf8_lossy(&text[..length]))
    }

    fn parse(text: &str) -> Option<Self> {
        // The command's name may hold anything, ')' too: the fields begin after the last one.
        let mut fields = text.get(text.rfind(')')? + 1..)?.split_ascii_whitespace();
        let mut passed = 0;
        let mut field = |index: usize| {
            let skipped = index - std::mem::replace(&mut passed, index + 1);
            fields.nth(skipped)
        };
        Some(Self {
            state: field(0)?.chars().next()?,
            ppid: field(1)?.parse().ok()?,
            pgrp: field(2)?.parse().ok()?,
            flags: field(6)?.parse().ok()?,
            start: field(19)?.parse().ok()?,
            exit_code: field(49).and_then(|c| c.parse().ok()).unwrap_or(0),
        })
    }

    fn is_killed(&self) -> bool {
        let stops = [libc::SIGSTOP, libc::SIGTSTP, libc::SIGTTIN, libc::SIGTTOU];
        let signal = self.exit_code & 0x7f;
        signal != 0 && !stops.contains(&signal)
    }

    pub fn is_kernel_thread(&self) -> bool {
        self.flags & PF_KTHREAD != 0
    }
}

/// Whether a process is one of the kernel's own threads; they cannot be parked. Not real-time safe.
pub fn is_kernel_thread(pid: i32) -> bool {
    Stat::of(pid).is_some_and(|s| s.is_kernel_thread())
}

fn numbers_in(dir: &str) -> Vec<i32> {
    let Ok(entries) = std::fs::read_dir(dir) else { return Vec::new() };
    entries.flatten().filter_map(|e| e.file_name().to_str()?.parse().ok()).collect()
}

/// All processes.
pub fn pids() -> Vec<i32> {
    numbers_in("/proc")
}

/// All threads of a process; empty when it is gone. Not real-time safe.
pub fn threads_of(pid: i32) -> Vec<i32> {
    numbers_in(&format!("/proc/{pid}/task"))
}

/// All living descendants of `roots` (without these). Not real-time safe: reads all of /proc.
pub fn descendants(roots: &[i32]) -> Vec<i32> {
    let roots: Vec<(i32, u64)> = roots.iter().map(|p| (*p, 0)).collect();
    descendants_since(&roots).into_iter().map(|i| i.pid).collect()
}

/// The same, of children that started at or after the tick that stands with their root.
pub(crate) fn descendants_since(roots: &[(i32, u64)]) -> Vec<Identity> {
    let all: Vec<(Identity, i32)> = pids()
        .into_iter()
        .filter_map(|pid| Stat::of(pid).map(|s| (Identity { pid, start: s.start }, s.ppid)))
        .collect();
    let mut known = roots.to_vec();
    let mut out = Vec::new();
    let mut next = 0;
    while let Some(&(parent, since)) = known.get(next) {
        for &(id, ppid) in &all {
            if ppid == parent && id.start >= since && !known.iter().any(|k| k.0 == id.pid) {
                known.push((id.pid, since));
                out.push(id);
            }
        }
        next += 1;
    }
    out
}

/// Now, in the unit of start times: clock ticks since boot.
pub(crate) fn ticks_now() -> u64 {
    let t = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
    // SAFETY: passes no memory.
    let hz = unsafe { libc::sysconf(libc::_SC_CLK_TCK) }.max(1) as u64;
    t.tv_sec as u64 * hz + t.tv_nsec as u64 * hz / 1_000_000_000
}

/// Our parents up to init, nearest first.
pub(crate) fn ancestors() -> Vec<i32> {
    let mut out = Vec::new();
    let mut pid = Identity::own().pid;
    while let Some(s) = Stat::of(pid) {
        if s.ppid == 0 || out.len() > 1000 {
            break;
        }
        out.push(s.ppid);
        pid = s.ppid;
    }
    out
}

/// The process that a thread belongs to.
pub(crate) fn process_of(tid: i32) -> Option<i32> {
    let text = std::fs::read_to_string(format!("/proc/{tid}/status")).ok()?;
    text.lines().find_map(|l| l.strip_prefix("Tgid:"))?.trim().parse().ok()
}

/// The command line for people: arguments separated by blanks, nothing unprintable, at most 200
/// characters.
pub(crate) fn command_of(pid: i32) -> String {
    let raw = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let raw = if raw.is_empty() {
        std::fs::read(format!("/proc/{pid}/comm")).unwrap_or_default()
    } else {
        raw
    };
    printable(&String::from_utf8_lossy(&raw).replace('\0', " "))
}

/// Text of another program, made fit for a terminal.
pub(crate) fn printable(text: &str) -> String {
    text.trim().chars().map(|c| if is_printable(c) { c } else { ' ' }).take(200).collect()
}

/// Whether the environment of a process holds `name=value`. `false` when it cannot be read.
pub(crate) fn environment_has(pid: i32, pair: &str) -> bool {
    let Ok(env) = std::fs::read(format!("/proc/{pid}/environ")) else { return false };
    env.split(|b| *b == 0).any(|e| e == pair.as_bytes())
}

/// This boot of the machine; pids and start times mean nothing in another.
pub(crate) fn boot_id() -> String {
    std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default().trim().to_owned()
}

/// Our pid namespace; a pid recorded in another one is another process here.
pub(crate) fn pid_namespace() -> u64 {
    let link = std::fs::read_link("/proc/self/ns/pid").unwrap_or_else(|_| PathBuf::new());
    link.to_string_lossy().trim_matches(|c: char| !c.is_ascii_digit()).parse().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_name_full_of_parentheses_does_not_confuse_stat() {
        let s = Stat::parse("7 (a) b) (c) S 1 2 3 0 -1 4194304 0 0 0 0 0 0 0 0 20 0 1 0 4242 0 0")
            .unwrap();
        assert_eq!((s.state, s.ppid, s.pgrp, s.flags, s.start), ('S', 1, 2, 4194304, 4242));
    }

    #[test]
    fn a_thread_in_its_exit_is_ending_though_sigkill_is_no_longer_pending() {
        let stat =
            |flags: u32| format!("7 (a) R 1 2 3 0 -1 {flags} 0 0 0 0 0 0 0 0 20 0 1 0 4242 0 0");
        let status = |pending: &str| {
            format!("Name:\ta\nState:\tR (running)\nSigPnd:\t{pending}\nShdPnd:\t0\n")
        };
        assert_eq!(Course::of(&status("0000000000000000"), &stat(0x40_4000)), Course::Lives);
        assert_eq!(Course::of(&status("0000000000000100"), &stat(0x40_4000)), Course::Killed);
        assert_eq!(Course::of(&status("0000000000000000"), &stat(0x40_4004)), Course::Ends);
    }

    #[test]
    fn a_pid_with_another_start_time_is_another_process() {
        let me = Identity::own();
        assert!(me.is_alive() && me.can_act() && me.open().is_some());
        let earlier = Identity { pid: me.pid, start: me.start - 1 };
        assert!(!earlier.is_alive());
        assert!(earlier.open().is_none());
    }
}
