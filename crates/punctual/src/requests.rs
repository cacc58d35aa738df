//! What the program asks of the supervisor.

use std::sync::mpsc::{channel, Sender};

use punctual_program_jobs::{Attribute, GroupJobs, JobEvents, TaskJobs};
use punctual_session::results::Results;
use punctual_session::ThreadEntry;
use punctual_taskset::{DomainId, TaskChange};

use crate::draft::Declared;
use crate::error::run_has_ended;
use crate::{Error, RunOutcome};

/// A request of the program. An answer whose receiver is gone is dropped.
pub(crate) enum Request {
    Add(Box<Declared>, Sender<Result<(), Error>>),
    /// The task at this place is to end.
    StopTask(usize, Sender<Result<(), Error>>),
    /// The task at this place gets other parameters.
    Change(usize, TaskChange, Sender<Result<(), Error>>),
    /// The task at this place is suspended once more, or one suspension taken back (`false`).
    Suspend(usize, bool, Sender<Result<(), Error>>),
    /// A thread of the program is to become a task on this CPU.
    PrepareEntry(DomainId, Sender<Result<ThreadEntry, Error>>),
    /// What adds jobs to the task at this place.
    TaskJobs(usize, Sender<Result<TaskJobs, Error>>),
    /// The ends of those jobs.
    JobEvents(Sender<Result<JobEvents, Error>>),
    /// What adds jobs of the program's groups.
    GroupJobs(Option<usize>, Sender<Result<GroupJobs, Error>>),
    /// The order of a group of such tasks.
    OrderJobs(Option<usize>, Vec<Attribute>, Sender<Result<(), Error>>),
    WhenDone(Sender<()>),
    Results(Sender<Results>),
    Alive(Sender<Vec<String>>),
    Stop(Sender<Result<RunOutcome, Error>>),
}

/// Sends a request to a supervisor and waits for its answer.
pub(crate) fn ask<T>(
    requests: &Sender<Request>,
    request: impl FnOnce(Sender<T>) -> Request,
) -> Result<T, Error> {
    let (answer, is_answered) = channel();
    requests.send(request(answer)).map_err(|_| run_has_ended())?;
    is_answered.recv().map_err(|_| run_has_ended())
}
