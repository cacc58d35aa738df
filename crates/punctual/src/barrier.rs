//! A barrier of tasks.

use std::fmt;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::SeqCst;

use punctual_host_user::{WaitError, WaitQueue};

use crate::{Task, Time};

/// Tasks wait until so many are there, again and again. Waiting is a self-suspension. Tasks of
/// several CPUs may meet.
pub struct Barrier {
    tasks: u32,
    /// The phase, and in the lower half how many tasks have come in it.
    state: AtomicU64,
    queue: WaitQueue,
}

const PHASE: u32 = 32;

impl Barrier {
    /// One at which `tasks` meet; 0 is as 1, where none waits.
    #[must_use]
    pub const fn new(tasks: u32) -> Self {
        Self { tasks, state: AtomicU64::new(0), queue: WaitQueue::new(0) }
    }

    /// Waits until the others are there, too; true in the task that came last. Real-time safe.
    ///
    /// # Errors
    /// The run is over, or the task was asked to end: the barrier then waits for another one in its
    /// place. The service schedules the task.
    pub fn wait(&self, task: &Task<'_>) -> Result<bool, WaitError> {
        self.wait_until_ns(task, u64::MAX)
    }

    /// The same until `until` at most. Real-time safe.
    ///
    /// # Errors
    /// [`WaitError::TimedOut`], and those of [`wait`](Self::wait).
    pub fn wait_until(&self, task: &Task<'_>, until: Time) -> Result<bool, WaitError> {
        self.wait_until_ns(task, until.as_nanos())
    }

    fn wait_until_ns(&self, task: &Task<'_>, until: u64) -> Result<bool, WaitError> {
        let thread = task.thread()?;
        let next = |state: u64| match state as u32 + 1 {
            came if came >= self.tasks => ((state >> PHASE) + 1) << PHASE,
            _ => state + 1,
        };
        let before = self.state.fetch_update(SeqCst, SeqCst, |s| Some(next(s))).unwrap_or(0);
        let phase = before >> PHASE;
        if next(before) >> PHASE != phase {
            self.queue.end_phase();
            return Ok(true);
        }
        self.queue.wait_phase(thread, phase as u32, until).map(|()| false).or_else(|e| {
            // Unless the others have come meanwhile.
            let same_phase = |s: u64| (s >> PHASE == phase).then(|| s - 1);
            self.state.fetch_update(SeqCst, SeqCst, same_phase).map_or(Ok(false), |_| Err(e))
        })
    }
}

impl fmt::Debug for Barrier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Barrier").field("tasks", &self.tasks).finish_non_exhaustive()
    }
}
