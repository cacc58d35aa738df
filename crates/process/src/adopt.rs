//! Adopting a running process, and restoring it.

use crate::journal::{self, Entry, Journal, ProcessRecord, ThreadRecord};
use crate::park::Park;
use crate::privilege;
use crate::proc::{self, Identity, Stat};
use crate::restore::{empty_adopted_group, record_for, RestoreReport};
use crate::threads_back;
use punctual_diagnostic::Diagnostic;
use punctual_sys::cgroup::Hierarchy;
use punctual_sys::pidfd;
use punctual_sys::sched;
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::PathBuf;

/// An adopted process. Dropping it changes nothing: the journal has its record.
#[derive(Debug)]
pub struct Adopted {
    id: Identity,
    pidfd: OwnedFd,
    record: ProcessRecord,
    journal: Journal,
}

/// Adopts `pid` with all its threads (and later children): writes down how it is, then moves it
/// into `park`, which was made by [`Park::for_process`]. Its children of before stay out
/// ([`adopt_with_children`]). Level and CPU are left as they are: see
/// [`Threads`](crate::Threads). Not real-time safe.
///
/// # Errors
/// No such process, a kernel thread, init, this process, its guardian or an ancestor, adopted
/// by another Punctual (all exit code 2); not permitted (4). Nothing is changed then.
pub fn adopt(journal: &Journal, pid: i32, park: &Park) -> Result<Adopted, Diagnostic> {
    let (id, pidfd) = check_adoptable(pid)?;
    refuse_guardian(journal, pid)?;
    privilege::check_target(pid)?;

    let group = match park {
        Park::Freezer(c) => c.path().to_owned(),
        Park::Stop(_) => PathBuf::new(),
    };
    let record = record(id, group).ok_or_else(|| no_process(pid))?;
    journal.write(&Entry::Adopted { process: record.clone() })?;
    let adopted = Adopted { id, pidfd, record, journal: journal.clone() };
    if let Err(e) = park.add(id) {
        adopted.forget();
        return Err(e);
    }
    Ok(adopted)
}

/// Adopts `pid` and its children; these, and in words for people which children stay out: one that
/// we may not have, or that ended meanwhile. Not real-time safe.
///
/// # Errors
/// As of [`adopt`], of the first one. Nothing is changed then.
pub fn adopt_with_children(
    journal: &Journal,
    pid: i32,
    park: &Park,
) -> Result<(Vec<Adopted>, Vec<String>), Diagnostic> {
    let (mut adopted, mut notes) = (vec![adopt(journal, pid, park)?], Vec::new());
    for child in proc::descendants(&[pid]).into_iter().filter(|&child| child != pid) {
        match adopt(journal, child, park) {
            Ok(one) => adopted.push(one),
            Err(e) => notes
                .push(format!("process {child}, a child of {pid}, is not adopted: {}", e.cause)),
        }
    }
    Ok((adopted, notes))
}

pub(crate) fn refuse_guardian(journal: &Journal, pid: i32) -> Result<(), Diagnostic> {
    if pid != journal.guardian() {
        return Ok(());
    }
    Err(Diagnostic::usage(
        format!("process {pid} is our guardian"),
        "it must always be able to run; choose another process",
    ))
}

fn no_process(pid: i32) -> Diagnostic {
    Diagnostic::usage(
        format!("there is no process {pid}"),
        "give the number of a running process (ps -e)",
    )
    .with_errno(libc::ESRCH)
}

/// Whether `pid` is a process that any host may schedule for its user; its identity and its pidfd.
/// Not real-time safe.
///
/// # Errors
/// As of [`adopt`], but what the user host alone needs: real-time priorities for it.
pub fn check_adoptable(pid: i32) -> Result<(Identity, OwnedFd), Diagnostic> {
    check_part_adoptable(pid, None)
}

/// The same for one thread of the process: what is said of the process and the thread. Whether
/// there is such a thread is not looked at.
///
/// # Errors
/// As of [`check_adoptable`].
pub fn check_adoptable_thread(pid: i32, tid: i32) -> Result<(Identity, OwnedFd), Diagnostic> {
    check_part_adoptable(pid, Some(tid))
}

/// The same for the process, or for a thread of it.
pub(crate) fn check_part_adoptable(
    pid: i32,
    thread: Option<i32>,
) -> Result<(Identity, OwnedFd), Diagnostic> {
    let id = Identity::of(pid).filter(|_| pid > 0).ok_or_else(|| no_process(pid))?;
    refuse_wrong_one(id, thread)?;
    let pidfd = id.open().ok_or_else(|| no_process(pid))?;
    privilege::check_signal(pid, &pidfd)?;
    Ok((id, pidfd))
}

