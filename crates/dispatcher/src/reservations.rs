//! Reservations: the dispatcher's own periodic allocator.

use crate::{checked, ffi, Dispatcher, JobId, Refusal, Reservation, ReservationId};

impl Dispatcher {
    /// A periodic reservation, from its first release on, with the windows that were drafted
    /// ([`Dispatcher::draft_window`]); after a refusal they are still there.
    ///
    /// # Errors
    /// [`Refusal::Invalid`] unless 0 < budget <= deadline <= period < 2^62, and for windows that
    /// end after the deadline, are for no task, or go with the wake-up rule; [`Refusal::Busy`] when
    /// the task has one.
    pub fn add_reservation(&mut self, r: &Reservation, now: u64) -> Result<ReservationId, Refusal> {
        // SAFETY: the draft is valid until the next call; this is the only reference to it.
        let n = unsafe {
            *ffi::pd_reservation_draft(self.raw()) = r.into();
            ffi::pd_reservation_add(self.raw(), now)
        };
        u32::try_from(n).map(ReservationId).map_err(|_| Refusal::from_raw(n))
    }

    /// Another period, budget, deadline, priority, overrun policy, wake-up rule, cookie, group and
    /// windows (those that were drafted), from the next release on; the rest of `to` means nothing.
    ///
    /// # Errors
    /// As of [`Dispatcher::add_reservation`].
    pub fn change_reservation(
        &mut self,
        r: ReservationId,
        to: &Reservation,
        now: u64,
    ) -> Result<(), Refusal> {
        // SAFETY: as above.
        unsafe {
            *ffi::pd_reservation_draft(self.raw()) = to.into();
            checked(ffi::pd_reservation_change(self.raw(), r.0, now)).map(drop)
        }
    }

    /// Ends a reservation, and its current job as cancelled.
    pub fn remove_reservation(&mut self, r: ReservationId, now: u64) -> Result<(), Refusal> {
        // SAFETY: as above.
        checked(unsafe { ffi::pd_reservation_remove(self.raw(), r.0, now) }).map(drop)
    }

    /// Releases that the task's last `wait_period` missed; asking resets it.
    pub fn take_lost(&mut self, r: ReservationId) -> u32 {
        // SAFETY: as above.
        unsafe { ffi::pd_reservation_take_lost(self.raw(), r.0) }
    }

    /// The reservation's current job; `None` between two.
    pub fn job_of(&self, r: ReservationId) -> Option<JobId> {
        // SAFETY: as above; this one only reads.
        let id = unsafe { ffi::pd_reservation_job(self.raw.as_ptr(), r.0) };
        (id != 0).then_some(JobId(id))
    }

    /// Waits that are due from releases gone by.
    pub fn delayed(&self, r: ReservationId) -> u32 {
        // SAFETY: as above; this one only reads.
        unsafe { ffi::pd_reservation_delayed(self.raw.as_ptr(), r.0) }
    }

    /// Enforcement error, ns, that is still to be settled by the budgets of releases: positive when
    /// too much was executed. At most one budget either way.
    pub fn enforcement_error(&self, r: ReservationId) -> i64 {
        // SAFETY: as above; this one only reads.
        unsafe { ffi::pd_reservation_error(self.raw.as_ptr(), r.0) }
    }
}

/// What the next release of a task with this budget settles of an enforcement error, ns, with its
/// sign: the release gets the budget less that. For allocators that carry the errors of the jobs
/// that they add; reservations settle theirs by themselves (docs/model.md, "Enforcement error").
pub fn error_settled(budget: u64, error: i64) -> i64 {
    // SAFETY: two numbers in, one out, and nothing else is read.
    unsafe { ffi::pd_error_settled(budget, error) }
}
