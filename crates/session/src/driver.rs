//! What a session needs of each host.

use std::ffi::OsString;
use std::sync::Arc;
use std::time::Duration;

use punctual_diagnostic::Diagnostic;
use punctual_program_jobs::{Attribute, GroupJobs, JobEvents, TaskJobs};
use punctual_taskset::{DomainId, TaskChange, TaskSet, TaskSpec};
use punctual_trace::RunEvent;
use punctual_wait_page::SealedPage;

use crate::results::{DispatcherStats, KernelDispatcherStats};
use crate::suspension::TaskSuspension;
use crate::task_thread::{ThreadBody, ThreadEntry};

/// What a task executes.
pub enum Execution {
    /// What its description in the set says.
    AsDeclared,
    /// A thread of this program; on the user host and by the service.
    Thread {
        /// Size of its stack, bytes.
        stack: usize,
        /// Called at the first release; the task ends when it returns.
        body: ThreadBody,
    },
    /// A thread that exists already and has entered.
    Entered(Arc<ThreadEntry>),
    /// One thread of a running process.
    AdoptedThread {
        /// The process.
        pid: i32,
        /// The thread.
        tid: i32,
        /// By what it waits for its releases.
        page: Option<SealedPage>,
    },
    /// A thread of this program, by its number, as it is: it has its budget in each period. On the
    /// kernel host.
    OwnThread(i32),
    /// A program with its arguments, which need not be UTF-8.
    Command(Vec<OsString>),
}

/// The host's own work, for the results.
#[derive(Default)]
pub(crate) struct HostFigures {
    /// Of the user host.
    pub dispatcher: Option<DispatcherStats>,
    /// Of the kernel host.
    pub kernel_dispatcher: Option<KernelDispatcherStats>,
    /// What a reader of the results should know.
    pub notes: Vec<String>,
}

/// How a run on a host ended.
#[derive(Default)]
pub(crate) struct HostOutcome {
    /// When, by the host's clock, ns.
    pub ended: u64,
    /// The host's own work.
    pub figures: HostFigures,
    /// Periods of unknown tasks without a report.
    pub unreported: u64,
    /// What could not be restored or ended.
    pub problems: Vec<String>,
    /// The host was ended while it ran: why.
    pub failure: Option<Diagnostic>,
}

/// A set that runs on some host. Dropped, it ends the run and restores everything.
pub(crate) trait Driver {
    /// The first release, by the host's clock, ns.
    fn origin(&self) -> u64;

    /// The time by the host's clock, ns: CLOCK_MONOTONIC, or virtual time.
    fn now(&self) -> u64;

    /// Reports what became known, and waits up to `wait`. Whether the host has ended the run.
    fn poll(&mut self, wait: Duration, sink: &mut dyn FnMut(RunEvent)) -> Result<bool, Diagnostic>;

    /// Adds a task; `first`: as of [`RunningSet::add`](crate::RunningSet::add).
    fn add(
        &mut self,
        index: u32,
        spec: &TaskSpec,
        execution: Execution,
        first: Option<u64>,
    ) -> Result<(), Diagnostic> {
        let _ = (index, execution, first);
        let cause = format!("task {:?}: this host takes no further tasks while it runs", spec.name);
        Err(Diagnostic::usage(cause, "declare it before the start, or use the user host"))
    }

    /// Requests the end of a task.
    fn stop_task(&mut self, index: u32) -> Result<(), Diagnostic> {
        let _ = index;
        Err(Diagnostic::usage("this host ends tasks with the run only", "use the user host"))
    }

    /// Gives a task other parameters from its next release on.
    fn change(&mut self, index: u32, change: &TaskChange) -> Result<(), Diagnostic> {
        let _ = (index, change);
        Err(Diagnostic::usage("this host changes no task while it runs", "use another host"))
    }

    /// What suspends and resumes a task.
    fn suspension(&self, index: u32) -> Result<TaskSuspension, Diagnostic> {
        let _ = index;
        Err(no_suspension())
    }

    /// Suspends a task once more, or takes one suspension back (`false`): of a host whose
    /// [`suspension`](Driver::suspension) is [`TaskSuspension::Run`].
    fn suspend(&mut self, index: u32, on: bool) -> Result<(), Diagnostic> {
        let _ = (index, on);
        Err(no_suspension())
    }

    /// What adds jobs to a task.
    fn task_jobs(&mut self, index: u32) -> Result<TaskJobs, Diagnostic> {
        let _ = index;
        Err(no_jobs())
    }

    /// The ends of the jobs that the program adds.
    fn job_events(&mut self) -> Result<JobEvents, Diagnostic> {
        Err(no_jobs())
    }

    /// What adds jobs of the program's own groups.
    fn group_jobs(&mut self, group: Option<usize>) -> Result<GroupJobs, Diagnostic> {
        let _ = group;
        Err(no_jobs())
    }

    /// Orders a group whose jobs the program adds.
    fn order_jobs(&mut self, group: Option<usize>, by: &[Attribute]) -> Result<(), Diagnostic> {
        let _ = (group, by);
        Err(no_jobs())
    }

    /// Gives groups the policies that they have in `to`, which otherwise is the set; the time of
    /// the first swap by the host's clock, ns.
    fn swap_policies(&mut self, to: &TaskSet) -> Result<u64, Diagnostic> {
        let _ = to;
        Err(Diagnostic::usage(
            "this host swaps no policies while it runs",
            "use the user host or the kernel host",
        ))
    }

    /// Has the jobs of a task execute another one and be charged for it; `None`: no longer.
    fn lend(&mut self, index: u32, to: Option<u32>) -> Result<(), Diagnostic> {
        let _ = (index, to);
        Err(Diagnostic::usage("this host lends no jobs by request", "use the kernel host"))
    }

    /// Prepares a thread that exists already to become a task on this CPU.
    fn prepare_entry(&self, domain: DomainId) -> Result<ThreadEntry, Diagnostic> {
        let _ = domain;
        Err(Diagnostic::usage(
            "threads of this program are tasks on the user host and of the service only",
            "use the user host, or the service",
        ))
    }

    /// Leaves no task at a real-time level that depends on this process, which is about to be
    /// stopped.
    fn pause(&mut self) {}

    /// This process continues.
    fn resume(&mut self) {}

    /// The host's own work so far.
    fn figures(&self) -> HostFigures {
        HostFigures::default()
    }

    /// Ends the run and reports the rest.
    fn finish(self: Box<Self>, sink: &mut dyn FnMut(RunEvent)) -> Result<HostOutcome, Diagnostic>;
}

/// Refuses threads and commands that are not in the set, for hosts that take what the set declares.
pub(crate) fn as_declared(executions: &[Execution]) -> Result<(), Diagnostic> {
    match executions.iter().all(|e| matches!(e, Execution::AsDeclared)) {
        true => Ok(()),
        false => {
            let cause = "threads are tasks on the user host and of the service only";
            let help = "use the user host or the service, or declare commands";
            Err(Diagnostic::usage(cause, help))
        }
    }
}

fn no_suspension() -> Diagnostic {
    Diagnostic::usage("this host suspends no tasks", "use the user host or the kernel host")
}

fn no_jobs() -> Diagnostic {
    let help = "use the user host or the kernel host";
    Diagnostic::usage("this host takes no jobs of the program", help)
}
