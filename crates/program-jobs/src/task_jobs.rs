//! Jobs that the program adds to one task: requests, over a ring of fixed size.

use std::fmt;
use std::sync::Arc;

use punctual_dispatcher::{End, TaskId};
use punctual_policies::{AddedJob, Allocators, Gsi, JobParams, JobPlace, JobRefusal, ReleaseEvent};
use punctual_sys::memory::touched_ring;
use punctual_taskset::{TaskSpec, DURATION_LIMIT};
use rtrb::{Consumer, Producer};

use crate::job_events::{JobEvent, JobEventSender};
use crate::{next_id, JobDoorbell, JobError};

/// Requests of one task that its host has not taken: it takes all at its next instant.
const REQUESTS: usize = 16;

/// A request of the program for a task.
#[derive(Clone, Copy, Debug)]
pub enum JobRequest {
    /// Add a job.
    Add(AddedJob),
    /// Cancel the job of this number.
    Cancel(u64),
    /// Complete the job of this number, which is in flight.
    Complete(u64),
}

/// Adds jobs to one task, and cancels them. Any thread may have it, one at a time. Its methods
/// neither allocate nor lock.
pub struct TaskJobs {
    requests: Producer<JobRequest>,
    doorbell: Arc<dyn JobDoorbell>,
    period: u64,
    budget: u64,
}

impl TaskJobs {
    /// Adds a job, and returns its number, which its end has: one [`JobEvent`], also where the
    /// dispatcher refuses the job. `cookie` comes back with it.
    ///
    /// # Errors
    /// See [`JobError`]; there is no event then.
    pub fn add(&mut self, params: &JobParams, cookie: u64) -> Result<u64, JobError> {
        self.add_to(None, params, cookie)
    }

    /// The same in a group of the program ([`GroupJobs::place`](crate::GroupJobs::place)). In a
    /// budget group that has had no budget yet it ends as cancelled at its start.
    ///
    /// # Errors
    /// As of [`add`](TaskJobs::add).
    pub fn add_in(
        &mut self,
        place: JobPlace,
        params: &JobParams,
        cookie: u64,
    ) -> Result<u64, JobError> {
        self.add_to(Some(place), params, cookie)
    }

    fn add_to(
        &mut self,
        place: Option<JobPlace>,
        params: &JobParams,
        cookie: u64,
    ) -> Result<u64, JobError> {
        // A task that has whole periods is limited by none.
        let (longest, most) = match self.budget < self.period {
            true => (self.period, self.budget),
            false => (u64::MAX, DURATION_LIMIT),
        };
        let length = params.finish.checked_sub(params.start).filter(|&length| length > 0);
        if length.is_none_or(|length| length > longest) {
            return Err(JobError::Invalid);
        }
        if params.budget > most {
            return Err(JobError::Quota);
        }
        let id = next_id();
        self.send(JobRequest::Add(AddedJob { params: *params, place, id, cookie }))?;
        Ok(id)
    }

    /// Cancels a job, unless it has ended by then. Its event says which.
    ///
    /// # Errors
    /// [`JobError::Full`], [`JobError::Over`].
    pub fn cancel(&mut self, id: u64) -> Result<(), JobError> {
        self.send(JobRequest::Cancel(id))
    }

    /// Completes a job in place of its task, whose threads cannot call `wait_period`: those of
    /// another program. What is left of its budget is given up; it has to be in flight. The task
    /// executes nothing more before its next job, and its thread is to wait for that by itself.
    ///
    /// # Errors
    /// [`JobError::Full`], [`JobError::Over`].
    pub fn complete(&mut self, id: u64) -> Result<(), JobError> {
        self.send(JobRequest::Complete(id))
    }

    fn send(&mut self, request: JobRequest) -> Result<(), JobError> {
        if self.is_over() {
            return Err(JobError::Over);
        }
        self.requests.push(request).map_err(|_| JobError::Full)?;
        self.doorbell.note_jobs();
        // If that came meanwhile, nothing may take the request any more.
        if self.is_over() {
            return Err(JobError::Over);
        }
        Ok(())
    }

    /// The task has ended, or the run: no job can be added. Neither allocates nor locks.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.doorbell.is_over() || self.requests.is_abandoned()
    }
}

impl fmt::Debug for TaskJobs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TaskJobs")
            .field("period", &self.period)
            .field("budget", &self.budget)
            .finish_non_exhaustive()
    }
}

/// The requests of a task, from its host's end. Dropped, the task has ended for the program.
#[derive(Debug)]
pub struct TaskRequests(Consumer<JobRequest>);

/// Both ends of the requests of a task.
#[must_use]
pub fn task_jobs(spec: &TaskSpec, doorbell: Arc<dyn JobDoorbell>) -> (TaskJobs, TaskRequests) {
    let (requests, received) = touched_ring(REQUESTS, || JobRequest::Cancel(0));
    let (period, budget) = (spec.period, spec.budget);
    (TaskJobs { requests, doorbell, period, budget }, TaskRequests(received))
}

impl TaskRequests {
    /// Most that one look takes: those that come meanwhile ring again.
    pub const MOST: usize = REQUESTS;

    /// The next request. Real-time safe.
    pub fn take(&mut self) -> Option<JobRequest> {
        self.0.pop().ok()
    }

    /// Adds a job of the program to a task, or cancels one. A refusal is an event. Real-time safe.
    pub fn add(
        allocators: &mut Allocators,
        gsi: &mut dyn Gsi,
        (task, job): (TaskId, &AddedJob),
        events: Option<&mut JobEventSender>,
        report: &mut dyn FnMut(ReleaseEvent),
    ) {
        if let Err(why) = allocators.add_job(gsi, task, job, report) {
            let refused = JobEvent::refused(job, why, gsi.now());
            events.into_iter().for_each(|events| events.send(refused));
        }
    }

    /// Ends the jobs that a task has not begun, before it is removed.
    pub fn end(
        &mut self,
        allocators: &mut Allocators,
        gsi: &mut dyn Gsi,
        task: TaskId,
        mut events: Option<&mut JobEventSender>,
    ) {
        let mut waiting = None;
        allocators.end_waiting_job(gsi, task, End::TaskGone, &mut |event| waiting = Some(event));
        if let Some(events) = &mut events {
            waiting.iter().for_each(|event| events.send_end(event));
        }
        while let Some(request) = self.take() {
            if let (JobRequest::Add(job), Some(events)) = (request, &mut events) {
                events.send(JobEvent::refused(&job, JobRefusal::Nothing, gsi.now()));
            }
        }
    }

    /// Jobs among the requests that came after the task had left its host: they have no event.
    pub fn count_rest(&mut self) -> u64 {
        let rest = std::iter::from_fn(|| self.take());
        rest.filter(|request| matches!(request, JobRequest::Add(_))).count() as u64
    }
}
