//! The service's life: connections, signals, the end.

use std::collections::BTreeMap;
use std::io;
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use punctual::Host;
use punctual_diagnostic::Diagnostic;
use punctual_sys::peer::Peer;
use rustix::event::{poll, PollFd, PollFlags};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::low_level::pipe;

use crate::access::{AccessRules, User};
use crate::connection::converse;
use crate::dispatchers::choose;
use crate::listen::Listening;
use crate::reservations::Reservations;

/// Connections of one user, root excepted.
const PER_USER: usize = 64;
/// Connections of all users but root.
const IN_ALL: usize = 1024;
/// Stack of a connection's thread, bytes; what is not touched takes no memory.
const STACK: usize = 512 << 10;

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
    pub host: Option<Host>,
}

/// Serves until SIGTERM or SIGINT; then everything is released. SIGHUP reads the configuration
/// again. `ready` is called once clients can connect, with the socket's path if the socket is not
/// systemd's, with the reservations, for interfaces beside Varlink, and with the reason for the
/// host, if it was chosen here.
///
/// # Errors
/// The configuration is wrong; no socket can be made; another service listens there.
pub fn serve(
    options: &ServeOptions,
    ready: impl FnOnce(Option<&Path>, &Arc<Reservations>, Option<String>),
) -> Result<(), Diagnostic> {
    let access = AccessRules::read(&options.config)?;
    let cpus = options.cpus.iter().copied().filter(|&cpu| access.has_cpu(cpu));
    let (host, why) = choose(options.host, cpus)?;
    let reservations = Arc::new(Reservations::new(options.cpus.clone(), access, host));
    let failed = |e: io::Error| {
        Diagnostic::refused("the service cannot run", e, "see the limits of this process")
    };
    // Before clients can connect: one that can may have the configuration read again.
    let stop = on_signals(&[SIGTERM, SIGINT]).map_err(failed)?;
    let reload = on_signals(&[SIGHUP]).map_err(failed)?;
    let listening = Listening::at(&options.socket)?;
    listening.listener.set_nonblocking(true).map_err(failed)?;
    // Where no systemd waits for it, nothing happens.
    let _ = sd_notify::notify(&[sd_notify::NotifyState::Ready]);
    ready(listening.own(), &reservations, why);
    let served = accept_until(&stop, &reload, &listening, &reservations, options);
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
    listening: &Listening,
    reservations: &Arc<Reservations>,
    options: &ServeOptions,
) -> io::Result<()> {
    let counts = Counts::default();
    loop {
        let on = |fd| PollFd::from_borrowed_fd(fd, PollFlags::IN);
        let mut fds = [on(stop.as_fd()), on(reload.as_fd()), on(listening.listener.as_fd())];
        match poll(&mut fds, None) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(e) => return Err(e.into()),
        }
        if fds[0].revents().contains(PollFlags::IN) {
            return Ok(());
        }
        if fds[1].revents().contains(PollFlags::IN) {
            while matches!(io::Read::read(&mut &*reload, &mut [0; 64]), Ok(1..)) {}
            match AccessRules::read(&options.config) {
                Ok(access) => reservations.set_access(access),
                Err(e) => eprintln!("punctuald: the configuration is as before: {e}"),
            }
        }
        match listening.listener.accept() {
            Ok((stream, _)) => welcome(reservations, stream, &counts),
            Err(e) if e.kind() == io::ErrorKind::WouldBlock => {}
            // No descriptor is free: clients that end free some.
            Err(e) => {
                eprintln!("punctuald: a client cannot be accepted: {e}");
                thread::sleep(Duration::from_millis(100));
            }
        }
    }
}

/// Serves a client by a thread of its own, or closes its connection: there are too many.
fn welcome(reservations: &Arc<Reservations>, stream: UnixStream, counts: &Counts) {
    let Ok(peer) = Peer::of(stream.as_fd()) else { return };
    let Some(counted) = counts.count(peer.uid) else { return };
    if stream.set_nonblocking(false).is_err() {
        return;
    }
    let reservations = reservations.clone();
    let caller = User { uid: peer.uid, groups: peer.groups };
    let thread = thread::Builder::new().name("client".into()).stack_size(STACK);
    let served = thread.spawn(move || {
        converse(reservations, stream, caller);
        drop(counted);
    });
    if let Err(e) = served {
        eprintln!("punctuald: a client cannot be served: {e}");
    }
}

/// Connections by user.
#[derive(Debug, Clone, Default)]
struct Counts(Arc<Mutex<BTreeMap<u32, usize>>>);

/// One connection of a user, counted until it is dropped.
struct Counted(u32, Counts);

impl Counts {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<u32, usize>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// `None`: there are too many.
    fn count(&self, uid: u32) -> Option<Counted> {
        let mut counts = self.lock();
        let others: usize = counts.iter().filter(|(uid, _)| **uid != 0).map(|(_, n)| n).sum();
        let count = counts.entry(uid).or_default();
        if uid != 0 && (*count >= PER_USER || others >= IN_ALL) {
            return None;
        }
        *count += 1;
        Some(Counted(uid, self.clone()))
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        let mut counts = self.1.lock();
        if let Some(count) = counts.get_mut(&self.0) {
            *count -= 1;
            if *count == 0 {
                counts.remove(&self.0);
            }
        }
    }
}
