//! A task as its own code sees it.

use std::cell::Cell;
use std::time::Duration;

use punctual_host_user::{CurrentRelease, LockError, ThreadTask};
use punctual_session::TaskThread;

use crate::Time;

/// The task of the calling thread, as [`TaskDraft::spawn`](crate::TaskDraft::spawn) passes it to
/// the closure.
///
/// All calls are real-time safe: they neither allocate nor lock. By the service,
/// [`suspend`](Task::suspend) waits for its answer, and so may a wait in which it is replaced.
///
/// On the user host the thread is parked by a signal, the last but one of the real-time signals
/// (`SIGRTMAX - 1`), whose handler waits. So system calls that the kernel does not restart after
/// a handler (`poll`, `nanosleep`; see signal(7)) return `EINTR` in a task; the standard library
/// deals with that itself. Keep that signal unblocked and its handler in place: a task that
/// blocks it cannot be parked. After 1 ms of execution beyond its budget it is in the ordinary
/// class, without guarantee, until its next release, and a [`RunEvent::Warning`](crate::RunEvent)
/// is sent. By the service it is parked without a signal: beyond its budget it executes where its
/// CPU has nothing else to do.
///
/// Threads that a task creates are ordinary ones: real-time priority is not inherited.
pub struct Task<'a> {
    name: &'a str,
    inner: TaskThread<'a>,
    /// `releases` has returned the release that the task is in.
    seen: &'a Cell<bool>,
}

/// One release of a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Released {
    /// Its number, from 0.
    pub number: u64,
    /// When it was due, exactly: start + number * period. The task runs some microseconds later.
    pub release: Time,
    /// Its absolute deadline, at most one period later.
    pub deadline: Time,
    /// Releases that the task did not see since `wait_period` last returned: it was late
    /// ([`Overrun::Skip`](crate::Overrun)), or the machine was. Their numbers are left out.
    pub lost: u32,
}

impl<'a> Task<'a> {
    pub(crate) fn new(name: &'a str, inner: TaskThread<'a>, seen: &'a Cell<bool>) -> Task<'a> {
        Task { name, inner, seen }
    }

    /// The task as the locks of [`raw`](crate::raw) take it.
    ///
    /// # Errors
    /// [`LockError::NotLent`]: the service schedules it.
    #[inline]
    pub fn thread(&self) -> Result<&ThreadTask, LockError> {
        self.inner.user().ok_or(LockError::NotLent)
    }

    /// Its name.
    #[must_use]
    pub fn name(&self) -> &str {
        self.name
    }

    /// The job is done: waits for the next release. What was left of the budget is given up.
    ///
    /// A call that comes late, when the release after the job has gone by, does as the task's
    /// [`Overrun`](crate::Overrun) policy says: with `Carry`, `Signal` and `Background` it returns
    /// at once and the task catches up, one call for each release; with `Skip` it waits for the
    /// next release and returns how many were lost.
    ///
    /// `None` when the run is over: nothing is guaranteed any more; the thread continues in the
    /// ordinary class and should return.
    #[must_use = "None says that the run is over: return then"]
    pub fn wait_period(&self) -> Option<Released> {
        self.seen.set(true);
        self.inner.wait_period().map(Released::from)
    }

    /// The job is done, and the task suspended: as [`wait_period`](Task::wait_period), but returns
    /// at the first release after [`TaskHandle::resume`](crate::TaskHandle::resume), which another
    /// thread calls. A call of `resume` before this one does not count. Where the task cannot be
    /// suspended ([`TaskHandle::suspend`](crate::TaskHandle::suspend)), it waits for its next
    /// release.
    ///
    /// `None` when the run is over, or the task was asked to end.
    #[must_use = "None says that the run is over: return then"]
    pub fn suspend(&self) -> Option<Released> {
        self.seen.set(true);
        self.inner.suspend().map(Released::from)
    }

    /// The task's releases, the one that it is in first. From one to the next it waits, as
    /// [`wait_period`](Task::wait_period) does; the iterator ends when the run is over.
    pub fn releases(&self) -> Releases<'_> {
        Releases { task: self }
    }

    /// The release whose budget the task runs on. After an overrun that is a later one than
    /// `wait_period` returned; `lost` counts releases that it has not returned yet.
    #[must_use]
    pub fn current(&self) -> Released {
        self.inner.current().into()
    }

    /// What is left of the budget of this release: execution time, not time by the clock. Near the
    /// end it is exact to the machine's granularity (some 20 us). It includes what this release
    /// settles of the enforcement error that is carried from those before (docs/model.md,
    /// "Enforcement error"): 4 % of the budget at most, except after a stall.
    #[must_use]
    pub fn remaining_budget(&self) -> Duration {
        Duration::from_nanos(self.inner.remaining_budget())
    }

    /// When the current release was due.
    #[must_use]
    pub fn release(&self) -> Time {
        self.current().release
    }

    /// The current release's absolute deadline.
    #[must_use]
    pub fn deadline(&self) -> Time {
        self.current().deadline
    }

    /// Releases lost that `wait_period` has not returned yet.
    #[must_use]
    pub fn lost(&self) -> u32 {
        self.current().lost
    }

    /// The run is over: nothing is guaranteed any more. A loop that never calls `wait_period`
    /// should check it now and then, and return.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.inner.is_over()
    }
}

/// See [`Task::releases`].
#[derive(Debug)]
pub struct Releases<'a> {
    task: &'a Task<'a>,
}

impl Iterator for Releases<'_> {
    type Item = Released;

    fn next(&mut self) -> Option<Released> {
        if self.task.seen.replace(true) {
            return self.task.wait_period();
        }
        (!self.task.is_over()).then(|| self.task.current())
    }
}

impl std::fmt::Debug for Task<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Task").field("name", &self.name).field("current", &self.current()).finish()
    }
}

impl From<CurrentRelease> for Released {
    fn from(r: CurrentRelease) -> Released {
        Released {
            number: r.number,
            release: Time::from_nanos(r.release),
            deadline: Time::from_nanos(r.deadline),
            lost: r.lost,
        }
    }
}
