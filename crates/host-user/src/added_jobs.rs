//! Jobs that the program adds to its tasks: requests to the engine, over a ring of fixed size for
//! each task, and what the engine makes of them.
//!
//! A request is answered by an event (`job_events.rs`) and not by waiting: its sender may be a task
//! of the same CPU, or have a budget to keep. What can be said at once, such as a budget beyond the
//! task's, is the call's error.

use std::fmt;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::Arc;

use punctual_diagnostic::Diagnostic;
use punctual_dispatcher::{Attribute, End};
use punctual_policies::{
    AddedJob, JobParams, JobPlace, JobRefusal, LocalDispatcher, ReleaseEvent, JOBS,
};
use punctual_taskset::{TaskSet, TaskSpec, DURATION_LIMIT};
use rtrb::{Consumer, Producer};

use crate::command_ring::CommandSender;
use crate::doorbell::Doorbell;
use crate::engine::{Command, Engine};
use crate::host::Host;
use crate::job_events::{AddedJobEnd, JobEvent, JobEvents};
use crate::member::{Member, MemberKind};
use crate::reports::touched_ring;
use crate::start::EngineHandle;

/// Requests of one task that the engine has not taken: it takes all at its next instant.
const REQUESTS: usize = 16;

/// An ordering of a group, of one to four attributes.
pub(crate) type Order = ([Attribute; 4], usize);

/// A request of the program to the engine of a task.
#[derive(Clone, Copy)]
pub(crate) enum JobRequest {
    Add(AddedJob),
    Cancel(u64),
    Complete(u64),
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

/// Adds jobs to one task, and cancels them. Any thread may have it, one at a time. Its methods
/// neither allocate nor lock.
pub struct TaskJobs {
    requests: Producer<JobRequest>,
    doorbell: Arc<Doorbell>,
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
        self.doorbell.stop_requested() || self.requests.is_abandoned()
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

/// Numbers a job that the program adds.
pub(crate) fn next_id() -> u64 {
    static IDS: AtomicU64 = AtomicU64::new(1);
    IDS.fetch_add(1, Relaxed)
}

/// One to four attributes, each once; `None`: they are not.
pub(crate) fn order_of(by: &[Attribute]) -> Option<Order> {
    let twice = by.iter().enumerate().any(|(n, attribute)| by[..n].contains(attribute));
    let mut order: Order = ([Attribute::Priority; 4], by.len());
    if by.is_empty() || by.len() > order.0.len() || twice {
        return None;
    }
    order.0[..by.len()].copy_from_slice(by);
    Some(order)
}

/// Whether the program adds the jobs of a task.
pub(crate) fn takes_jobs(set: &TaskSet, spec: &TaskSpec) -> bool {
    set.policy_of(spec.group).name == JOBS.info.name
}

/// Whether the program adds the jobs of some task of the set, or may.
pub(crate) fn has_jobs(set: &TaskSet) -> bool {
    let groups = (0..set.groups.len()).map(Some).chain([None]);
    groups.into_iter().any(|group| set.policy_of(group).name == JOBS.info.name)
}

/// Both ends of the requests of a task.
pub(crate) fn channel(
    spec: &TaskSpec,
    doorbell: &Arc<Doorbell>,
) -> (TaskJobs, Consumer<JobRequest>) {
    let (requests, received) = touched_ring(REQUESTS, || JobRequest::Cancel(0));
    let (doorbell, period, budget) = (doorbell.clone(), spec.period, spec.budget);
    (TaskJobs { requests, doorbell, period, budget }, received)
}

impl Host {
    /// What adds jobs to a task under the policy `jobs`; once for each task.
    ///
    /// # Errors
    /// It has ended, is under another policy, or this was called for it before (EBUSY).
    pub fn task_jobs(&mut self, index: u32) -> Result<TaskJobs, Diagnostic> {
        let Some(task) = self.tasks.get_mut(&index) else {
            return Err(Diagnostic::usage("the task has ended", "add jobs to another one")
                .with_errno(libc::ESRCH));
        };
        if !task.takes_jobs {
            let cause = format!("the task is not under the policy \"{}\"", JOBS.info.name);
            return Err(Diagnostic::usage(cause, "put it into a group of that policy"));
        }
        task.jobs.take().ok_or_else(|| {
            Diagnostic::usage("another part of the program adds its jobs", "use that one")
                .with_errno(libc::EBUSY)
        })
    }

    /// The ends of all jobs that the program adds; once.
    ///
    /// # Errors
    /// No group is under the policy `jobs`, or this was called before (EBUSY).
    pub fn job_events(&mut self) -> Result<JobEvents, Diagnostic> {
        let Some(rings) = &mut self.job_events else {
            let cause = format!("no group is under the policy \"{}\"", JOBS.info.name);
            return Err(Diagnostic::usage(cause, "give one that policy"));
        };
        rings.reader().ok_or_else(|| {
            Diagnostic::usage("another part of the program reads the events", "use that one")
                .with_errno(libc::EBUSY)
        })
    }

