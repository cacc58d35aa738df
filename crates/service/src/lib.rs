//! The service of a machine, `punctuald`, as its clients see it: the Varlink interface
//! [`INTERFACE`], its types, and a client.
//!
//! A client's connection is its *lease*: what it reserved is released when the connection ends,
//! however the client ends.

mod client;
pub mod descriptor;
mod error;
mod event;
pub mod message;
mod request;
mod reserved_thread;

pub use client::ServiceClient;
pub use error::ServiceError;
pub use event::{EventsReply, PeriodReport, TaskEvent};
pub use punctual_wait_page::{ClientPage, PageRelease};
pub use request::{
    CpuStatus, GroupStatus, PageReply, ReservationChange, ReservationInfo, ReserveReply,
    StatusReply, TaskRequest,
};
pub use reserved_thread::ReservedThread;

use std::path::PathBuf;

/// The Varlink interface.
pub const INTERFACE: &str = "io.punctual.Service";

/// Its description, in Varlink's language.
pub const DESCRIPTION: &str = include_str!("io.punctual.Service.varlink");

/// The socket of the machine's service.
pub const SOCKET: &str = "/run/punctuald/io.punctual.Service";

/// Names another socket in the environment of clients.
pub const SOCKET_VARIABLE: &str = "PUNCTUAL_SOCKET";

/// The most bytes of a message to the service.
pub const MESSAGE_LIMIT: usize = 64 << 10;

/// The longest name of a task, bytes.
pub const NAME_LIMIT: usize = 40;

/// The socket that clients of this process use.
pub fn socket() -> PathBuf {
    std::env::var_os(SOCKET_VARIABLE).map_or_else(|| SOCKET.into(), PathBuf::from)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde::de::DeserializeOwned;
    use serde_json::{json, Map, Value};

    /// The fields of a type or method's result in the description, with their types.
    fn fields(after: &str) -> Vec<(String, String)> {
        let from = DESCRIPTION.find(after).unwrap_or_else(|| panic!("{after}")) + after.len();
        let text: String = DESCRIPTION[from..]
            .lines()
            .map(|line| line.split('#').next().unwrap_or_default())
            .collect::<Vec<_>>()
            .join(" ");
        let inside = text.split(')').next().expect("it ends");
        let field = |part: &str| {
            let (name, kind) = part.split_once(':').expect("a name and a type");
            (name.trim().to_owned(), kind.trim().to_owned())
        };
        inside.split(',').filter(|part| !part.trim().is_empty()).map(field).collect()
    }

    fn example(kind: &str) -> Value {
        match kind {
            "int" => json!(1),
            "bool" => json!(true),
            "string" => json!("completed"),
            kind if kind.starts_with("[]") => json!([]),
            named => object(&format!("type {named} ("), true),
        }
    }

    /// A value of what the description says, with or without the optional fields.
    fn object(after: &str, whole: bool) -> Value {
        let mut object = Map::new();
        for (name, kind) in fields(after) {
            let optional = kind.strip_prefix('?');
            if whole || optional.is_none() {
                object.insert(name, example(optional.unwrap_or(&kind)));
            }
        }
        Value::Object(object)
    }

    /// The type has the fields of the description, no others, and the same are optional.
    fn agrees<T: DeserializeOwned + serde::Serialize>(after: &str) {
        for whole in [true, false] {
            let described = object(after, whole);
            let parsed: T = serde_json::from_value(described.clone())
                .unwrap_or_else(|e| panic!("{after} {described}: {e}"));
            let mut written = serde_json::to_value(parsed).expect("plain data");
            written.as_object_mut().expect("an object").retain(|_, value| !value.is_null());
            assert_eq!(written, described, "{after}");
        }
        for (name, kind) in fields(after).iter().filter(|(_, kind)| !kind.starts_with('?')) {
            let mut without = object(after, true);
            without.as_object_mut().expect("an object").remove(name);
            assert!(serde_json::from_value::<T>(without).is_err(), "{after} {name}: {kind}");
        }
    }

    #[test]
    fn the_types_are_those_of_the_description() {
        agrees::<TaskRequest>("type TaskRequest (");
        agrees::<ReservationInfo>("type ReservationInfo (");
        agrees::<CpuStatus>("type CpuStatus (");
        agrees::<GroupStatus>("type GroupStatus (");
        agrees::<PeriodReport>("type PeriodReport (");
        agrees::<TaskEvent>("type TaskEvent (");
        agrees::<ReserveReply>("method Reserve(tasks: []TaskRequest) -> (");
        agrees::<PageReply>("method MakePage() -> (");
        agrees::<StatusReply>("method GetStatus() -> (");
        agrees::<EventsReply>("method TakeEvents() -> (");
    }

    #[test]
    fn the_errors_are_those_of_the_description() {
        let described = DESCRIPTION.lines().filter_map(|line| line.strip_prefix("error "));
        let mut count = 0;
        for name in described.filter_map(|line| line.split(' ').next()) {
            let refusal = json!({
                "error": format!("{INTERFACE}.{name}"),
                "parameters": { "cause": "c", "help": "h" },
            });
            let parsed: ServiceError = serde_json::from_value(refusal.clone()).expect(name);
            assert_eq!(serde_json::to_value(&parsed).expect("plain data"), refusal);
            count += 1;
        }
        assert_eq!(count, 5);
    }
}
