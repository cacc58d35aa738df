//! `systemctl restart`: systemd keeps the connections, and what there is to know of them, between
//! the end of one process of the service and the start of the next one.
//!
//! systemd sets `FDSTORE` where it keeps descriptors (`FileDescriptorStoreMax=`, from version 254
//! on). It closes them when the service is stopped for good. A process that is to end cannot tell
//! the one from the other, and leaves them in both cases. Programs are ordinary ones meanwhile, and
//! nothing but this process's end remains to be done: after SIGKILL at any point nothing is left.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::fd::{AsFd, BorrowedFd, FromRawFd, OwnedFd};
use std::os::unix::net::{UnixDatagram, UnixListener, UnixStream};
use std::time::Duration;

use punctual_sys::fd_passing;
use rustix::event::{poll, PollFd, PollFlags, Timespec};
use rustix::fs::{memfd_create, MemfdFlags};
use rustix::pipe::{pipe_with, PipeFlags};
use serde::{Deserialize, Serialize};

use super::message::{Offer, PassedReservation, VERSION};
use super::pass_on::offer;
use super::taken::Taken;
use crate::clients::Clients;
use crate::listen::Listening;
use crate::mailbox::{NextRelease, PassedMail};
use crate::reservations::Reservations;

/// The name of the state among the descriptors that systemd keeps.
const STATE: &str = "punctual-state";
/// The names of connections, each with the number of its lease.
const CLIENT: &str = "punctual-client-";

/// How long systemd may take until it has all descriptors.
const BARRIER: Timespec = Timespec { tv_sec: 5, tv_nsec: 0 };
/// How long the restoration of programs by a guardian may take, if the old process was killed.
const PATIENCE: Duration = Duration::from_secs(5);

#[derive(Serialize, Deserialize)]
struct Stored {
    version: u32,
    offer: Offer,
    /// Of each reservation.
    next_releases: Vec<NextRelease>,
    mail: Vec<PassedMail>,
}

/// Leaves the connections with systemd, where it keeps them, and restores all programs. The process
/// has to end then. False: systemd keeps nothing, and nothing is done.
///
/// # Errors
/// systemd does not take them: the clients end with the process.
pub(crate) fn leave(clients: &Clients) -> io::Result<bool> {
    let (Some(_), Some(socket)) = (std::env::var_os("FDSTORE"), std::env::var_os("NOTIFY_SOCKET"))
    else {
        return Ok(false);
    };
    let paused = clients.pause();
    let reservations = clients.reservations();
    let _changes = reservations.pause_changes();
    let offered = reservations.export();
    let ids: Vec<u64> = offered.iter().map(|passed| passed.info.id).collect();
    reservations.let_go(&ids, true);
    reservations.end();
    let stored = Stored {
        version: VERSION,
        offer: offer(reservations, &paused, &offered),
        next_releases: ids.iter().map(|id| reservations.mail().next_release(*id)).collect(),
        mail: reservations.mail().export(),
    };
    let mut state = File::from(memfd_create(STATE, MemfdFlags::CLOEXEC)?);
    serde_json::to_writer(&state, &stored)?;
    state.flush()?;
    let notify = UnixDatagram::unbound()?;
    notify.connect(socket)?;
    let keep = |name: &str, fd: BorrowedFd<'_>| {
        let message = format!("FDSTORE=1\nFDNAME={name}\n");
        fd_passing::send_message(&notify, message.as_bytes(), &[fd]).map(drop)
    };
    for client in &paused {
        keep(&format!("{CLIENT}{}", client.lease), client.stream.as_fd())?;
    }
    // Last: without it, the connections are of no use.
    keep(STATE, state.as_fd())?;
    await_systemd(&notify)?;
    clients.set_passed();
    Ok(true)
}

