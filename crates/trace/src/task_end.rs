//! How a task ended.

use std::fmt;
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;

/// How a task ended: of a command its first process, once all that it started are gone too.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TaskEnd {
    /// Its thread returned.
    Returned,
    /// Its thread panicked, with this message.
    Panicked(String),
    /// The run was over before its thread's first release.
    NeverReleased,
    /// It was ended with its run.
    Stopped,
    /// It exited with this code, 0 to 255.
    Exited(i32),
    /// This signal ended it.
    Signalled(i32),
    /// An adopted process ended. Only its parent can read how.
    Gone,
    /// The dispatcher refused it.
    Refused,
}

impl std::error::Error for TaskEnd {}

impl From<ExitStatus> for TaskEnd {
    fn from(status: ExitStatus) -> TaskEnd {
        match (status.code(), status.signal()) {
            (Some(code), _) => TaskEnd::Exited(code),
            (_, Some(signal)) => TaskEnd::Signalled(signal),
            _ => TaskEnd::Gone,
        }
    }
}

impl fmt::Display for TaskEnd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TaskEnd::Returned => f.write_str("returned"),
            TaskEnd::Panicked(message) => write!(f, "panicked: {message}"),
            TaskEnd::NeverReleased => f.write_str("was never released"),
            TaskEnd::Stopped => f.write_str("was ended with its run"),
            TaskEnd::Exited(code) => write!(f, "exited with {code}"),
            TaskEnd::Signalled(signal) => write!(f, "ended by signal {signal}"),
            TaskEnd::Gone => f.write_str("ended"),
            TaskEnd::Refused => f.write_str("was refused"),
        }
    }
}