    /// Orders a group (`None`: the top one) under the policy `jobs`, from now on.
    ///
    /// # Errors
    /// Another policy; not one to four attributes, each once; EAGAIN: too many changes wait
    /// for a dispatcher.
    pub fn order_jobs(&mut self, group: Option<usize>, by: &[Attribute]) -> Result<(), Diagnostic> {
        if self.set.policy_of(group).name != JOBS.info.name {
            let cause = format!("the group is not under the policy \"{}\"", JOBS.info.name);
            return Err(Diagnostic::usage(cause, "leave its order to its policy"));
        }
        let Some(order) = order_of(by) else {
            let cause = "an order has one to four attributes, each once";
            return Err(Diagnostic::usage(cause, "name the most important one first"));
        };
        let domain = group.map(|group| self.set.groups[group].domain);
        let number = group.map_or(0, |group| group as u32 + 1);
        let of_the_group = |engine: &EngineHandle| domain.is_none_or(|of| engine.domain == of);
        // All of them, or none.
        let engines = self.engines.iter().filter(|e| of_the_group(e));
        engines.map(|e| &e.commands).try_for_each(CommandSender::has_room_for_change)?;
        for engine in self.engines.iter_mut().filter(|e| of_the_group(e)) {
            engine.commands.send_change(Command::OrderJobs(number, order))?;
            engine.doorbell.ring();
        }
        Ok(())
    }
}

impl Host {
    /// Counts the jobs that were added after the task had left its engine.
    pub(crate) fn drop_requests(&mut self, member: &mut Member) {
        let rest = std::iter::from_fn(|| member.jobs.as_mut()?.pop().ok());
        let added = rest.filter(|request| matches!(request, JobRequest::Add(_))).count();
        self.job_events.iter().for_each(|events| events.count_dropped(added as u64));
    }
}

impl Engine {
    /// Takes the program's requests.
    pub(crate) fn process_jobs(&mut self, now: u64, late: u64) {
        if !self.doorbell.take_jobs() {
            return;
        }
        self.process_group_jobs(now, late);
        for i in 0..self.members.len() {
            // Those that come meanwhile ring again.
            for _ in 0..REQUESTS {
                let Some(request) = self.next_request(i) else { break };
                self.process_job(i, request, now);
                self.handle_release_events(now, late);
            }
            self.dismiss_waiting(i);
        }
    }

    fn next_request(&mut self, i: usize) -> Option<JobRequest> {
        self.members[i].as_deref_mut()?.jobs.as_mut()?.pop().ok()
    }

    fn process_job(&mut self, i: usize, request: JobRequest, now: u64) {
        let Engine { dispatcher, allocators, members, release_events, .. } = self;
        let Some(task) = members[i].as_deref().map(|m| m.task) else { return };
        let mut gsi = LocalDispatcher::new(dispatcher, now);
        let report = &mut |event| release_events.push(event);
        match request {
            JobRequest::Add(job) => {
                if let Err(why) = allocators.add_job(&mut gsi, task, &job, report) {
                    self.refuse_job(&job, why, now);
                }
            }
            // One that has ended has its event.
            JobRequest::Cancel(id) => {
                let _ = allocators.cancel_job(&mut gsi, task, id, report);
            }
            JobRequest::Complete(id) => {
                if allocators.job_in_flight(task) == Some(id) {
                    members[i].as_deref_mut().into_iter().for_each(|m| m.periods.waits());
                    let _ = allocators.done(dispatcher, task, now);
                }
            }
        }
    }

    fn refuse_job(&mut self, job: &AddedJob, why: JobRefusal, at: u64) {
        let AddedJob { id, cookie, params, .. } = *job;
        let end = AddedJobEnd::Refused(why);
        self.send_job_event(JobEvent { at, id, cookie, end, used: 0, remaining: params.budget });
    }

    /// Passes the end of a job on to the program; other events are not for it.
    pub(crate) fn job_ended(&mut self, event: &ReleaseEvent) {
        if let ReleaseEvent::JobEnded { at, id, cookie, end, used, remaining, .. } = *event {
            self.send_job_event(JobEvent { at, id, cookie, end: end.into(), used, remaining });
        }
    }

    pub(crate) fn send_job_event(&mut self, event: JobEvent) {
        if let Some(events) = &mut self.job_events {
            events.send(event);
        }
    }

    /// Ends the jobs that a task has not begun, before it is removed.
    pub(crate) fn end_added_jobs(&mut self, member: &mut Member, now: u64) {
        let Engine { dispatcher, allocators, .. } = self;
        let (mut gsi, mut waiting) = (LocalDispatcher::new(dispatcher, now), None);
        allocators.end_waiting_job(&mut gsi, member.task, End::TaskGone, &mut |event| {
            waiting = Some(event);
        });
        waiting.into_iter().for_each(|event| self.job_ended(&event));
        while let Some(Ok(request)) = member.jobs.as_mut().map(Consumer::pop) {
            if let JobRequest::Add(job) = request {
                self.refuse_job(&job, JobRefusal::Nothing, now);
            }
        }
    }

    /// Lets a thread go that was asked to end and waits for a job: no release may follow.
    pub(crate) fn dismiss_waiting(&mut self, i: usize) {
        let Some(m) = self.members[i].as_deref_mut() else { return };
        let MemberKind::Thread(control) = &m.kind else { return };
        if m.jobs.is_some() && m.waiting && control.over.load(Relaxed) {
            m.send_to_background();
        }
    }
}
