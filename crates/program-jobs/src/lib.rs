//! Jobs that the program adds to its tasks and groups while a set runs: the handles by which it
//! does so ([`TaskJobs`], [`GroupJobs`], [`JobEvents`]), and the ends of the host that executes the
//! set.
//!
//! ```text
//!   program                                           thread that executes the policies
//!   TaskJobs, GroupJobs ──requests, by rings──┐
//!                        └──JobDoorbell──────>│ TaskRequests, GroupRequests::execute
//!   JobEvents <──ends of jobs, by a ring──────┘ JobEventSender
//! ```
//!
//! A request is answered by an event and not by waiting: its sender may be a task of the same CPU,
//! or have a budget to keep. What can be said at once, such as a budget beyond the task's, is the
//! call's error. Nothing here allocates after set-up, nor locks.

mod group_jobs;
mod job_events;
mod order;
mod refusals;
mod task_jobs;

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use punctual_policies::JOBS;
use punctual_taskset::{DomainId, TaskSet, TaskSpec};

pub use group_jobs::{group_requests, GroupJobs, GroupRequestSender, GroupRequests};
pub use job_events::{AddedJobEnd, JobEvent, JobEventRings, JobEventSender, JobEvents, NoEvent};
pub use order::JobOrder;
pub use refusals::{check_takes_jobs, check_task_takes_jobs, events_taken, jobs_taken};
pub use task_jobs::{task_jobs, JobRequest, TaskJobs, TaskRequests};

pub use punctual_dispatcher::Attribute;
pub use punctual_policies::{JobParams, JobPlace, JobRefusal, ProgramGroups};

/// Wakes the thread that takes the program's requests.
pub trait JobDoorbell: fmt::Debug + Send + Sync {
    /// There is a request. Real-time safe.
    fn note_jobs(&self);

    /// The thread is to end, or has: it takes no request any more. Real-time safe.
    fn is_over(&self) -> bool;
}

/// Why a request was not sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JobError {
    /// 16 requests of the task wait for the dispatcher.
    Full,
    /// The finish is not after the start, or more than a period after it.
    Invalid,
    /// The budget is more than the task's.
    Quota,
    /// The task has ended, or the run.
    Over,
}

impl JobError {
    /// EAGAIN, EINVAL, EDQUOT, ECANCELED.
    #[must_use]
    pub fn errno(self) -> i32 {
        match self {
            JobError::Full => libc::EAGAIN,
            JobError::Invalid => libc::EINVAL,
            JobError::Quota => libc::EDQUOT,
            JobError::Over => libc::ECANCELED,
        }
    }
}

impl fmt::Display for JobError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Full => "16 requests of this task wait for the dispatcher: add fewer at a time",
            Self::Invalid => "the finish of a job is after its start, and within a period of it",
            Self::Quota => "the budget of a job is at most that of its task",
            Self::Over => "the task has ended, or the run",
        })
    }
}

impl std::error::Error for JobError {}

/// Numbers a job that the program adds.
fn next_id() -> u64 {
    static IDS: AtomicU64 = AtomicU64::new(1);
    IDS.fetch_add(1, Relaxed)
}

/// Whether the program adds the jobs of a task.
#[must_use]
pub fn takes_jobs(set: &TaskSet, spec: &TaskSpec) -> bool {
    group_takes_jobs(set, spec.group)
}

/// Whether the program adds the jobs of some task of the set, or may.
#[must_use]
pub fn has_jobs(set: &TaskSet) -> bool {
    set.domain_ids().any(|domain| domain_has_jobs(set, domain))
}

/// Whether it adds the jobs of some task of this domain, or may. A task of the top group is of any
/// domain.
#[must_use]
pub fn domain_has_jobs(set: &TaskSet, domain: DomainId) -> bool {
    let groups = set.groups.iter().enumerate().filter(|(_, group)| group.domain == domain);
    groups.map(|(group, _)| Some(group)).chain([None]).any(|group| group_takes_jobs(set, group))
}

fn group_takes_jobs(set: &TaskSet, group: Option<usize>) -> bool {
    set.policy_of(group).name == JOBS.info.name
}
