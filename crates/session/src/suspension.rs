//! What suspends and resumes a task of a set that runs.

use std::sync::Arc;

use punctual_diagnostic::Diagnostic;
use punctual_host_service::ServiceSuspension;
use punctual_host_user::{Suspension, SuspensionError};

/// Suspends and resumes one task.
#[derive(Debug, Clone)]
pub enum TaskSuspension {
    /// Of the user host: neither allocates nor locks.
    User(Arc<Suspension>),
    /// Of the service: waits for its answer.
    Service(ServiceSuspension),
}

/// Why a task was neither suspended nor resumed.
#[derive(Debug)]
pub enum SuspensionRefusal {
    /// The user host's reason.
    User(SuspensionError),
    /// The service's.
    Service(Diagnostic),
}

impl TaskSuspension {
    /// Suspends the task once more.
    ///
    /// # Errors
    /// It has ended, or is one that cannot be suspended.
    pub fn suspend(&self) -> Result<(), SuspensionRefusal> {
        match self {
            Self::User(task) => task.suspend().map_err(SuspensionRefusal::User),
            Self::Service(task) => task.suspend().map_err(SuspensionRefusal::Service),
        }
    }

    /// Takes back one suspension.
    ///
    /// # Errors
    /// It has ended, or is not suspended.
    pub fn resume(&self) -> Result<(), SuspensionRefusal> {
        match self {
            Self::User(task) => task.resume().map_err(SuspensionRefusal::User),
            Self::Service(task) => task.resume().map_err(SuspensionRefusal::Service),
        }
    }
}
