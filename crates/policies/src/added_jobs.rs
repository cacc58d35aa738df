//! Jobs that a program adds to its tasks (RED-Linux IV-D.2: "the allocator could be part of the
//! application"). The policy of a group of such tasks is [`JOBS`]: it makes no release by itself.
//!
//! Each job is a release of its task: it comes at its start and ends as other releases do. A task
//! has one job at a time, which may wait for its start. What a task may execute is bounded as it
//! was admitted: the first job begins an *allotment* of the task's budget, which lasts for its
//! period from the start of that job. Jobs that start within share what the ones before left, and
//! the first one that starts later begins the next allotment. So a program chooses the order and
//! the parts, and takes no more from other tasks than a sporadic task of that period and budget.
//!
//! A task that was admitted with a whole period as its budget has no allotments: all that a job of
//! it can take was promised to it already.

use punctual_diagnostic::Diagnostic;
use punctual_dispatcher::{Attribute, End, Refusal, TaskId, INFINITE};
use punctual_taskset::{AdmissionTest, GroupDemand, MemberDemand, PolicyInfo};

use crate::entry::{PolicyEntry, Setup};
use crate::policy::{MemberParams, PolicyEvent, SchedulingPolicy};
use crate::slot::Phase;
use crate::{Allocators, Context, Gsi, JobParams, JobPlace, ReleaseEvent};

/// What is known of the policy. It is in no registry until a program that adds jobs registers it:
/// in a set that nothing adds jobs to, its tasks would never execute.
static INFO: PolicyInfo = PolicyInfo {
    name: "jobs",
    title: "jobs of the program",
    source: "RED-Linux IV-D and IV-E",
    limits: "each job within a period of its task, and within its budget",
    admission: AdmissionTest::Own(in_any_order),
    ..PolicyInfo::POLICY
};

/// The policy of tasks to which the program adds jobs ([`Allocators::add_job`]), the larger
/// priority first until [`Allocators::set_order`].
pub static JOBS: PolicyEntry =
    PolicyEntry { priority: |server| server.priority, ..PolicyEntry::new(&INFO, make) };

fn make(_: &'static PolicyEntry, _: &Setup<'_>) -> Result<Box<dyn SchedulingPolicy>, Diagnostic> {
    Ok(Box::new(Added))
}

/// Every job is the program's.
struct Added;

impl SchedulingPolicy for Added {
    fn paces(&self, _: &MemberParams) -> bool {
        true
    }

    fn handle(&mut self, context: &mut Context<'_>, event: PolicyEvent) {
        if event == PolicyEvent::Released {
            // Without room in the dispatcher the job ends as cancelled.
            let _ = context.begin_added();
        }
    }
}

/// For each member, the time within which its budget is executed whatever order the program
/// chooses: all others come first. An allotment may be executed anywhere in its period, so the end
/// of one and the beginning of the next follow each other.
fn in_any_order(group: &GroupDemand<'_>) -> Vec<Option<u64>> {
    let within = |of: &MemberDemand<'_>, time: u64| {
        let period = of.period?;
        let reach = time.saturating_add(of.jitter).saturating_add(period.checked_sub(of.budget)?);
        reach.div_ceil(period).checked_mul(of.budget)
    };
    let response = |i: usize| {
        let member = &group.members[i];
        let mut time = member.budget;
        loop {
            let others = group.members.iter().enumerate().filter(|&(j, _)| j != i);
            let all = others.map(|(_, of)| within(of, time));
            let all = all.chain([Some(member.budget), Some(member.blocking)]);
            let demand = all.sum::<Option<u64>>()?;
            let next = group.time_for(demand)?;
            if next <= time {
                return Some(next.saturating_add(member.jitter));
            }
            // Beyond its deadline it is late anyway.
            time = next;
            if time > member.deadline {
                return Some(time);
            }
        }
    };
    (0..group.members.len()).map(response).collect()
}

/// A job that a program adds. Times are CLOCK_MONOTONIC ns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AddedJob {
    /// Its attributes; the finish is at most a period after the allotment began.
    pub params: JobParams,
    /// Where it stands; `None`: where its task does.
    pub place: Option<JobPlace>,
    /// Its number among all jobs that the program adds.
    pub id: u64,
    /// Comes back with its end.
    pub cookie: u64,
}

