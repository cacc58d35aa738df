//! The socket: systemd's, or one of our own.

use std::fs::Permissions;
use std::io;
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};

use punctual_diagnostic::Diagnostic;
use rustix::fs::{renameat_with, RenameFlags, CWD};
use rustix::io::Errno;

/// A socket that listens. Dropping one of our own removes its file.
#[derive(Debug)]
pub struct Listening {
    /// The socket.
    pub listener: UnixListener,
    /// `None`: systemd's.
    own: Option<PathBuf>,
}

impl Listening {
    /// systemd's socket.
    pub fn of_systemd(listener: UnixListener) -> Listening {
        Listening { listener, own: None }
    }

    /// A socket at `path`, which every user may connect to: the service asks the kernel who a
    /// client is.
    ///
    /// # Errors
    /// Another service listens there; no socket can be made there.
    pub fn at(path: &Path) -> Result<Listening, Diagnostic> {
        let refused = |e: io::Error| {
            Diagnostic::refused(
                format!("no socket can be made at {}", path.display()),
                e,
                "run it as root, or give another place by --socket",
            )
        };
        if let Some(directory) = path.parent() {
            std::fs::create_dir_all(directory).map_err(refused)?;
        }
        // It gets its name once it listens: before, it refuses connections, as that of a killed
        // service does.
        let mut unnamed = path.as_os_str().to_owned();
        unnamed.push(format!(".new-{}", std::process::id()));
        let unnamed = PathBuf::from(unnamed);
        let _ = std::fs::remove_file(&unnamed);
        let listener = UnixListener::bind(&unnamed).map_err(refused)?;
        let mut listening = Listening { listener, own: Some(unnamed.clone()) };
        std::fs::set_permissions(&unnamed, Permissions::from_mode(0o666)).map_err(refused)?;
        if !take_name(&unnamed, path).map_err(refused)? {
            return Err(Diagnostic::machine(
                format!("another service listens at {}", path.display()),
                "end it first, or give another place by --socket",
            ));
        }
        listening.own = Some(path.into());
        Ok(listening)
    }
}

/// Gives a socket that listens its name. False: there is another that does.
fn take_name(unnamed: &Path, path: &Path) -> io::Result<bool> {
    let rename = |flags| renameat_with(CWD, unnamed, CWD, path, flags);
    match rename(RenameFlags::NOREPLACE) {
        // Nothing of ours.
        Err(Errno::EXIST) if !std::fs::symlink_metadata(path)?.file_type().is_socket() => {
            return Err(Errno::EXIST.into());
        }
        Err(Errno::EXIST) if UnixStream::connect(path).is_ok() => return Ok(false),
        // Of a service that was killed.
        Err(Errno::EXIST) => rename(RenameFlags::EXCHANGE)?,
        named => return Ok(named.map(|()| true)?),
    }
    // Or of another that took its name since.
    if UnixStream::connect(unnamed).is_ok() {
        rename(RenameFlags::EXCHANGE)?;
        return Ok(false);
    }
    std::fs::remove_file(unnamed)?;
    Ok(true)
}

impl Listening {
    /// The socket of a process whose place this one takes.
    pub fn taken_over(listener: UnixListener, own: Option<PathBuf>) -> Listening {
        Listening { listener, own }
    }

    /// Another process has the socket: its file stays.
    pub fn set_passed(&mut self) {
        self.own = None;
    }

    /// The path of a socket of our own.
    pub fn own(&self) -> Option<&Path> {
        self.own.as_deref()
    }
}

impl Drop for Listening {
    fn drop(&mut self) {
        if let Some(path) = &self.own {
            let _ = std::fs::remove_file(path);
        }
    }
}
