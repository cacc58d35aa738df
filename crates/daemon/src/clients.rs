//! All connections of clients: how many there may be, and the pause of their calls while another
//! process of the service takes everything over.

use std::collections::BTreeMap;
use std::io::{self, Read, Write};
use std::net::Shutdown;
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use punctual_service::message::MessageReader;
use punctual_service::MESSAGE_LIMIT;
use rustix::event::{poll, PollFd, PollFlags};

use crate::connection::{serve_calls, PATIENCE};
use crate::reservations::{Lease, Reservations};
use crate::user::User;

/// Connections of one user, root excepted.
const PER_USER: usize = 64;
/// Connections of all users but root.
const IN_ALL: usize = 1024;
/// Stack of a connection's thread, bytes; what is not touched takes no memory.
const STACK: usize = 512 << 10;

/// Longest time for a call to complete when calls are to pause; after that its connection is
/// closed. Longer than an answer may wait for a client that reads.
const CALL_LIMIT: Duration = Duration::from_secs(10);

/// The connections.
pub(crate) struct Clients {
    reservations: Arc<Reservations>,
    state: Mutex<State>,
    changed: Condvar,
    /// The second end is readable while calls pause.
    pause: (UnixStream, UnixStream),
    /// The second end is readable when there is a successor.
    offered: (UnixStream, UnixStream),
}

#[derive(Default)]
struct State {
    phase: Phase,
    next: u64,
    open: BTreeMap<u64, Open>,
    /// The connection of a process that is to take everything over.
    successor: Option<UnixStream>,
}

#[derive(Debug, Default, Clone, Copy, PartialEq)]
enum Phase {
    #[default]
    Serving,
    Paused,
    /// Another process serves the connections.
    Passed,
}

struct Open {
    uid: u32,
    stream: Arc<UnixStream>,
    paused: Option<PausedClient>,
}

/// A connection between two calls.
#[derive(Debug, Clone)]
pub(crate) struct PausedClient {
    /// The connection.
    pub stream: Arc<UnixStream>,
    /// The number of its lease.
    pub lease: u64,
    /// What was read of the next call.
    pub unread: Vec<u8>,
}

/// A connection, counted until it is dropped.
pub(crate) struct Connection {
    clients: Arc<Clients>,
    number: u64,
    /// The connection.
    pub stream: Arc<UnixStream>,
}

impl Clients {
    /// Without connections.
    ///
    /// # Errors
    /// No descriptor is free.
    pub fn new(reservations: Arc<Reservations>) -> io::Result<Arc<Clients>> {
        let (state, changed) = (Mutex::default(), Condvar::new());
        let (pause, offered) = (UnixStream::pair()?, UnixStream::pair()?);
        Ok(Arc::new(Clients { reservations, state, changed, pause, offered }))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What clients reserve.
    pub fn reservations(&self) -> &Arc<Reservations> {
        &self.reservations
    }

    /// Serves a new client by a thread of its own, or closes its connection: there are too many.
    pub fn welcome(self: &Arc<Clients>, stream: UnixStream) {
        let Ok(user) = User::of_connection(&stream) else { return };
        let prepared = stream.set_nonblocking(false);
        if prepared.and_then(|()| stream.set_write_timeout(Some(PATIENCE))).is_err() {
            return;
        }
        let Some(connection) = self.admit(stream, user.uid) else { return };
        let lease = self.reservations.lease(user);
        spawn(connection, lease, Vec::new());
    }

    /// Serves a client of a process whose place this one has taken.
    pub fn resume_client(self: &Arc<Clients>, stream: UnixStream, lease: Lease, unread: Vec<u8>) {
        match self.admit(stream, lease.caller().uid) {
            Some(connection) => spawn(connection, lease, unread),
            // Its limits were higher.
            None => self.reservations.end_lease(&mut { lease }),
        }
    }

    /// `None`: there are too many.
    pub fn admit(self: &Arc<Clients>, stream: UnixStream, uid: u32) -> Option<Connection> {
        let mut state = self.state();
        let count = |of: &dyn Fn(u32) -> bool| state.open.values().filter(|o| of(o.uid)).count();
        if uid != 0 && (count(&|u| u == uid) >= PER_USER || count(&|u| u != 0) >= IN_ALL) {
            return None;
        }
        let (number, stream) = (state.next, Arc::new(stream));
        state.next += 1;
        state.open.insert(number, Open { uid, stream: stream.clone(), paused: None });
        drop(state);
        Some(Connection { clients: self.clone(), number, stream })
    }

    /// Readable when another process is to take everything over.
    pub fn offered(&self) -> impl AsFd + '_ {
        &self.offered.1
    }

