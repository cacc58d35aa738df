//! The old process.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use punctual_process::{CpuLock, Identity, SERVICE};
use punctual_service::message::MessageReader;
use punctual_sys::fd_passing;
use punctual_sys::peer::Peer;
use serde_json::json;

use super::message::{
    Channel, Offer, PassedConnection, PassedReservation, Reply, Request, LIMIT, SYSTEMD_VARIABLES,
};
use crate::clients::{Clients, PausedClient};
use crate::listen::Listening;
use crate::mailbox::NextRelease;
use crate::reservations::Reservations;

/// How long the new process may take for its next message: a reservation may have to wait for a
/// dispatcher's start.
const PATIENCE: Duration = Duration::from_secs(30);
/// How long the end of a new process may take that could not take over, with its guardian's work.
const END_PATIENCE: Duration = Duration::from_secs(5);

/// Passes everything on to the process at the other end of `stream`; its number. Calls of clients
/// wait meanwhile.
///
/// # Errors
/// It has ended or does not answer. Everything is as before: clients are served, and what had been
/// released is reserved again.
pub(crate) fn pass_on(
    stream: UnixStream,
    listening: &mut Listening,
    clients: &Clients,
) -> io::Result<i32> {
    let paused = clients.pause();
    let reservations = clients.reservations();
    let changes = reservations.pause_changes();
    let offered = reservations.export();
    let mut released: Vec<(PassedReservation, NextRelease)> = Vec::new();
    let passed = converse(stream, listening, reservations, &paused, &offered, &mut released);
    match passed {
        Ok(pid) => {
            listening.set_passed();
            // The dispatchers end. Nothing is reserved here any more.
            reservations.end();
            clients.set_passed();
            Ok(pid)
        }
        Err(e) => {
            CpuLock::held().iter().for_each(|lock| lock.name_owner(SERVICE));
            for (passed, next) in &released {
                if let Err(refusal) = reservations.take_over(passed, *next, END_PATIENCE) {
                    reservations.end_passed(passed, refusal);
                }
            }
            drop(changes);
            clients.resume();
            Err(e)
        }
    }
}

/// What this process has, without a socket and locks.
pub(super) fn offer(
    reservations: &Reservations,
    paused: &[PausedClient],
    offered: &[PassedReservation],
) -> Offer {
    let connection = |client: &PausedClient| PassedConnection {
        lease: client.lease,
        unread: client.unread.clone(),
    };
    let variable = |name: &&str| Some(((*name).to_owned(), std::env::var(name).ok()?));
    Offer {
        process: Identity::own(),
        host: reservations.host().to_owned(),
        socket: None,
        environment: SYSTEMD_VARIABLES.iter().filter_map(variable).collect(),
        next_id: reservations.next_id(),
        connections: paused.iter().map(connection).collect(),
        reservations: offered.to_vec(),
        locks: Vec::new(),
    }
}

fn converse(
    stream: UnixStream,
    listening: &Listening,
    reservations: &Reservations,
    paused: &[PausedClient],
    offered: &[PassedReservation],
    released: &mut Vec<(PassedReservation, NextRelease)>,
) -> io::Result<i32> {
    let peer = Peer::of(stream.as_fd())?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    let mut channel = Channel { stream, reader: MessageReader::new(LIMIT) };
    let locks = CpuLock::held();
    channel.send(&json!({ "parameters": {} }))?;
    channel.send(&Offer {
        socket: listening.own().map(Into::into),
        locks: locks.iter().map(CpuLock::cpu).collect(),
        ..offer(reservations, paused, offered)
    })?;
    let unexpected = || io::Error::new(io::ErrorKind::InvalidData, "an unexpected message");
    let Request::Ready = channel.receive()? else { return Err(unexpected()) };
    let mut fds: Vec<BorrowedFd<'_>> = vec![listening.listener.as_fd()];
    fds.extend(paused.iter().map(|client| client.stream.as_fd()));
    fds.extend(locks.iter().map(CpuLock::as_fd));
    fd_passing::send(&channel.stream, &fds)?;
    drop(locks);
    loop {
        match channel.receive()? {
            Request::Release { ids, ends } => {
                let next = |id: &u64| reservations.mail().next_release(*id);
                let of = |id: &u64| offered.iter().find(|passed| passed.info.id == *id).cloned();
                reservations.let_go(&ids, ends);
                released.extend(ids.iter().filter_map(|id| Some((of(id)?, next(id)))));
                let next_releases = ids.iter().map(next).collect();
                channel.send(&Reply::Released { next_releases })?;
            }
            Request::Done => {
                // Where systemd started the service, it follows the new process from now on.
                let main = u32::try_from(peer.pid).ok().filter(|pid| *pid > 0);
                let main = main.map(sd_notify::NotifyState::MainPid);
                let _ = sd_notify::notify(main.as_slice());
                channel.send(&Reply::Passed { mail: reservations.mail().export() })?;
                return Ok(peer.pid);
            }
            Request::Ready => return Err(unexpected()),
        }
    }
}
