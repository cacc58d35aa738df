//! The one error of the library.

use punctual_analysis::Refusal;
use punctual_host_user::HostError;

/// Who has to act on an [`Error`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ErrorKind {
    /// What was asked for is wrong: a time out of its range, a name given twice, no such process.
    Usage,
    /// The budgets do not fit on a CPU.
    NotAdmitted,
    /// The machine does not permit it: privileges, kernel, a CPU that another dispatcher has.
    Machine,
}

/// What is in the way, and what to do about it. Nothing is left started or changed by what failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{cause}; {cure}")]
#[non_exhaustive]
pub struct Error {
    /// Who has to act.
    pub kind: ErrorKind,
    /// What is in the way, with the names and numbers of this case.
    pub cause: String,
    /// What to do about it, as exactly as can be said.
    pub cure: String,
}

impl Error {
    /// The exit code that the command `punctual` has for it: 2 usage, 3 not admitted, 4 the machine.
    #[must_use]
    pub fn exit_code(&self) -> i32 {
        match self.kind {
            ErrorKind::Usage => 2,
            ErrorKind::NotAdmitted => 3,
            ErrorKind::Machine => 4,
        }
    }

    pub(crate) fn usage(cause: impl Into<String>, cure: impl Into<String>) -> Error {
        Error { kind: ErrorKind::Usage, cause: cause.into(), cure: cure.into() }
    }

    pub(crate) fn machine(cause: impl Into<String>, cure: impl Into<String>) -> Error {
        Error { kind: ErrorKind::Machine, cause: cause.into(), cure: cure.into() }
    }

    /// The thread that looks after the run is gone: it panicked, which is our fault.
    pub(crate) fn ended() -> Error {
        Error::machine("this run has ended", "start another")
    }
}

impl From<HostError> for Error {
    fn from(e: HostError) -> Error {
        let kind = match e.exit_code {
            2 => ErrorKind::Usage,
            3 => ErrorKind::NotAdmitted,
            _ => ErrorKind::Machine,
        };
        Error { kind, cause: e.cause, cure: e.cure }
    }
}

impl From<Refusal> for Error {
    /// The cause and the cure of every CPU that is too full.
    fn from(refusal: Refusal) -> Error {
        let join = |each: Vec<String>| each.join("\n");
        Error {
            kind: ErrorKind::NotAdmitted,
            cause: join(refusal.over.iter().map(punctual_analysis::CpuRefusal::cause).collect()),
            cure: join(refusal.over.iter().map(|over| over.help.to_string()).collect()),
        }
    }
}