    /// The connection of that process.
    pub fn take_successor(&self) -> Option<UnixStream> {
        let successor = self.state().successor.take()?;
        // One byte was written for it.
        let _ = (&self.offered.1).read(&mut [0]);
        Some(successor)
    }

    /// Waits until no client's call is under way, and has further ones wait. A connection whose
    /// call takes too long is closed.
    pub fn pause(&self) -> Vec<PausedClient> {
        let mut state = self.state();
        state.phase = Phase::Paused;
        let _ = (&self.pause.0).write(b"P");
        let until = Instant::now() + CALL_LIMIT;
        while state.open.values().any(|open| open.paused.is_none()) {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                let busy = state.open.values().filter(|open| open.paused.is_none());
                busy.for_each(|open| drop(open.stream.shutdown(Shutdown::Both)));
            }
            let left = left.max(Duration::from_millis(100));
            state =
                self.changed.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
        }
        state.open.values().filter_map(|open| open.paused.clone()).collect()
    }

    /// The calls that wait are served.
    pub fn resume(&self) {
        self.leave_pause(Phase::Serving);
    }

    /// Another process serves the connections; their threads here end, and what they hold stays.
    pub fn set_passed(&self) {
        self.leave_pause(Phase::Passed);
    }

    fn leave_pause(&self, phase: Phase) {
        let mut state = self.state();
        if state.phase == Phase::Paused {
            let _ = (&self.pause.1).read(&mut [0]);
        }
        state.phase = phase;
        state.open.values_mut().for_each(|open| open.paused = None);
        self.changed.notify_all();
    }
}

impl Connection {
    /// What its client reserves by it.
    pub fn reservations(&self) -> &Arc<Reservations> {
        &self.clients.reservations
    }

    /// Reads what comes next. False: calls pause, or the client has disconnected, or what it sends
    /// is no call.
    pub fn fill(&self, reader: &mut MessageReader) -> bool {
        let on = |fd| PollFd::from_borrowed_fd(fd, PollFlags::IN);
        let mut fds = [on(self.clients.pause.1.as_fd()), on(self.stream.as_fd())];
        match poll(&mut fds, None) {
            Err(rustix::io::Errno::INTR) => true,
            Err(_) => false,
            Ok(_) if fds[0].revents().is_empty() => {
                matches!(reader.fill(&mut &*self.stream), Ok(true))
            }
            Ok(_) => true,
        }
    }

    /// Waits while calls pause. False: another process serves the client from now on.
    pub fn wait_while_paused(&self, lease: &Lease, reader: &MessageReader) -> bool {
        let mut state = self.clients.state();
        while state.phase == Phase::Paused {
            let (stream, unread) = (self.stream.clone(), reader.unread().to_vec());
            let paused = PausedClient { stream, lease: lease.number(), unread };
            state.open.entry(self.number).and_modify(|open| open.paused = Some(paused));
            self.clients.changed.notify_all();
            state = self.clients.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        state.phase == Phase::Serving
    }

    /// This connection is that of a process that is to take everything over. False: there is one
    /// already.
    pub fn offer(&self) -> bool {
        let mut state = self.clients.state();
        if state.successor.is_some() || state.phase != Phase::Serving {
            return false;
        }
        state.successor = self.stream.try_clone().ok();
        state.successor.is_some() && (&self.clients.offered.0).write(b"S").is_ok()
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.clients.state().open.remove(&self.number);
        self.clients.changed.notify_all();
    }
}

/// Serves a client by a thread of its own.
fn spawn(connection: Connection, lease: Lease, unread: Vec<u8>) {
    let thread = thread::Builder::new().name("client".into()).stack_size(STACK);
    let reader = MessageReader::with_unread(MESSAGE_LIMIT, unread);
    if let Err(e) = thread.spawn(move || serve_calls(&connection, lease, reader)) {
        eprintln!("punctuald: a client cannot be served: {e}");
    }
}
