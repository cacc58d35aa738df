//! A task in a cgroup v2 of its own: parked and resumed by the freezer, measured by cpu.stat.
//!
//! Where: commands in `punctual-ID/NAME` below the group that we ourselves are in. An adopted
//! process in `punctual-ID.NAME` below *its own* group, so that the limits of its unit still hold
//! and systemd does not see the unit empty and end it. ID is pid, start time and pid namespace of
//! the owner, so that `clean` can find out whether the owner of a group without a journal lives.
//! Threads of a process cannot be in different domain groups, so only whole processes are moved.

use crate::cpuset;
use crate::journal::{Entry, Journal, Purpose};
use crate::proc;
use punctual_diagnostic::Diagnostic;
use punctual_sys::cgroup::{Hierarchy, Mount};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::fs::{Mode, OFlags};
use rustix::io::retry_on_intr;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The place where this process makes its groups.
#[derive(Debug, Clone)]
pub struct CgroupBase {
    dir: PathBuf,
    mount: Mount,
    journal: Journal,
}

impl CgroupBase {
    /// Finds cgroup v2 and makes our group below the one that we are in. Not real-time safe.
    ///
    /// # Errors
    /// No v2 is mounted, the kernel has no freezer, or we may not make groups there; the caller may
    /// then use [`StopGroup`](crate::StopGroup).
    pub fn create(journal: &Journal) -> Result<Self, Diagnostic> {
        let mount = Hierarchy::V2.mount().ok_or_else(|| {
            Diagnostic::machine(
                "no cgroup v2 is mounted",
                "mount -t cgroup2 none /sys/fs/cgroup/unified (make the directory first)",
            )
        })?;
        let own = Hierarchy::V2
            .path_of(journal.owner().pid)
            .and_then(|p| mount.directory(&p))
            .ok_or_else(|| {
                Diagnostic::machine(
                    "our own cgroup lies outside of what is mounted here",
                    "mount cgroup v2 in this namespace",
                )
            })?;
        let parent = cpuset::parent_of_groups(own, &mount.point);
        let dir = parent.join(format!("punctual-{}", journal.id()));
        make(journal, &dir, Purpose::Base)?;
        cpuset::offer(&dir);
        Ok(Self { dir, mount, journal: journal.clone() })
    }

    /// Makes a group for processes that are about to be adopted, below our own group and not below
    /// theirs, which their user may own: moving a process takes the right to write to the common
    /// ancestor of both groups.
    pub fn confining_group(&self, name: &str) -> Result<Cgroup, Diagnostic> {
        self.numbered(&self.dir, &format!("own.{}", fit(name)), Purpose::Adopted)
    }

    /// Makes the group of a command that is about to be started. `name` is for people; it is made
    /// fit and unique.
    pub fn group(&self, name: &str) -> Result<Cgroup, Diagnostic> {
        self.numbered(&self.dir, &format!("run.{}", fit(name)), Purpose::Command)
    }

    /// Makes the group for a process that is about to be adopted: below its own group, or where
    /// that is not permitted below that of this process.
    pub fn group_for(&self, pid: i32, name: &str) -> Result<Cgroup, Diagnostic> {
        let own = Hierarchy::V2.path_of(pid).and_then(|p| self.mount.directory(&p));
        let own = own.filter(|d| !d.starts_with(&self.dir));
        let beside = own.map(|d| {
            self.numbered(
                &d,
                &format!("punctual-{}.{}", self.journal.id(), fit(name)),
                Purpose::Adopted,
            )
        });
        match beside {
            Some(Ok(group)) => Ok(group),
            _ => self.numbered(&self.dir, &format!("adopt.{}", fit(name)), Purpose::Adopted),
        }
    }

    fn numbered(&self, parent: &Path, name: &str, purpose: Purpose) -> Result<Cgroup, Diagnostic> {
        for n in 0..1000 {
            let dir = if n == 0 { parent.join(name) } else { parent.join(format!("{name}.{n}")) };
            if dir.exists() {
                continue;
            }
            make(&self.journal, &dir, purpose)?;
            return Cgroup::open(&self.journal, dir, purpose);
        }
        Err(Diagnostic::usage(
            format!("a thousand tasks are named {name}"),
            "give them names of their own",
        ))
    }
}

