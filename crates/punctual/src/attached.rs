//! The calling thread as a task, and back.

use std::cell::Cell;
use std::fmt;
use std::io;
use std::marker::PhantomData;
use std::sync::Arc;

use punctual_session::{is_task_thread, EnteredThread, Execution};
use punctual_sys::sched::{self, thread_id, Attributes, Mask};
use punctual_trace::TaskEnd;

use crate::draft::{this_process, Declared};
use crate::handle::{Slot, TaskHandle};
use crate::requests::Request;
use crate::{Error, Running, Task, TaskDraft};

/// The calling thread as a task, until this is dropped: see [`TaskDraft::attach`].
#[must_use = "the thread is a task until this is dropped"]
pub struct Attached {
    name: String,
    seen: Cell<bool>,
    slot: Arc<Slot<()>>,
    // In this order: the task ends before the thread regains its attributes.
    thread: EnteredThread,
    _former: Former,
    _of_this_thread: PhantomData<*const ()>,
}

/// What a thread had before it became a task; dropping it restores that.
struct Former {
    attributes: Attributes,
    cpus: Mask,
}

impl Former {
    fn of_this_thread() -> io::Result<Former> {
        Ok(Former { attributes: Attributes::of(0)?, cpus: sched::affinity(0)? })
    }
}

impl Drop for Former {
    fn drop(&mut self) {
        // What a thread had it may have again.
        let _ = self.attributes.give(0);
        let _ = sched::set_affinity(0, &self.cpus);
    }
}

impl TaskDraft<&Running> {
    /// Makes the calling thread the task while `body` runs, from the first release on. Then the
    /// thread regains its scheduling attributes and its CPUs, also after a panic, which then
    /// propagates.
    ///
    /// When the run ends meanwhile, the thread continues in the ordinary class until `body`
    /// returns.
    ///
    /// # Errors
    /// As of [`TaskDraft::attach`]. `body` was not called then.
    pub fn enter<T>(self, body: impl FnOnce(&Task<'_>) -> T) -> Result<T, Error> {
        let attached = self.attach()?;
        Ok(body(&attached.task()))
    }

    /// Makes the calling thread the task until what it returns is dropped. Returns at the first
    /// release. When it is dropped, the thread regains its scheduling attributes and its CPUs.
    ///
    /// When the run ends meanwhile, the thread continues in the ordinary class.
    ///
    /// # Errors
    /// As of a task in a [`Running`] set; the thread is a task already (EALREADY); the kernel
    /// refuses it a real-time level (user host). Nothing is changed then.
    pub fn attach(self) -> Result<Attached, Error> {
        self.attach_with(drop)
    }

    /// As [`attach`](TaskDraft::attach); calls `admitted` with a handle of the task once it is
    /// admitted, before its first release. `admitted` must not wait: the thread has no budget yet.
    ///
    /// # Errors
    /// As of [`attach`](TaskDraft::attach). `admitted` was not called then.
    pub fn attach_with(self, admitted: impl FnOnce(TaskHandle<()>)) -> Result<Attached, Error> {
        self.attach_as(drop, admitted)
    }

    /// As [`attach`](TaskDraft::attach); calls `prepared` with a handle of the task before it is
    /// added, while the thread is an ordinary one: `prepared` may wait. Once the task is added, a
    /// more important one may keep the thread from executing. The handle refuses requests until
    /// [`TaskHandle::is_added`], and for ever if that is refused.
    ///
    /// # Errors
    /// As of [`attach`](TaskDraft::attach).
    pub fn attach_prepared(self, prepared: impl FnOnce(TaskHandle<()>)) -> Result<Attached, Error> {
        self.attach_as(prepared, drop)
    }

    fn attach_as(
        self,
        prepared: impl FnOnce(TaskHandle<()>),
        admitted: impl FnOnce(TaskHandle<()>),
    ) -> Result<Attached, Error> {
        let (name, running) = (self.name().to_owned(), *self.place());
        if is_task_thread() {
            let cause = format!("task {name:?}: this thread is a task already");
            return Err(Error::usage(cause, "use another thread, or end its task first")
                .with_errno(libc::EALREADY));
        }
        let spec =
            self.check(this_process(), &Execution::Thread { stack: 0, body: Box::new(|_| {}) })?;
        let refused = |e| {
            Error::refused(
                format_args!("task {name:?}: this thread cannot become it"),
                e,
                "see punctual doctor",
            )
        };
        let former = Former::of_this_thread().map_err(refused)?;
        let domain = spec.domain;
        let slot = Slot::new();
        let handle = || TaskHandle::new(&name, slot.clone(), running.link.clone());
        prepared(handle());
        let entry =
            Arc::new(running.supervisor.ask(|answer| Request::PrepareEntry(domain, answer))??);
        let thread = entry.enter().map_err(refused)?;
        self.handler().into_iter().for_each(|handler| thread.task().handle_overruns(handler));
        let declared = Declared {
            spec,
            execution: Execution::Entered(entry.clone()),
            completion: slot.clone(),
            handles_overruns: self.handler().is_some(),
            first_release: self.first_release_ns(),
        };
        let added = running
            .supervisor
            .ask(|answer| Request::Add(Box::new(declared), answer))
            .and_then(|added| added);
        if let Err(e) = added {
            entry.cancel();
            return Err(e);
        }
        admitted(handle());
        thread.await_first_release();
        Ok(Attached {
            name,
            seen: Cell::new(false),
            slot,
            thread,
            _former: former,
            _of_this_thread: PhantomData,
        })
    }
}

impl TaskDraft<&Running> {
    /// Makes the calling thread the task as it is, on [`Host::Kernel`](crate::Host::Kernel): it has
    /// its budget in each period, and no more, until the task is stopped or the run ends. It waits
    /// for no release; threads and processes that it starts are not part of the task.
    ///
    /// # Errors
    /// As of a task in a [`Running`] set; another host; a thread of a real-time class, or one that
    /// may not run on the CPU. Nothing is changed then.
    pub fn bound_this_thread(self) -> Result<TaskHandle<TaskEnd>, Error> {
        self.finish_program(this_process(), Execution::OwnThread(thread_id()))
    }
}

impl Attached {
    /// The task, as its own code sees it.
    #[must_use]
    pub fn task(&self) -> Task<'_> {
        Task::new(&self.name, self.thread.task(), &self.seen)
    }
}

impl Drop for Attached {
    fn drop(&mut self) {
        self.slot.set_value(());
    }
}

impl fmt::Debug for Attached {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Attached").field(&self.task()).finish()
    }
}
