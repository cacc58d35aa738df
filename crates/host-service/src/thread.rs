//! A thread of this program with a reservation, as its own code and its host see it.
//!
//! ```text
//!  host:   prepare_entry ────────> add_entered: Reserve(tid) ──────┐
//!  thread:            └──> enter                await_first_release ┴─> its jobs ─> drop
//! ```

use std::cell::{Cell, OnceCell, RefCell};
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use punctual_service::{PageRelease, ReservedThread, ServiceClient};
use punctual_sys::sched::thread_id;
use punctual_trace::TaskEnd;

/// The connection of a host; `None` once it is closed.
pub(crate) type SharedClient = Arc<Mutex<Option<ServiceClient>>>;

thread_local! {
    static IS_TASK: Cell<bool> = const { Cell::new(false) };
}

/// Whether the calling thread is a task of the service, by a host of this process.
#[must_use]
pub fn is_service_thread() -> bool {
    IS_TASK.get()
}

/// What a thread that is a task, or is to become one, shares with its host.
#[derive(Debug)]
pub struct ServiceEntry {
    tid: AtomicI32,
    /// On its way to the thread.
    reserved: Mutex<Option<ReservedThread>>,
    /// Nothing is guaranteed any more: the run is over, or the service has ended.
    over: AtomicBool,
    /// How it ended, once its reservation is released.
    how: OnceLock<TaskEnd>,
    client: SharedClient,
}

impl ServiceEntry {
    pub(crate) fn new(client: &SharedClient) -> Arc<ServiceEntry> {
        Arc::new(ServiceEntry {
            tid: AtomicI32::new(0),
            reserved: Mutex::new(None),
            over: AtomicBool::new(false),
            how: OnceLock::new(),
            client: client.clone(),
        })
    }

    /// Makes the calling thread the one for which the host is to reserve.
    #[must_use]
    pub fn enter(self: &Arc<ServiceEntry>) -> ServiceThread {
        self.tid.store(thread_id(), Relaxed);
        IS_TASK.set(true);
        ServiceThread {
            entry: self.clone(),
            reserved: OnceCell::new(),
            end: RefCell::new(TaskEnd::Returned),
        }
    }

    /// The thread that has entered.
    pub(crate) fn tid(&self) -> i32 {
        self.tid.load(Relaxed)
    }

    /// The reservation is made.
    pub(crate) fn pass(&self, reserved: ReservedThread) {
        *lock(&self.reserved) = Some(reserved);
    }

    /// Nothing is guaranteed any more.
    pub(crate) fn set_over(&self) {
        self.over.store(true, Relaxed);
    }

    /// How it ended, if it has.
    pub(crate) fn how(&self) -> Option<TaskEnd> {
        self.how.get().cloned()
    }
}

/// The task of the service that the calling thread is. Dropping it releases the reservation: the
/// thread continues as it was before.
///
/// Its methods are real-time safe, but for the drop.
#[derive(Debug)]
pub struct ServiceThread {
    entry: Arc<ServiceEntry>,
    /// Missing until the host has reserved.
    reserved: OnceCell<ReservedThread>,
    end: RefCell<TaskEnd>,
}

impl ServiceThread {
    /// Waits for the first release. The host has reserved.
    pub fn await_first_release(&self) {
        if let Some(reserved) = lock(&self.entry.reserved).take() {
            let _ = self.reserved.set(reserved);
        }
        let _ = self.wait_period();
    }

    /// The job is done: waits for the next release
    /// ([`ReservedThread::wait_period`](punctual_service::ReservedThread::wait_period)). `None`
    /// when the run, the reservation or the service has ended.
    pub fn wait_period(&self) -> Option<PageRelease> {
        let released = match self.is_over() {
            true => None,
            false => self.reserved.get().and_then(ReservedThread::wait_period),
        };
        if released.is_none() {
            self.entry.set_over();
        }
        released
    }

    /// The job is done, and the task suspended: as [`wait_period`](ServiceThread::wait_period), and
    /// returns only when it was resumed as often as it was suspended. Waits for an answer of the
    /// service first.
    pub fn suspend(&self) -> Option<PageRelease> {
        if let (Some(reserved), false) = (self.reserved.get(), self.is_over()) {
            if let Some(client) = lock(&self.entry.client).as_mut() {
                // Where it cannot be suspended, it waits for its next release.
                let _ = client.suspend(reserved.info().id);
            }
        }
        self.wait_period()
    }

    /// The release on whose budget the thread executes; `lost` is what no wait has returned yet.
    #[must_use]
    pub fn current(&self) -> PageRelease {
        self.reserved.get().map_or_else(PageRelease::default, ReservedThread::current)
    }

    /// The remaining budget of this release, ns of execution.
    #[must_use]
    pub fn remaining_budget(&self) -> u64 {
        self.reserved.get().map_or(0, ReservedThread::remaining_budget)
    }

    /// The run, the reservation or the service has ended.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.entry.over.load(Relaxed) || self.reserved.get().is_none_or(ReservedThread::is_over)
    }

    /// Its end, to be reported once this is dropped; else it returned.
    pub fn end_with(&self, how: TaskEnd) {
        *self.end.borrow_mut() = how;
    }
}

impl Drop for ServiceThread {
    fn drop(&mut self) {
        let reserved = self.reserved.take().or_else(|| lock(&self.entry.reserved).take());
        if let Some(reserved) = reserved.filter(|reserved| !reserved.is_over()) {
            if let Some(client) = lock(&self.entry.client).as_mut() {
                // A service that has ended has released it.
                let _ = client.release(reserved.info().id);
            }
        }
        IS_TASK.set(false);
        let _ = self.entry.how.set(self.end.replace(TaskEnd::Returned));
    }
}

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
