//! Jobs that the program adds to its tasks and groups: what the host hands out for that.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use punctual_diagnostic::Diagnostic;
use punctual_program_jobs::{
    check_takes_jobs, check_task_takes_jobs, group_requests, jobs_taken, takes_jobs, task_jobs,
    Attribute, GroupJobs, GroupRequestSender, GroupRequests, JobEventRings, JobEventSender,
    JobEvents, JobOrder, ProgramGroups, TaskJobs, TaskRequests,
};
use punctual_taskset::{TaskSet, TaskSpec};

use crate::domain::Command;
use crate::host::KernelHost;
use crate::request_doorbell::RequestDoorbell;

/// The host's ends.
#[derive(Default)]
pub(crate) struct HostJobs {
    events: Option<JobEventRings>,
    /// By index, until a part of the program has them.
    tasks: BTreeMap<usize, TaskJobs>,
    /// Tasks to which the program adds jobs, and the one that was looked at last.
    members: BTreeSet<usize>,
    looked: usize,
}

/// Tasks that one poll looks at, some 40 times a second.
const LOOKS: usize = 8;

/// Those of a domain, in the host.
pub(crate) struct OfDomain {
    pub doorbell: Arc<RequestDoorbell>,
    groups: GroupRequestSender,
}

/// Those of a domain, in its thread.
pub(crate) struct DomainEnds {
    pub doorbell: Arc<RequestDoorbell>,
    pub groups: Option<GroupRequests>,
    pub events: Option<JobEventSender>,
    /// By index, of tasks that have not joined.
    pub tasks: Vec<(usize, TaskRequests)>,
}

impl HostJobs {
    /// # Errors
    /// There is no descriptor left.
    pub fn of(set: &TaskSet) -> Result<HostJobs, Diagnostic> {
        Ok(HostJobs { events: JobEventRings::of(set)?, ..HostJobs::default() })
    }

    /// For a domain whose thread is its allocator, with these groups of the program.
    ///
    /// # Errors
    /// There is no descriptor left.
    pub fn domain(&mut self, groups: ProgramGroups) -> Result<(OfDomain, DomainEnds), Diagnostic> {
        let doorbell = Arc::new(RequestDoorbell::new()?);
        let (sender, groups) = group_requests(groups);
        let events = self.events.as_mut().map(JobEventRings::sender);
        let ends = DomainEnds { doorbell: doorbell.clone(), groups, events, tasks: Vec::new() };
        Ok((OfDomain { doorbell, groups: sender }, ends))
    }

    /// For a task; `None`: its policy makes its jobs.
    pub fn task(
        &mut self,
        (set, index): (&TaskSet, usize),
        spec: &TaskSpec,
        doorbell: &Arc<RequestDoorbell>,
    ) -> Option<TaskRequests> {
        if !takes_jobs(set, spec) {
            return None;
        }
        let (jobs, requests) = task_jobs(spec, doorbell.clone());
        self.tasks.insert(index, jobs);
        self.members.insert(index);
        Some(requests)
    }

    /// A task has ended, or was not added.
    pub fn remove(&mut self, index: usize) {
        self.tasks.remove(&index);
        self.members.remove(&index);
    }

    /// The run is over: no event follows.
    pub fn end(&self) {
        self.events.iter().for_each(JobEventRings::end);
    }
}

impl KernelHost {
    /// Lets processes go that were killed between two jobs: a parked thread takes no signal, and
    /// its program may wait for its end before it adds another job.
    pub(crate) fn release_killed(&mut self) {
        let Some(tasks) = &self.tasks else { return };
        let HostJobs { members, looked, .. } = &mut self.jobs;
        let after = members.range(*looked + 1..).chain(members.range(..=*looked));
        let next: Vec<usize> = after.take(LOOKS).copied().collect();
        *looked = next.last().copied().unwrap_or(0);
        for index in next.into_iter().filter(|&index| tasks.is_killed(index)) {
            self.jobs.members.remove(&index);
            if let Some(domain) = self.state.domain_of(index) {
                self.send(domain, Command::Retire(index));
            }
        }
    }

    /// What adds jobs to a task under the policy `jobs`; once for each task.
    ///
    /// # Errors
    /// It has ended, is under another policy, or this was called for it before (EBUSY).
    pub fn task_jobs(&mut self, index: usize) -> Result<TaskJobs, Diagnostic> {
        let takes_jobs = self.state.spec(index).map(|spec| takes_jobs(&self.set, spec));
        check_task_takes_jobs(takes_jobs)?;
        self.jobs.tasks.remove(&index).ok_or_else(jobs_taken)
    }

    /// The ends of all jobs that the program adds; once.
    ///
    /// # Errors
    /// No group is under the policy `jobs`, or this was called before (EBUSY).
    pub fn job_events(&mut self) -> Result<JobEvents, Diagnostic> {
        JobEventRings::take_reader(self.jobs.events.as_mut())
    }

    /// What adds jobs of the program's groups on the CPU of this group of the set (`None`: the top
    /// one, of a set on one CPU), which is under the policy `jobs`; once for each CPU.
    ///
    /// # Errors
    /// Another policy; there are no such groups; several CPUs; it was taken before (EBUSY).
    pub fn group_jobs(&mut self, group: Option<usize>) -> Result<GroupJobs, Diagnostic> {
        check_takes_jobs(&self.set, group)?;
        let is_one = self.domains.len() == 1;
        let domain = group.map(|group| self.set.groups[group].domain.0 as usize);
        let domain = domain.or(is_one.then_some(0));
        let of_domain = domain.and_then(|domain| self.domains.get_mut(domain)?.jobs.as_mut());
        let of_domain = of_domain.ok_or_else(|| {
            Diagnostic::usage("the set has several CPUs", "name a group, which is of one of them")
        })?;
        of_domain.groups.take(&self.set, group, of_domain.doorbell.clone())
    }

    /// Orders a group (`None`: the top one) under the policy `jobs`, from now on.
    ///
    /// # Errors
    /// Another policy; not one to four attributes, each once.
    pub fn order_jobs(&mut self, group: Option<usize>, by: &[Attribute]) -> Result<(), Diagnostic> {
        let order = JobOrder::of_group(&self.set, group, by)?;
        let domain = group.map(|group| self.set.groups[group].domain.0);
        let number = group.map_or(0, |group| group as u32 + 1);
        let domains = 0..self.domains.len() as u32;
        for domain in domains.filter(|&one| domain.is_none_or(|of| one == of)) {
            self.send(domain, Command::OrderJobs(number, order));
        }
        Ok(())
    }

    /// The run is over for the program: what adds jobs and what reads their ends finds that.
    pub(crate) fn end_jobs(&self) {
        let of_domains = self.domains.iter().filter_map(|domain| domain.jobs.as_ref());
        of_domains.for_each(|jobs| jobs.doorbell.end());
        self.jobs.end();
    }
}