/// Writes the group down, makes it and looks whether it can hold processes.
fn make(journal: &Journal, dir: &Path, purpose: Purpose) -> Result<(), Diagnostic> {
    journal.write(&Entry::Group { path: dir.to_owned(), purpose })?;
    let made = std::fs::create_dir(dir);
    if let Err(e) = made {
        if !(purpose == Purpose::Base && e.kind() == io::ErrorKind::AlreadyExists) {
            let _ = journal.write(&Entry::GroupGone { path: dir.to_owned() });
            return Err(Diagnostic::refused(
                format!("cannot make the cgroup {}", dir.display()),
                e,
                "run as root, or in a group of your own: systemd-run --user --scope -p \
                 Delegate=yes punctual ...",
            ));
        }
    }
    let kind = std::fs::read_to_string(dir.join("cgroup.type")).unwrap_or_default();
    let problem = if kind.trim() != "domain" {
        Some((
            format!(
                "the cgroup {} would be \"{}\", which cannot hold whole processes",
                dir.display(),
                kind.trim()
            ),
            "start punctual from a domain cgroup",
        ))
    } else if !dir.join("cgroup.freeze").exists() {
        Some(("this kernel has no freezer for cgroup v2".to_owned(), "use Linux 5.2 or later"))
    } else {
        None
    };
    if let Some((cause, help)) = problem {
        let _ = std::fs::remove_dir(dir);
        let _ = journal.write(&Entry::GroupGone { path: dir.to_owned() });
        return Err(Diagnostic::machine(cause, help));
    }
    Ok(())
}

fn fit(name: &str) -> String {
    let s: String = name
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() || "-_".contains(c) { c } else { '_' })
        .take(64)
        .collect();
    if s.is_empty() {
        "task".to_owned()
    } else {
        s
    }
}

/// One task's group. Dropping it closes the files and leaves the group; [`remove`](Self::remove)
/// removes it.
#[derive(Debug)]
pub struct Cgroup {
    dir: PathBuf,
    purpose: Purpose,
    procs: OwnedFd,
    freeze: OwnedFd,
    events: OwnedFd,
    stat: OwnedFd,
    journal: Journal,
}

impl Cgroup {
    fn open(journal: &Journal, dir: PathBuf, purpose: Purpose) -> Result<Self, Diagnostic> {
        let file = |name: &str, flags: OFlags| {
            rustix::fs::open(dir.join(name), flags | OFlags::CLOEXEC, Mode::empty()).map_err(|e| {
                Diagnostic::refused(
                    format!("cannot open {}/{name}", dir.display()),
                    e,
                    "mount cgroup v2 writable (a container: --cgroupns=private and a writable \
                     /sys/fs/cgroup)",
                )
            })
        };
        Ok(Self {
            procs: file("cgroup.procs", OFlags::WRONLY)?,
            freeze: file("cgroup.freeze", OFlags::WRONLY)?,
            events: file("cgroup.events", OFlags::RDONLY)?,
            stat: file("cpu.stat", OFlags::RDONLY)?,
            journal: journal.clone(),
            purpose,
            dir,
        })
    }

    /// Its directory.
    pub fn path(&self) -> &Path {
        &self.dir
    }

    /// Has the kernel keep all its threads on one CPU; `false` where cgroups have no cpusets here.
    /// Not real-time safe.
    pub(crate) fn bind(&self, cpu: u32) -> bool {
        cpuset::bind(&self.dir, cpu)
    }

    /// Freezes every process in it. Real-time safe: one pwrite. Returns at once; each thread stops
    /// at its next way out of the kernel, on this CPU as soon as the caller sleeps.
    pub fn park(&self) -> io::Result<()> {
        rustix::io::pwrite(&self.freeze, b"1", 0)?;
        Ok(())
    }

    /// Resumes them. Real-time safe: one pwrite.
    pub fn resume(&self) -> io::Result<()> {
        rustix::io::pwrite(&self.freeze, b"0", 0)?;
        Ok(())
    }

