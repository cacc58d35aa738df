//! Jobs of groups that a program adds (RED-Linux V-A and V-B): server jobs, on which a scheduling
//! group executes, and segments, budgets that a budget group has for a time.
//!
//! The groups are the program's own, beside those of the set: the program alone replenishes them,
//! and their members are tasks under [`JOBS`]. Their numbers follow those of the set. The first
//! server job of a group, and the first segment of a budget group, fix its parent.

use punctual_dispatcher::{End, For, Job, JobId, Refusal};

use crate::{Allocators, Gsi, JobParams, JobRefusal, ReleaseEvent, JOBS};

/// In the cookie of such a job, beside its place.
const OF_A_GROUP: u64 = 1 << 61;
/// Server jobs that a group has room for, and segments that a budget group has.
const AT_ONCE: u32 = 4;

/// Groups that a program replenishes by its own jobs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ProgramGroups {
    /// Scheduling groups.
    pub scheduling: u32,
    /// Budget groups.
    pub budget: u32,
}

impl ProgramGroups {
    /// Jobs that they have at one time, all together.
    pub(crate) fn jobs(self) -> u32 {
        AT_ONCE * (self.scheduling + self.budget)
    }
}

/// Where a job of the program stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct JobPlace {
    /// The scheduling group in which it competes: one under [`JOBS`]; 0 is the top one.
    pub group: u32,
    /// The budget group that limits it; 0: none.
    pub budget_group: u32,
}

/// A job of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GroupJob {
    /// [`For::Group`] or [`For::Budget`], of the program's own groups.
    pub serves: For,
    /// Of a segment: its group is 0.
    pub place: JobPlace,
    /// Its attributes.
    pub params: JobParams,
    /// Its number among all jobs that the program adds.
    pub id: u64,
    /// Comes back with its end.
    pub cookie: u64,
}

/// Such a job in the dispatcher.
#[derive(Clone, Copy, Debug)]
pub(crate) struct GroupJobInFlight {
    id: u64,
    cookie: u64,
    job: JobId,
    budget: u64,
}

/// The place of the job of a group that has this cookie in the dispatcher.
pub(crate) fn group_job(cookie: u64) -> Option<usize> {
    (cookie >> 61 == 1).then_some((cookie & !OF_A_GROUP) as usize)
}

impl Allocators {
    /// Adds a job of a group of the program. Its end is reported as [`ReleaseEvent::JobEnded`], of
    /// no task. Does not allocate.
    ///
    /// # Errors
    /// [`JobRefusal::Nothing`]: it serves no group of the program, competes in a group that takes
    /// no jobs of the program, or its budget group had no segment yet. [`JobRefusal::Invalid`]: its
    /// finish is not after its start. [`JobRefusal::Tree`]. [`JobRefusal::Full`].
    pub fn add_group_job(
        &mut self,
        gsi: &mut dyn Gsi,
        job: &GroupJob,
        report: &mut dyn FnMut(ReleaseEvent),
    ) -> Result<(), JobRefusal> {
        let GroupJob { serves, place, params, id, cookie } = *job;
        let own = match serves {
            For::Group(group) => group > self.set.groups.len() as u32 && self.is_group(group),
            For::Budget(node) => {
                let of_set = self.set.budget_groups.len() as u32;
                (of_set + 1..=of_set + self.options.program_groups.budget).contains(&node)
            }
            For::Task(_) => false,
        };
        if !own || !matches!(serves, For::Budget(_)) && !self.is_placed(place) {
            return Err(JobRefusal::Nothing);
        }
        if params.finish <= params.start {
            return Err(JobRefusal::Invalid);
        }
        let free = self.group_jobs.iter().position(Option::is_none).ok_or(JobRefusal::Full)?;
        let JobParams { start, finish, budget, priority } = params;
        let now = gsi.now();
        if budget == 0 || finish <= now {
            let end = if budget == 0 { End::Exhausted } else { End::Expired };
            report(ended(now, (id, cookie), end, 0, budget));
            return Ok(());
        }
        let JobPlace { group, budget_group } = place;
        let cookie_of_job = OF_A_GROUP | free as u64;
        let added = gsi.add_job(&Job {
            serves,
            start,
            finish,
            budget,
            priority,
            cookie: cookie_of_job,
            group,
            budget_group,
        });
        let job = added.map_err(|refusal| match refusal {
            Refusal::Full => JobRefusal::Full,
            Refusal::Tree => JobRefusal::Tree,
            Refusal::Nothing => JobRefusal::Nothing,
            Refusal::Invalid | Refusal::Busy => JobRefusal::Invalid,
        })?;
        self.group_jobs[free] = Some(GroupJobInFlight { id, cookie, job, budget });
        Ok(())
    }

    /// Whether jobs of the program may stand there.
    pub(crate) fn is_placed(&self, place: JobPlace) -> bool {
        self.is_group(place.group)
    }

    /// Whether it is a group whose jobs are the program's.
    fn is_group(&self, group: u32) -> bool {
        self.policy_of(group).is_some_and(|entry| std::ptr::eq(entry, &JOBS))
    }

    /// A job of a group has ended.
    pub(crate) fn group_job_ended(
        &mut self,
        place: usize,
        (at, end): (u64, End),
        (used, remaining): (u64, u64),
        report: &mut dyn FnMut(ReleaseEvent),
    ) {
        if let Some(job) = self.group_jobs.get_mut(place).and_then(Option::take) {
            report(ended(at, (job.id, job.cookie), end, used, remaining));
        }
    }

    /// Reports those that have ended while events were lost.
    pub(crate) fn resync_group_jobs(
        &mut self,
        gsi: &mut dyn Gsi,
        at: u64,
        report: &mut dyn FnMut(ReleaseEvent),
    ) {
        for place in &mut self.group_jobs {
            let gone = |job: &GroupJobInFlight| gsi.standing(job.job).is_none();
            if let Some(GroupJobInFlight { id, cookie, budget, .. }) = place.filter(gone) {
                *place = None;
                report(ended(at, (id, cookie), End::Cancelled, 0, budget));
            }
        }
    }
}

fn ended(at: u64, (id, cookie): (u64, u64), end: End, used: u64, remaining: u64) -> ReleaseEvent {
    ReleaseEvent::JobEnded { at, index: u32::MAX, id, cookie, end, used, remaining }
}
