//! Jobs of groups that the program replenishes itself ([`ProgramGroups`]): requests to the engine,
//! over a ring of fixed size, answered by events as those for tasks are.

use std::fmt;
use std::sync::Arc;

use punctual_diagnostic::Diagnostic;
use punctual_dispatcher::{Attribute, For};
use punctual_policies::{GroupJob, JobParams, JobPlace, LocalDispatcher, ProgramGroups, JOBS};
use rtrb::{Consumer, Producer};

use crate::added_jobs::{next_id, order_of, JobError, Order};
use crate::doorbell::Doorbell;
use crate::engine::Engine;
use crate::host::Host;
use crate::job_events::{AddedJobEnd, JobEvent};
use crate::reports::touched_ring;

/// Requests that the engine has not taken: it takes all at its next instant.
const REQUESTS: usize = 64;

/// A request of the program to an engine.
#[derive(Clone, Copy)]
pub(crate) enum GroupRequest {
    Add(GroupJob),
    Order(u32, Order),
}

/// Adds jobs of the program's own groups, which have numbers from 1. Any thread may have it, one at
/// a time. Its methods neither allocate nor lock.
pub struct GroupJobs {
    requests: Producer<GroupRequest>,
    doorbell: Arc<Doorbell>,
    groups: ProgramGroups,
    /// The group in which those without another parent compete.
    top: u32,
    /// Numbers in the dispatcher before that of the first one: of scheduling and budget groups.
    before: (u32, u32),
}

impl GroupJobs {
    /// Where a job stands: in this scheduling group, 0 for the one for which this was made, limited
    /// by this budget group, 0 for none.
    ///
    /// # Errors
    /// [`JobError::Invalid`]: there is no such group.
    pub fn place(&self, group: u32, budget_group: u32) -> Result<JobPlace, JobError> {
        let ProgramGroups { scheduling, budget } = self.groups;
        if group > scheduling || budget_group > budget {
            return Err(JobError::Invalid);
        }
        let group = if group == 0 { self.top } else { self.before.0 + group };
        let budget_group = if budget_group == 0 { 0 } else { self.before.1 + budget_group };
        Ok(JobPlace { group, budget_group })
    }

    /// Adds a server job: on its budget, the members of `group` execute. The first one of a group
    /// fixes the group in which it competes. Returns its number, as `TaskJobs::add`.
    ///
    /// # Errors
    /// [`JobError::Invalid`]: there is no such group, or the finish is not after the start;
    /// [`JobError::Quota`], [`JobError::Full`], [`JobError::Over`].
    pub fn serve(
        &mut self,
        group: u32,
        place: JobPlace,
        params: &JobParams,
        cookie: u64,
    ) -> Result<u64, JobError> {
        let serves = self.place(group, 0)?.group;
        if group == 0 {
            return Err(JobError::Invalid);
        }
        self.add(For::Group(serves), place, params, cookie)
    }

    /// Adds a budget that `budget_group` has from its start to its finish. The first one fixes the
    /// budget group that limits it, 0 for none. Returns its number, as `TaskJobs::add`.
    ///
    /// # Errors
    /// As of [`serve`](GroupJobs::serve).
    pub fn supply(
        &mut self,
        budget_group: u32,
        limited_by: u32,
        params: &JobParams,
        cookie: u64,
    ) -> Result<u64, JobError> {
        let serves = self.place(0, budget_group)?.budget_group;
        let place = JobPlace { group: 0, ..self.place(0, limited_by)? };
        if budget_group == 0 {
            return Err(JobError::Invalid);
        }
        self.add(For::Budget(serves), place, params, cookie)
    }

    /// Orders the members of a group, 0 for the one for which this was made, by one to four
    /// attributes, each once, from now on.
    ///
    /// # Errors
    /// [`JobError::Invalid`], [`JobError::Full`], [`JobError::Over`].
    pub fn order(&mut self, group: u32, by: &[Attribute]) -> Result<(), JobError> {
        let number = self.place(group, 0)?.group;
        let order = order_of(by).ok_or(JobError::Invalid)?;
        self.send(GroupRequest::Order(number, order))
    }

