//! The side of the running set: answers between two polls of its run, and never waits.

use std::io::{ErrorKind, Read, Write};
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};

use crate::protocol::{Query, Reply, LONGEST_REQUEST};

/// Observers at one time; a further one waits in the socket's queue.
const MOST_OBSERVERS: usize = 8;

/// Answers the observers of one running set. Dropped, it removes its socket.
#[derive(Debug)]
pub struct Server {
    listener: UnixListener,
    path: PathBuf,
    observers: Vec<Observer>,
}

/// One connection.
#[derive(Debug)]
struct Observer {
    stream: UnixStream,
    /// Of a request, what came so far.
    received: Vec<u8>,
    /// Of a reply, what the socket has not taken yet. No request is read before it has.
    unsent: Vec<u8>,
}

impl Server {
    /// Listens in `directory`, which it makes if need be, at a socket named after this process.
    ///
    /// # Errors
    /// The directory or the socket cannot be made.
    pub fn listen(directory: &Path) -> std::io::Result<Server> {
        std::fs::DirBuilder::new().recursive(true).mode(0o700).create(directory)?;
        let path = directory.join(format!("{}.sock", std::process::id()));
        // Removes those of killed processes; one with our number is replaced below.
        let _ = crate::client::running(directory);
        // An observer takes a socket that refuses connections, as one does between bind and listen,
        // for that of a killed process: it gets its name when it listens.
        let unnamed = directory.join(format!("{}.new", std::process::id()));
        let _ = std::fs::remove_file(&unnamed);
        let listener = UnixListener::bind(&unnamed)?;
        std::fs::set_permissions(&unnamed, std::fs::Permissions::from_mode(0o600))?;
        listener.set_nonblocking(true)?;
        std::fs::rename(&unnamed, &path)?;
        Ok(Server { listener, path, observers: Vec::new() })
    }

    /// Answers what was asked since the last call: at most one request of each observer. An
    /// observer that breaks the protocol, or is gone, loses its connection; nothing else happens.
    pub fn serve(&mut self, mut answer: impl FnMut(Query) -> Reply) {
        while self.observers.len() < MOST_OBSERVERS {
            let Ok((stream, _)) = self.listener.accept() else { break };
            if stream.set_nonblocking(true).is_ok() {
                self.observers.push(Observer { stream, received: Vec::new(), unsent: Vec::new() });
            }
        }
        self.observers.retain_mut(|observer| observer.serve(&mut answer).is_some());
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.path);
    }
}

impl Observer {
    /// `None`: the connection has ended.
    fn serve(&mut self, answer: &mut impl FnMut(Query) -> Reply) -> Option<()> {
        self.send()?;
        if !self.unsent.is_empty() {
            return Some(());
        }
        let Some(line) = self.line()? else { return Some(()) };
        let reply = match serde_json::from_slice(&line) {
            Ok(request) => answer(request),
            Err(e) => Reply::Refused {
                cause: format!("not a request: {e}"),
                help: "use the punctual top of the same version".to_owned(),
            },
        };
        self.unsent = serde_json::to_vec(&reply).ok()?;
        self.unsent.push(b'\n');
        self.send()
    }

    /// The next request, if it has come whole.
    fn line(&mut self) -> Option<Option<Vec<u8>>> {
        let mut buffer = [0; LONGEST_REQUEST];
        match self.stream.read(&mut buffer) {
            Ok(0) => return None,
            Ok(count) => self.received.extend_from_slice(&buffer[..count]),
            Err(e) if matches!(e.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {}
            Err(_) => return None,
        }
        let Some(end) = self.received.iter().position(|&byte| byte == b'\n') else {
            return (self.received.len() < LONGEST_REQUEST).then_some(None);
        };
        let rest = self.received.split_off(end + 1);
        Some(Some(std::mem::replace(&mut self.received, rest)))
    }

    fn send(&mut self) -> Option<()> {
        while !self.unsent.is_empty() {
            match self.stream.write(&self.unsent) {
                Ok(0) => return None,
                Ok(count) => drop(self.unsent.drain(..count)),
                Err(e) if e.kind() == ErrorKind::WouldBlock => break,
                Err(e) if e.kind() == ErrorKind::Interrupted => {}
                Err(_) => return None,
            }
        }
        Some(())
    }
}
