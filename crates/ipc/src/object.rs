//! The files of one object, in a folder that appears and disappears at once.
//!
//! ```text
//! memory      what is mapped; a lock on its byte IN_USE by each process that has the object open
//! put, get    of a FIFO: named pipes, whose descriptors are ready when a side of it moved
//! persistent  where it outlives the processes that use it
//! ```
//!
//! It is made under a temporary name, and renamed when it is complete. To remove it, it is renamed
//! to a temporary name first. What is left of either by a killed process has no lock any more.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicU32, Ordering};

use punctual_diagnostic::Diagnostic;
use punctual_sys::file_lock::{self, Access};
use rustix::fs::{
    accessat, fallocate, flock, fstat, memfd_create, mkdirat, mkfifoat, openat, renameat,
    renameat_with, unlinkat, Access as Permission, AtFlags, Dir, FallocateFlags, FlockOperation,
    MemfdFlags, Mode, OFlags, RenameFlags, CWD,
};
use rustix::io::Errno;
use rustix::pipe::{pipe_with, PipeFlags};

use crate::name::Name;
use crate::namespace::{Lifetime, Namespace};

/// Locked shared by each process that has the object open.
const IN_USE: i64 = 2;

const MEMORY: &str = "memory";
const PIPES: [&str; 2] = ["put", "get"];
const PERSISTENT: &str = "persistent";

/// Attempts, where another process removes what this one makes or opens.
const ATTEMPTS: u32 = 1000;

/// What an object is. Each kind has its own names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ObjectKind {
    Fifo,
    Lock,
    Region,
}

impl ObjectKind {
    /// Its folder in a namespace; in messages, what it is called.
    pub fn folder(self) -> &'static str {
        match self {
            Self::Fifo => "fifo",
            Self::Lock => "lock",
            Self::Region => "region",
        }
    }

    /// The named pipes of an object.
    fn pipes(self) -> &'static [&'static str] {
        match self {
            Self::Fifo => &PIPES,
            Self::Lock | Self::Region => &[],
        }
    }
}

/// The open files of an object.
#[derive(Debug)]
pub struct Object {
    memory: File,
    /// Those of [`ObjectKind::pipes`].
    pipes: Vec<OwnedFd>,
    named: Option<Named>,
}

#[derive(Debug)]
struct Named {
    /// Of its kind.
    folder: OwnedFd,
    kind: ObjectKind,
    name: Name,
    lifetime: Lifetime,
}

impl Object {
    /// Makes one with `length` bytes of memory, which `fill` writes before others can open it.
    ///
    /// # Errors
    /// EEXIST: the name is taken. ENOSPC: no room in memory.
    pub fn create<T>(
        namespace: &Namespace,
        kind: ObjectKind,
        name: &Name,
        lifetime: Lifetime,
        length: u64,
        fill: impl Fn(&File) -> io::Result<T>,
    ) -> Result<(Self, T), Diagnostic> {
        let refused = |error| refused("make", kind, name, error);
        let folder = namespace.folder_of(kind).map_err(refused)?;
        reclaim(&folder);
        let mut is_reclaimed = false;
        for _ in 0..ATTEMPTS {
            let temporary = temporary("new");
            match mkdirat(&folder, temporary.as_str(), Mode::RWXU) {
                Ok(()) => {}
                // Of a killed process that had our number, or of one of another PID namespace.
                Err(Errno::EXIST) => continue,
                Err(errno) => return Err(refused(errno.into())),
            }
            let made = Self::build(&folder, kind, &temporary, lifetime, length).and_then(
                |(memory, pipes)| {
                    let filled = fill(&memory)?;
                    let (from, to) = (temporary.as_str(), name.as_str());
                    renameat_with(&folder, from, &folder, to, RenameFlags::NOREPLACE)?;
                    Ok((memory, pipes, filled))
                },
            );
            let error = match made {
                Ok((memory, pipes, filled)) => {
                    let named = Some(Named { folder, kind, name: name.clone(), lifetime });
                    return Ok((Self { memory, pipes, named }, filled));
                }
                Err(error) => error,
            };
            delete(&folder, &temporary);
            match error.kind() {
                // Reclaimed before it had its lock.
                io::ErrorKind::NotFound => {}
                // Perhaps by an object of a killed process, which another process looks at now.
                io::ErrorKind::AlreadyExists if !is_reclaimed => {
                    let _locked =
                        FolderLock::wait(&folder).map_err(|errno| refused(errno.into()))?;
                    reclaim_locked(&folder);
                    is_reclaimed = true;
                }
                io::ErrorKind::AlreadyExists => return Err(taken(kind, name)),
                _ => return Err(refused(error)),
            }
        }
        Err(refused(io::ErrorKind::TimedOut.into()))
    }

