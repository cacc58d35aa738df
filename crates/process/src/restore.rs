//! Giving the machine back, from what a journal says.
//!
//! Order: a dying owner and its commands lose their real-time priority (`demote` says why).
//! Commands are killed while they are parked, so that a frozen runaway never executes again.
//! Adopted processes are frozen, get their attributes back, are moved home (which thaws them), and
//! only then do their groups go. The journal is unlinked last, and only if nothing remains; every
//! step bears being done twice, by us or by another process, and every signal goes to the identity
//! (pid and start time) that was written down. An flock on the journal keeps restorers apart; the
//! guardian shares its owner's open file and so inherits its turn.

use crate::cgroup;
use crate::cpuset;
use crate::demote::{self, Dying};
use crate::journal::{Contents, Journal, ProcessRecord, Purpose};
use crate::proc::{self, Identity};
use crate::threads_back;
use punctual_sys::cgroup::Hierarchy;
use punctual_sys::pidfd;
use punctual_sys::sched;
use rustix::fs::{flock, FlockOperation};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// How long killed processes are waited for before the rest is restored; those that take longer
/// are waited for once more when their group is to go.
const FIRST_WAIT: Duration = Duration::from_millis(100);
/// How long at most what was killed may take to be gone; longer is a problem to be reported. An
/// ordinary process needs the CPU to die, of which real-time programs of others may leave it a
/// twentieth.
const LAST_WAIT: Duration = Duration::from_secs(10);

/// What a restoration did.
#[derive(Debug, Clone, Default, PartialEq, Eq, serde::Serialize)]
pub struct RestoreReport {
    /// The process that had changed the machine (0: unknown).
    pub owner: i32,
    /// Its command line.
    pub command: String,
    /// Commands that were killed.
    pub killed: usize,
    /// Adopted processes that were restored.
    pub given_back: usize,
    /// Threads of theirs whose policy, priority, nice value or affinity had to be changed for that.
    pub threads: usize,
    /// Stopped processes that were continued.
    pub continued: usize,
    /// Cgroups removed.
    pub groups: usize,
    /// What could not be restored, in words for people. The journal then stays for `punctual
    /// clean`.
    pub problems: Vec<String>,
}

impl std::fmt::Display for RestoreReport {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "process {} ({}): {} restored ({} threads changed), {} killed, {} continued, {} \
             cgroups removed",
            self.owner,
            self.command,
            self.given_back,
            self.threads,
            self.killed,
            self.continued,
            self.groups
        )?;
        for problem in &self.problems {
            write!(f, "\n  still there: {problem}")?;
        }
        Ok(())
    }
}

impl RestoreReport {
    /// Whether nothing of it remains on the machine.
    pub fn is_complete(&self) -> bool {
        self.problems.is_empty()
    }
}

/// Restores all changes that the journal records. Stop the dispatcher first: it would
/// park them again. Idempotent; bounded (some seconds at the worst). Not real-time safe.
/// Does not panic.
pub fn restore(journal: &Journal) -> RestoreReport {
    let mut report = RestoreReport::default();
    for round in 0.. {
        match flock(journal, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => break,
            Err(_) if round < 250 => std::thread::sleep(Duration::from_millis(20)),
            Err(e) => {
                report.owner = journal.owner().pid;
                report.problems.push(format!(
                    "another process is restoring from {}: {e}",
                    journal.path().display()
                ));
                return report;
            }
        }
    }
    let done_by_another = rustix::fs::fstat(journal).is_ok_and(|s| s.st_nlink == 0);
    if !done_by_another {
        let contents = Contents::of(std::os::fd::AsFd::as_fd(journal));
        from_contents(&contents, &mut report);
        if report.is_complete() {
            let _ = std::fs::remove_file(journal.path());
        }
    }
    let _ = flock(journal, FlockOperation::Unlock);
    report
}

fn from_contents(c: &Contents, report: &mut RestoreReport) {
    let mut cookie = String::new();
    if let Some((id, boot, pidns, command, _)) = &c.owner {
        report.owner = id.pid;
        report.command = command.clone();
        if *boot != proc::boot_id() {
            return; // The machine was restarted since: nothing of it is left.
        }
        if *pidns != proc::pid_namespace() {
            report.problems.push(format!(
                "the journal of process {} was written in another pid namespace: clean it there",
                id.pid
            ));
            return;
        }
        cookie = format!("PUNCTUAL_RUN={}", c.mark);
    }
    let mut dying = Dying::default();
    if let Some(owner) = &c.owner {
        demote::if_dying(owner.0);
    }
    for (dir, _) in c.groups.iter().filter(|g| g.1 == Purpose::Command) {
        kill_group(dir, &mut dying, report);
    }
    kill_children(c, &cookie, &mut dying, report);
    for (dir, _) in c.groups.iter().filter(|g| g.1 == Purpose::Adopted) {
        empty_adopted_group(dir, &c.adopted, report);
    }
    restore_ungrouped(c, report);
    let mut groups: Vec<&(PathBuf, Purpose)> = c.groups.iter().collect();
    groups.sort_by_key(|(dir, _)| std::cmp::Reverse(dir.as_os_str().len()));
    for (dir, purpose) in groups {
        remove_group(dir, *purpose, &mut dying, report);
    }
    if report.is_complete() && !dying.await_end(LAST_WAIT) {
        report.problems.push(format!("killed, and not dead: {}", dying.named()));
    }
}

