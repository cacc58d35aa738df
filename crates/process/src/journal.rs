//! What we changed, written down before we change it.
//!
//! One file for each running Punctual process, one JSON object to a line, each line one write(2) to
//! a file opened for appending. The invariant: *a change is made only after its line was written*;
//! so a later reader finds at least everything that happened, and each line means "this may have
//! been done". A killed process needs no fsync: what was written to the page cache stays. A torn
//! line (a full disk) is skipped by the reader, and its change was never made because its write was
//! seen to fail.

use crate::proc::{self, Identity};
use punctual_diagnostic::Diagnostic;
use punctual_sys::sched;
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::fs::{Mode, OFlags};
use rustix::io::retry_on_intr;
use serde::{Deserialize, Serialize};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicI32, AtomicU32, Ordering};
use std::sync::Arc;

/// What the processes of a cgroup are to us, which decides how they end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Purpose {
    /// Only other groups are in it.
    Base,
    /// We started what runs in it: it is killed when we go.
    Command,
    /// It ran before this run, and is restored at its end.
    Adopted,
}

/// How one thread was before we touched it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct ThreadRecord {
    pub tid: i32,
    pub start: u64,
    pub attr: sched::Attributes,
    pub affinity: sched::Mask,
}

/// How one process was before we adopted it. A thread that is not listed came later and inherits
/// the first record, its leader's.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct ProcessRecord {
    pub id: Identity,
    /// Directory of its v2 cgroup; empty where there is none.
    pub cgroup: PathBuf,
    /// Our group that it is moved to; empty when it is parked by stop signals.
    pub group: PathBuf,
    /// When this was written, in clock ticks since boot: a child that started later belongs to it.
    pub at: u64,
    /// It was stopped before we adopted it.
    pub stopped: bool,
    pub threads: Vec<ThreadRecord>,
}

/// How one thread was before we adopted it alone.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct AdoptedThreadRecord {
    pub process: Identity,
    /// When this was written, in clock ticks since boot: what started later inherits from it.
    pub at: u64,
    /// The CPU that it is moved to.
    pub cpu: u32,
    /// The first thread of its process is another one, and was on that CPU alone.
    pub pinned: bool,
    pub thread: ThreadRecord,
}

impl AdoptedThreadRecord {
    /// Names it in the journal.
    pub fn id(&self) -> Identity {
        Identity { pid: self.thread.tid, start: self.thread.start }
    }
}

/// One line.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "what", rename_all = "snake_case")]
pub(crate) enum Entry {
    /// The first line: whose journal this is.
    Owner {
        id: Identity,
        boot: String,
        pidns: u64,
        command: String,
        since: String,
        /// See [`Journal::mark`].
        mark: String,
    },
    Guardian {
        id: Identity,
    },
    /// A cgroup directory that we are about to make.
    Group {
        path: PathBuf,
        purpose: Purpose,
    },
    /// It is removed.
    GroupGone {
        path: PathBuf,
    },
    /// A process that we are about to adopt.
    Adopted {
        process: ProcessRecord,
    },
    /// A later child of an adopted process: to be given what `like` was given.
    Joined {
        id: Identity,
        like: i32,
    },
    /// An adopted process is restored.
    GivenBack {
        id: Identity,
    },
    /// A thread that we are about to adopt.
    AdoptedThread {
        thread: AdoptedThreadRecord,
    },
    /// An adopted thread is restored, with what came of it.
    ThreadGivenBack {
        id: Identity,
    },
    /// A process that we started.
    Child {
        id: Identity,
    },
    /// It ended and was waited for.
    ChildGone {
        id: Identity,
    },
    /// From now on it may get SIGSTOP.
    Stopping {
        id: Identity,
    },
    /// The owner parks none of its commands: another process may adopt them.
    ParkedElsewhere,
}

/// The journal of this process. Clones write to the same file.
#[derive(Debug, Clone)]
pub struct Journal {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    file: OwnedFd,
    path: PathBuf,
    owner: Identity,
    mark: String,
    guardian: AtomicI32,
}