    /// In the new folder of this name.
    fn build(
        folder: &OwnedFd,
        kind: ObjectKind,
        name: &str,
        lifetime: Lifetime,
        length: u64,
    ) -> io::Result<(File, Vec<OwnedFd>)> {
        let within = open_folder(folder, name)?;
        let mode = Mode::RUSR | Mode::WUSR;
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
        let memory = File::from(openat(&within, MEMORY, flags, mode)?);
        file_lock::lock(&memory, IN_USE, Access::Shared)?;
        // With all its pages: a write to shared memory for which there is no room is a SIGBUS.
        fallocate(&memory, FallocateFlags::empty(), 0, length)?;
        for &pipe in kind.pipes() {
            mkfifoat(&within, pipe, mode)?;
        }
        if lifetime == Lifetime::Persistent {
            openat(&within, PERSISTENT, flags, mode)?;
        }
        let pipes = open_pipes(&within, kind)?;
        Ok((memory, pipes))
    }

    /// One with pipes and without a name, for the threads of this process.
    ///
    /// # Errors
    /// ENOSPC, ENOMEM: no room in memory; EMFILE.
    pub fn unnamed(length: u64) -> io::Result<Self> {
        let memory = File::from(memfd_create("punctual", MemfdFlags::CLOEXEC)?);
        fallocate(&memory, FallocateFlags::empty(), 0, length)?;
        let pipe = || pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK);
        // A pipe that is opened again can be for reading and writing, as named ones are.
        let open = |(reading, _writing): (OwnedFd, OwnedFd)| reopen(reading.as_fd(), pipe_flags());
        let pipes = vec![open(pipe()?)?, open(pipe()?)?];
        Ok(Self { memory, pipes, named: None })
    }

    /// Opens the one of this name.
    ///
    /// # Errors
    /// ENOENT: there is none.
    pub fn open(namespace: &Namespace, kind: ObjectKind, name: &Name) -> Result<Self, Diagnostic> {
        let refused = |error| refused("open", kind, name, error);
        let folder = namespace.folder_of(kind).map_err(refused)?;
        for _ in 0..ATTEMPTS {
            match Self::open_in(&folder, kind, name) {
                Ok(Some((memory, pipes, lifetime))) => {
                    let named = Some(Named { folder, kind, name: name.clone(), lifetime });
                    return Ok(Self { memory, pipes, named });
                }
                Ok(None) => {}
                Err(error) if error.kind() == io::ErrorKind::NotFound => {
                    return Err(missing(kind, name));
                }
                Err(error) => return Err(refused(error)),
            }
        }
        Err(refused(io::ErrorKind::TimedOut.into()))
    }

    /// `None`: it was removed meanwhile.
    fn open_in(
        folder: &OwnedFd,
        kind: ObjectKind,
        name: &Name,
    ) -> io::Result<Option<(File, Vec<OwnedFd>, Lifetime)>> {
        let within = open_folder(folder, name.as_str())?;
        let memory = File::from(openat(&within, MEMORY, memory_flags(), Mode::empty())?);
        file_lock::lock(&memory, IN_USE, Access::Shared)?;
        if fstat(&memory)?.st_nlink == 0 {
            return Ok(None);
        }
        match open_pipes(&within, kind) {
            Ok(pipes) => Ok(Some((memory, pipes, lifetime(&within)))),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Removes the name. Processes that have the object open keep it.
    ///
    /// # Errors
    /// ENOENT: there is none.
    pub fn remove(namespace: &Namespace, kind: ObjectKind, name: &Name) -> Result<(), Diagnostic> {
        let refused = |error| refused("remove", kind, name, error);
        let folder = namespace.folder_of(kind).map_err(refused)?;
        let _locked = FolderLock::wait(&folder).map_err(|errno| refused(errno.into()))?;
        match remove_from(&folder, name.as_str()) {
            Ok(()) => Ok(()),
            Err(Errno::NOENT) => Err(missing(kind, name)),
            Err(errno) => Err(refused(errno.into())),
        }
    }

    /// Removes the name of this one.
    ///
    /// # Errors
    /// ENOENT: it has none any more.
    pub fn remove_own(&self) -> Result<(), Diagnostic> {
        let Some(Named { folder, kind, name, .. }) = &self.named else {
            let cause = "this object never had a name";
            return Err(Diagnostic::usage(cause, "drop it").with_errno(libc::ENOENT));
        };
        let refused = |errno: Errno| refused("remove", *kind, name, errno.into());
        let _locked = FolderLock::wait(folder).map_err(refused)?;
        // While it is linked, the name is its own.
        match fstat(&self.memory).map_err(refused)?.st_nlink {
            0 => Err(missing(*kind, name)),
            _ => remove_from(folder, name.as_str()).map_err(refused),
        }
    }

    /// Its memory.
    pub fn memory(&self) -> &File {
        &self.memory
    }

    /// Its memory with locks of its own, which exclude those of other such files.
    ///
    /// # Errors
    /// EMFILE; ENOENT: there is no /proc.
    pub fn reopen_memory(&self) -> io::Result<File> {
        Ok(reopen(self.memory.as_fd(), memory_flags())?.into())
    }

    /// The pipe of a FIFO that is written when side `side` (0: put, 1: get) moved.
    pub fn pipe(&self, side: usize) -> BorrowedFd<'_> {
        self.pipes[side].as_fd()
    }

    pub fn lifetime(&self) -> Lifetime {
        self.named.as_ref().map_or(Lifetime::Used, |named| named.lifetime)
    }

    /// Whether another open file of it is in use: of another process, or another `Object` of this.
    pub fn in_use_elsewhere(&self) -> bool {
        file_lock::is_locked(&self.memory, IN_USE, Access::Exclusive).unwrap_or(true)
    }
}

