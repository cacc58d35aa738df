//! Who a client is.

use std::io;
use std::os::fd::AsFd;

use punctual_process::Identity;
use punctual_sys::peer::{peer_pidfd, Peer};
use punctual_sys::pidfd::has_ended;

/// A user with its groups, as the kernel reports them of a connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct User {
    /// The user.
    pub uid: u32,
    /// Its primary and supplementary groups.
    pub groups: Vec<u32>,
    /// The process that acts for it, about which polkit is asked; `None`: it has ended.
    pub process: Option<Identity>,
    /// polkit permits that process what the section `[polkit]` says.
    pub(crate) is_authorized: bool,
}

impl User {
    /// A user without a process.
    #[must_use]
    pub fn new(uid: u32, groups: Vec<u32>) -> User {
        User { uid, groups, process: None, is_authorized: false }
    }

    /// The user of the process that connected.
    ///
    /// # Errors
    /// The socket is not connected.
    pub fn of_connection(socket: impl AsFd) -> io::Result<User> {
        let Peer { pid, uid, groups } = Peer::of(socket.as_fd())?;
        let process = Identity::of(pid);
        // The process that has the number now is the one that connected, if that still runs.
        // Kernels before 6.5 do not show whether it does; its user is compared in any case.
        let same = match peer_pidfd(socket.as_fd()) {
            Ok(pidfd) => !has_ended(pidfd),
            Err(e) => e.raw_os_error() == Some(libc::ENOPROTOOPT),
        };
        Ok(User { process: process.filter(|_| same), ..User::new(uid, groups) })
    }

    /// Whether it may do everything.
    #[must_use]
    pub fn is_root(&self) -> bool {
        self.uid == 0
    }
}