impl Journal {
    /// Makes the journal of this process in the state directory and writes its first line. Not
    /// real-time safe.
    ///
    /// # Errors
    /// The state directory cannot be made or belongs to another user.
    pub fn create() -> Result<Self, Diagnostic> {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let dir = own_directory()?;
        let owner = Identity::own();
        let n = COUNT.fetch_add(1, Ordering::Relaxed);
        let path = dir.join(format!("{}-{}-{n}.journal", owner.pid, owner.start));
        let flags = OFlags::RDWR
            | OFlags::APPEND
            | OFlags::CREATE
            | OFlags::EXCL
            | OFlags::CLOEXEC
            | OFlags::NOFOLLOW;
        let file = rustix::fs::open(&path, flags, Mode::from_raw_mode(0o600)).map_err(|e| {
            Diagnostic::refused(
                format!("cannot make the journal {}", path.display()),
                e,
                "make room there, or set PUNCTUAL_STATE_DIR",
            )
        })?;
        let mark = format!("{}-{}-{}-{n}", owner.pid, owner.start, proc::pid_namespace());
        let inner = Inner { file, path, owner, mark: mark.clone(), guardian: AtomicI32::new(0) };
        let journal = Self { inner: Arc::new(inner) };
        journal.write(&Entry::Owner {
            id: owner,
            boot: proc::boot_id(),
            pidns: proc::pid_namespace(),
            command: proc::command_of(owner.pid),
            since: crate::lock::now(),
            mark,
        })?;
        Ok(journal)
    }

    /// Its file.
    pub fn path(&self) -> &Path {
        &self.inner.path
    }

    /// The process whose journal it is.
    pub fn owner(&self) -> Identity {
        self.inner.owner
    }

    /// `PUNCTUAL_RUN` in the environment of all that is started under it. A process may have
    /// several journals, and the end of one run must not find what another has started.
    pub(crate) fn mark(&self) -> &str {
        &self.inner.mark
    }

    /// The end of our cgroups' names: the process whose they are.
    pub(crate) fn id(&self) -> String {
        format!("{}-{}-{}", self.inner.owner.pid, self.inner.owner.start, proc::pid_namespace())
    }

    pub(crate) fn guardian(&self) -> i32 {
        self.inner.guardian.load(Ordering::Relaxed)
    }

    pub(crate) fn set_guardian(&self, pid: i32) {
        self.inner.guardian.store(pid, Ordering::Relaxed);
    }

    /// Writes a line; when this returns an error the change must not be made.
    pub(crate) fn write(&self, entry: &Entry) -> Result<(), Diagnostic> {
        let failed = |e: std::io::Error| {
            Diagnostic::refused(
                format!("cannot write the journal {}", self.inner.path.display()),
                e,
                "make room there; nothing was changed that is not written down",
            )
        };
        // The newline in front ends a line that an earlier, failed write may have torn.
        let mut line = b"\n".to_vec();
        serde_json::to_writer(&mut line, entry).map_err(|e| failed(e.into()))?;
        line.push(b'\n');
        match retry_on_intr(|| rustix::io::write(&self.inner.file, &line)) {
            Ok(n) if n == line.len() => Ok(()),
            Ok(_) => Err(failed(rustix::io::Errno::NOSPC.into())),
            Err(e) => Err(failed(e.into())),
        }
    }

    /// Opens the journal of another process.
    pub(crate) fn open(path: &Path) -> Option<Self> {
        Self::read(path).map(|(journal, _)| journal)
    }

    /// The same, with what it says.
    pub(crate) fn read(path: &Path) -> Option<(Self, Contents)> {
        let flags = OFlags::RDWR | OFlags::APPEND | OFlags::CLOEXEC | OFlags::NOFOLLOW;
        let file = rustix::fs::open(path, flags, Mode::empty()).ok()?;
        let contents = Contents::of(file.as_fd());
        let owner = contents.owner.as_ref().map_or(Identity { pid: 0, start: 0 }, |o| o.0);
        let (path, mark) = (path.to_owned(), contents.mark.clone());
        let inner = Inner { file, path, owner, mark, guardian: AtomicI32::new(0) };
        Some((Self { inner: Arc::new(inner) }, contents))
    }
}

impl AsFd for Journal {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.inner.file.as_fd()
    }
}

/// Everything that a journal says, with what was undone in good order already taken out.
#[derive(Debug, Default)]
pub(crate) struct Contents {
    /// Identity, boot, pid namespace, command line, since.
    pub owner: Option<(Identity, String, u64, String, String)>,
    /// See [`Journal::mark`].
    pub mark: String,
    pub guardian: Option<Identity>,
    pub groups: Vec<(PathBuf, Purpose)>,
    pub adopted: Vec<ProcessRecord>,
    pub joined: Vec<(Identity, i32)>,
    pub adopted_threads: Vec<AdoptedThreadRecord>,
    pub children: Vec<Identity>,
    /// A command was started, whether it has ended or not: its descendants may still run.
    pub started: bool,
    pub stopping: Vec<Identity>,
    /// Another process may adopt the children.
    pub parked_elsewhere: bool,
}

impl Contents {
    pub fn of(file: BorrowedFd<'_>) -> Self {
        let mut bytes = Vec::new();
        let mut chunk = [0u8; 8192];
        while let Ok(n @ 1..) =
            retry_on_intr(|| rustix::io::pread(file, &mut chunk, bytes.len() as u64))
        {
            bytes.extend_from_slice(&chunk[..n]);
        }
        Self::parse(&bytes)
    }

