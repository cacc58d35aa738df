//! Suspends and resumes a task by the service, which counts.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::SeqCst};
use std::sync::Arc;

use punctual_diagnostic::Diagnostic;
use punctual_service::ServiceClient;

use crate::closed;
use crate::thread::{lock, SharedClient};

/// The reservation that a task has, which may become another one.
#[derive(Debug)]
pub(crate) struct CurrentReservation {
    /// By its connection's lock.
    id: AtomicU64,
    suspensions: AtomicU32,
}

impl CurrentReservation {
    pub fn new(id: u64) -> Arc<CurrentReservation> {
        Arc::new(CurrentReservation { id: id.into(), suspensions: AtomicU32::new(0) })
    }

    pub fn id(&self) -> u64 {
        self.id.load(SeqCst)
    }

    /// It is this one now, which is suspended as often as the one before.
    pub fn set(&self, id: u64, client: &mut ServiceClient) -> Result<(), Diagnostic> {
        self.id.store(id, SeqCst);
        (0..self.suspensions.load(SeqCst)).try_for_each(|_| client.suspend(id))
    }

    pub fn suspend(&self, client: &mut ServiceClient) -> Result<(), Diagnostic> {
        client.suspend(self.id())?;
        self.suspensions.fetch_add(1, SeqCst);
        Ok(())
    }

    fn resume(&self, client: &mut ServiceClient) -> Result<(), Diagnostic> {
        client.resume(self.id())?;
        self.suspensions.fetch_sub(1, SeqCst);
        Ok(())
    }
}

/// Suspends and resumes one task of the service. Its calls wait for answers of the service.
#[derive(Debug, Clone)]
pub struct ServiceSuspension {
    pub(crate) client: SharedClient,
    pub(crate) reservation: Arc<CurrentReservation>,
}

impl ServiceSuspension {
    /// Suspends the task once more.
    ///
    /// # Errors
    /// It has ended, or is one that cannot be suspended; the service has ended.
    pub fn suspend(&self) -> Result<(), Diagnostic> {
        self.reservation.suspend(lock(&self.client).as_mut().ok_or_else(closed)?)
    }

    /// Takes back one suspension.
    ///
    /// # Errors
    /// It is not suspended (EALREADY), or has ended; the service has ended.
    pub fn resume(&self) -> Result<(), Diagnostic> {
        self.reservation.resume(lock(&self.client).as_mut().ok_or_else(closed)?)
    }
}
