//! Tasks that come, change and go while their domain runs.

use std::sync::mpsc::Sender;
use std::time::Instant;

use punctual_diagnostic::Diagnostic;
use punctual_dispatcher::{Refusal, TaskId};
use punctual_program_jobs::TaskRequests;
use punctual_taskset::{TaskChange, TaskSpec};

use super::Domain;
use crate::diagnostics::{not_done_here, OTHERS};
use crate::joining::Joining;

/// One more task on its way to its domain's thread, and where the answer goes.
pub(crate) struct NewTask {
    pub joining: Joining,
    pub spec: TaskSpec,
    /// Its offset counts from here, CLOCK_MONOTONIC ns.
    pub origin: u64,
    /// How long it may wait for threads of an earlier task, whose number it gets, to leave.
    pub until: Instant,
    /// Where the program adds its jobs.
    pub requests: Option<TaskRequests>,
    pub answer: Sender<Result<(), Diagnostic>>,
}

impl Domain<'_> {
    /// Adds the tasks that wait for it.
    ///
    /// # Errors
    /// The kernel's failure; refusals are answers.
    pub(super) fn add_waiting(&mut self) -> Result<(), Diagnostic> {
        for new in std::mem::take(&mut self.adding) {
            // The events so far may be of the task whose number it gets.
            self.drain_events()?;
            self.add(new)?;
        }
        Ok(())
    }

    fn add(&mut self, new: NewTask) -> Result<(), Diagnostic> {
        let NewTask { joining, spec, origin, until, requests, answer } = new;
        let index = joining.index;
        let answered = match self.members.join(&mut self.gsi, &joining, self.say) {
            Ok(None) if Instant::now() < until => {
                self.adding.push(NewTask { joining, spec, origin, until, requests, answer });
                return Ok(());
            }
            Ok(None) => Err(Diagnostic::machine(
                "threads of a task that has ended have not left the dispatcher's queue",
                "try again when the CPU has time for ordinary threads",
            )),
            Ok(Some(task)) => {
                // Its number may have become free with this command: these are of the other task.
                self.drain_events()?;
                if let Some(before) = self.members.insert(task, joining) {
                    self.pages.remove(before);
                    self.drop_jobs(before);
                    self.left.push(before);
                }
                let requests = requests.into_iter();
                requests.for_each(|requests| self.jobs.add(index, task, requests));
                self.register(task, &spec, origin)
            }
            Err(refused) => {
                self.left.push(index);
                Err(refused)
            }
        };
        self.gsi.check()?;
        // A receiver that is gone has waited long enough: the run is over.
        drop(answer.send(answered));
        Ok(())
    }

    /// A task that has joined is released from `origin` on.
    fn register(&mut self, task: TaskId, spec: &TaskSpec, origin: u64) -> Result<(), Diagnostic> {
        let Domain { allocators, gsi, members, .. } = self;
        let added = allocators
            .begin(gsi, origin)
            .and_then(|()| allocators.add_other(gsi, members.slot(task), task, spec));
        let refused = match added {
            Ok(()) if self.allocates || !allocators.asks_policies() => {
                if let Some(joining) = members.of(task) {
                    self.pages.add(joining, spec, origin);
                }
                return Ok(());
            }
            Ok(()) => Diagnostic::usage(
                "its releases would need a thread in user space, and the run was started with \
                 policies inside the kernel alone",
                format!("declare it before the start; or {OTHERS}"),
            ),
            Err(Refusal::Full) => not_done_here("no room for a task"),
            Err(why) => not_done_here(format!("the dispatcher refused it: {why}")),
        };
        let index = self.members.of(task).map(|member| member.index);
        index.map_or(Ok(()), |index| self.remove(index, true))?;
        Err(refused)
    }

    /// The task of this index is not the dispatcher's any more, nor the allocators'. `retires`: it
    /// has threads still, which are best-effort ones from here on. One that waits to be added is
    /// not added.
    ///
    /// # Errors
    /// The kernel's failure.
    pub(super) fn remove(&mut self, index: usize, retires: bool) -> Result<(), Diagnostic> {
        let Some(task) = self.members.number(index) else {
            self.drop_jobs(index);
            self.adding.retain(|new| new.joining.index != index);
            return Ok(());
        };
        // Before the thread executes as an ordinary one.
        self.pages.remove(index);
        self.drain_events()?;
        self.end_jobs(index, task);
        if retires {
            // Refused where its last thread has just left.
            let _ = self.gsi.retire(task);
        }
        self.allocators.remove(&mut self.gsi, task);
        self.gsi.check()?;
        // How its last release ended.
        self.drain_events()?;
        self.members.remove(task);
        self.drop_jobs(index);
        self.left.push(index);
        Ok(())
    }

    /// Refused to a task that has ended, or whose policy makes its jobs: the caller has ruled that
    /// out.
    ///
    /// # Errors
    /// The kernel's failure.
    pub(super) fn suspend(&mut self, index: usize, on: bool) -> Result<(), Diagnostic> {
        let Some(task) = self.members.number(index) else { return Ok(()) };
        // Releases until now are of the time before. The page says so before its thread executes in
        // the background, and after it has executed there for the last time.
        if on {
            self.poll()?;
            self.drain_events()?;
            self.pages.set_suspended(index, true);
            if self.gsi.channel().suspend(task, true) == Ok(true) {
                self.pages.lost(index, 1);
            }
            let _ = self.allocators.suspend(&mut self.gsi, task);
        } else {
            let _ = self.gsi.channel().suspend(task, false);
            self.poll()?;
            self.drain_events()?;
            self.allocators.resume(task);
            self.pages.set_suspended(index, false);
        }
        Ok(())
    }

    /// From the next release on. Refused to a task that has ended, or whose policy makes its jobs:
    /// the caller has ruled that out.
    pub(super) fn change(&mut self, index: usize, change: &TaskChange) {
        if let Some(task) = self.members.number(index) {
            let _ = self.allocators.change(&mut self.gsi, task, change);
            self.pages.change(index, change);
        }
    }
}