impl Drop for Object {
    fn drop(&mut self) {
        let Some(Named { folder, name, lifetime: Lifetime::Used, .. }) = &self.named else {
            return;
        };
        let Ok(_locked) = FolderLock::try_now(folder) else { return };
        // The name may be that of a later object by now.
        let is_linked = fstat(&self.memory).is_ok_and(|status| status.st_nlink > 0);
        if is_linked && file_lock::try_lock(&self.memory, IN_USE, Access::Exclusive).is_ok() {
            let _ = remove_from(folder, name.as_str());
        }
    }
}

/// Removes the objects of a folder that no process has open, and what is left of half-made and
/// half-removed ones. Where another process removes objects at this moment, it does nothing.
pub fn reclaim(folder: &OwnedFd) {
    if let Ok(_locked) = FolderLock::try_now(folder) {
        reclaim_locked(folder);
    }
}

/// A folder that is locked against other removals. It is unlocked by name, not by the end of its
/// file: a child that another thread forks meanwhile has that file open until it executes its
/// program.
struct FolderLock<'a>(&'a OwnedFd);

impl<'a> FolderLock<'a> {
    /// Waits for the others.
    fn wait(folder: &'a OwnedFd) -> rustix::io::Result<Self> {
        flock(folder, FlockOperation::LockExclusive).map(|()| Self(folder))
    }

    /// EWOULDBLOCK: another process removes.
    fn try_now(folder: &'a OwnedFd) -> rustix::io::Result<Self> {
        flock(folder, FlockOperation::NonBlockingLockExclusive).map(|()| Self(folder))
    }
}

impl Drop for FolderLock<'_> {
    fn drop(&mut self) {
        let _ = flock(self.0, FlockOperation::Unlock);
    }
}

