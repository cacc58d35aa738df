//! The socket: systemd's, or one of our own.

use std::io;
use std::os::fd::FromRawFd;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};

use punctual_diagnostic::Diagnostic;

/// A socket that listens. Dropping one of our own removes its file.
#[derive(Debug)]
pub struct Listening {
    /// The socket.
    pub listener: UnixListener,
    /// `None`: systemd's.
    own: Option<PathBuf>,
}

impl Listening {
    /// systemd's socket, if this process was given one, else one at `path`, which every user may
    /// connect to: the service asks the kernel who a client is.
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
        if let Some(fd) = sd_notify::listen_fds().ok().and_then(|mut fds| fds.next()) {
            // SAFETY: systemd passed it to this process, and nothing else here has it.
            let listener = unsafe { UnixListener::from_raw_fd(fd) };
            return Ok(Listening { listener, own: None });
        }
        if let Some(directory) = path.parent() {
            std::fs::create_dir_all(directory).map_err(refused)?;
        }
        let listener = match UnixListener::bind(path) {
            Err(e) if e.kind() == io::ErrorKind::AddrInUse => {
                if UnixStream::connect(path).is_ok() {
                    return Err(Diagnostic::machine(
                        format!("another service listens at {}", path.display()),
                        "end it first, or give another place by --socket",
                    ));
                }
                // Of a service that was killed.
                std::fs::remove_file(path).map_err(refused)?;
                UnixListener::bind(path)
            }
            bound => bound,
        };
        let listening = Listening { listener: listener.map_err(refused)?, own: Some(path.into()) };
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o666)).map_err(refused)?;
        Ok(listening)
    }
}

impl Listening {
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