    /// Whether all of them are frozen now. For the dispatcher and threads that it alone may
    /// preempt, as a read holds a lock of the open file. Real-time safe: one pread.
    pub fn is_frozen(&self) -> io::Result<bool> {
        number::<128>(&self.events, FROZEN).map(|v| v == 1)
    }

    /// The same for any thread, by a file of its own. Not real-time safe.
    pub fn looks_frozen(&self) -> io::Result<bool> {
        let text = std::fs::read(self.dir.join("cgroup.events"))?;
        number_in(&text, FROZEN).map(|v| v == 1).ok_or(io::ErrorKind::InvalidData.into())
    }

    /// CPU time of all that ever ran in it, in nanoseconds with microsecond resolution; the kernel
    /// cuts only what it shows, so differences do not drift. Real-time safe: one pread. Exact for
    /// what ran on the caller's CPU; what runs on another CPU at this moment is missing up to a
    /// tick.
    pub fn usage_ns(&self) -> io::Result<u64> {
        number::<512>(&self.stat, "usage_usec ").map(|us| us * 1000)
    }

    /// Moves a whole process into it. Write it down first: [`adopt`](crate::adopt) does.
    pub(crate) fn add(&self, pid: i32) -> Result<(), Diagnostic> {
        let help = match self.purpose {
            Purpose::Adopted => {
                "run as root: moving a process needs write permission to the cgroup that holds \
                 both places"
            }
            _ => {
                "run as root, or in a group of your own: systemd-run --user --scope -p \
                 Delegate=yes punctual ..."
            }
        };
        let text = pid.to_string();
        retry_on_intr(|| rustix::io::pwrite(&self.procs, text.as_bytes(), 0)).map_err(|e| {
            Diagnostic::refused(
                format!("cannot move process {pid} into {}", self.dir.display()),
                e,
                help,
            )
        })?;
        Ok(())
    }

    /// Waits for what the kernel waits for when it moves a process to another cgroup: a grace
    /// period of RCU, some 10 ms, unless there was a move within the last one. Moves that follow at
    /// once take some 50 us then. It moves a process to where it is. Not real-time safe.
    pub fn prepare_moves(&self) {
        if let Some(&pid) = self.procs().first() {
            // The process may have ended.
            let _ = self.add(pid);
        }
    }

    pub(crate) fn procs_fd(&self) -> BorrowedFd<'_> {
        self.procs.as_fd()
    }

    /// The processes in it and in groups below. Not real-time safe.
    pub fn procs(&self) -> Vec<i32> {
        list(&self.dir, "cgroup.procs")
    }

    /// The threads in it and in groups below. Not real-time safe.
    pub fn threads(&self) -> Vec<i32> {
        list(&self.dir, "cgroup.threads")
    }

    /// Kills every process in it, frozen or not. Not real-time safe.
    pub fn kill(&self) -> io::Result<()> {
        kill_all(&self.dir)
    }

    /// Removes it; all its processes must be gone. Waits for the last one to leave, 200 ms at
    /// most.
    pub fn remove(&self) -> Result<(), Diagnostic> {
        remove_tree(&self.dir, Duration::from_millis(200), || ()).map_err(|e| {
            Diagnostic::refused(
                format!("cannot remove the cgroup {}", self.dir.display()),
                e,
                "end what runs in it, or run `punctual clean` later",
            )
        })?;
        self.journal.write(&Entry::GroupGone { path: self.dir.clone() })
    }
}

/// In cgroup.events.
const FROZEN: &str = "frozen ";

/// The number after `name` in the first `N` bytes of a file. Real-time safe: one pread.
fn number<const N: usize>(file: &OwnedFd, name: &str) -> io::Result<u64> {
    let mut buf = [0u8; N];
    let n = rustix::io::pread(file, &mut buf, 0)?;
    number_in(&buf[..n], name).ok_or(io::ErrorKind::InvalidData.into())
}

/// The number after `name` at the beginning of a line. No allocation.
fn number_in(text: &[u8], name: &str) -> Option<u64> {
    let text = std::str::from_utf8(text).ok()?;
    text.lines().find_map(|line| line.strip_prefix(name))?.parse().ok()
}