/// Kills what runs in a group of commands, and waits a little for its end.
pub(crate) fn kill_group(dir: &Path, dying: &mut Dying, report: &mut RestoreReport) {
    if !dir.exists() {
        return;
    }
    report.killed += dying.add_group(dir);
    dying.demote();
    if let Err(e) = cgroup::kill_all(dir) {
        report.problems.push(format!("cannot kill what runs in {}: {e}", dir.display()));
    }
    // Processes that were forked between the list and the kill.
    report.killed += dying.add_group(dir);
    dying.await_end(FIRST_WAIT);
}

/// Children by identity, and without cgroups also what descends from them: by parent, and by the
/// mark in the environment where the parent has ended.
fn kill_children(c: &Contents, cookie: &str, dying: &mut Dying, report: &mut RestoreReport) {
    let without_groups =
        !c.stopping.is_empty() || !c.groups.iter().any(|g| g.1 == Purpose::Command);
    let end = Instant::now() + LAST_WAIT;
    loop {
        let round = Instant::now();
        let mut ids: Vec<Identity> =
            c.children.iter().copied().filter(Identity::is_alive).collect();
        if without_groups && c.started {
            let roots: Vec<(i32, u64)> = ids.iter().map(|i| (i.pid, i.start)).collect();
            ids.extend(proc::descendants_since(&roots));
            let me = Identity::own().pid;
            let marked =
                proc::pids().into_iter().filter(|p| *p != me && proc::environment_has(*p, cookie));
            ids.extend(marked.filter_map(Identity::of).filter(Identity::is_alive));
            ids.sort_unstable();
            ids.dedup();
        }
        let last = round >= end;
        for id in &ids {
            demote::process(id.pid);
            if let Some(Err(e)) = id.open().map(|fd| pidfd::send(&fd, libc::SIGKILL)) {
                if last && e.raw_os_error() != Some(libc::ESRCH) {
                    report.problems.push(format!(
                        "cannot kill process {} ({}): {e}",
                        id.pid,
                        proc::command_of(id.pid)
                    ));
                }
            }
        }
        report.killed += dying.add(ids.iter().copied());
        dying.demote();
        if ids.is_empty() || last {
            break;
        }
        demote::pause_after(round);
    }
    // Ended children must still be reaped.
    dying.add(c.children.iter().copied());
    dying.await_end(FIRST_WAIT);
}

/// Restores all processes of a group of adopted ones, also those that joined after the records
/// were made.
pub(crate) fn empty_adopted_group(
    dir: &Path,
    records: &[ProcessRecord],
    report: &mut RestoreReport,
) {
    if !dir.exists() {
        return;
    }
    // The freezer waits for a lock of all cgroups, and its holder for the CPU: at a real-time level
    // with nothing that bounds them, they would keep it from an ordinary holder.
    for tid in cgroup::list(dir, "cgroup.threads") {
        // Their nice values stay: those of real-time threads cannot be restored.
        let _ = sched::set_other(tid);
    }
    // Frozen processes create no new threads.
    cgroup::set_frozen(dir, true);
    cpuset::release(dir);
    let mut moved: Vec<(i32, Option<&ProcessRecord>)> = Vec::new();
    for _ in 0..50 {
        let pids = cgroup::list(dir, "cgroup.procs");
        if pids.is_empty() {
            break;
        }
        for pid in pids {
            let record = record_for(pid, dir, records);
            // What its cpuset here refuses may be permitted at home: the second time counts.
            report.threads += threads_back::give_back(pid, record, &mut Vec::new());
            if move_home(pid, record, dir).is_ok() {
                moved.push((pid, record));
                report.given_back += 1;
            }
        }
    }
    cgroup::set_frozen(dir, false);
    // Running again: a thread that was half made when its process froze is found now.
    for (pid, record) in moved {
        report.threads += threads_back::give_back(pid, record, &mut report.problems);
    }
    for pid in cgroup::list(dir, "cgroup.procs") {
        report.threads +=
            threads_back::give_back(pid, record_for(pid, dir, records), &mut report.problems);
        report.problems.push(format!(
            "process {pid} ({}) could not be moved out of {}",
            proc::command_of(pid),
            dir.display()
        ));
    }
}

