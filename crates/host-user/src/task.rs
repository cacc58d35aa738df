//! A task that is a thread of this process, as its own code sees it.

use std::io;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::Arc;

use crate::overrun_signal::OverrunHandler;
use crate::park_signal::{self, Membership};
use crate::sched;
use crate::task_control::TaskControl;
use punctual_sys::clock;
use punctual_sys::sched::pin;
use punctual_taskset::DomainId;

/// The task that the calling thread is.
pub struct ThreadTask {
    membership: Membership,
}

/// Whether the calling thread is a task.
#[must_use]
pub fn is_thread_task() -> bool {
    park_signal::is_member()
}

/// One release, as `wait_period` returns it. Times are CLOCK_MONOTONIC ns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CurrentRelease {
    /// Its number, from 0.
    pub number: u64,
    /// When it was due.
    pub release: u64,
    /// Its absolute deadline.
    pub deadline: u64,
    /// Releases since the last return that this task did not see: it was late (overrun policy
    /// `skip`), or the machine was.
    pub lost: u32,
}

impl ThreadTask {
    pub(crate) fn new(membership: Membership) -> ThreadTask {
        ThreadTask { membership }
    }

    #[inline]
    pub(crate) fn control(&self) -> &Arc<TaskControl> {
        self.membership.control()
    }

    /// Has the overrun signal call `handler` in this thread from now on, where the process has
    /// [`call_overrun_handlers`](crate::call_overrun_handlers). The first call counts.
    pub fn handle_overruns(&self, handler: OverrunHandler) {
        let _ = self.control().overrun_handler.set(handler);
    }

    /// The job is done: waits for the next release. A wait that is due from a release gone by
    /// returns at once (overrun policies `carry`, `signal`, `background`: the task catches up).
    ///
    /// `None` when the run is over: the thread continues in the ordinary class and should return.
    pub fn wait_period(&self) -> Option<CurrentRelease> {
        self.control().wait_period();
        if self.is_over() {
            return None;
        }
        Some(CurrentRelease { lost: self.control().lost.swap(0, Relaxed), ..self.current() })
    }

    /// The job is done, and the task suspended: as [`wait_period`](Self::wait_period), and returns
    /// only when it was resumed as often as it was suspended.
    pub fn suspend(&self) -> Option<CurrentRelease> {
        // Where it cannot be suspended, the run is over, or it is suspended already.
        let _ = self.control().suspension.suspend();
        self.wait_period()
    }

    /// The release that the task is in; `lost` is what `wait_period` has not reported yet.
    pub fn current(&self) -> CurrentRelease {
        let control = self.control();
        CurrentRelease {
            number: control.number.load(Relaxed),
            release: control.release.load(Relaxed),
            deadline: control.deadline.load(Relaxed),
            lost: control.lost.load(Relaxed),
        }
    }

    /// The remaining budget of this release, ns of execution.
    pub fn remaining_budget(&self) -> u64 {
        let used = clock::thread_cpu_ns();
        self.control().exhausted_at.load(Relaxed).saturating_sub(used)
    }

    /// The run is over: nothing is guaranteed any more.
    pub fn is_over(&self) -> bool {
        self.control().over.load(Relaxed)
    }

    /// True when the run is over; for loops that poll a flag.
    pub fn over(&self) -> &std::sync::atomic::AtomicBool {
        &self.membership.control().over
    }
}

/// A task that a thread which exists already is to become
/// ([`Host::prepare_entry`](crate::Host::prepare_entry)).
pub struct Entry {
    pub(crate) control: Arc<TaskControl>,
    pub(crate) domain: DomainId,
    pub(crate) cpu: u32,
}

impl Entry {
    /// Makes the calling thread the task; it then stands at its CPU, at the lowest real-time level.
    /// The caller restores the thread's affinity and scheduling attributes when the result is
    /// dropped.
    ///
    /// # Errors
    /// The kernel's refusal; nothing is changed then but the affinity.
    pub fn enter(&self) -> io::Result<ThreadTask> {
        pin(0, self.cpu)?;
        let membership = park_signal::enter(self.control.clone());
        sched::set_level(0, sched::LOWEST)?;
        Ok(ThreadTask::new(membership))
    }
}

impl Entry {
    /// For an entry that no engine has: the task is over, and its thread never waits.
    pub fn cancel(&self) {
        self.control.detach();
        self.control.open();
    }
}

impl ThreadTask {
    /// Waits for the first release.
    pub fn await_first_release(&self) {
        self.control().pass();
    }
}

impl Drop for ThreadTask {
    fn drop(&mut self) {
        self.control().exit();
        // The rest of the thread has no budget. Giving up a privilege cannot fail.
        drop(punctual_sys::sched::set_other(0));
    }
}
