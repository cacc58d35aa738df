//! What we changed, written down before we change it.
//!
//! One file for each running Punctual process, one JSON object to a line, each line one write(2) to
//! a file opened for appending. The invariant: *a change is made only after its line was written*;
//! so a later reader finds at least everything that happened, and each line means "this may have
//! been done". A killed process needs no fsync: what was written to the page cache stays. A torn
//! line (a full disk) is skipped by the reader, and its change was never made because its write was
//! seen to fail.
//!
//! A journal whose process lives for long is shortened: a `Snapshot` says what the lines before a
//! place amount to, and the memory of these is given back, as a hole in the file. Others may write
//! between the reading and the snapshot, whose lines stay, and the process may be killed before the
//! hole is there: either way a reader finds the same.

mod contents;

pub(crate) use contents::Contents;

use crate::proc::{self, Identity};
use punctual_diagnostic::Diagnostic;
use punctual_sys::sched;
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::fs::{FallocateFlags, Mode, OFlags};
use rustix::io::retry_on_intr;
use serde::{Deserialize, Serialize};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicI32, AtomicU32, AtomicU64, Ordering};
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
    /// What all lines before this place in the file, bytes, amount to.
    Snapshot {
        covers: u64,
        /// [`Contents::started`].
        started: bool,
        entries: Vec<Entry>,
    },
}

impl Entry {
    /// What begins by it is made at leisure, and there is time to shorten the journal.
    fn is_at_leisure(&self) -> bool {
        matches!(self, Entry::Adopted { .. } | Entry::AdoptedThread { .. } | Entry::Child { .. })
    }
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
    /// Bytes that this process has written.
    written: AtomicU64,
    /// It is shortened when so many are; `u64::MAX`: that is being done.
    shortened_at: AtomicU64,
}

/// The least bytes that are written between two snapshots.
const SHORTENED_AFTER: u64 = 64 << 10;

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
        let journal = Self::of_file(file, path, owner, mark.clone());
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
        let failed = |e: io::Error| {
            Diagnostic::refused(
                format!("cannot write the journal {}", self.inner.path.display()),
                e,
                "make room there; nothing was changed that is not written down",
            )
        };
        self.append(entry).map_err(failed)?;
        if entry.is_at_leisure() {
            self.shorten_if_long();
        }
        Ok(())
    }

    /// Appends a line of so many bytes.
    fn append(&self, entry: &Entry) -> io::Result<u64> {
        // The newline in front ends a line that an earlier, failed write may have torn.
        let mut line = b"\n".to_vec();
        serde_json::to_writer(&mut line, entry)?;
        line.push(b'\n');
        if retry_on_intr(|| rustix::io::write(&self.inner.file, &line))? != line.len() {
            return Err(rustix::io::Errno::NOSPC.into());
        }
        let length = line.len() as u64;
        self.inner.written.fetch_add(length, Ordering::Relaxed);
        Ok(length)
    }

    /// Replaces lines by what they amount to, where that is much less. The costs are those of one
    /// reading in as many bytes as two readings have.
    fn shorten_if_long(&self) {
        let Inner { written, shortened_at, .. } = &*self.inner;
        if written.load(Ordering::Relaxed) < shortened_at.load(Ordering::Relaxed) {
            return;
        }
        if shortened_at.swap(u64::MAX, Ordering::Relaxed) == u64::MAX {
            return;
        }
        let length = self.shorten().unwrap_or(0);
        let next = written.load(Ordering::Relaxed) + (2 * length).max(SHORTENED_AFTER);
        shortened_at.store(next, Ordering::Relaxed);
    }

    /// The same; the length of the snapshot, bytes. Where it fails, the lines are there still.
    fn shorten(&self) -> io::Result<u64> {
        let (contents, covers) = Contents::up_to_now(self.as_fd());
        let length = self.append(&contents.snapshot(covers))?;
        let hole = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
        // A file system without holes keeps the lines.
        let _ = rustix::fs::fallocate(&self.inner.file, hole, 0, covers);
        Ok(length)
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
        Some((Self::of_file(file, path.to_owned(), owner, contents.mark.clone()), contents))
    }

    fn of_file(file: OwnedFd, path: PathBuf, owner: Identity, mark: String) -> Self {
        let (guardian, written) = (AtomicI32::new(0), AtomicU64::new(0));
        let shortened_at = AtomicU64::new(SHORTENED_AFTER);
        let inner = Inner { file, path, owner, mark, guardian, written, shortened_at };
        Self { inner: Arc::new(inner) }
    }
}

impl AsFd for Journal {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.inner.file.as_fd()
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