/// Groups below `dir`, deepest first, itself last.
pub(crate) fn tree(dir: &Path) -> Vec<PathBuf> {
    let mut out = Vec::new();
    if let Ok(entries) = std::fs::read_dir(dir) {
        for e in entries.flatten().filter(|e| e.file_type().is_ok_and(|t| t.is_dir())) {
            out.append(&mut tree(&e.path()));
        }
    }
    out.push(dir.to_owned());
    out
}

/// The numbers in one file of a group and of all groups below.
pub(crate) fn list(dir: &Path, file: &str) -> Vec<i32> {
    let mut out = Vec::new();
    for d in tree(dir) {
        if let Ok(text) = std::fs::read_to_string(d.join(file)) {
            out.extend(text.lines().filter_map(|l| l.parse::<i32>().ok()).filter(|n| *n > 0));
        }
    }
    out
}

/// Sets the freezer of a group that may be gone.
pub(crate) fn set_frozen(dir: &Path, frozen: bool) {
    let _ = std::fs::write(dir.join("cgroup.freeze"), if frozen { "1" } else { "0" });
}

/// Kills all in a group, by cgroup.kill, else (before Linux 5.14) one by one until none is left.
pub(crate) fn kill_all(dir: &Path) -> io::Result<()> {
    match std::fs::write(dir.join("cgroup.kill"), "1") {
        Ok(()) => return Ok(()),
        Err(e) if e.kind() == io::ErrorKind::NotFound && !dir.exists() => return Ok(()),
        Err(_) => {}
    }
    kill_one_by_one(dir)
}

fn kill_one_by_one(dir: &Path) -> io::Result<()> {
    for _ in 0..200 {
        let pids = list(dir, "cgroup.procs");
        if pids.iter().all(|p| proc::Stat::of(*p).is_none_or(|s| s.state == 'Z')) {
            return Ok(());
        }
        for pid in pids.into_iter().filter_map(rustix::process::Pid::from_raw) {
            let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
        }
        // SIGKILL passes the v2 freezer, so nothing has to be thawed first.
        std::thread::sleep(Duration::from_millis(1));
    }
    Err(io::ErrorKind::TimedOut.into())
}

/// Removes a group with all below it, waiting while the last processes are on their way out;
/// `meanwhile` is called in each round of waiting.
pub(crate) fn remove_tree(
    dir: &Path,
    patience: Duration,
    mut meanwhile: impl FnMut(),
) -> io::Result<()> {
    let deadline = std::time::Instant::now() + patience;
    loop {
        let round = std::time::Instant::now();
        let mut last = Ok(());
        for d in tree(dir) {
            match std::fs::remove_dir(&d) {
                Err(e) if e.kind() != io::ErrorKind::NotFound => last = Err(e),
                _ => {}
            }
        }
        if last.is_ok() || round >= deadline {
            return last;
        }
        meanwhile();
        crate::demote::pause_after(round);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_cgroup_kill_a_frozen_group_is_killed_one_by_one() {
        let Some(mount) = Hierarchy::V2.mount() else {
            return punctual_test_support::missing("no cgroup v2");
        };
        let dir = mount.point.join(format!("punctual-unit-{}", std::process::id()));
        if std::fs::create_dir(&dir).is_err() {
            return punctual_test_support::missing(format_args!("cannot make {}", dir.display()));
        }
        let mut children: Vec<_> = (0..3)
            .map(|_| std::process::Command::new("sleep").arg("20").spawn().unwrap())
            .collect();
        for c in &children {
            std::fs::write(dir.join("cgroup.procs"), c.id().to_string()).unwrap();
        }
        set_frozen(&dir, true);
        kill_one_by_one(&dir).unwrap();
        assert!(children.iter_mut().all(|c| c.wait().is_ok()));
        remove_tree(&dir, Duration::from_secs(1), || ()).unwrap();
    }

    #[test]
    fn cpu_stat_is_read_without_allocation_and_refuses_nonsense() {
        assert_eq!(number_in(b"usage_usec 123\nuser_usec 1\n", "usage_usec "), Some(123));
        assert_eq!(number_in(b"populated 1\nfrozen 0\n", "frozen "), Some(0));
        assert_eq!(number_in(b"usage_usec 12x\n", "usage_usec "), None);
        assert_eq!(number_in(b"", "usage_usec "), None);
    }
}
