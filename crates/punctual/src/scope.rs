//! Tasks that borrow from the function that starts them.

use std::cell::Cell;
use std::marker::PhantomData;
use std::panic::{catch_unwind, resume_unwind, AssertUnwindSafe};
use std::sync::{Arc, Condvar, Mutex, PoisonError};

use punctual_session::ThreadBody;

use crate::draft::{Declared, DraftContext, DraftTarget};
use crate::handle::{Remote, Slot, TaskHandle};
use crate::{Error, Running, Task, TaskDraft};

/// Where tasks are started that may borrow what lives longer than the scope: see
/// [`Running::scope`].
pub struct Scope<'scope, 'env: 'scope> {
    running: &'scope Running,
    alive: Arc<Alive>,
    tasks: Mutex<Vec<Remote>>,
    // Invariant in both, as in std::thread::Scope: neither may be shortened.
    scope: PhantomData<&'scope mut &'scope ()>,
    env: PhantomData<&'env mut &'env ()>,
}

/// Closures of a scope that exist.
struct Alive {
    count: Mutex<usize>,
    none: Condvar,
}

/// Counts one closure until it is dropped.
struct Counted(Arc<Alive>);

impl Counted {
    fn new(alive: &Arc<Alive>) -> Counted {
        *alive.count.lock().unwrap_or_else(PoisonError::into_inner) += 1;
        Counted(alive.clone())
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        let mut count = self.0.count.lock().unwrap_or_else(PoisonError::into_inner);
        *count -= 1;
        self.0.none.notify_all();
    }
}

/// A closure that may borrow. The fields are dropped in this order: the closure before it is
/// counted out.
struct Borrowing {
    body: Box<dyn FnOnce(&Task<'_>) + Send>,
    counted: Counted,
}

impl Running {
    /// Calls `f` with a scope, in which tasks can be started whose closures borrow from the
    /// surrounding function. At the end of `f`, also by a panic, the scope's tasks are asked to end
    /// ([`TaskHandle::stop`]), and waited for: a task that never calls
    /// [`wait_period`](Task::wait_period) or [`is_over`](Task::is_over) keeps it waiting.
    ///
    /// ```no_run
    /// # fn main() -> Result<(), punctual::Error> {
    /// # let running = punctual::Punctual::on_cpu(1).admit()?.start()?;
    /// # use std::time::Duration;
    /// let samples = std::sync::Mutex::new(Vec::new());
    /// running.scope(|scope| {
    ///     let sampler = scope
    ///         .task("sampler")
    ///         .period(Duration::from_millis(1))
    ///         .budget(Duration::from_micros(100))
    ///         .spawn_scoped(|task| {
    ///             for release in task.releases().take(1_000) {
    ///                 samples.lock().unwrap().push(release.release);
    ///             }
    ///         })?;
    ///     sampler.join().map_err(|e| punctual::Error::machine(e.to_string(), "see the sampler"))
    /// })?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn scope<'env, F, R>(&self, f: F) -> R
    where
        F: for<'scope> FnOnce(&'scope Scope<'scope, 'env>) -> R,
    {
        let alive = Arc::new(Alive { count: Mutex::new(0), none: Condvar::new() });
        let tasks = Mutex::new(Vec::new());
        let scope = Scope { running: self, alive, tasks, scope: PhantomData, env: PhantomData };
        let result = catch_unwind(AssertUnwindSafe(|| f(&scope)));
        for task in scope.tasks.lock().unwrap_or_else(PoisonError::into_inner).iter() {
            // One that has ended cannot be stopped any more.
            let _ = task.stop();
        }
        let mut count = scope.alive.count.lock().unwrap_or_else(PoisonError::into_inner);
        while *count > 0 {
            count = scope.alive.none.wait(count).unwrap_or_else(PoisonError::into_inner);
        }
        drop(count);
        result.unwrap_or_else(|panic| resume_unwind(panic))
    }
}

impl<'scope> Scope<'scope, '_> {
    /// Begins a task; [`spawn_scoped`](TaskDraft::spawn_scoped) ends it.
    pub fn task(&'scope self, name: impl Into<String>) -> TaskDraft<&'scope Self> {
        TaskDraft::new(self, name.into())
    }
}

impl<'scope> TaskDraft<&'scope Scope<'scope, '_>> {
    /// As [`spawn`](TaskDraft::spawn), with a closure that may borrow what lives longer than the
    /// scope.
    ///
    /// # Errors
    /// As of a task in a [`Running`] set.
    pub fn spawn_scoped(
        self,
        body: impl FnOnce(&Task<'_>) + Send + 'scope,
    ) -> Result<TaskHandle<()>, Error> {
        let counted = Counted::new(&self.place().alive);
        let body: Box<dyn FnOnce(&Task<'_>) + Send + 'scope> = Box::new(body);
        // SAFETY: only the lifetime changes. `Running::scope` returns only when every closure that
        // was counted has been dropped (also one that was never called), so none outlives 'scope.
        // `Borrowing` keeps that order.
        let body: Box<dyn FnOnce(&Task<'_>) + Send> = unsafe { std::mem::transmute(body) };
        let borrowing = Borrowing { body, counted };
        let slot = Slot::new();
        let (value, name) = (slot.clone(), self.name().to_owned());
        let body: ThreadBody = Box::new(move |task| {
            let Borrowing { body, counted } = borrowing;
            // A panic drops the closure while it unwinds, and `_counted` after it.
            let _counted = counted;
            body(&Task::new(&name, task, &Cell::new(false)));
            value.set_value(());
        });
        self.finish_thread(body, slot)
    }
}

impl<'scope> DraftTarget for &'scope Scope<'scope, '_> {
    type Output<T: Send + 'static> = Result<TaskHandle<T>, Error>;

    fn context(&self) -> DraftContext<'_> {
        self.running.context()
    }

    fn put<T: Send + 'static>(
        self,
        task: Result<Declared, Error>,
        handle: TaskHandle<T>,
    ) -> Result<TaskHandle<T>, Error> {
        let handle = DraftTarget::put(self.running, task, handle)?;
        self.tasks.lock().unwrap_or_else(PoisonError::into_inner).push(handle.remote());
        Ok(handle)
    }
}