/// Why a job was not added, cancelled, or an order not set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JobRefusal {
    /// There is no such task, or none that takes jobs; no such job, or it has ended; no such group,
    /// or its policy is not [`JOBS`]; a budget group that had no budget yet.
    Nothing,
    /// The task has a job already.
    Busy,
    /// The finish is not after the start, or more than a period after the allotment began; an order
    /// without attributes.
    Invalid,
    /// More than what is left of the task's budget in this period.
    Quota,
    /// Groups would form a cycle, have another parent than before, or be too deep.
    Tree,
    /// The dispatcher has no room for another job of a group.
    Full,
}

/// What a task has of the program's jobs.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct AddedJobs {
    /// The job that waits for its start, or is in flight.
    job: Option<AddedJob>,
    /// Of a task that had one: when its allotment began, and how much of it is used up, ns.
    allotment: Option<(u64, u64)>,
    /// The same before the job that is there.
    before: Option<(u64, u64)>,
}

impl AddedJobs {
    /// When the allotment of a job begins, and how much of it is used up before, ns.
    ///
    /// # Errors
    /// [`JobRefusal::Invalid`], [`JobRefusal::Quota`].
    fn allot(&self, job: &JobParams, member: &MemberParams) -> Result<(u64, u64), JobRefusal> {
        if member.budget >= member.period {
            return match job.finish > job.start {
                true => Ok((job.start, 0)),
                false => Err(JobRefusal::Invalid),
            };
        }
        let present = self.allotment.filter(|(begun, _)| {
            begun.checked_add(member.period).is_none_or(|over| job.start < over)
        });
        let (begun, spent) = present.unwrap_or((job.start, 0));
        if job.finish <= job.start || job.finish > begun.saturating_add(member.period) {
            return Err(JobRefusal::Invalid);
        }
        match job.budget <= member.budget.saturating_sub(spent) {
            true => Ok((begun, spent)),
            false => Err(JobRefusal::Quota),
        }
    }

    /// Where the job that is there stands, if not where its task does.
    pub(crate) fn place(&self) -> Option<JobPlace> {
        self.job?.place
    }

    /// The job has ended with `left` ns of its budget; what later jobs may have of that. What was
    /// carried over from other jobs, either way, is not part of it.
    pub(crate) fn end(&mut self, left: u64) -> Option<(AddedJob, u64)> {
        let job = self.job.take()?;
        let left = left.min(job.params.budget);
        if let Some((_, spent)) = &mut self.allotment {
            *spent = spent.saturating_add(job.params.budget - left);
        }
        Some((job, left))
    }

    /// The job ends before it has begun: it took nothing, and began no allotment.
    fn withdraw(&mut self) -> Option<AddedJob> {
        let job = self.job.take()?;
        self.allotment = self.before;
        Some(job)
    }
}

impl AddedJob {
    pub(crate) fn ended(
        &self,
        at: u64,
        index: u32,
        end: End,
        used: u64,
        remaining: u64,
    ) -> ReleaseEvent {
        let AddedJob { id, cookie, .. } = *self;
        ReleaseEvent::JobEnded { at, index, id, cookie, end, used, remaining }
    }
}

impl Context<'_> {
    /// Begins the release of the job whose start has come.
    fn begin_added(&mut self) -> Result<(), Refusal> {
        let job = self.slots[self.place].added.job.ok_or(Refusal::Nothing)?.params;
        self.begin_release(job.start, job.finish, job.budget)?;
        self.add_job(&job)
    }
}

