//! The service's life: connections, signals, the end.

use std::io;
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use punctual::results::HostKind;
use punctual_diagnostic::Diagnostic;
use rustix::event::{poll, PollFd, PollFlags};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::low_level::pipe;

use crate::access::AccessRules;
use crate::clients::Clients;
use crate::dispatchers::choose;
use crate::handover::{leave, pass_on, Predecessor, SystemdFds};
use crate::listen::Listening;
use crate::reservations::Reservations;

/// How the service runs.
#[derive(Debug, Clone)]
pub struct ServeOptions {
    /// Where it listens, if systemd does not pass a socket.
    pub socket: PathBuf,
    /// Who may reserve how much.
    pub config: PathBuf,
    /// Its CPUs.
    pub cpus: Vec<u32>,
    /// What schedules the reservations, the user host or the kernel host; `None`: the latter, where
    /// the machine permits it for these CPUs, else the former.
    pub host: Option<HostKind>,
    /// Takes the place of the service that runs, and its host if `host` is `None`.
    pub replace: bool,
}

/// How a service ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ServiceEnd {
    /// By a signal; everything was released.
    Stopped,
    /// The process of this number has taken its place, with all clients and reservations.
    Replaced(i32),
}

/// Serves until SIGTERM or SIGINT, when everything is released, or until another process takes its
/// place. SIGHUP reads the configuration again. `ready` is called once clients can connect, with
/// the socket's path if the socket is not systemd's, with the reservations, for interfaces beside
/// Varlink, and with the reason for the host, if it was chosen here.
///
/// # Errors
/// The configuration is wrong; no socket can be made; another service listens there; there is
/// no service to replace, or it is of another version.
pub fn serve(
    options: &ServeOptions,
    ready: impl FnOnce(Option<&Path>, &Arc<Reservations>, Option<String>),
) -> Result<ServiceEnd, Diagnostic> {
    let access = AccessRules::read(&options.config)?;
    let old = options.replace.then(|| Predecessor::request(&options.socket)).transpose()?;
    let cpus = options.cpus.iter().copied().filter(|&cpu| access.has_cpu(cpu));
    let (host, why) = choose(options.host, old.as_ref().map(Predecessor::host), cpus)?;
    let reservations = Arc::new(Reservations::new(options.cpus.clone(), access, host));
    let failed = |e: io::Error| {
        Diagnostic::refused("the service cannot run", e, "see the limits of this process")
    };
    // Before clients can connect: one that can may have the configuration read again.
    let stop = on_signals(&[SIGTERM, SIGINT]).map_err(failed)?;
    let reload = on_signals(&[SIGHUP]).map_err(failed)?;
    let clients = Clients::new(reservations.clone()).map_err(failed)?;
    let taken = match old {
        Some(old) => old.take_over(&reservations)?,
        None => {
            let mut fds = SystemdFds::take();
            let listening = match fds.take_socket() {
                Some(socket) => Listening::of_systemd(socket),
                None => Listening::at(&options.socket)?,
            };
            fds.take_over(listening, &reservations)
        }
    };
    let mut listening = taken.resume(&clients);
    listening.listener.set_nonblocking(true).map_err(failed)?;
    // Where no systemd waits for it, nothing happens.
    let _ = sd_notify::notify(&[sd_notify::NotifyState::Ready]);
    ready(listening.own(), &reservations, why);
    // Reservations by an interface that this service does not have.
    for (mut lease, _) in reservations.claim() {
        reservations.end_lease(&mut lease);
    }
    let served = accept_until(&stop, &reload, &mut listening, &clients, options);
    if let (Ok(ServiceEnd::Stopped), None) = (&served, listening.own()) {
        if let Err(e) = leave(&clients) {
            eprintln!("punctuald: systemd does not keep the clients: {e}");
        }
    }
    reservations.end();
    served.map_err(failed)
}

/// Readable after one of these signals.
fn on_signals(signals: &[i32]) -> io::Result<UnixStream> {
    let (read, write) = UnixStream::pair()?;
    for &signal in signals {
        pipe::register(signal, write.try_clone()?)?;
    }
    read.set_nonblocking(true)?;
    Ok(read)
}

fn accept_until(
    stop: &UnixStream,
    reload: &UnixStream,
    listening: &mut Listening,
    clients: &Arc<Clients>,
    options: &ServeOptions,
) -> io::Result<ServiceEnd> {
    loop {
        let offered = clients.offered();
        let on = |fd| PollFd::from_borrowed_fd(fd, PollFlags::IN);
        let mut fds = [
            on(stop.as_fd()),
            on(reload.as_fd()),
            on(offered.as_fd()),
            on(listening.listener.as_fd()),
        ];
        match poll(&mut fds, None) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(e) => return Err(e.into()),
        }
        if fds[0].revents().contains(PollFlags::IN) {
            return Ok(ServiceEnd::Stopped);
        }
        if fds[1].revents().contains(PollFlags::IN) {
            while matches!(io::Read::read(&mut &*reload, &mut [0; 64]), Ok(1..)) {}
            match AccessRules::read(&options.config) {
                Ok(access) => clients.reservations().set_access(access),
                Err(e) => eprintln!("punctuald: the configuration is as before: {e}"),
            }
        }
        if let Some(successor) = clients.take_successor() {
            match pass_on(successor, listening, clients) {
                Ok(pid) => return Ok(ServiceEnd::Replaced(pid)),
                Err(e) => eprintln!("punctuald: continues, as no process takes its place: {e}"),
            }
        }
        match listening.listener.accept() {
            Ok((stream, _)) => clients.welcome(stream),
            Err(e) if e.kind() == io::ErrorKind::WouldBlock => {}
            // No descriptor is free: clients that end free some.
            Err(e) => {
                eprintln!("punctuald: a client cannot be accepted: {e}");
                thread::sleep(Duration::from_millis(100));
            }
        }
    }
}