/// Its own record, else that of its nearest recorded ancestor, else the first of its group.
pub(crate) fn record_for<'a>(
    pid: i32,
    dir: &Path,
    records: &'a [ProcessRecord],
) -> Option<&'a ProcessRecord> {
    let mut at = pid;
    for _ in 0..100 {
        let Some(stat) = proc::Stat::of(at) else { break };
        if let Some(r) = records.iter().find(|r| r.id == (Identity { pid: at, start: stat.start }))
        {
            return Some(r);
        }
        at = stat.ppid;
    }
    records.iter().find(|r| r.group == dir)
}

/// Back to the group that it came from; where that is gone, to its nearest parent that is left.
fn move_home(pid: i32, record: Option<&ProcessRecord>, from: &Path) -> std::io::Result<()> {
    let top = Hierarchy::V2.mount().map(|m| m.point).unwrap_or_default();
    let home = record.map(|r| r.cgroup.clone()).filter(|c| !c.as_os_str().is_empty());
    let home = home.unwrap_or_else(|| outside(from));
    let mut last = Err(std::io::ErrorKind::NotFound.into());
    for dir in home.ancestors().take_while(|d| d.starts_with(&top)) {
        last = std::fs::write(dir.join("cgroup.procs"), pid.to_string());
        match &last {
            Ok(()) => return last,
            Err(e) if e.raw_os_error() == Some(libc::ESRCH) => return Ok(()),
            Err(_) => {}
        }
    }
    last
}

/// The nearest parent that is none of our groups.
fn outside(dir: &Path) -> PathBuf {
    let of_ours =
        |d: &&Path| d.file_name().is_some_and(|n| n.to_string_lossy().starts_with("punctual-"));
    let ours = dir.ancestors().find(of_ours).unwrap_or(dir);
    let parent = ours.parent().unwrap_or(dir);
    // Where our groups are beside the service's own, their parent takes no processes.
    let beside = parent.join(cpuset::SUBGROUP);
    match beside.is_dir() {
        true => beside,
        false => parent.to_owned(),
    }
}

/// Adopted processes that are in no Punctual cgroup: parked by stop signals, or written down and
/// never moved.
fn restore_ungrouped(c: &Contents, report: &mut RestoreReport) {
    for r in &c.adopted {
        let with_group = c.groups.iter().any(|g| g.0 == r.group);
        let mut ids = vec![r.id];
        if !with_group {
            ids.extend(c.joined.iter().filter(|j| j.1 == r.id.pid).map(|j| j.0));
            // Not yet discovered by the housekeeper: never stopped, but at our level.
            ids.extend(proc::descendants_since(&[(r.id.pid, r.at)]));
            ids.sort_unstable();
            ids.dedup();
        }
        for id in ids.into_iter().filter(Identity::is_alive) {
            report.threads += threads_back::give_back(id.pid, Some(r), &mut report.problems);
            report.given_back += usize::from(!with_group);
        }
    }
    for record in &c.adopted_threads {
        threads_back::give_thread_back(record, &mut report.problems);
        report.threads += 1;
    }
    for id in &c.stopping {
        let Some(fd) = id.open() else { continue };
        let was_stopped = c.adopted.iter().any(|r| r.id == *id && r.stopped);
        let signal = if was_stopped { libc::SIGSTOP } else { libc::SIGCONT };
        match pidfd::send(&fd, signal) {
            Ok(()) => report.continued += usize::from(!was_stopped),
            Err(e) if e.raw_os_error() == Some(libc::ESRCH) => {}
            Err(e) => report.problems.push(format!("cannot continue process {}: {e}", id.pid)),
        }
    }
}

/// Removes a group that should be empty by now. What is still in a group of commands is killed
/// again in each round.
pub(crate) fn remove_group(
    dir: &Path,
    purpose: Purpose,
    dying: &mut Dying,
    report: &mut RestoreReport,
) {
    if !dir.exists() {
        return;
    }
    let meanwhile = || {
        if purpose == Purpose::Command {
            dying.add_group(dir);
            let _ = cgroup::kill_all(dir);
        }
        dying.demote();
    };
    match cgroup::remove_tree(dir, LAST_WAIT, meanwhile) {
        Ok(()) => report.groups += 1,
        Err(e) => {
            let who = Some(dying.named())
                .filter(|w| !w.is_empty())
                .map(|w| format!("; still there: {w}"));
            report.problems.push(format!(
                "cannot remove the cgroup {}: {e}{}",
                dir.display(),
                who.unwrap_or_default()
            ));
        }
    }
}
