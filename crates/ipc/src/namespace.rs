//! The objects of one user, by name.

use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use punctual_diagnostic::Diagnostic;
use rustix::fs::{fstat, mkdirat, openat, Dir, Mode, OFlags, CWD};
use rustix::io::Errno;

use crate::name::Name;
use crate::object::{self, ObjectKind};

/// Names another folder than the user's own.
const VARIABLE: &str = "PUNCTUAL_SHM_DIR";

/// How long an object lives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lifetime {
    /// As long as a process has it open.
    Used,
    /// Until it is removed.
    Persistent,
}

/// The objects of one user: a folder in shared memory that is closed to others.
#[derive(Debug, Clone)]
pub struct Namespace {
    folder: Arc<OwnedFd>,
    path: Arc<Path>,
}

impl Namespace {
    /// That of the user of this process: `/dev/shm/punctual-UID`, or what the environment variable
    /// `PUNCTUAL_SHM_DIR` names. Makes it, where it is not there.
    ///
    /// # Errors
    /// The folder belongs to another user, is open to others, or cannot be made.
    pub fn of_user() -> Result<Self, Diagnostic> {
        let path = match std::env::var_os(VARIABLE) {
            Some(path) => PathBuf::from(path),
            None => {
                let user = rustix::process::geteuid().as_raw();
                PathBuf::from(format!("/dev/shm/punctual-{user}"))
            }
        };
        Self::at(&path)
    }

    /// The one in the folder `path`, which is on a file system in memory. Makes it, where it is not
    /// there.
    ///
    /// # Errors
    /// As of [`Namespace::of_user`].
    pub fn at(path: &Path) -> Result<Self, Diagnostic> {
        let refused = |error| {
            Diagnostic::refused(
                format!("cannot use the folder {} for shared objects", path.display()),
                error,
                format!("mount a file system in memory there, or name a folder by {VARIABLE}"),
            )
        };
        let folder = open_folder(CWD, path).map_err(refused)?;
        let status = fstat(&folder).map_err(refused)?;
        let user = rustix::process::geteuid().as_raw();
        let problem = if status.st_uid != user {
            format!("belongs to user {}, not to {user}", status.st_uid)
        } else if status.st_mode & 0o077 != 0 {
            format!("is open to other users (mode {:03o})", status.st_mode & 0o777)
        } else {
            return Ok(Self { folder: Arc::new(folder), path: path.into() });
        };
        Err(Diagnostic::machine(
            format!("the folder for shared objects, {}, {problem}", path.display()),
            format!("have it removed by its owner or by root, or name another by {VARIABLE}"),
        )
        .with_errno(libc::EACCES))
    }

    /// The number of its user, which is that of this process.
    #[must_use]
    pub fn user(&self) -> u32 {
        rustix::process::geteuid().as_raw()
    }

    /// Where it is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The folder of one kind of objects, made where it is not there.
    pub(crate) fn folder_of(&self, kind: ObjectKind) -> io::Result<OwnedFd> {
        Ok(open_folder(&self.folder, Path::new(kind.folder()))?)
    }

    /// The names of its objects of a kind, sorted. Removes those of this kind that no process has
    /// open any more.
    pub(crate) fn names(&self, kind: ObjectKind) -> Result<Vec<Name>, Diagnostic> {
        let refused = |error: io::Error| {
            Diagnostic::refused(
                format!("cannot read {}/{}", self.path.display(), kind.folder()),
                error,
                "remove it, if it was damaged",
            )
        };
        let folder = self.folder_of(kind).map_err(refused)?;
        object::reclaim(&folder);
        let entries = Dir::read_from(&folder).map_err(|errno| refused(errno.into()))?;
        let names = entries.filter_map(|entry| entry.ok()?.file_name().to_str().ok()?.parse().ok());
        let mut names: Vec<Name> = names.collect();
        names.sort();
        Ok(names)
    }
}

/// Opens a folder, made for its owner alone where it is not there; no symbolic link.
fn open_folder(at: impl std::os::fd::AsFd, path: &Path) -> rustix::io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    match openat(&at, path, flags, Mode::empty()) {
        Err(Errno::NOENT) => {
            match mkdirat(&at, path, Mode::RWXU) {
                // Another process was faster.
                Ok(()) | Err(Errno::EXIST) => {}
                Err(errno) => return Err(errno),
            }
            openat(&at, path, flags, Mode::empty())
        }
        opened => opened,
    }
}
