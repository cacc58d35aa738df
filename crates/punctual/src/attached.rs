//! The calling thread as a task, and back.

use std::panic::{catch_unwind, resume_unwind, AssertUnwindSafe};
use std::sync::Arc;

use punctual_session::Execution;
use punctual_sys::sched::{self, Attributes};

use crate::draft::{this_process, Declared};
use crate::handle::Slot;
use crate::supervisor::Request;
use crate::{Error, Running, Task, TaskDraft};

impl TaskDraft<&Running> {
    /// Makes the calling thread the task while `body` runs, from the first release on. Then the
    /// thread regains its scheduling attributes and its CPUs, also after a panic, which then
    /// propagates.
    ///
    /// When the run ends meanwhile, the thread continues in the ordinary class until `body`
    /// returns.
    ///
    /// # Errors
    /// As of a task in a [`Running`] set; the kernel refuses the thread a real-time level. `body`
    /// was not called then.
    pub fn enter<T>(self, body: impl FnOnce(&Task<'_>) -> T) -> Result<T, Error> {
        let (name, running) = (self.name().to_owned(), *self.place());
        let slot = Slot::<()>::new();
        let mut spec =
            self.check(this_process(), &Execution::Thread { stack: 0, body: Box::new(|_| {}) })?;
        spec.name.clone_from(&name);
        let refused = |e| {
            Error::refused(
                format_args!("task {name:?}: this thread cannot become it"),
                e,
                "see punctual doctor",
            )
        };
        let (attributes, cpus) =
            (Attributes::of(0).map_err(refused)?, sched::affinity(0).map_err(refused)?);
        let restore = || {
            // What a thread had it may have again.
            let _ = attributes.give(0);
            let _ = sched::set_affinity(0, &cpus);
        };
        let domain = spec.domain;
        let entry =
            Arc::new(running.supervisor.ask(|answer| Request::PrepareEntry(domain, answer))??);
        let task = entry.enter().map_err(|e| {
            restore();
            refused(e)
        })?;
        let declared =
            Declared { spec, execution: Execution::Entered(entry.clone()), completion: slot };
        let added = running
            .supervisor
            .ask(|answer| Request::Add(Box::new(declared), answer))
            .and_then(|added| added);
        if let Err(e) = added {
            entry.cancel();
            drop(task);
            restore();
            return Err(e);
        }
        task.await_first_release();
        let value = catch_unwind(AssertUnwindSafe(|| body(&Task::new(&name, &task))));
        drop(task);
        restore();
        Ok(value.unwrap_or_else(|panic| resume_unwind(panic)))
    }
}
