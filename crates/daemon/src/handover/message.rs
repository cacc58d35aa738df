//! What the two processes send each other: JSON objects as those of Varlink.

use std::io;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;

use punctual_process::Identity;
use punctual_service::message::{send, MessageReader};
use punctual_service::{ReservationInfo, ServiceError, TaskRequest};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::mailbox::{NextRelease, PassedMail};
use crate::user::User;
use crate::values::Origin;

/// Version of these messages: of their types, of what is in them, and of their order.
pub(crate) const VERSION: u32 = 4;

/// The most bytes of one: 2,048 events for each of a thousand connections.
pub(crate) const LIMIT: usize = 1 << 30;

/// By which a service reports to systemd, and learns that it may leave descriptors there.
pub(crate) const SYSTEMD_VARIABLES: [&str; 2] = ["NOTIFY_SOCKET", "FDSTORE"];

/// What the old process has. After its answer to the new one's `Answer::Ready`, the descriptors
/// follow: the socket that listens, those of the connections, and those of the locks.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Offer {
    /// The old process.
    pub process: Identity,
    /// What schedules its reservations: `user` or `kernel`.
    pub host: String,
    /// Where its socket is; none: the socket is systemd's.
    pub socket: Option<PathBuf>,
    /// What systemd has set of [`SYSTEMD_VARIABLES`].
    pub environment: Vec<(String, String)>,
    /// The next number of a lease or a reservation.
    pub next_id: u64,
    pub connections: Vec<PassedConnection>,
    pub reservations: Vec<PassedReservation>,
    /// The CPUs whose locks it holds.
    pub locks: Vec<u32>,
}

/// A client's connection.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct PassedConnection {
    pub lease: u64,
    /// What was read of a message that has not ended.
    pub unread: Vec<u8>,
}

/// A reservation on its way.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct PassedReservation {
    pub info: ReservationInfo,
    pub overrun: String,
    pub origin: Origin,
    pub lease: u64,
    /// Groups of its user.
    pub groups: Vec<u32>,
    /// polkit has permitted it.
    pub is_authorized: bool,
    pub process: Identity,
    pub thread: Option<Identity>,
    /// The thread waits by a page.
    pub has_page: bool,
}

/// Sent by the new process.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Request {
    /// It can take over what was offered.
    Ready,
    /// It reserves for the programs of these next. `ends`: dispatchers that have no more end first.
    Release { ids: Vec<u64>, ends: bool },
    /// It has everything.
    Done,
}

/// Sent by the old process.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Reply {
    /// The programs are ordinary ones. The next release of each.
    Released { next_releases: Vec<NextRelease> },
    /// It has nothing any more, but these events, and ends.
    Passed { mail: Vec<PassedMail> },
}

impl PassedReservation {
    /// Whether the process, and the thread, are still those that it is for.
    pub fn is_alive(&self) -> bool {
        let same = |id: &Identity| Identity::of(id.pid) == Some(*id);
        same(&self.process) && self.thread.iter().all(same)
    }

    /// Whose it is.
    pub fn user(&self) -> User {
        let user = User::new(self.info.uid, self.groups.clone());
        User { is_authorized: self.is_authorized, ..user }
    }

    /// The request of its client, as far as it matters now, with the values that it had.
    pub fn request(&self) -> TaskRequest {
        let ReservationInfo { name, pid, tid, cpu, period_ns, budget_ns, deadline_ns, .. } =
            self.info.clone();
        TaskRequest {
            name,
            pid,
            tid,
            cpu: Some(cpu),
            role: None,
            period_ns: Some(period_ns),
            budget_ns: Some(budget_ns),
            deadline_ns: Some(deadline_ns),
            offset_ns: None,
            first_release_ns: None,
            overrun: Some(self.overrun.clone()),
            page: None,
        }
    }
}

/// Whether a caller of `HandOver` may take over, and understands the messages.
///
/// # Errors
/// It is not root's; it is of another version.
pub(crate) fn check_successor(caller: &User, version: u64) -> Result<(), ServiceError> {
    if !caller.is_root() {
        return Err(ServiceError::NotPermitted {
            cause: format!("user {} may not take the place of the service", caller.uid),
            help: "do it as root".to_owned(),
        });
    }
    if version == u64::from(VERSION) {
        return Ok(());
    }
    Err(ServiceError::InvalidRequest {
        cause: format!(
            "this service ({}) hands over by version {VERSION}, not by version {version}",
            env!("CARGO_PKG_VERSION")
        ),
        help: "stop it, and start the other one; clients then end with an error".to_owned(),
    })
}

/// The connection of the two processes.
#[derive(Debug)]
pub(crate) struct Channel {
    pub stream: UnixStream,
    pub reader: MessageReader,
}

impl Channel {
    /// Sends one message.
    ///
    /// # Errors
    /// Those of the stream.
    pub fn send(&self, message: &impl Serialize) -> io::Result<()> {
        send(&mut &self.stream, message)
    }

    /// Waits for the next message.
    ///
    /// # Errors
    /// Those of the stream; the other process has ended; it is another message.
    pub fn receive<T: DeserializeOwned>(&mut self) -> io::Result<T> {
        let ended = || io::Error::new(io::ErrorKind::UnexpectedEof, "the other process has ended");
        let message = self.reader.next(&mut &self.stream)?.ok_or_else(ended)?;
        Ok(serde_json::from_slice(&message)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn root_of_the_same_version_alone_may_take_over() {
        let user = |uid| User::new(uid, vec![uid]);
        let version = u64::from(VERSION);
        assert!(check_successor(&user(0), version).is_ok());
        let refused = check_successor(&user(0), version + 1).expect_err("another version");
        let cause = refused.diagnostic().cause;
        assert!(cause.contains(&format!("not by version {}", version + 1)), "{cause}");
        let refused = check_successor(&user(1000), version);
        assert!(matches!(refused, Err(ServiceError::NotPermitted { .. })), "{refused:?}");
    }
}
