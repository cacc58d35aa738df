//! Jobs of groups that the program replenishes itself ([`ProgramGroups`]): requests, over a ring of
//! fixed size, answered by events as those for tasks are.

use std::fmt;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{Acquire, Release};
use std::sync::Arc;

use punctual_diagnostic::Diagnostic;
use punctual_dispatcher::{Attribute, For};
use punctual_policies::{
    Allocators, GroupJob, Gsi, JobParams, JobPlace, ProgramGroups, ReleaseEvent,
};
use punctual_sys::memory::touched_ring;
use punctual_taskset::TaskSet;
use rtrb::{Consumer, Producer};

use crate::job_events::{JobEvent, JobEventSender};
use crate::order::JobOrder;
use crate::{jobs_taken, next_id, JobDoorbell, JobError};

/// Requests that the host has not taken: it takes all at its next instant.
const REQUESTS: usize = 64;

#[derive(Clone, Copy, Debug)]
enum GroupRequest {
    Add(GroupJob),
    /// `None` fills the ring at first.
    Order(u32, Option<JobOrder>),
}

/// Adds jobs of the program's own groups, which have numbers from 1. Any thread may have it, one at
/// a time. Its methods neither allocate nor lock.
pub struct GroupJobs {
    requests: Producer<GroupRequest>,
    /// Of this.
    sent: u64,
    /// Requests whose events were sent.
    executed: Arc<AtomicU64>,
    doorbell: Arc<dyn JobDoorbell>,
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
        let order = JobOrder::new(by).ok_or(JobError::Invalid)?;
        self.send(GroupRequest::Order(number, Some(order)))
    }

    /// All requests so far were executed, and the events of those that were refused can be read:
    /// to be asked before events are looked for.
    #[must_use]
    pub fn are_executed(&self) -> bool {
        self.executed.load(Acquire) == self.sent
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
        if self.doorbell.is_over() {
            return Err(JobError::Over);
        }
        self.requests.push(request).map_err(|_| JobError::Full)?;
        self.sent += 1;
        self.doorbell.note_jobs();
        Ok(())
    }
}

impl fmt::Debug for GroupJobs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GroupJobs").field("groups", &self.groups).finish_non_exhaustive()
    }
}

/// The program's end of the requests of a CPU, until a part of the program has it.
#[derive(Debug)]
pub struct GroupRequestSender {
    requests: Option<Producer<GroupRequest>>,
    executed: Arc<AtomicU64>,
    groups: ProgramGroups,
}

impl GroupRequestSender {
    /// What adds jobs of the program's groups on the CPU of this group of the set (`None`: the top
    /// one), which takes jobs of the program; once.
    ///
    /// # Errors
    /// There are no such groups; it was taken before (EBUSY).
    pub fn take(
        &mut self,
        set: &TaskSet,
        group: Option<usize>,
        doorbell: Arc<dyn JobDoorbell>,
    ) -> Result<GroupJobs, Diagnostic> {
        let groups = self.groups;
        if groups == ProgramGroups::default() {
            let cause = "the set has no groups of the program";
            return Err(Diagnostic::usage(cause, "declare it with some"));
        }
        let top = group.map_or(0, |group| group as u32 + 1);
        let before = (set.groups.len() as u32, set.budget_groups.len() as u32);
        let requests = self.requests.take().ok_or_else(jobs_taken)?;
        let executed = self.executed.clone();
        Ok(GroupJobs { requests, sent: 0, executed, doorbell, groups, top, before })
    }
}

/// The requests for groups of a CPU, from its host's end.
#[derive(Debug)]
pub struct GroupRequests {
    requests: Consumer<GroupRequest>,
    taken: u64,
    executed: Arc<AtomicU64>,
}

/// Both ends of the requests of a CPU; the second one where the program has groups.
#[must_use]
pub fn group_requests(groups: ProgramGroups) -> (GroupRequestSender, Option<GroupRequests>) {
    let has_groups = groups != ProgramGroups::default();
    let ring = || touched_ring(REQUESTS, || GroupRequest::Order(0, None));
    let (requests, received) = has_groups.then(ring).unzip();
    let executed = Arc::new(AtomicU64::new(0));
    let sender = GroupRequestSender { requests, executed: executed.clone(), groups };
    (sender, received.map(|requests| GroupRequests { requests, taken: 0, executed }))
}

