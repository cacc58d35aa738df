//! The connection to the system bus, and the name on it.

use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;
use zbus::blocking::{connection, Connection, MessageIterator};

use zbus::message::Message;
use zbus::zvariant::DynamicType;

use crate::interface::Interface;
use crate::promotions::Promotions;
use crate::{NAME, PATH};

/// How long after a failure the bus is looked for again.
const AGAIN_AFTER: Duration = Duration::from_secs(10);

/// RequestName without flags: behind an owner that the name has, it is waited for.
const WAIT_FOR_IT: u32 = 0;
/// Answers to RequestName.
const OWNER: u32 = 1;
const IN_QUEUE: u32 = 2;

/// Serves the interface while there is a system bus, and looks for one while there is none.
pub fn serve(promotions: Arc<Promotions>) {
    let mut reported = String::new();
    loop {
        match connect(&promotions) {
            Ok(bus) => {
                reported.clear();
                // Ends with the connection.
                MessageIterator::from(bus).for_each(drop);
                eprintln!("punctuald: the system bus has gone, and {NAME} with it");
            }
            Err(e) => {
                let report = format!("punctuald: {NAME} is not served: {e}");
                if report != reported {
                    eprintln!("{report}");
                    reported = report;
                }
            }
        }
        std::thread::sleep(AGAIN_AFTER);
    }
}

fn connect(promotions: &Arc<Promotions>) -> zbus::Result<Connection> {
    let interface = Interface(promotions.clone());
    let bus = connection::Builder::system()?.serve_at(PATH, interface)?.build()?;
    match number(&bus, "RequestName", &(NAME, WAIT_FOR_IT))? {
        OWNER => eprintln!("punctuald: {NAME} is served"),
        IN_QUEUE => eprintln!(
            "punctuald: {NAME} belongs to {}, and is served once that ends: \
             systemctl mask --now rtkit-daemon",
            owner(&bus)
        ),
        answer => return Err(zbus::Error::Failure(format!("RequestName returned {answer}"))),
    }
    Ok(bus)
}

/// The process that has the name.
fn owner(bus: &Connection) -> String {
    match number(bus, "GetConnectionUnixProcessID", &NAME) {
        Ok(pid) => {
            let comm = std::fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
            format!("process {pid} ({})", comm.trim_end())
        }
        Err(_) => "another process".to_owned(),
    }
}

/// Calls a method of the bus itself.
///
/// # Errors
/// The bus refuses it, or has gone.
pub async fn call_bus<B>(bus: &zbus::Connection, method: &str, body: &B) -> zbus::Result<Message>
where
    B: Serialize + DynamicType,
{
    let name = "org.freedesktop.DBus";
    bus.call_method(Some(name), "/org/freedesktop/DBus", Some(name), method, body).await
}

/// The same, of a method that returns a number.
fn number<B: Serialize + DynamicType>(
    bus: &Connection,
    method: &str,
    body: &B,
) -> zbus::Result<u32> {
    zbus::block_on(call_bus(bus.inner(), method, body))?.body().deserialize()
}
