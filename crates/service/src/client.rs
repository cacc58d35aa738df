//! A client, for ordinary threads: each call waits for its answer.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use punctual_diagnostic::Diagnostic;
use punctual_wait_page::ClientPage;
use rustix::io::Errno;
use serde::de::DeserializeOwned;
use serde_json::{json, Map, Value};

use crate::descriptor::DescriptorReader;
use crate::message::{send, Call, CallReply, MessageReader};
use crate::{
    EventsReply, PageReply, ReservationChange, ReservationInfo, ReserveReply, ReservedThread,
    ServiceError, StatusReply, TaskRequest, INTERFACE, SOCKET,
};

/// Longest time for an answer: a reservation may have to wait for the start of a dispatcher.
const PATIENCE: Duration = Duration::from_secs(20);

/// The most bytes of an answer.
const ANSWER_LIMIT: usize = 16 << 20;

/// A connection to the service: the lease of what it reserves. Dropping it releases that.
#[derive(Debug)]
pub struct ServiceClient {
    /// A [`ReservedThread`] sees whether it is open.
    stream: Arc<UnixStream>,
    reader: MessageReader,
}

impl ServiceClient {
    /// Connects to the service at this socket; `None`: no service is there.
    ///
    /// # Errors
    /// The socket is not the caller's to use.
    pub fn connect(socket: &Path) -> Result<Option<ServiceClient>, Diagnostic> {
        let connected = UnixStream::connect(socket).and_then(|stream| {
            stream.set_read_timeout(Some(PATIENCE))?;
            stream.set_write_timeout(Some(PATIENCE))?;
            Ok(stream)
        });
        match connected {
            Ok(stream) => {
                let (stream, reader) = (Arc::new(stream), MessageReader::new(ANSWER_LIMIT));
                Ok(Some(ServiceClient { stream, reader }))
            }
            Err(e)
                if matches!(
                    e.kind(),
                    io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused
                ) =>
            {
                Ok(None)
            }
            Err(e) => Err(Diagnostic::refused(
                format!("punctuald cannot be reached at {}", socket.display()),
                e,
                "start it (systemctl start punctuald.socket), or use another host",
            )),
        }
    }

    /// As [`connect`](ServiceClient::connect), where a service is needed.
    ///
    /// # Errors
    /// No service is there, or it is not the caller's to use.
    pub fn require(socket: &Path) -> Result<ServiceClient, Diagnostic> {
        ServiceClient::connect(socket)?.ok_or_else(|| {
            let how = match socket == Path::new(SOCKET) {
                true => "start it (systemctl start punctuald.socket, or punctual serve)".to_owned(),
                false => format!("start it: punctual serve --socket {}", socket.display()),
            };
            let cause = format!("no punctuald listens at {}", socket.display());
            Diagnostic::machine(cause, format!("{how}, or use another host"))
                .with_errno(Errno::CONNREFUSED.raw_os_error())
        })
    }

    /// What the CPUs have promised, and the reservations of this user.
    ///
    /// # Errors
    /// The service has ended.
    pub fn status(&mut self) -> Result<StatusReply, Diagnostic> {
        self.call("GetStatus", json!({}))
    }

    /// Reserves for all these processes, or for none.
    ///
    /// # Errors
    /// Refused: a value out of its range, not this user's process, more than this user may have,
    /// budgets that do not fit; the service has ended.
    pub fn reserve(&mut self, tasks: &[TaskRequest]) -> Result<Vec<ReservationInfo>, Diagnostic> {
        let reply: ReserveReply = self.call("Reserve", json!({ "tasks": tasks }))?;
        Ok(reply.reservations)
    }

    /// Reserves for one thread, which then waits for its releases by the result. The thread is
    /// `request.tid`; the caller's number is [`thread_id`](punctual_sys::sched::thread_id).
    ///
    /// # Errors
    /// As [`reserve`](ServiceClient::reserve); a request without a thread; no memory or
    /// descriptor.
    pub fn reserve_thread(&mut self, request: &TaskRequest) -> Result<ReservedThread, Diagnostic> {
        let (reply, descriptors) = self.call_with("MakePage", json!({}))?;
        let PageReply { page_fd } = reply;
        let memory = descriptors.get(page_fd as usize);
        let memory = memory.ok_or_else(|| of_another_version("its answer lacks a descriptor"))?;
        let refused =
            |e| Diagnostic::refused("no page can be shared with punctuald", e, "report it");
        let page = ClientPage::open(memory.as_fd()).map_err(|e| match e.kind() {
            io::ErrorKind::Unsupported => of_another_version("its page is another one"),
            _ => refused(e),
        })?;
        let request = TaskRequest { page: Some(true), ..request.clone() };
        let info = self.reserve(&[request])?.pop();
        let info = info.ok_or_else(|| of_another_version("its answer lacks a reservation"))?;
        Ok(ReservedThread::new(info, page, Arc::downgrade(&self.stream)))
    }

    /// Gives a reservation other values from its next release on.
    ///
    /// # Errors
    /// As [`reserve`](ServiceClient::reserve); not a reservation of this connection.
    pub fn change(&mut self, id: u64, change: &ReservationChange) -> Result<(), Diagnostic> {
        let ReservationChange { period_ns, budget_ns, deadline_ns } = *change;
        let values = json!({
            "id": id, "period_ns": period_ns, "budget_ns": budget_ns, "deadline_ns": deadline_ns,
        });
        self.command("Change", values)
    }

    /// Suspends a reservation until [`resume`](ServiceClient::resume) was called as often.
    ///
    /// # Errors
    /// Not a reservation of this connection; a thread without a page; this process itself; the
    /// service schedules inside the kernel, or has ended.
    pub fn suspend(&mut self, id: u64) -> Result<(), Diagnostic> {
        self.command("Suspend", json!({ "id": id }))
    }

