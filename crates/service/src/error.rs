//! Refusals of the service.

use punctual_diagnostic::{Diagnostic, Kind};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};

/// The errno of tasks that are not suspended.
const NOT_SUSPENDED: i32 = Errno::ALREADY.raw_os_error();

/// Why the service refused a call; nothing was changed. Each has the cause and what helps.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "error", content = "parameters")]
pub enum ServiceError {
    /// The request is wrong: a value out of its range, an unknown process or reservation.
    #[serde(rename = "io.punctual.Service.InvalidRequest")]
    InvalidRequest {
        /// What is wrong.
        cause: String,
        /// What to do about it.
        help: String,
    },
    /// It is not suspended.
    #[serde(rename = "io.punctual.Service.NotSuspended")]
    NotSuspended {
        /// Which one.
        cause: String,
        /// What to do about it.
        help: String,
    },
    /// The budgets do not fit on the CPU.
    #[serde(rename = "io.punctual.Service.NotAdmitted")]
    NotAdmitted {
        /// Why.
        cause: String,
        /// The least change that would make them fit.
        help: String,
    },
    /// The caller's user may not have this.
    #[serde(rename = "io.punctual.Service.NotPermitted")]
    NotPermitted {
        /// What it may have.
        cause: String,
        /// What to do about it.
        help: String,
    },
    /// The machine does not permit it.
    #[serde(rename = "io.punctual.Service.MachineRefused")]
    MachineRefused {
        /// Why.
        cause: String,
        /// What to do about it.
        help: String,
    },
}

impl From<Diagnostic> for ServiceError {
    fn from(Diagnostic { kind, cause, help, errno, .. }: Diagnostic) -> ServiceError {
        match kind {
            _ if errno == Some(NOT_SUSPENDED) => ServiceError::NotSuspended { cause, help },
            Kind::NotAdmitted => ServiceError::NotAdmitted { cause, help },
            Kind::Usage | Kind::Command => ServiceError::InvalidRequest { cause, help },
            _ => ServiceError::MachineRefused { cause, help },
        }
    }
}

impl ServiceError {
    /// The refusal as its user sees it.
    #[must_use]
    pub fn diagnostic(self) -> Diagnostic {
        match self {
            ServiceError::InvalidRequest { cause, help } => Diagnostic::usage(cause, help),
            ServiceError::NotSuspended { cause, help } => {
                Diagnostic::usage(cause, help).with_errno(NOT_SUSPENDED)
            }
            ServiceError::NotAdmitted { cause, help } => Diagnostic::not_admitted(cause, help),
            ServiceError::NotPermitted { cause, help } => {
                Diagnostic::machine(cause, help).with_errno(Errno::PERM.raw_os_error())
            }
            ServiceError::MachineRefused { cause, help } => Diagnostic::machine(cause, help),
        }
    }
}
