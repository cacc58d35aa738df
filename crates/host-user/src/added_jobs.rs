//! Jobs that the program adds to its tasks and groups: what the host hands out for that, and what
//! an engine makes of the requests.

use std::sync::atomic::Ordering::Relaxed;

use punctual_diagnostic::Diagnostic;
use punctual_policies::LocalDispatcher;
use punctual_program_jobs::{
    check_takes_jobs, check_task_takes_jobs, jobs_taken, Attribute, GroupJobs, GroupRequests,
    JobEventRings, JobEvents, JobOrder, JobRequest, TaskJobs, TaskRequests,
};

use crate::command_ring::CommandSender;
use crate::engine::{Command, Engine};
use crate::host::Host;
use crate::member::{Member, MemberKind};
use crate::start::EngineHandle;

impl Host {
    /// What adds jobs to a task under the policy `jobs`; once for each task.
    ///
    /// # Errors
    /// It has ended, is under another policy, or this was called for it before (EBUSY).
    pub fn task_jobs(&mut self, index: u32) -> Result<TaskJobs, Diagnostic> {
        let task = self.tasks.get_mut(&index);
        check_task_takes_jobs(task.as_ref().map(|task| task.takes_jobs))?;
        task.and_then(|task| task.jobs.take()).ok_or_else(jobs_taken)
    }

    /// The ends of all jobs that the program adds; once.
    ///
    /// # Errors
    /// No group is under the policy `jobs`, or this was called before (EBUSY).
    pub fn job_events(&mut self) -> Result<JobEvents, Diagnostic> {
        JobEventRings::take_reader(self.job_events.as_mut())
    }

    /// What adds jobs of the program's groups on the CPU of this group of the set (`None`: the top
    /// one, of a set on one CPU), which is under the policy `jobs`; once for each CPU.
    ///
    /// # Errors
    /// Another policy; there are no such groups; several CPUs; it was taken before (EBUSY).
    pub fn group_jobs(&mut self, group: Option<usize>) -> Result<GroupJobs, Diagnostic> {
        check_takes_jobs(&self.set, group)?;
        let domain = group.map(|group| self.set.groups[group].domain);
        let is_one = self.engines.len() == 1;
        let engine = self.engines.iter_mut().find(|e| domain.map_or(is_one, |of| e.domain == of));
        let engine = engine.ok_or_else(|| {
            Diagnostic::usage("the set has several CPUs", "name a group, which is of one of them")
        })?;
        let doorbell = engine.doorbell.clone();
        engine.group_requests.take(&self.set, group, doorbell)
    }

    /// Orders a group (`None`: the top one) under the policy `jobs`, from now on.
    ///
    /// # Errors
    /// Another policy; not one to four attributes, each once; EAGAIN: too many changes wait
    /// for a dispatcher.
    pub fn order_jobs(&mut self, group: Option<usize>, by: &[Attribute]) -> Result<(), Diagnostic> {
        let order = JobOrder::of_group(&self.set, group, by)?;
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

    /// Counts the jobs that were added after the task had left its engine.
    pub(crate) fn drop_requests(&mut self, member: &mut Member) {
        let added = member.jobs.as_mut().map_or(0, TaskRequests::count_rest);
        self.job_events.iter().for_each(|events| events.count_dropped(added));
    }
}

impl Engine {
    /// Takes the program's requests: those for groups before those for the tasks in them.
    pub(crate) fn process_jobs(&mut self, now: u64, late: u64) {
        if !self.doorbell.take_jobs() {
            return;
        }
        for _ in 0..GroupRequests::MOST {
            if !self.process_group_job(now) {
                break;
            }
            self.handle_release_events(now, late);
        }
        for i in 0..self.members.len() {
            for _ in 0..TaskRequests::MOST {
                let Some(request) = self.next_request(i) else { break };
                self.process_job(i, request, now);
                self.handle_release_events(now, late);
            }
            self.dismiss_waiting(i);
        }
    }

    /// Whether there was a request.
    fn process_group_job(&mut self, now: u64) -> bool {
        let Engine { dispatcher, allocators, group_requests, job_events, .. } = self;
        let release_events = &mut self.release_events;
        let Some(requests) = group_requests else { return false };
        let mut gsi = LocalDispatcher::new(dispatcher, now);
        let report = &mut |event| release_events.push(event);
        requests.execute_next(allocators, &mut gsi, job_events.as_mut(), report)
    }

    fn next_request(&mut self, i: usize) -> Option<JobRequest> {
        self.members[i].as_deref_mut()?.jobs.as_mut()?.take()
    }

    fn process_job(&mut self, i: usize, request: JobRequest, now: u64) {
        let Engine { dispatcher, allocators, members, release_events, job_events, .. } = self;
        let Some(task) = members[i].as_deref().map(|m| m.task) else { return };
        let mut gsi = LocalDispatcher::new(dispatcher, now);
        let report = &mut |event| release_events.push(event);
        match request {
            JobRequest::Add(job) => {
                let events = job_events.as_mut();
                TaskRequests::add(allocators, &mut gsi, (task, &job), events, report);
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

    /// Ends the jobs that a task has not begun, before it is removed.
    pub(crate) fn end_added_jobs(&mut self, member: &mut Member, now: u64) {
        let Engine { dispatcher, allocators, job_events, .. } = self;
        let mut gsi = LocalDispatcher::new(dispatcher, now);
        if let Some(requests) = &mut member.jobs {
            requests.end(allocators, &mut gsi, member.task, job_events.as_mut());
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