impl GroupRequests {
    /// Calls of [`execute_next`](GroupRequests::execute_next) in one look: requests that come
    /// meanwhile ring again.
    pub const MOST: usize = REQUESTS + 1;

    /// Executes the next request, if there is one: before those for the tasks in the groups. A
    /// refusal is an event. The events of the requests before it were sent. Real-time safe.
    pub fn execute_next(
        &mut self,
        allocators: &mut Allocators,
        gsi: &mut dyn Gsi,
        events: Option<&mut JobEventSender>,
        report: &mut dyn FnMut(ReleaseEvent),
    ) -> bool {
        self.executed.store(self.taken, Release);
        let Ok(request) = self.requests.pop() else { return false };
        self.taken += 1;
        match request {
            GroupRequest::Add(job) => {
                if let Err(why) = allocators.add_group_job(gsi, &job, report) {
                    let refused = JobEvent::refused_of_group(&job, why, gsi.now());
                    events.into_iter().for_each(|events| events.send(refused));
                }
            }
            GroupRequest::Order(group, order) => {
                if let Some(order) = order {
                    // One of the program's groups, and each attribute once.
                    let _ = allocators.set_order(gsi, group, order.attributes());
                }
            }
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use punctual_dispatcher::Dispatcher;
    use punctual_policies::{AllocatorOptions, LocalDispatcher, JOBS};
    use punctual_taskset::{DomainId, PolicySpec};

    use crate::{AddedJobEnd, JobEventRings, JobRefusal, NoEvent};

    #[derive(Debug)]
    struct Silent;

    impl JobDoorbell for Silent {
        fn note_jobs(&self) {}
        fn is_over(&self) -> bool {
            false
        }
    }

    #[test]
    fn requests_are_executed_once_the_events_of_refused_ones_are_there() {
        let set = TaskSet::without_tasks([0], PolicySpec::named(JOBS.info.name));
        let groups = ProgramGroups { scheduling: 2, budget: 0 };
        let (mut sender, requests) = group_requests(groups);
        let (mut requests, silent) = (requests.expect("there are groups"), Arc::new(Silent));
        let mut jobs = sender.take(&set, None, silent.clone()).expect("it is there");
        assert!(sender.take(&set, None, silent).is_err(), "once");
        let mut rings = JobEventRings::of(&set).expect("descriptors").expect("jobs");
        let mut events = rings.sender();
        let mut reader = JobEventRings::take_reader(Some(&mut rings)).expect("once");

        punctual_policies::register(&[&JOBS]).expect("there is no other policy of its name");
        let options = AllocatorOptions { program_groups: groups, ..AllocatorOptions::default() };
        let mut allocators = Allocators::with(&set, DomainId(0), options).expect("it is in order");
        let mut dispatcher = Dispatcher::new(allocators.limits()).expect("memory");
        let mut gsi = LocalDispatcher::new(&mut dispatcher, 0);
        allocators.begin(&mut gsi, 0).expect("room");
        let params = JobParams { start: 0, finish: u64::MAX, budget: 1, priority: 0 };
        let [inner, outer] = [1, 2].map(|group| jobs.place(group, 0).expect("it is there"));
        assert!(jobs.are_executed());
        jobs.serve(1, outer, &params, 7).expect("room");
        // In a circle.
        jobs.serve(2, inner, &params, 8).expect("room");
        let mut execute =
            || requests.execute_next(&mut allocators, &mut gsi, Some(&mut events), &mut |_| {});
        assert!(!jobs.are_executed());
        assert!(execute() && execute());
        // What the caller reports follows the call.
        assert!(!jobs.are_executed() && !execute() && jobs.are_executed());
        let event = reader.next(0).expect("one was refused");
        assert_eq!((event.cookie, event.end), (8, AddedJobEnd::Refused(JobRefusal::Tree)));
        assert_eq!(reader.next(0), Err(NoEvent::TimedOut));
    }
}