    pub fn parse(bytes: &[u8]) -> Self {
        let mut c = Self::default();
        for line in bytes.split(|b| *b == b'\n') {
            // Blank and torn lines do not parse, and their changes were not made.
            if let Ok(entry) = serde_json::from_slice(line) {
                c.take(entry);
            }
        }
        c
    }

    fn take(&mut self, entry: Entry) {
        match entry {
            Entry::Owner { id, boot, pidns, command, since, mark } => {
                self.owner = Some((id, boot, pidns, command, since));
                self.mark = mark;
            }
            Entry::Guardian { id } => self.guardian = Some(id),
            Entry::Group { path, purpose } => self.groups.push((path, purpose)),
            Entry::GroupGone { path } => self.groups.retain(|g| g.0 != path),
            Entry::Adopted { process } => self.adopted.push(process),
            Entry::Joined { id, like } => self.joined.push((id, like)),
            Entry::GivenBack { id } => {
                self.adopted.retain(|p| p.id != id);
                self.joined.retain(|j| j.0 != id);
                self.stopping.retain(|s| *s != id);
            }
            Entry::AdoptedThread { thread } => self.adopted_threads.push(thread),
            Entry::ThreadGivenBack { id } => self.adopted_threads.retain(|t| t.id() != id),
            Entry::Child { id } => {
                self.started = true;
                self.children.push(id);
            }
            Entry::ChildGone { id } => {
                self.children.retain(|c| *c != id);
                self.stopping.retain(|s| *s != id);
            }
            Entry::Stopping { id } => self.stopping.push(id),
            Entry::ParkedElsewhere => self.parked_elsewhere = true,
        }
    }
}

/// The state directory of this user, with journals and what else runs share: PUNCTUAL_STATE_DIR,
/// else /run/punctual for root, else XDG_RUNTIME_DIR/punctual, else /tmp/punctual-UID.
pub fn directory() -> PathBuf {
    let uid = rustix::process::geteuid();
    if let Some(dir) = std::env::var_os("PUNCTUAL_STATE_DIR") {
        PathBuf::from(dir)
    } else if uid.is_root() {
        PathBuf::from("/run/punctual")
    } else if let Some(dir) = std::env::var_os("XDG_RUNTIME_DIR").filter(|d| Path::new(d).is_dir())
    {
        Path::new(&dir).join("punctual")
    } else {
        PathBuf::from(format!("/tmp/punctual-{}", uid.as_raw()))
    }
}

fn own_directory() -> Result<PathBuf, Diagnostic> {
    let dir = directory();
    let help = "remove it or set PUNCTUAL_STATE_DIR to a directory of your own";
    let made = std::fs::DirBuilder::new().recursive(true).mode(0o700).create(&dir);
    made.map_err(|e| {
        Diagnostic::refused(format!("cannot make the state directory {}", dir.display()), e, help)
    })?;
    // Restoring executes what a journal records, so no other user may write there.
    if !is_ours_alone(&dir) {
        return Err(Diagnostic::machine(
            format!(
                "the state directory {} belongs to another user, is writable by others, or is a \
                 link",
                dir.display()
            ),
            help,
        ));
    }
    Ok(dir)
}

/// Whether a directory or file is this user's and no other user can write it; a sticky directory
/// is accepted.
pub(crate) fn is_ours_alone(path: &Path) -> bool {
    std::fs::symlink_metadata(path).is_ok_and(|m| {
        !m.file_type().is_symlink()
            && m.uid() == rustix::process::geteuid().as_raw()
            && (m.mode() & 0o022 == 0 || m.mode() & 0o1000 != 0)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_torn_last_line_is_skipped_and_the_rest_kept() {
        let id = Identity { pid: 7, start: 9 };
        let mut bytes = serde_json::to_vec(&Entry::Child { id }).unwrap();
        bytes.extend_from_slice(b"\n\n{\"what\":\"child\",\"id\":{\"pid\":8,\"st");
        assert_eq!(Contents::parse(&bytes).children, [id]);
    }

    #[test]
    fn what_was_given_back_is_not_given_back_twice() {
        let id = Identity { pid: 7, start: 9 };
        let process = ProcessRecord {
            id,
            cgroup: PathBuf::new(),
            group: PathBuf::new(),
            at: 0,
            stopped: false,
            threads: Vec::new(),
        };
        let lines = [Entry::Adopted { process }, Entry::Stopping { id }, Entry::GivenBack { id }];
        let bytes: Vec<u8> = lines
            .iter()
            .flat_map(|e| [serde_json::to_vec(e).unwrap(), b"\n".to_vec()].concat())
            .collect();
        let c = Contents::parse(&bytes);
        assert!(c.adopted.is_empty() && c.stopping.is_empty());
    }
}
