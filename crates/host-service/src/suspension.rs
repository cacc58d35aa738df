//! Suspends and resumes a task by the service, which counts.

use punctual_diagnostic::Diagnostic;
use punctual_service::ServiceClient;

use crate::closed;
use crate::thread::{lock, SharedClient};

/// Suspends and resumes one task of the service. Its calls wait for answers of the service.
#[derive(Debug, Clone)]
pub struct ServiceSuspension {
    pub(crate) client: SharedClient,
    pub(crate) reservation: u64,
}

impl ServiceSuspension {
    /// Suspends the task once more.
    ///
    /// # Errors
    /// It has ended, or is one that cannot be suspended; the service schedules inside the kernel,
    /// or has ended.
    pub fn suspend(&self) -> Result<(), Diagnostic> {
        self.ask(ServiceClient::suspend)
    }

    /// Takes back one suspension.
    ///
    /// # Errors
    /// It is not suspended (EALREADY), or has ended; the service has ended.
    pub fn resume(&self) -> Result<(), Diagnostic> {
        self.ask(ServiceClient::resume)
    }

    fn ask(
        &self,
        call: fn(&mut ServiceClient, u64) -> Result<(), Diagnostic>,
    ) -> Result<(), Diagnostic> {
        call(lock(&self.client).as_mut().ok_or_else(closed)?, self.reservation)
    }
}
