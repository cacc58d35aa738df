//! The new process.

use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::time::{Duration, Instant};

use punctual::results::HostKind;
use punctual_diagnostic::Diagnostic;
use punctual_process::InheritedLocks;
use punctual_service::ServiceClient;
use punctual_sys::fd_passing;

use super::message::{Channel, Offer, PassedReservation, Reply, Request, LIMIT, VERSION};
use super::taken::Taken;
use crate::listen::Listening;
use crate::mailbox::NextRelease;
use crate::reservations::Reservations;

/// How long the old process may take for an answer: it waits for calls that are under way.
const PATIENCE: Duration = Duration::from_secs(60);
/// How long a process may take to end, and its guardian to restore what it had.
const END_PATIENCE: Duration = Duration::from_secs(5);

/// A process of the service that offers everything that it has.
pub(crate) struct Predecessor {
    channel: Channel,
    offer: Offer,
}

impl Predecessor {
    /// Has the service at this socket offer everything; its clients' calls wait from now on, until
    /// this is dropped.
    ///
    /// # Errors
    /// No service listens there; it is of another version; this user is not root. It continues.
    pub fn request(socket: &Path) -> Result<Predecessor, Diagnostic> {
        let client = ServiceClient::require(socket)?;
        let (stream, reader) = client.hand_over(VERSION, LIMIT).map_err(|refusal| {
            let continues = format!("{}; the service that runs continues", refusal.cause);
            Diagnostic::machine(continues, refusal.help)
        })?;
        let mut channel = Channel { stream, reader };
        let offer =
            channel.stream.set_read_timeout(Some(PATIENCE)).and_then(|()| channel.receive());
        Ok(Predecessor { offer: offer.map_err(failed)?, channel })
    }

    /// The host of its reservations.
    pub fn host(&self) -> HostKind {
        match self.offer.host.as_str() {
            "kernel" => HostKind::Kernel,
            _ => HostKind::User,
        }
    }

    /// Takes everything over; `host`: that of the reservations here. What is refused here ends, and
    /// its client gets the reason.
    ///
    /// # Errors
    /// The old process refuses or does not answer, and continues; or it has ended before it had
    /// passed on the connections.
    pub fn take_over(mut self, reservations: &Reservations) -> Result<Taken, Diagnostic> {
        let count = 1 + self.offer.connections.len() + self.offer.locks.len();
        let received =
            self.channel.send(&Request::Ready).and_then(|()| receive(&self.channel, count));
        let mut fds = received.map_err(failed)?.into_iter();
        let listener = fds.next().map(UnixListener::from).ok_or_else(|| {
            Diagnostic::machine("the service that runs passes no socket", "report it")
        })?;
        // No other thread of this process reads them yet.
        for (name, value) in &self.offer.environment {
            std::env::set_var(name, value);
        }
        let connections = std::mem::take(&mut self.offer.connections).into_iter();
        let connections = connections.zip(fds.by_ref().map(UnixStream::from)).collect();
        let locks = InheritedLocks::new(self.offer.locks.iter().copied().zip(fds));
        reservations.set_next_id(self.offer.next_id);
        let reserved = self.move_reservations(reservations)?;
        drop(locks);
        let listening = Listening::taken_over(listener, self.offer.socket.take());
        Ok(Taken::new(listening, connections, reserved))
    }

    fn move_reservations(
        &mut self,
        reservations: &Reservations,
    ) -> Result<Vec<PassedReservation>, Diagnostic> {
        let offered = std::mem::take(&mut self.offer.reservations);
        let at_once = self.offer.host == "kernel" || reservations.host() == "kernel";
        // Before a program loses its dispatcher.
        match at_once {
            true => reservations.load_scheduler()?,
            false => reservations.expect(offered.iter().map(|passed| passed.info.cpu))?,
        }
        let mut reserved = Vec::new();
        let batches = offered.chunks(if at_once { offered.len().max(1) } else { 1 });
        let mut has_ended = false;
        for batch in batches {
            let released = match has_ended {
                true => None,
                false => self.release(batch, at_once)?,
            };
            has_ended = released.is_none();
            let next_releases = released.unwrap_or_default();
            let patience = if has_ended { END_PATIENCE } else { Duration::ZERO };
            for (n, passed) in batch.iter().enumerate() {
                let next = next_releases.get(n).copied().unwrap_or_default();
                match reservations.take_over(passed, next, patience) {
                    Ok(()) => reserved.push(passed.clone()),
                    Err(refusal) => reservations.end_passed(passed, refusal),
                }
            }
        }
        reservations.expect_none();
        if has_ended {
            return Ok(reserved);
        }
        let done = self.channel.send(&Request::Done).and_then(|()| self.channel.receive());
        match done {
            Ok(Reply::Passed { mail }) => reservations.mail().import(mail),
            Ok(Reply::Released { .. }) => return Err(failed(io::ErrorKind::InvalidData.into())),
            Err(e) => self.check_ended(e)?,
        }
        Ok(reserved)
    }

    /// Has the old process restore programs; their next releases. `None`: it has
    /// ended, and its guardian restores all.
    fn release(
        &mut self,
        batch: &[PassedReservation],
        ends: bool,
    ) -> Result<Option<Vec<NextRelease>>, Diagnostic> {
        let ids = batch.iter().map(|passed| passed.info.id).collect();
        let request = Request::Release { ids, ends };
        match self.channel.send(&request).and_then(|()| self.channel.receive()) {
            Ok(Reply::Released { next_releases }) => Ok(Some(next_releases)),
            Ok(Reply::Passed { .. }) => Err(failed(io::ErrorKind::InvalidData.into())),
            Err(e) => self.check_ended(e).map(|()| None),
        }
    }

    /// After an error of the connection: whether the old process has ended.
    ///
    /// # Errors
    /// It has not, and continues with everything.
    fn check_ended(&self, error: io::Error) -> Result<(), Diagnostic> {
        let until = Instant::now() + END_PATIENCE;
        while self.offer.process.is_alive() {
            if Instant::now() >= until {
                return Err(failed(error));
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        Ok(())
    }
}

fn receive(channel: &Channel, count: usize) -> io::Result<Vec<OwnedFd>> {
    fd_passing::receive(&channel.stream, count)
}

fn failed(e: io::Error) -> Diagnostic {
    Diagnostic::refused(
        "the service that runs cannot be replaced",
        e,
        "see its log (journalctl -u punctuald)",
    )
}
