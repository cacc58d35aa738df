//! A set that runs, as the program that started it sees it.

use std::fmt;
use std::sync::mpsc::RecvTimeoutError;
use std::time::Duration;

use punctual_program_jobs::{Attribute, GroupJobs, JobEvents};
use punctual_session::results::Results;
use punctual_taskset::TaskSet;

use crate::draft::{Declared, DraftContext, DraftTarget};
use crate::group::find_group;
use crate::handle::{Link, TaskHandle};
use crate::requests::Request;
use crate::supervisor::Handle;
use crate::{Error, RunOutcome, TaskDraft};

/// A set of tasks that runs. Dropping it ends the run, as [`stop`](Running::stop) does.
///
/// It may be shared between threads. Its methods wait for an ordinary thread, up to some 25 ms:
/// they are for the rest of the program, not for a task's loop.
#[must_use = "dropping it ends the run"]
pub struct Running {
    pub(crate) supervisor: Handle,
    pub(crate) link: Link,
    /// Without its tasks.
    set: TaskSet,
}

impl Running {
    pub(crate) fn new(supervisor: Handle, link: Link, set: TaskSet) -> Running {
        Running { supervisor, link, set }
    }

    /// Begins a further task. The call that completes the draft returns whether it was admitted;
    /// its first release is then some 20 ms from that call (and [`start`](TaskDraft::start) later).
    /// Budgets of tasks that have ended do not count, but until such a task would have been
    /// released again, its share may be in use: where it is needed, the first release comes after
    /// that. A name stays taken while its task lives.
    pub fn task(&self, name: impl Into<String>) -> TaskDraft<&Running> {
        TaskDraft::new(self, name.into())
    }

    /// Its CPUs, in the order in which they were given.
    pub fn cpus(&self) -> impl Iterator<Item = u32> + '_ {
        self.set.domains.iter().flat_map(|domain| domain.cpus.iter().copied())
    }

    /// Waits until all tasks have ended. Tasks may be added meanwhile.
    pub fn wait(&self) {
        if let Some(done) = self.supervisor.when_done() {
            let _ = done.recv();
        }
    }

    /// Waits until all tasks have ended, `timeout` at most; whether they have.
    #[must_use]
    pub fn wait_timeout(&self, timeout: Duration) -> bool {
        self.supervisor
            .when_done()
            .is_none_or(|done| done.recv_timeout(timeout) != Err(RecvTimeoutError::Timeout))
    }

    /// The figures so far. Each task's first period is not counted (page faults, cold caches), nor
    /// is its current one.
    ///
    /// # Errors
    /// The run has ended by a defect of Punctual.
    pub fn results(&self) -> Result<Results, Error> {
        self.supervisor.ask(Request::Results)
    }

    /// The names of the tasks that have not ended, in the order in which they came.
    ///
    /// # Errors
    /// The run has ended by a defect of Punctual.
    pub fn alive(&self) -> Result<Vec<String>, Error> {
        self.supervisor.ask(Request::Alive)
    }

    /// The ends of the jobs that the program adds to its tasks under
    /// [`Policy::Jobs`](crate::Policy::Jobs). One part of the program has it: it can be taken once.
    ///
    /// # Errors
    /// It was taken before (EBUSY); no group is under that policy.
    pub fn job_events(&self) -> Result<JobEvents, Error> {
        self.supervisor.ask(Request::JobEvents)?
    }

    /// What adds jobs of the groups that the set was declared with
    /// ([`Punctual::program_groups`](crate::Punctual::program_groups)), on the CPU of this group
    /// (`None`: the top one), which is under [`Policy::Jobs`](crate::Policy::Jobs): where the
    /// program's groups compete that have no other parent. It can be taken once for each CPU.
    ///
    /// # Errors
    /// It was taken before (EBUSY); the set has no such groups; another policy.
    pub fn group_jobs(&self, group: Option<&str>) -> Result<GroupJobs, Error> {
        let group = group.map(|name| find_group(&self.set, name)).transpose()?;
        self.supervisor.ask(|answer| Request::GroupJobs(group, answer))?
    }

    /// Orders the jobs of a group (`None`: the top one) under
    /// [`Policy::Jobs`](crate::Policy::Jobs) by one to four attributes, the most important one
    /// first, from now on. Before that the larger priority comes first.
    ///
    /// # Errors
    /// There is no such group, or it has another policy; no attribute, or one twice; 64 changes
    /// wait for the dispatcher (EAGAIN).
    pub fn order_jobs(&self, group: Option<&str>, by: &[Attribute]) -> Result<(), Error> {
        let group = group.map(|name| find_group(&self.set, name)).transpose()?;
        self.supervisor.ask(|answer| Request::OrderJobs(group, by.to_vec(), answer))?
    }

    /// Ends the run and restores the machine: commands are killed, adopted processes regain their
    /// scheduling attributes and cgroups, and threads continue in the ordinary class, where
    /// [`wait_period`](crate::Task::wait_period) returns `None`. Waits for the threads, one second
    /// at most. Threads that wait in other methods of this return then.
    ///
    /// # Errors
    /// The run has ended already (ECANCELED).
    pub fn stop(&self) -> Result<RunOutcome, Error> {
        self.supervisor.ask(Request::Stop)?
    }
}

impl DraftTarget for &Running {
    /// # Errors
    /// Those of [`Punctual::admit`](crate::Punctual::admit) and
    /// [`Admitted::start`](crate::Admitted::start); the other tasks continue undisturbed.
    type Output<T: Send + 'static> = Result<TaskHandle<T>, Error>;

    fn context(&self) -> DraftContext<'_> {
        DraftContext { set: &self.set, link: &self.link }
    }

    fn put<T: Send + 'static>(
        self,
        task: Result<Declared, Error>,
        handle: TaskHandle<T>,
    ) -> Result<TaskHandle<T>, Error> {
        let task = Box::new(task?);
        self.supervisor.ask(|answer| Request::Add(task, answer))??;
        Ok(handle)
    }
}

impl fmt::Debug for Running {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Running")
            .field("domains", &self.set.domains)
            .field("policy", &self.set.policy.name)
            .finish_non_exhaustive()
    }
}
