//! A task that is a thread of this program, as its own code sees it, whatever executes the set.

use std::any::Any;
use std::io;
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::sync::Arc;

use punctual_diagnostic::Diagnostic;
use punctual_host_service::{ServiceEntry, ServiceThread};
use punctual_host_user::{CurrentRelease, Entry, OverrunHandler, ThreadTask};
use punctual_taskset::TaskSpec;
use punctual_trace::TaskEnd;
use punctual_wait_page::PageRelease;

/// The code of a task that is a thread of this program.
pub type ThreadBody = Box<dyn FnOnce(TaskThread<'_>) + Send>;

/// The task that the calling thread is. Its methods are real-time safe, with the exceptions of
/// [`ServiceThread`].
#[derive(Clone, Copy)]
pub enum TaskThread<'a> {
    /// Of the user host in this process.
    User(&'a ThreadTask),
    /// Of the service.
    Service(&'a ServiceThread),
}

impl<'a> TaskThread<'a> {
    /// The job is done: waits for the next release. A wait that is due from a release gone by
    /// returns at once (overrun policies `carry`, `signal`, `background`: the task catches up).
    ///
    /// `None` when the run is over: the thread continues in the ordinary class and should return.
    #[must_use]
    pub fn wait_period(self) -> Option<CurrentRelease> {
        match self {
            TaskThread::User(task) => task.wait_period(),
            TaskThread::Service(task) => task.wait_period().map(current),
        }
    }

    /// The job is done, and the task suspended until it was resumed as often as it was suspended.
    /// By the service, whose answer it waits for first; inside the kernel, until its next release.
    #[must_use]
    pub fn suspend(self) -> Option<CurrentRelease> {
        match self {
            TaskThread::User(task) => task.suspend(),
            TaskThread::Service(task) => task.suspend().map(current),
        }
    }

    /// The release that the task is in; `lost` is what `wait_period` has not reported yet.
    #[must_use]
    pub fn current(self) -> CurrentRelease {
        match self {
            TaskThread::User(task) => task.current(),
            TaskThread::Service(task) => current(task.current()),
        }
    }

    /// The remaining budget of this release, ns of execution.
    #[must_use]
    pub fn remaining_budget(self) -> u64 {
        match self {
            TaskThread::User(task) => task.remaining_budget(),
            TaskThread::Service(task) => task.remaining_budget(),
        }
    }

    /// The run is over: nothing is guaranteed any more.
    #[must_use]
    pub fn is_over(self) -> bool {
        match self {
            TaskThread::User(task) => task.is_over(),
            TaskThread::Service(task) => task.is_over(),
        }
    }

    /// The task as the locks of the user host take it; `None`: of the service.
    #[inline]
    #[must_use]
    pub fn user(self) -> Option<&'a ThreadTask> {
        match self {
            TaskThread::User(task) => Some(task),
            TaskThread::Service(_) => None,
        }
    }

    /// Has the overrun signal call `handler` in this thread, on the user host.
    pub fn handle_overruns(self, handler: OverrunHandler) {
        self.user().into_iter().for_each(|task| task.handle_overruns(handler));
    }
}

fn current(release: PageRelease) -> CurrentRelease {
    let PageRelease { number, release, deadline, lost, .. } = release;
    CurrentRelease { number, release, deadline, lost }
}

/// Whether the calling thread is a task.
#[must_use]
pub fn is_task_thread() -> bool {
    punctual_host_user::is_thread_task() || punctual_host_service::is_service_thread()
}

/// A task that a thread which exists already is to become
/// ([`RunningSet::prepare_entry`](crate::RunningSet::prepare_entry)).
pub enum ThreadEntry {
    /// Of the user host in this process.
    User(Entry),
    /// Of the service.
    Service(Arc<ServiceEntry>),
}

impl ThreadEntry {
    /// Makes the calling thread the one that is to become the task. The caller restores the
    /// thread's affinity and scheduling attributes when the result is dropped.
    ///
    /// # Errors
    /// The kernel's refusal; nothing is changed then but the affinity.
    pub fn enter(&self) -> io::Result<EnteredThread> {
        match self {
            ThreadEntry::User(entry) => entry.enter().map(EnteredThread::User),
            ThreadEntry::Service(entry) => Ok(EnteredThread::Service(Box::new(entry.enter()))),
        }
    }

    /// For an entry that no host has: the task is over, and its thread never waits.
    pub fn cancel(&self) {
        match self {
            ThreadEntry::User(entry) => entry.cancel(),
            ThreadEntry::Service(_) => {}
        }
    }
}

/// The refusal of an entry that another host has prepared.
pub(crate) fn of_another_host(spec: &TaskSpec) -> Diagnostic {
    let cause = "its thread was prepared for another host";
    Diagnostic::usage(cause, "prepare it for this one").of_task(&spec.name)
}

/// A thread that has entered; dropping it ends its task.
pub enum EnteredThread {
    /// Of the user host in this process.
    User(ThreadTask),
    /// Of the service.
    Service(Box<ServiceThread>),
}

impl EnteredThread {
    /// The task.
    #[inline]
    #[must_use]
    pub fn task(&self) -> TaskThread<'_> {
        match self {
            EnteredThread::User(task) => TaskThread::User(task),
            EnteredThread::Service(task) => TaskThread::Service(task),
        }
    }

    /// Waits for the first release.
    pub fn await_first_release(&self) {
        match self {
            EnteredThread::User(task) => task.await_first_release(),
            EnteredThread::Service(task) => task.await_first_release(),
        }
    }
}

/// The whole of a task's thread: a panic ends it, not the program.
pub(crate) fn call(body: ThreadBody, task: TaskThread<'_>) -> TaskEnd {
    match catch_unwind(AssertUnwindSafe(|| body(task))) {
        Ok(()) => TaskEnd::Returned,
        Err(panic) => TaskEnd::Panicked(message(&*panic).to_owned()),
    }
}

fn message(panic: &(dyn Any + Send)) -> &str {
    panic
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| panic.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("(without a message)")
}