    /// Takes back one [`suspend`](ServiceClient::suspend): after the last one, it executes from its
    /// next release on.
    ///
    /// # Errors
    /// It is not suspended (EALREADY); not a reservation of this connection; the service has ended.
    pub fn resume(&mut self, id: u64) -> Result<(), Diagnostic> {
        self.command("Resume", json!({ "id": id }))
    }

    /// Releases a reservation: its processes continue as they were before.
    ///
    /// # Errors
    /// Not a reservation of this connection; the service has ended.
    pub fn release(&mut self, id: u64) -> Result<(), Diagnostic> {
        self.command("Release", json!({ "id": id }))
    }

    /// What became of the reservations of this connection since the last call.
    ///
    /// # Errors
    /// The service has ended.
    pub fn take_events(&mut self) -> Result<EventsReply, Diagnostic> {
        self.call("TakeEvents", json!({}))
    }

    /// Has the service pass everything on to this process. Returns the connection, which then has
    /// messages of that version, of at most `limit` bytes.
    ///
    /// # Errors
    /// This user is not root; the service has another version, or passes everything on to another
    /// process already. It continues then.
    pub fn hand_over(
        mut self,
        version: u32,
        limit: usize,
    ) -> Result<(UnixStream, MessageReader), Diagnostic> {
        self.command("HandOver", json!({ "version": version }))?;
        self.reader.set_limit(limit);
        let stream = Arc::into_inner(self.stream).ok_or_else(|| {
            Diagnostic::usage("a thread waits by this connection", "hand over by another one")
        })?;
        Ok((stream, self.reader))
    }

    fn command(&mut self, method: &str, parameters: Value) -> Result<(), Diagnostic> {
        self.call::<Map<String, Value>>(method, parameters).map(drop)
    }

    fn call<T: DeserializeOwned>(
        &mut self,
        method: &str,
        parameters: Value,
    ) -> Result<T, Diagnostic> {
        self.call_with(method, parameters).map(|(reply, _)| reply)
    }

    /// The answer, with the descriptors that come with it.
    fn call_with<T: DeserializeOwned>(
        &mut self,
        method: &str,
        parameters: Value,
    ) -> Result<(T, Vec<OwnedFd>), Diagnostic> {
        let Value::Object(parameters) = parameters else {
            return Err(Diagnostic::machine("a call without parameters", "report it"));
        };
        let answer = self.exchange(&Call {
            method: format!("{INTERFACE}.{method}"),
            parameters: Some(parameters),
            oneway: false,
            more: false,
        });
        let (answer, descriptors) = answer.map_err(|e| match e.kind() {
            io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => Diagnostic::machine(
                "punctuald does not answer",
                "look at its log (journalctl -u punctuald), or restart it",
            ),
            io::ErrorKind::InvalidData => of_another_version(e),
            _ => ended(e),
        })?;
        let parameters = answer.parameters.unwrap_or_default();
        if let Some(error) = answer.error {
            let refusal = json!({ "error": error, "parameters": parameters });
            return Err(match serde_json::from_value::<ServiceError>(refusal) {
                Ok(refusal) => refusal.diagnostic(),
                Err(_) => of_another_version(error),
            });
        }
        let reply = serde_json::from_value(Value::Object(parameters));
        Ok((reply.map_err(of_another_version)?, descriptors))
    }

    fn exchange(&mut self, call: &Call) -> io::Result<(CallReply, Vec<OwnedFd>)> {
        send(&mut &*self.stream, call)?;
        let ended = || io::Error::new(io::ErrorKind::UnexpectedEof, "the connection ended");
        let mut stream = DescriptorReader::new(&self.stream);
        let message = self.reader.next(&mut stream)?.ok_or_else(ended)?;
        Ok((serde_json::from_slice(&message)?, stream.descriptors))
    }
}

fn ended(why: impl std::fmt::Display) -> Diagnostic {
    Diagnostic::machine(
        format!("punctuald has ended: {why}"),
        "look at its log (journalctl -u punctuald), and start this program again",
    )
}

fn of_another_version(why: impl std::fmt::Display) -> Diagnostic {
    let own = env!("CARGO_PKG_VERSION");
    Diagnostic::machine(
        format!("punctuald is of another version than this program ({own}): {why}"),
        "install both from one version, and restart the service (systemctl restart punctuald)",
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};

    /// The cause of the error where the service gives this answer, or ends without one.
    fn cause(answer: Option<&str>) -> String {
        let (own, mut other) = UnixStream::pair().expect("a socket");
        let mut client =
            ServiceClient { stream: Arc::new(own), reader: MessageReader::new(ANSWER_LIMIT) };
        let answer = answer.map(|answer| [answer.as_bytes(), b"\0"].concat());
        let service = std::thread::spawn(move || {
            let _ = other.read(&mut [0; 1024]);
            answer.into_iter().for_each(|answer| drop(other.write_all(&answer)));
        });
        let refused = client.status().expect_err("no right answer");
        service.join().expect("it answers");
        refused.cause
    }

    #[test]
    fn a_service_of_another_version_is_named_and_so_is_one_that_has_ended() {
        for answer in [
            r#"{"parameters":{"version":"9.0","promised":[]}}"#,
            r#"{"error":"org.varlink.service.MethodNotFound","parameters":{"method":"x"}}"#,
            r#"{"error":"io.punctual.Service.Later","parameters":{}}"#,
            "no message",
        ] {
            let cause = cause(Some(answer));
            assert!(cause.contains("of another version"), "{answer}: {cause}");
        }
        assert!(cause(None).contains("has ended"));
    }
}
