//! Why a call is refused, in the two kinds that RealtimeKit's clients know.

use punctual_service::ServiceError;
use zbus::fdo;

/// A refusal; nothing was changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CallRefusal {
    /// The caller may not have this: org.freedesktop.DBus.Error.AccessDenied.
    Denied(String),
    /// Any other reason: org.freedesktop.DBus.Error.Failed.
    Failed(String),
}

impl From<ServiceError> for CallRefusal {
    fn from(error: ServiceError) -> CallRefusal {
        match error {
            ServiceError::NotPermitted { cause, help }
            | ServiceError::NotAdmitted { cause, help } => {
                CallRefusal::Denied(format!("{cause}; {help}"))
            }
            ServiceError::InvalidRequest { cause, help }
            | ServiceError::NotSuspended { cause, help }
            | ServiceError::MachineRefused { cause, help } => {
                CallRefusal::Failed(format!("{cause}; {help}"))
            }
        }
    }
}

impl From<CallRefusal> for fdo::Error {
    fn from(refusal: CallRefusal) -> fdo::Error {
        match refusal {
            CallRefusal::Denied(cause) => fdo::Error::AccessDenied(cause),
            CallRefusal::Failed(cause) => fdo::Error::Failed(cause),
        }
    }
}
