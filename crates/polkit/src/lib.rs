//! polkit, asked on the system bus whether a process may do something.
//!
//! It is asked without interaction: where its rules require a password, the answer is a refusal.
//! Each question has a bound in time, from the connection to the bus on, and questions of several
//! threads do not wait for each other.

use std::collections::HashMap;
use std::fmt;
use std::time::Duration;

use async_io::Timer;
use async_lock::Mutex;
use futures_lite::future::or;
use zbus::zvariant::Value;
use zbus::{connection, Connection};

/// The longest time for an answer.
const PATIENCE: Duration = Duration::from_secs(10);

/// The name of polkit on the bus, its object and its interface.
const NAME: &str = "org.freedesktop.PolicyKit1";
const PATH: &str = "/org/freedesktop/PolicyKit1/Authority";
const INTERFACE: &str = "org.freedesktop.PolicyKit1.Authority";

/// CheckAuthorization without AllowUserInteraction.
const NO_INTERACTION: u32 = 0;

/// The process that wants to do something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PolkitSubject {
    /// Its number.
    pub pid: u32,
    /// Its start in clock ticks since boot: no later process that got its number is meant.
    pub start: u64,
    /// Its user: not one that it becomes by executing a program meanwhile.
    pub uid: u32,
}

/// Why a process may not do something.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PolkitRefusal {
    /// The rules say no.
    Denied,
    /// The rules require a password.
    Challenge,
    /// There is no answer: no bus, no polkit, or an action that is not installed.
    NoAnswer(String),
}

impl fmt::Display for PolkitRefusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PolkitRefusal::Denied => write!(f, "polkit does not permit it"),
            PolkitRefusal::Challenge => {
                write!(f, "polkit requires a password, and none is asked for")
            }
            PolkitRefusal::NoAnswer(why) => write!(f, "polkit cannot be asked: {why}"),
        }
    }
}

impl std::error::Error for PolkitRefusal {}

/// The system bus, connected with the first question.
#[derive(Debug)]
pub struct Polkit {
    /// Another bus than the system's.
    address: Option<String>,
    patience: Duration,
    bus: Mutex<Option<Connection>>,
}

impl Default for Polkit {
    fn default() -> Polkit {
        Polkit { address: None, patience: PATIENCE, bus: Mutex::new(None) }
    }
}

impl Polkit {
    /// Whether polkit permits an action; waits at most 10 s for its answer.
    ///
    /// # Errors
    /// It does not, or does not answer.
    pub async fn check(&self, subject: PolkitSubject, action: &str) -> Result<(), PolkitRefusal> {
        let ask = async {
            let answer = self.ask(subject, action).await;
            answer.map_err(|e| Some(e.to_string()))
        };
        let too_long = async {
            Timer::after(self.patience).await;
            Err(None)
        };
        let no_answer = |why| Err(PolkitRefusal::NoAnswer(why));
        match or(ask, too_long).await {
            Ok((true, _)) => Ok(()),
            Ok((false, true)) => Err(PolkitRefusal::Challenge),
            Ok((false, false)) => Err(PolkitRefusal::Denied),
            Err(Some(why)) => no_answer(why),
            Err(None) => no_answer(format!("no answer within {:?}", self.patience)),
        }
    }

    /// Whether the subject is authorized, and whether a password might change that.
    async fn ask(&self, subject: PolkitSubject, action: &str) -> zbus::Result<(bool, bool)> {
        let PolkitSubject { pid, start, uid } = subject;
        // The type that polkit has for it.
        let uid = i32::from_ne_bytes(uid.to_ne_bytes());
        let of_process: HashMap<&str, Value<'_>> =
            HashMap::from([("pid", pid.into()), ("start-time", start.into()), ("uid", uid.into())]);
        let details: HashMap<&str, &str> = HashMap::new();
        let question = (("unix-process", of_process), action, details, NO_INTERACTION, "");
        let mut again = true;
        let answer = loop {
            let bus = self.connected().await?;
            let (name, interface) = (Some(NAME), Some(INTERFACE));
            match bus.call_method(name, PATH, interface, "CheckAuthorization", &question).await {
                // The bus has gone; there may be another.
                Err(zbus::Error::InputOutput(_)) if again => *self.bus.lock().await = None,
                answer => break answer?,
            }
            again = false;
        };
        let (authorized, challenge, _): (bool, bool, HashMap<String, String>) =
            answer.body().deserialize()?;
        Ok((authorized, challenge))
    }

    /// One connection for all questions: root's number of them is limited.
    async fn connected(&self) -> zbus::Result<Connection> {
        let mut bus = self.bus.lock().await;
        if let Some(bus) = &*bus {
            return Ok(bus.clone());
        }
        let builder = match &self.address {
            Some(address) => connection::Builder::address(address.as_str())?,
            None => connection::Builder::system()?,
        };
        Ok(bus.insert(builder.build().await?).clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::net::UnixListener;

    fn ask(address: &str) -> Result<(), PolkitRefusal> {
        let polkit = Polkit {
            address: Some(address.to_owned()),
            patience: Duration::from_millis(50),
            ..Polkit::default()
        };
        let subject = PolkitSubject { pid: 1, start: 0, uid: 0 };
        async_io::block_on(polkit.check(subject, "io.punctual.reserve"))
    }

    #[test]
    fn a_bus_that_is_not_there_or_does_not_answer_is_a_refusal_with_the_reason() {
        let folder = tempfile::tempdir().expect("a folder");
        let socket = folder.path().join("bus");
        let address = format!("unix:path={}", socket.display());
        let Err(PolkitRefusal::NoAnswer(why)) = ask(&address) else { panic!("there is no bus") };
        assert!(why.contains("No such file"), "{why}");
        // It accepts by its backlog, and says nothing.
        let _silent = UnixListener::bind(&socket).expect("a socket");
        let refusal = ask(&address).expect_err("there is no bus");
        assert_eq!(refusal.to_string(), "polkit cannot be asked: no answer within 50ms");
    }
}
