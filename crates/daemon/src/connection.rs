//! One client: its calls, and what it holds. A thread of the ordinary class serves it.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::time::{Duration, Instant};

use punctual_service::descriptor::send_with;
use punctual_service::message::{send, Call, CallReply, MessageReader};
use punctual_service::{
    PageReply, ReservationChange, ReserveReply, ServiceError, TaskRequest, DESCRIPTION, INTERFACE,
    MESSAGE_LIMIT,
};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{json, Map, Value};

use crate::clients::{Clients, Connection};
use crate::handover::check_successor;
use crate::reservations::{Lease, Reservations};
use crate::user::User;

/// How long an answer may wait for a client that does not read.
pub(crate) const PATIENCE: Duration = Duration::from_secs(5);
/// Calls that a client may make at once.
const BURST: f64 = 64.0;
/// Calls per second that it may make in the long run.
const RATE: f64 = 400.0;

/// What every Varlink service offers.
const COMMON: &str = "org.varlink.service";
const COMMON_DESCRIPTION: &str = "\
interface org.varlink.service

method GetInfo() -> (
  vendor: string,
  product: string,
  version: string,
  url: string,
  interfaces: []string
)

method GetInterfaceDescription(interface: string) -> (description: string)

error InterfaceNotFound (interface: string)

error MethodNotFound (method: string)

error MethodNotImplemented (method: string)

error InvalidParameter (parameter: string)
";

/// Serves a client until it disconnects, sends what is no call, or does not read its answers; then
/// releases what it holds.
pub fn converse(reservations: Arc<Reservations>, stream: UnixStream, caller: User) {
    if stream.set_write_timeout(Some(PATIENCE)).is_err() {
        return;
    }
    let lease = reservations.lease(caller.clone());
    let clients = Clients::new(reservations);
    let connection = clients.ok().and_then(|clients| clients.admit(stream, caller.uid));
    if let Some(connection) = connection {
        serve_calls(&connection, lease, MessageReader::new(MESSAGE_LIMIT));
    }
}

/// The same of one connection of several. What its lease holds stays if another process serves the
/// client from then on.
pub(crate) fn serve_calls(connection: &Connection, lease: Lease, mut reader: MessageReader) {
    let reservations = connection.reservations().clone();
    let mut client = Client { reservations, lease, descriptor: None, passed: false };
    let (mut stream, mut pace) = (&*connection.stream, Pace::new());
    loop {
        if !connection.wait_while_paused(&client.lease, &reader) {
            client.passed = true;
            return;
        }
        match reader.take() {
            Ok(Some(message)) => {
                pace.wait();
                match client.handle(&message, &mut stream, connection) {
                    Ok(After::NextCall) => {}
                    Ok(After::NoCall) | Err(_) => return,
                }
            }
            Ok(None) if connection.fill(&mut reader) => {}
            _ => return,
        }
    }
}

/// What follows an answer.
enum After {
    NextCall,
    /// The connection is the main thread's.
    NoCall,
}

/// A client and what it holds, which is released when this is dropped.
struct Client {
    reservations: Arc<Reservations>,
    lease: Lease,
    /// What goes with the next answer.
    descriptor: Option<OwnedFd>,
    /// Another process has what it holds.
    passed: bool,
}

impl Drop for Client {
    fn drop(&mut self) {
        if !self.passed {
            self.reservations.end_lease(&mut self.lease);
        }
    }
}

/// Why a call has no result.
enum Refusal {
    Service(ServiceError),
    /// One of [`COMMON`]: its name, and its parameter with its value.
    Common(&'static str, &'static str, String),
}

impl From<ServiceError> for Refusal {
    fn from(refusal: ServiceError) -> Refusal {
        Refusal::Service(refusal)
    }
}

#[derive(Deserialize)]
struct Tasks {
    tasks: Vec<TaskRequest>,
}

#[derive(Deserialize)]
struct Change {
    id: u64,
    #[serde(flatten)]
    change: ReservationChange,
}

#[derive(Deserialize)]
struct Id {
    id: u64,
}

#[derive(Deserialize)]
struct Version {
    version: u64,
}

#[derive(Deserialize)]
struct Interface {
    interface: String,
}

