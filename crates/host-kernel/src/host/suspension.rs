//! Tasks that are suspended by request, until they were resumed as often.
//!
//! One that the dispatcher just did not select could hold locks of the kernel: where it was
//! preempted in a system call, all that need those locks would wait until it is resumed. So it
//! executes on, in the background. A process does until the freezer has stopped each of its threads
//! on its way out of the kernel; a thread with a page does until it comes to where it waits for its
//! release, and sleeps there (yield_wait.rs).
//!
//! ```text
//!   executes ──freeze, Command::Suspend──> in the background ──(its way out)──> frozen
//!      ^                                                                          │
//!      └── with its next release ──── ready ────Command::Suspend(off), thaw───────┘
//! ```

use std::collections::BTreeMap;

use punctual_diagnostic::Diagnostic;
use punctual_process::FrozenProcess;

use super::KernelHost;
use crate::domain::Command;
use crate::run_state::RunState;

/// The suspended tasks, by index.
pub(crate) type Suspended = BTreeMap<usize, Suspension>;

pub(crate) struct Suspension {
    count: u32,
    /// Of a process.
    frozen: Option<FrozenProcess>,
}

impl KernelHost {
    /// Whether [`suspend`](Self::suspend) does anything for this task.
    ///
    /// # Errors
    /// It is neither a process that was running before it became a task, nor a thread with a page.
    pub fn check_suspension(&self, index: usize) -> Result<(), Diagnostic> {
        let tasks = self.tasks.as_ref().ok_or_else(ended)?;
        match tasks.has_page(index) {
            true => Ok(()),
            false => tasks.adopted_pid(index).map(drop),
        }
    }

    /// Suspends a process with its children, or a thread with a page, once more. Its releases come
    /// meanwhile, and end as cancelled. That its policy is one of the dispatcher's reservations is
    /// the caller's.
    ///
    /// # Errors
    /// It has ended, or is neither of these; a process that cannot be moved to a cgroup of its own;
    /// no cgroup v2; it is suspended 2^32 - 1 times. Nothing is changed then.
    pub fn suspend(&mut self, index: usize) -> Result<(), Diagnostic> {
        let (Some(spec), Some(domain)) = (self.state.spec(index), self.state.domain_of(index))
        else {
            return Err(ended());
        };
        if let Some(suspension) = self.suspended.get_mut(&index) {
            suspension.count = suspension.count.checked_add(1).ok_or_else(|| {
                let cause = format!("task {:?} is suspended 2^32 - 1 times", spec.name);
                Diagnostic::usage(cause, "resume it first").with_errno(libc::EAGAIN)
            })?;
            return Ok(());
        }
        let tasks = self.tasks.as_mut().ok_or_else(ended)?;
        let frozen = match tasks.has_page(index) {
            true => None,
            false => Some(tasks.freeze(index, &spec.name, &self.locks)?),
        };
        self.suspended.insert(index, Suspension { count: 1, frozen });
        self.send(domain, Command::Suspend(index, true));
        Ok(())
    }

    /// Takes back one suspension: after the last one the task executes from its next release on.
    ///
    /// # Errors
    /// It is not suspended (EALREADY).
    pub fn resume(&mut self, index: usize) -> Result<(), Diagnostic> {
        let Some(suspension) = self.suspended.get_mut(&index) else {
            let help = "resume it as often as it was suspended, and no more";
            let cause = "the task is not suspended";
            return Err(Diagnostic::usage(cause, help).with_errno(libc::EALREADY));
        };
        suspension.count -= 1;
        if suspension.count == 0 {
            if let Some(domain) = self.state.domain_of(index) {
                self.send(domain, Command::Suspend(index, false));
            }
            end_suspension(&mut self.suspended, &mut self.state, index);
        }
        Ok(())
    }
}

/// Of a task that is resumed, or is to end.
pub(super) fn end_suspension(suspended: &mut Suspended, state: &mut RunState, index: usize) {
    let frozen = suspended.remove(&index).and_then(|suspension| suspension.frozen);
    for problem in frozen.map(FrozenProcess::restore).unwrap_or_default() {
        state.note(format!("not restored: {problem}"));
    }
}

fn ended() -> Diagnostic {
    Diagnostic::usage("the task has ended", "suspend one that lives").with_errno(libc::ESRCH)
}
