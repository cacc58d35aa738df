//! What clients change of reservations that they have.

use std::sync::PoisonError;

use punctual_service::{ReservationChange, ServiceError};

use super::{Lease, Reservations};
use crate::domain::{unknown, Domain};

impl Reservations {
    /// Gives a reservation other values from its next release on.
    ///
    /// # Errors
    /// Not of this lease; more than the user may have, or not by a role; it does not fit; a value
    /// out of its range.
    pub fn change_values(
        &self,
        lease: &Lease,
        id: u64,
        change: &ReservationChange,
    ) -> Result<(), ServiceError> {
        let cpu = *lease.held.get(&id).ok_or_else(|| unknown(id))?;
        let access = self.access.read().unwrap_or_else(PoisonError::into_inner);
        access.check_role(&lease.caller, None)?;
        drop(access);
        let limit_ppm = self.limit_ppm(&lease.caller, cpu);
        let layout = self.layout();
        self.of_lease(lease, id, |domain| {
            domain.change(id, change, &lease.caller, limit_ppm, &layout)
        })
    }

    /// Suspends one reservation once more.
    ///
    /// # Errors
    /// Not of this lease, or what cannot be suspended.
    pub fn suspend(&self, lease: &Lease, id: u64) -> Result<(), ServiceError> {
        self.of_lease(lease, id, |domain| domain.suspend(id, lease.caller.process))
    }

    /// Takes back one suspension.
    ///
    /// # Errors
    /// Not of this lease, or not suspended.
    pub fn resume(&self, lease: &Lease, id: u64) -> Result<(), ServiceError> {
        self.of_lease(lease, id, |domain| domain.resume(id))
    }

    /// Changes the CPU of a lease's reservation.
    fn of_lease(
        &self,
        lease: &Lease,
        id: u64,
        change: impl FnOnce(&mut Domain) -> Result<(), ServiceError>,
    ) -> Result<(), ServiceError> {
        let cpu = *lease.held.get(&id).ok_or_else(|| unknown(id))?;
        let _changes = self.change();
        change(&mut *self.domain(cpu).ok_or_else(|| unknown(id))?)
    }
}