/// Waits until systemd has read all messages: it asks which service a process is of, and finds none
/// once the process has ended.
fn await_systemd(notify: &UnixDatagram) -> io::Result<()> {
    let (read, write) = pipe_with(PipeFlags::CLOEXEC)?;
    fd_passing::send_message(notify, b"BARRIER=1", &[write.as_fd()])?;
    drop(write);
    match poll(&mut [PollFd::new(&read, PollFlags::IN)], Some(&BARRIER))? {
        0 => Err(io::ErrorKind::TimedOut.into()),
        _ => Ok(()),
    }
}

/// The descriptors that systemd has passed to this process.
#[derive(Default)]
pub(crate) struct SystemdFds {
    /// The socket that listens.
    socket: Option<UnixListener>,
    state: Option<File>,
    clients: Vec<(u64, UnixStream)>,
}

impl SystemdFds {
    /// Takes them. To be called once.
    pub fn take() -> SystemdFds {
        let mut taken = SystemdFds::default();
        for (fd, name) in sd_notify::listen_fds_with_names().into_iter().flatten() {
            // SAFETY: systemd passed it to this process, and nothing else here has it.
            let fd = unsafe { OwnedFd::from_raw_fd(fd) };
            if name == STATE {
                taken.state = Some(fd.into());
            } else if let Some(lease) = name.strip_prefix(CLIENT) {
                taken.clients.extend(lease.parse().ok().map(|lease| (lease, fd.into())));
            } else if taken.socket.is_none() {
                taken.socket = Some(fd.into());
            } else {
                continue;
            }
            if name == STATE || name.starts_with(CLIENT) {
                // For this start alone.
                let gone = format!("FDSTOREREMOVE=1\nFDNAME={name}");
                let _ = sd_notify::notify(&[sd_notify::NotifyState::Custom(&gone)]);
            }
        }
        taken
    }

    /// The socket that listens.
    pub fn take_socket(&mut self) -> Option<UnixListener> {
        self.socket.take()
    }

    /// Takes over what the process before has left, if there is anything that this one
    /// understands.
    pub fn take_over(self, listening: Listening, reservations: &Reservations) -> Taken {
        let SystemdFds { state, clients, .. } = self;
        match state.map(read) {
            Some(Ok(stored)) => take_over(stored, clients, listening, reservations),
            Some(Err(e)) => {
                eprintln!("punctuald: the clients of before are not served: {e}");
                Taken::new(listening, Vec::new(), Vec::new())
            }
            None => Taken::new(listening, Vec::new(), Vec::new()),
        }
    }
}

fn read(mut state: File) -> io::Result<Stored> {
    let mut text = Vec::new();
    state.seek(SeekFrom::Start(0))?;
    state.read_to_end(&mut text)?;
    let value: serde_json::Value = serde_json::from_slice(&text)?;
    if value["version"] != VERSION {
        let cause = format!("the service was of version {} of the messages", value["version"]);
        return Err(io::Error::new(io::ErrorKind::InvalidData, cause));
    }
    Ok(serde_json::from_value(value)?)
}

fn take_over(
    stored: Stored,
    mut clients: Vec<(u64, UnixStream)>,
    listening: Listening,
    reservations: &Reservations,
) -> Taken {
    let Stored { offer, next_releases, mail, .. } = stored;
    reservations.set_next_id(offer.next_id);
    // systemd drops a connection that its client has closed.
    let has_client = |lease: u64| clients.iter().any(|(of, _)| *of == lease);
    let is_client = |lease: u64| offer.connections.iter().any(|c| c.lease == lease);
    let remains = |passed: &PassedReservation| has_client(passed.lease) || !is_client(passed.lease);
    let mut reserved = Vec::new();
    for (passed, next) in offer.reservations.iter().zip(next_releases) {
        if remains(passed) {
            match reservations.take_over(passed, next, PATIENCE) {
                Ok(()) => reserved.push(passed.clone()),
                Err(refusal) => reservations.end_passed(passed, refusal),
            }
        }
    }
    reservations.mail().import(mail);
    let connections = offer.connections.into_iter().filter_map(|connection| {
        let place = clients.iter().position(|(lease, _)| *lease == connection.lease)?;
        Some((connection, clients.swap_remove(place).1))
    });
    Taken::new(listening, connections.collect(), reserved)
}