impl Client {
    /// Handles one message.
    ///
    /// # Errors
    /// It is no call, or its answer cannot be sent.
    fn handle(
        &mut self,
        message: &[u8],
        stream: &mut &UnixStream,
        connection: &Connection,
    ) -> io::Result<After> {
        let call: Call = serde_json::from_slice(message)?;
        let parameters = Value::Object(call.parameters.unwrap_or_default());
        let hands_over = call.method == format!("{INTERFACE}.HandOver");
        let result = match hands_over {
            true => self.hand_over(parameters, connection),
            false => self.call(&call.method, parameters),
        };
        let descriptor = self.descriptor.take();
        if hands_over && result.is_ok() {
            return Ok(After::NoCall);
        }
        if call.oneway {
            return Ok(After::NextCall);
        }
        match result {
            Ok(parameters) => {
                let reply = json!({ "parameters": parameters });
                match descriptor {
                    Some(descriptor) => send_with(stream, &reply, descriptor.as_fd()),
                    None => send(stream, &reply),
                }
            }
            Err(Refusal::Service(refusal)) => send(stream, &refusal),
            Err(Refusal::Common(name, parameter, value)) => {
                let parameters = Map::from_iter([(parameter.to_owned(), Value::String(value))]);
                let error = Some(format!("{COMMON}.{name}"));
                send(stream, &CallReply { parameters: Some(parameters), error })
            }
        }?;
        Ok(After::NextCall)
    }

    /// The main thread answers, and passes everything on.
    fn hand_over(&mut self, parameters: Value, connection: &Connection) -> Result<Value, Refusal> {
        let Version { version } = parse(parameters)?;
        check_successor(self.lease.caller(), version)?;
        match connection.offer() {
            true => Ok(json!({})),
            false => Err(Refusal::Service(ServiceError::MachineRefused {
                cause: "another process takes the place of this service".to_owned(),
                help: "wait for its end".to_owned(),
            })),
        }
    }

    fn call(&mut self, method: &str, parameters: Value) -> Result<Value, Refusal> {
        let Client { reservations, lease, descriptor, .. } = self;
        let unknown = |name, parameter, what: &str| Refusal::Common(name, parameter, what.into());
        let (interface, name) = method.rsplit_once('.').unwrap_or(("", method));
        match (interface, name) {
            (INTERFACE, "GetStatus") => value(reservations.status(lease.caller())),
            (INTERFACE, "Reserve") => {
                let Tasks { tasks } = parse(parameters)?;
                value(ReserveReply { reservations: reservations.reserve(lease, &tasks)? })
            }
            (INTERFACE, "MakePage") => {
                *descriptor = Some(reservations.make_page(lease)?);
                value(PageReply { page_fd: 0 })
            }
            (INTERFACE, "Change") => {
                let Change { id, change } = parse(parameters)?;
                reservations.change_values(lease, id, &change)?;
                Ok(json!({}))
            }
            (INTERFACE, "Suspend") => {
                let Id { id } = parse(parameters)?;
                reservations.suspend(lease, id)?;
                Ok(json!({}))
            }
            (INTERFACE, "Resume") => {
                let Id { id } = parse(parameters)?;
                reservations.resume(lease, id)?;
                Ok(json!({}))
            }
            (INTERFACE, "Release") => {
                let Id { id } = parse(parameters)?;
                reservations.release(lease, id)?;
                Ok(json!({}))
            }
            (INTERFACE, "TakeEvents") => value(reservations.take_events(lease)),
            (COMMON, "GetInfo") => Ok(json!({
                "vendor": "Punctual",
                "product": "punctuald",
                "version": env!("CARGO_PKG_VERSION"),
                "url": "",
                "interfaces": [COMMON, INTERFACE],
            })),
            (COMMON, "GetInterfaceDescription") => {
                let Interface { interface } = parse(parameters)?;
                match interface.as_str() {
                    INTERFACE => Ok(json!({ "description": DESCRIPTION })),
                    COMMON => Ok(json!({ "description": COMMON_DESCRIPTION })),
                    _ => Err(unknown("InterfaceNotFound", "interface", &interface)),
                }
            }
            (INTERFACE | COMMON, _) => Err(unknown("MethodNotFound", "method", method)),
            _ => Err(unknown("InterfaceNotFound", "interface", interface)),
        }
    }
}

fn value(reply: impl Serialize) -> Result<Value, Refusal> {
    serde_json::to_value(reply).map_err(|e| {
        Refusal::Service(ServiceError::MachineRefused {
            cause: format!("the answer cannot be written: {e}"),
            help: "report it".to_owned(),
        })
    })
}

fn parse<T: DeserializeOwned>(parameters: Value) -> Result<T, Refusal> {
    let wrong =
        |e: serde_json::Error| Refusal::Common("InvalidParameter", "parameter", e.to_string());
    serde_json::from_value(parameters).map_err(wrong)
}

/// Bounds the calls of one client: further ones are answered later.
struct Pace {
    tokens: f64,
    at: Instant,
}

impl Pace {
    fn new() -> Pace {
        Pace { tokens: BURST, at: Instant::now() }
    }

    fn wait(&mut self) {
        let now = Instant::now();
        let earned = now.duration_since(self.at).as_secs_f64() * RATE;
        (self.tokens, self.at) = ((self.tokens + earned).min(BURST) - 1.0, now);
        if self.tokens < 0.0 {
            std::thread::sleep(Duration::from_secs_f64(-self.tokens / RATE));
        }
    }
}
