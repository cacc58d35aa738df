//! The one error of this crate: what is in the way, and what to do about it.

use std::io;

/// Who has to act on a [`CustodyError`]; decides the exit code of the command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// What was asked for is wrong (a process that does not exist, a command that is not there): exit code 2.
    Usage,
    /// The machine does not permit it (privilege, kernel, set-up, a CPU in use): exit code 4.
    Machine,
}

/// Something that custody refused or could not do. `cause` and `cure` are whole phrases for people.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{cause}: {cure}")]
pub struct CustodyError {
    /// Who has to act.
    pub fault: Fault,
    /// What is in the way, with the names and numbers of this case.
    pub cause: String,
    /// What to do about it, as exactly as can be said.
    pub cure: String,
    /// The kernel's error number, when a system call was refused.
    pub errno: Option<i32>,
}

impl CustodyError {
    /// The command's exit code for this error (design.md, 5): 2 for bad usage, 4 for the machine.
    pub fn exit_code(&self) -> i32 {
        match self.fault {
            Fault::Usage => 2,
            Fault::Machine => 4,
        }
    }

    pub(crate) fn usage(cause: impl Into<String>, cure: impl Into<String>) -> Self {
        Self { fault: Fault::Usage, cause: cause.into(), cure: cure.into(), errno: None }
    }

    pub(crate) fn machine(cause: impl Into<String>, cure: impl Into<String>) -> Self {
        Self { fault: Fault::Machine, cause: cause.into(), cure: cure.into(), errno: None }
    }

    /// A refused system call: `what` could not be done, for the reason `error`.
    pub(crate) fn refused(what: impl AsRef<str>, error: impl Into<io::Error>, cure: impl Into<String>) -> Self {
        let error = error.into();
        Self {
            fault: Fault::Machine,
            cause: format!("{}: {error}", what.as_ref()),
            cure: cure.into(),
            errno: error.raw_os_error(),
        }
    }
}
