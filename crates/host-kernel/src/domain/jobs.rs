//! What a domain's thread makes of the jobs that the program adds to its tasks and groups.

use punctual_diagnostic::Diagnostic;
use punctual_dispatcher::TaskId;
use punctual_policies::ReleaseEvent;
use punctual_program_jobs::{
    AddedJobEnd, GroupRequests, JobEvent, JobEventSender, JobRequest, TaskRequests,
};
use punctual_sys::clock::monotonic_ns;

use super::report::Report;
use super::Domain;

/// The program's jobs, in the domain's thread.
#[derive(Default)]
pub(crate) struct ProgramJobs {
    pub groups: Option<GroupRequests>,
    pub events: Option<JobEventSender>,
    pub tasks: Vec<TaskOfProgram>,
}

/// A task to which the program adds jobs.
pub(crate) struct TaskOfProgram {
    pub index: usize,
    pub task: TaskId,
    pub requests: TaskRequests,
    /// The job that the program has completed: the dispatcher cancels it.
    pub completed: Option<u64>,
}

impl ProgramJobs {
    pub fn add(&mut self, index: usize, task: TaskId, requests: TaskRequests) {
        self.tasks.push(TaskOfProgram { index, task, requests, completed: None });
    }

    /// Reports the end of a job to the program.
    pub fn ended(&mut self, event: &ReleaseEvent) {
        let (Some(events), Some(mut event)) = (&mut self.events, JobEvent::of(event)) else {
            return;
        };
        if event.end == AddedJobEnd::Cancelled {
            let its = |task: &&mut TaskOfProgram| task.completed == Some(event.id);
            if let Some(task) = self.tasks.iter_mut().find(its) {
                task.completed = None;
                event.end = AddedJobEnd::Completed;
            }
        }
        events.send(event);
    }
}

impl Domain<'_> {
    /// Takes the program's requests: those for groups before those for the tasks in them.
    ///
    /// # Errors
    /// The kernel's failure of a command; refusals are events.
    pub(super) fn process_jobs(&mut self) -> Result<(), Diagnostic> {
        self.gsi.at(monotonic_ns());
        for _ in 0..GroupRequests::MOST {
            if !self.process_group_job() {
                break;
            }
            self.gsi.check()?;
        }
        for at in 0..self.jobs.tasks.len() {
            for _ in 0..TaskRequests::MOST {
                let TaskOfProgram { task, requests, .. } = &mut self.jobs.tasks[at];
                let task = *task;
                let Some(request) = requests.take() else { break };
                self.process_job(at, task, request);
                self.gsi.check()?;
            }
        }
        Ok(())
    }

    /// Whether there was a request.
    fn process_group_job(&mut self) -> bool {
        let Some(mut groups) = self.jobs.groups.take() else { return false };
        let mut events = self.jobs.events.take();
        let Domain { allocators, gsi, .. } = self;
        let mut ended = Vec::new();
        let report = &mut |event| ended.push(event);
        let was = groups.execute_next(allocators, gsi, events.as_mut(), report);
        (self.jobs.groups, self.jobs.events) = (Some(groups), events);
        // Of groups there are no releases.
        ended.iter().for_each(|event| self.jobs.ended(event));
        was
    }

    fn process_job(&mut self, at: usize, task: TaskId, request: JobRequest) {
        let mut events = self.jobs.events.take();
        let Domain { allocators, gsi, .. } = self;
        let channel = gsi.channel();
        let mut reported = Vec::new();
        let report = &mut |event| reported.push((event, channel.last_job()));
        match request {
            JobRequest::Add(job) => {
                TaskRequests::add(allocators, gsi, (task, &job), events.as_mut(), report);
            }
            // One that has ended has its event.
            JobRequest::Cancel(id) => {
                let _ = allocators.cancel_job(gsi, task, id, report);
            }
            JobRequest::Complete(id) => {
                if allocators.job_in_flight(task) == Some(id) {
                    self.jobs.tasks[at].completed = Some(id);
                    let _ = allocators.cancel_job(gsi, task, id, report);
                }
            }
        }
        self.jobs.events = events;
        for (event, last_job) in reported {
            Report::of(self).event(event, super::Key::Made(last_job), false);
        }
    }

    /// Ends the jobs that a task has not begun, before it is removed.
    pub(super) fn end_jobs(&mut self, index: usize, task: TaskId) {
        let Domain { allocators, gsi, jobs, .. } = self;
        if let Some(of) = jobs.tasks.iter_mut().find(|of| of.index == index) {
            of.requests.end(allocators, gsi, task, jobs.events.as_mut());
        }
    }

    /// All events of a task were reported: nothing takes its requests any more.
    pub(super) fn drop_jobs(&mut self, index: usize) {
        self.jobs.tasks.retain(|task| task.index != index);
    }
}