/// `thread`: it is for this thread alone.
fn refuse_wrong_one(id: Identity, thread: Option<i32>) -> Result<(), Diagnostic> {
    let pid = id.pid;
    let name = proc::command_of(pid);
    let refuse = |cause: String, help: &str| Err(Diagnostic::usage(cause, help));
    if let Some(process) = proc::process_of(pid).filter(|p| *p != pid) {
        return refuse(
            format!("{pid} is a thread of process {process} ({name})"),
            &format!("adopt the whole process: --pid {process}"),
        );
    }
    if proc::is_kernel_thread(pid) {
        return refuse(
            format!("process {pid} ({name}) is a kernel thread"),
            "kernel threads cannot be parked; choose a program",
        );
    }
    if pid == 1 {
        return refuse(
            format!("process 1 ({name}) is init"),
            "the machine needs it; choose another process",
        );
    }
    if pid == Identity::own().pid {
        return refuse(
            format!("process {pid} is ourselves"),
            "it would stop this process too; choose another process",
        );
    }
    if proc::ancestors().contains(&pid) {
        return refuse(
            format!(
                "process {pid} ({name}) started us: parking it would hang this terminal or session"
            ),
            "start punctual from elsewhere (another terminal), or choose another process",
        );
    }
    if let Some(owner) = custodian_of(id, thread) {
        return refuse(
            format!("process {pid} ({name}) is already adopted by process {owner}"),
            &format!("end that one first (kill {owner}), or if it is gone: punctual clean"),
        );
    }
    Ok(())
}

/// Which process adopted it, or a thread of it that would be adopted twice: by its cgroup's name,
/// and without cgroups by the journals of this user.
fn custodian_of(id: Identity, thread: Option<i32>) -> Option<i32> {
    let path = Hierarchy::V2.path_of(id.pid).unwrap_or_default();
    let by_group = path
        .split('/')
        .find_map(|part| part.strip_prefix("punctual-")?.split('-').next()?.parse().ok());
    by_group.or_else(|| {
        let files = std::fs::read_dir(journal::directory()).ok()?;
        files.flatten().filter_map(|f| Journal::read(&f.path())).find_map(|(j, c)| {
            let is_twice = |tid: i32| thread.is_none_or(|thread| thread == tid);
            let of_threads = c.adopted_threads.iter().filter(|t| t.process == id);
            let has = c.adopted.iter().any(|r| r.id == id)
                || of_threads.map(|t| t.thread.tid).any(is_twice)
                || c.joined.iter().any(|x| x.0 == id)
                || !c.parked_elsewhere && c.children.contains(&id);
            (has && j.owner().is_alive()).then(|| j.owner().pid)
        })
    })
}

/// Writes down every thread; again, until no thread has come meanwhile.
pub(crate) fn record(id: Identity, group: PathBuf) -> Option<ProcessRecord> {
    let at = proc::ticks_now();
    let mut threads: Vec<ThreadRecord> = Vec::new();
    for _ in 0..100 {
        let new: Vec<i32> = proc::threads_of(id.pid)
            .into_iter()
            .filter(|t| !threads.iter().any(|r| r.tid == *t))
            .collect();
        if new.is_empty() && !threads.is_empty() {
            break;
        }
        for tid in new {
            let one = || {
                let start = Stat::of_thread(id.pid, tid)?.start;
                Some(ThreadRecord {
                    tid,
                    start,
                    attr: sched::Attributes::of(tid).ok()?,
                    affinity: sched::affinity(tid).ok()?,
                })
            };
            threads.extend(one());
        }
    }
    // The leader first: threads that come later inherit its record.
    threads.sort_by_key(|t| (t.tid != id.pid, t.tid));
    let cgroup = Hierarchy::V2.directory_of(id.pid).unwrap_or_default();
    let stopped = Stat::of(id.pid)?.state == 'T';
    (!threads.is_empty()).then_some(ProcessRecord { id, cgroup, group, at, stopped, threads })
}

impl Adopted {
    /// Who it is.
    pub fn id(&self) -> Identity {
        self.id
    }

    /// Its pidfd: readable (POLLIN) when it has ended.
    pub fn pidfd(&self) -> BorrowedFd<'_> {
        self.pidfd.as_fd()
    }

    /// Whether it has ended. Not real-time safe.
    pub fn has_ended(&self) -> bool {
        !self.id.is_alive()
    }

    /// Gives the processes of one task, and their later children in the same `park`, back what they
    /// came with, and lets them continue. The park can be removed afterwards. Not real-time safe.
    pub fn give_back(all: &[Adopted], park: &Park) -> RestoreReport {
        let mut report = RestoreReport::default();
        let Some(first) = all.first() else { return report };
        report.owner = first.journal.owner().pid;
        // One of them may be the child of another: each has its own record.
        let records: Vec<ProcessRecord> = all.iter().map(|a| a.record.clone()).collect();
        match park {
            Park::Freezer(c) => empty_adopted_group(c.path(), &records, &mut report),
            Park::Stop(s) => {
                let _ = s.rescan();
                for id in s.procs().into_iter().filter_map(Identity::of) {
                    first.continue_restored(id, &records, &mut report);
                }
            }
        }
        if report.is_complete() {
            all.iter().for_each(Adopted::forget);
        }
        report
    }

    /// Restores a process that is parked by stop signals.
    fn continue_restored(
        &self,
        id: Identity,
        records: &[ProcessRecord],
        report: &mut RestoreReport,
    ) {
        let record = record_for(id.pid, &PathBuf::new(), records);
        report.threads += threads_back::give_back(id.pid, record, &mut report.problems);
        report.given_back += 1;
        let was_stopped = record.is_some_and(|r| r.stopped && r.id == id);
        let signal = if was_stopped { libc::SIGSTOP } else { libc::SIGCONT };
        if id.open().is_some_and(|fd| pidfd::send(&fd, signal).is_ok()) && !was_stopped {
            report.continued += 1;
        }
        let _ = self.journal.write(&Entry::GivenBack { id });
    }

    fn forget(&self) {
        let _ = self.journal.write(&Entry::GivenBack { id: self.id });
    }
}