    fn add(
        &mut self,
        serves: For,
        place: JobPlace,
        params: &JobParams,
        cookie: u64,
    ) -> Result<u64, JobError> {
        if params.finish <= params.start {
            return Err(JobError::Invalid);
        }
        if params.budget > punctual_taskset::DURATION_LIMIT {
            return Err(JobError::Quota);
        }
        let id = next_id();
        let job = GroupJob { serves, place, params: *params, id, cookie };
        self.send(GroupRequest::Add(job)).map(|()| id)
    }

    fn send(&mut self, request: GroupRequest) -> Result<(), JobError> {
        if self.doorbell.stop_requested() {
            return Err(JobError::Over);
        }
        self.requests.push(request).map_err(|_| JobError::Full)?;
        self.doorbell.note_jobs();
        Ok(())
    }
}

impl fmt::Debug for GroupJobs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GroupJobs").field("groups", &self.groups).finish_non_exhaustive()
    }
}

/// Both ends of the requests of an engine whose program has groups of its own.
pub(crate) fn channel(
    groups: ProgramGroups,
) -> (Option<Producer<GroupRequest>>, Option<Consumer<GroupRequest>>) {
    let filler = || GroupRequest::Order(0, ([Attribute::Priority; 4], 0));
    (groups != ProgramGroups::default()).then(|| touched_ring(REQUESTS, filler)).unzip()
}

impl Host {
    /// What adds jobs of the program's groups on the CPU of this group of the set (`None`: the top
    /// one, of a set on one CPU), which is under the policy `jobs`; once for each CPU.
    ///
    /// # Errors
    /// Another policy; there are no such groups; several CPUs; it was taken before (EBUSY).
    pub fn group_jobs(&mut self, group: Option<usize>) -> Result<GroupJobs, Diagnostic> {
        if self.set.policy_of(group).name != JOBS.info.name {
            let cause = format!("the group is not under the policy \"{}\"", JOBS.info.name);
            return Err(Diagnostic::usage(cause, "name one that is"));
        }
        let domain = group.map(|group| self.set.groups[group].domain);
        let groups = self.program_groups;
        let top = group.map_or(0, |group| group as u32 + 1);
        let before = (self.set.groups.len() as u32, self.set.budget_groups.len() as u32);
        let is_one = self.engines.len() == 1;
        let engine = self.engines.iter_mut().find(|e| domain.map_or(is_one, |of| e.domain == of));
        let engine = engine.ok_or_else(|| {
            Diagnostic::usage("the set has several CPUs", "name a group, which is of one of them")
        })?;
        let doorbell = engine.doorbell.clone();
        match engine.group_requests.take() {
            Some(requests) => Ok(GroupJobs { requests, doorbell, groups, top, before }),
            None if groups == ProgramGroups::default() => Err(Diagnostic::usage(
                "the set has no groups of the program",
                "declare it with some",
            )),
            None => Err(Diagnostic::usage("another part of the program has it", "use that one")
                .with_errno(libc::EBUSY)),
        }
    }
}

impl Engine {
    /// Takes the program's requests for its groups: before those for the tasks in them.
    pub(crate) fn process_group_jobs(&mut self, now: u64, late: u64) {
        for _ in 0..REQUESTS {
            let Some(Ok(request)) = self.group_requests.as_mut().map(Consumer::pop) else { return };
            let Engine { dispatcher, allocators, release_events, .. } = self;
            let mut gsi = LocalDispatcher::new(dispatcher, now);
            match request {
                GroupRequest::Add(job) => {
                    let report = &mut |event| release_events.push(event);
                    if let Err(why) = allocators.add_group_job(&mut gsi, &job, report) {
                        let GroupJob { id, cookie, params, .. } = job;
                        let (end, remaining) = (AddedJobEnd::Refused(why), params.budget);
                        let refused = JobEvent { at: now, id, cookie, end, used: 0, remaining };
                        self.send_job_event(refused);
                    }
                    self.handle_release_events(now, late);
                }
                GroupRequest::Order(group, (by, count)) => {
                    // One of the program's groups, and each attribute once.
                    let _ = allocators.set_order(&mut gsi, group, &by[..count]);
                }
            }
        }
    }
}
