//! Jobs: added, read, charged, ended.

use crate::{checked, ffi, Dispatcher, Job, JobId, Refusal, Standing, TaskId};

impl Dispatcher {
    /// Adds a job; one without budget, or with its finish past, ends at once.
    ///
    /// # Errors
    /// [`Refusal::Nothing`] for a task or budget group that is not there, [`Refusal::Invalid`],
    /// [`Refusal::Tree`], [`Refusal::Full`].
    pub fn add_job(&mut self, job: &Job, now: u64) -> Result<JobId, Refusal> {
        // SAFETY: the draft is valid until the next call; this is the only reference to it.
        unsafe {
            *ffi::pd_job_draft(self.raw()) = job.into();
            let id = ffi::pd_job_add(self.raw(), now);
            u64::try_from(id).map(JobId).map_err(|_| Refusal::from_raw(id))
        }
    }

    /// Takes a job back.
    pub fn cancel_job(&mut self, job: JobId, now: u64) -> Result<(), Refusal> {
        // SAFETY: as above.
        checked(unsafe { ffi::pd_job_cancel(self.raw(), job.0, now) }).map(drop)
    }

    /// Ends a job as completed.
    pub fn complete_job(&mut self, job: JobId, now: u64) -> Result<(), Refusal> {
        // SAFETY: as above.
        checked(unsafe { ffi::pd_job_complete(self.raw(), job.0, now) }).map(drop)
    }

    /// The remaining budget of a job, ns; 0 when it has ended.
    pub fn remaining(&self, job: JobId) -> u64 {
        // SAFETY: as above; this one only reads.
        unsafe { ffi::pd_job_remaining(self.raw.as_ptr(), job.0) }
    }

    /// What a job has executed so far, ns; 0 when it has ended.
    pub fn used(&self, job: JobId) -> u64 {
        // SAFETY: as above; this one only reads.
        unsafe { ffi::pd_job_used(self.raw.as_ptr(), job.0) }
    }

    /// What a job does; `None` when it has ended.
    pub fn standing(&self, job: JobId) -> Option<Standing> {
        // SAFETY: as above; this one only reads.
        Standing::from_raw(unsafe { ffi::pd_job_standing(self.raw.as_ptr(), job.0) }.into())
    }

    /// What a job may execute before its own budget, that of a server job on its path, or a segment
    /// above one of them ends, ns; 0 when it has ended.
    pub fn allowance(&self, job: JobId) -> u64 {
        // SAFETY: as above; the call may cache its result, and `Dispatcher` is not `Sync`.
        unsafe { ffi::pd_job_allowance(self.raw.as_ptr(), job.0) }
    }

    /// The job that [`Dispatcher::charge_task`] would charge.
    pub fn job_of_task(&self, task: TaskId) -> Option<JobId> {
        // SAFETY: as above; the call may cache its result, and `Dispatcher` is not `Sync`.
        let id = unsafe { ffi::pd_task_job(self.raw.as_ptr(), task.0) };
        (id != 0).then_some(JobId(id))
    }

    /// The task that a job executes: its own, or the one to which that lends in the end; `None`
    /// when it has ended or is no task's.
    pub fn task_of(&self, job: JobId) -> Option<TaskId> {
        // SAFETY: as above; this one only reads.
        let task = unsafe { ffi::pd_job_task(self.raw.as_ptr(), job.0) };
        (task != u32::MAX).then_some(TaskId(task))
    }

    /// The task whose job it is, and whose budget it has; `None` as of [`Dispatcher::task_of`].
    pub fn owner_of(&self, job: JobId) -> Option<TaskId> {
        // SAFETY: as above; this one only reads.
        let task = unsafe { ffi::pd_job_owner(self.raw.as_ptr(), job.0) };
        (task != u32::MAX).then_some(TaskId(task))
    }

    /// Charges what a task executed, ns: to the best job of it and of those that lend to it, or,
    /// without one, to its reservation as enforcement error. True when the job's budget is used up.
    pub fn charge_task(&mut self, task: TaskId, ran: u64, now: u64) -> Result<bool, Refusal> {
        // SAFETY: as above.
        checked(unsafe { ffi::pd_charge_task(self.raw(), task.0, ran, now) }).map(|code| code == 1)
    }

    /// Charges a job, ns. True when its budget is used up.
    pub fn charge_job(&mut self, job: JobId, ran: u64, now: u64) -> Result<bool, Refusal> {
        // SAFETY: as above.
        checked(unsafe { ffi::pd_charge(self.raw(), job.0, ran, now) }).map(|code| code == 1)
    }
}