impl Allocators {
    /// Adds a job of the program to a task. Its start is when it comes; a start gone by does not
    /// move its finish. A job without a budget, and one whose finish has gone by, end at once. The
    /// end of each job is reported as [`ReleaseEvent::JobEnded`]. Does not allocate.
    ///
    /// # Errors
    /// See [`JobRefusal`].
    pub fn add_job(
        &mut self,
        gsi: &mut dyn Gsi,
        task: TaskId,
        job: &AddedJob,
        report: &mut dyn FnMut(ReleaseEvent),
    ) -> Result<(), JobRefusal> {
        let now = gsi.now();
        let s = self.slot_of(task).filter(|&s| self.takes_jobs(s)).ok_or(JobRefusal::Nothing)?;
        if job.place.is_some_and(|place| !self.is_placed(place)) {
            return Err(JobRefusal::Nothing);
        }
        let slot = &mut self.slots[s];
        if slot.phase == Phase::Empty {
            return Err(JobRefusal::Nothing);
        }
        if slot.added.job.is_some() || slot.phase != Phase::Finished {
            return Err(JobRefusal::Busy);
        }
        let allotment = slot.added.allot(&job.params, &slot.member)?;
        if job.params.budget == 0 || job.params.finish <= now {
            let end = if job.params.budget == 0 { End::Exhausted } else { End::Expired };
            report(job.ended(now, s as u32, end, 0, job.params.budget));
            return Ok(());
        }
        slot.added =
            AddedJobs { job: Some(*job), allotment: Some(allotment), before: slot.added.allotment };
        slot.next = job.params.start;
        self.arm_next_release(gsi, s, report);
        Ok(())
    }

    /// The number of the program's job on which a task executes; `None` between two of them.
    #[must_use]
    pub fn job_in_flight(&self, task: TaskId) -> Option<u64> {
        let slot = &self.slots[self.slot_of(task)?];
        slot.job.and(slot.added.job).map(|job| job.id)
    }

    /// Cancels a job of the program. Its end is reported, at once if it has not begun. Does not
    /// allocate.
    ///
    /// # Errors
    /// [`JobRefusal::Nothing`] when the task has no such job.
    pub fn cancel_job(
        &mut self,
        gsi: &mut dyn Gsi,
        task: TaskId,
        id: u64,
        report: &mut dyn FnMut(ReleaseEvent),
    ) -> Result<(), JobRefusal> {
        let s = self.slot_of(task).ok_or(JobRefusal::Nothing)?;
        let slot = &self.slots[s];
        if slot.added.job.is_none_or(|job| job.id != id) {
            return Err(JobRefusal::Nothing);
        }
        match slot.job {
            Some(job) => gsi.cancel_job(job).map_err(|_| JobRefusal::Nothing),
            None => {
                self.end_waiting_job(gsi, task, End::Cancelled, report);
                Ok(())
            }
        }
    }

    /// Ends a job of the program that waits for its start, if there is one: before
    /// [`remove`](Allocators::remove), which ends those that have begun.
    pub fn end_waiting_job(
        &mut self,
        gsi: &mut dyn Gsi,
        task: TaskId,
        end: End,
        report: &mut dyn FnMut(ReleaseEvent),
    ) {
        let Some(s) = self.slot_of(task) else { return };
        let slot = &mut self.slots[s];
        if slot.phase != Phase::Waiting {
            return;
        }
        let Some(job) = slot.added.withdraw() else { return };
        if let Some(timer) = slot.timer.take() {
            // It may have expired already; its event then finds no job.
            let _ = gsi.cancel_timer(timer);
        }
        (slot.phase, slot.next) = (Phase::Finished, INFINITE);
        report(job.ended(gsi.now(), s as u32, end, 0, job.params.budget));
    }

    /// Orders a group whose jobs are the program's, from now on.
    ///
    /// # Errors
    /// [`JobRefusal::Nothing`], [`JobRefusal::Invalid`].
    pub fn set_order(
        &mut self,
        gsi: &mut dyn Gsi,
        group: u32,
        by: &[Attribute],
    ) -> Result<(), JobRefusal> {
        match self.policy_of(group) {
            Some(entry) if std::ptr::eq(entry, &JOBS) => {
                gsi.set_order(group, by).map_err(|_| JobRefusal::Invalid)
            }
            _ => Err(JobRefusal::Nothing),
        }
    }

    /// Whether the jobs of a member are the program's.
    pub(crate) fn takes_jobs(&self, s: usize) -> bool {
        std::ptr::eq(self.at_work[self.slots[s].by as usize].entry, &JOBS)
    }
}
