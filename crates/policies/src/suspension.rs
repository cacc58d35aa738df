//! Tasks that are suspended by request: their releases come, and end at once as cancelled.

use punctual_dispatcher::{Refusal, ReservationId, TaskId};

use crate::slot::{Phase, Slot};
use crate::{Allocators, Gsi};

impl Allocators {
    /// Suspends a task with a reservation of its own: the release in flight ends as cancelled, and
    /// so does each one until [`resume`](Allocators::resume) as soon as it comes. The task's next
    /// return from `wait_period` reports them as lost.
    ///
    /// # Errors
    /// [`Refusal::Nothing`] for a task whose releases its policy makes job by job.
    pub fn suspend(&mut self, gsi: &mut dyn Gsi, task: TaskId) -> Result<(), Refusal> {
        let s = self.slot_of(task).ok_or(Refusal::Nothing)?;
        let slot = &mut self.slots[s];
        let Phase::Reserved(r) = slot.phase else { return Err(Refusal::Nothing) };
        slot.suspended = true;
        slot.lose_job(gsi, r);
        Ok(())
    }

    /// Resumes a task: it executes from its next release on.
    pub fn resume(&mut self, task: TaskId) {
        if let Some(s) = self.slot_of(task) {
            self.slots[s].suspended = false;
        }
    }
}

impl Slot {
    /// Cancels the job of its reservation, if there is one; the job's event ends the release.
    pub(crate) fn lose_job(&mut self, gsi: &mut dyn Gsi, r: ReservationId) {
        if let Some(job) = gsi.job_of(r) {
            self.lost = self.lost.saturating_add(1);
            self.cancelled = gsi.cancel_job(job).is_ok();
        }
    }
}