fn reclaim_locked(folder: &OwnedFd) {
    let Ok(entries) = Dir::read_from(folder) else { return };
    for entry in entries.flatten() {
        let Ok(name) = entry.file_name().to_str() else { continue };
        if matches!(name, "." | "..") {
            continue;
        }
        let Ok(within) = open_folder(folder, name) else { continue };
        let memory = match openat(&within, MEMORY, memory_flags(), Mode::empty()) {
            Ok(memory) => memory,
            Err(_) if name.starts_with('.') => {
                delete(folder, name);
                continue;
            }
            Err(_) => continue,
        };
        let persistent = !name.starts_with('.') && lifetime(&within) == Lifetime::Persistent;
        if !persistent && file_lock::try_lock(&memory, IN_USE, Access::Exclusive).is_ok() {
            match name.starts_with('.') {
                true => delete(folder, name),
                false => drop(remove_from(folder, name)),
            }
        }
    }
}

/// With the folder locked, so that the name is that of the object that was looked at.
fn remove_from(folder: &OwnedFd, name: &str) -> rustix::io::Result<()> {
    let temporary = temporary("old");
    renameat(folder, name, folder, temporary.as_str())?;
    delete(folder, &temporary);
    Ok(())
}

/// Deletes what is under a temporary name. What it cannot delete is left to the next program.
fn delete(folder: &OwnedFd, name: &str) {
    if let Ok(within) = open_folder(folder, name) {
        for file in PIPES.into_iter().chain([PERSISTENT, MEMORY]) {
            let _ = unlinkat(&within, file, AtFlags::empty());
        }
    }
    let _ = unlinkat(folder, name, AtFlags::REMOVEDIR);
}

/// A name that no object has and no other process makes.
fn temporary(what: &str) -> String {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    format!(".{what}-{}-{number}", std::process::id())
}

fn lifetime(within: &OwnedFd) -> Lifetime {
    match accessat(within, PERSISTENT, Permission::EXISTS, AtFlags::empty()) {
        Ok(()) => Lifetime::Persistent,
        Err(_) => Lifetime::Used,
    }
}

fn open_folder(folder: &OwnedFd, name: &str) -> rustix::io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    openat(folder, name, flags, Mode::empty())
}

fn open_pipes(within: &OwnedFd, kind: ObjectKind) -> io::Result<Vec<OwnedFd>> {
    let open = |&name: &&str| Ok(openat(within, name, pipe_flags(), Mode::empty())?);
    kind.pipes().iter().map(open).collect()
}

fn reopen(fd: BorrowedFd<'_>, flags: OFlags) -> rustix::io::Result<OwnedFd> {
    let path = format!("/proc/self/fd/{}", fd.as_raw_fd());
    openat(CWD, path, flags - OFlags::NOFOLLOW, Mode::empty())
}

fn memory_flags() -> OFlags {
    OFlags::RDWR | OFlags::NOFOLLOW | OFlags::CLOEXEC
}

/// For reading and writing, so that neither waits for the other and a write is no SIGPIPE.
fn pipe_flags() -> OFlags {
    OFlags::RDWR | OFlags::NONBLOCK | OFlags::NOFOLLOW | OFlags::CLOEXEC
}

fn refused(what: &str, kind: ObjectKind, name: &Name, error: io::Error) -> Diagnostic {
    let help = match error.raw_os_error() {
        Some(libc::ENOSPC | libc::ENOMEM) => "make it smaller, or give /dev/shm more room",
        Some(libc::EMFILE | libc::ENFILE) => "raise the limit of open files (ulimit -n)",
        _ => "check the folder of shared objects (by default in /dev/shm)",
    };
    Diagnostic::refused(format!("cannot {what} the {} {name}", kind.folder()), error, help)
}

fn taken(kind: ObjectKind, name: &Name) -> Diagnostic {
    Diagnostic::usage(
        format!("there is a {} {name} already", kind.folder()),
        "open it, use another name, or remove it first",
    )
    .with_errno(libc::EEXIST)
}

fn missing(kind: ObjectKind, name: &Name) -> Diagnostic {
    Diagnostic::usage(
        format!("there is no {} {name}", kind.folder()),
        format!("make it first; `punctual {} list` shows those of this user", kind.folder()),
    )
    .with_errno(libc::ENOENT)
}
