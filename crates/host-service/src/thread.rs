//! A thread of this program with a reservation, as its own code and its host see it.
//!
//! ```text
//!  host:   prepare_entry ────────> add_entered: Reserve(tid) ──────┐
//!  thread:            └──> enter                await_first_release ┴─> its jobs ─> drop
//! ```
//!
//! When the service is replaced by another process, the reservation ends, because its page is
//! sealed. The host reserves again, and the thread finds that where it waits for its release; in
//! between it is an ordinary one.

use std::cell::{Cell, RefCell};
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use punctual_service::{PageRelease, ReservedThread, ServiceClient};
use punctual_sys::sched::thread_id;
use punctual_trace::TaskEnd;

use crate::suspension::CurrentReservation;

/// How long a thread whose reservation has ended waits for another one, or for the end of the run.
const PATIENCE: Duration = Duration::from_secs(5);

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

/// A release by which those of another reservation are numbered.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LastRelease {
    pub number: u64,
    /// CLOCK_MONOTONIC, ns.
    pub time: u64,
}

impl LastRelease {
    /// The number of a later one, whole periods of `period_ns` from this.
    pub fn number_at(&self, time: u64, period_ns: u64) -> u64 {
        self.number + time.saturating_sub(self.time) / period_ns.max(1)
    }
}

/// What a thread that is a task, or is to become one, shares with its host.
#[derive(Debug)]
pub struct ServiceEntry {
    tid: AtomicI32,
    /// On its way to the thread, with the last release of the reservation before.
    reserved: Mutex<Option<(ReservedThread, Option<LastRelease>)>>,
    reservation: OnceLock<Arc<CurrentReservation>>,
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
            reservation: OnceLock::new(),
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
            reserved: RefCell::new(None),
            first: Cell::new(0),
            before: Cell::new(None),
            next: Cell::new(0),
            end: RefCell::new(TaskEnd::Returned),
        }
    }

    /// The thread that has entered.
    pub(crate) fn tid(&self) -> i32 {
        self.tid.load(Relaxed)
    }

    /// The first reservation is made.
    pub(crate) fn pass(&self, reserved: ReservedThread, reservation: &Arc<CurrentReservation>) {
        let _ = self.reservation.set(reservation.clone());
        self.pass_again(reserved, None);
    }

    /// Another one is made; `last`: the last release of the one before.
    pub(crate) fn pass_again(&self, reserved: ReservedThread, last: Option<LastRelease>) {
        *lock(&self.reserved) = Some((reserved, last));
    }

    /// Nothing is guaranteed any more, or the thread has ended.
    pub(crate) fn is_over(&self) -> bool {
        self.over.load(Relaxed) || self.how.get().is_some()
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
/// Its methods are real-time safe, but for the drop, [`suspend`](ServiceThread::suspend), and a
/// wait in which the service is replaced.
#[derive(Debug)]
pub struct ServiceThread {
    entry: Arc<ServiceEntry>,
    /// Missing until the host has reserved.
    reserved: RefCell<Option<ReservedThread>>,
    /// The number of its page's release 0.
    first: Cell<u64>,
    /// The last release of the reservation before, until one of this was waited for: `first` is
    /// computed from it.
    before: Cell<Option<LastRelease>>,
    /// The number after that of the release that a wait returned last.
    next: Cell<u64>,
    end: RefCell<TaskEnd>,
}

impl ServiceThread {
    /// Waits for the first release. The host has reserved.
    pub fn await_first_release(&self) {
        let _ = self.take_reservation();
        let _ = self.wait_period();
    }

    /// Takes the reservation that is on its way; whether there was one.
    fn take_reservation(&self) -> bool {
        let Some((reserved, last)) = lock(&self.entry.reserved).take() else { return false };
        *self.reserved.borrow_mut() = Some(reserved);
        self.before.set(last);
        true
    }

    /// The job is done: waits for the next release
    /// ([`ReservedThread::wait_period`](punctual_service::ReservedThread::wait_period)), after
    /// which a thread may have another reservation, by another process of the service. `None` when
    /// the run, the reservation or the service has ended.
    pub fn wait_period(&self) -> Option<PageRelease> {
        while !self.is_over() {
            let released = self.reserved.borrow().as_ref()?.wait_period();
            if let Some(released) = released {
                let released = self.follow(released);
                self.next.set(released.number + 1);
                return Some(released);
            }
            if !self.await_reservation() {
                self.entry.set_over();
            }
        }
        None
    }

    /// Waits until the host has reserved again; false: it does not.
    fn await_reservation(&self) -> bool {
        let until = Instant::now() + PATIENCE;
        while !self.is_over() && Instant::now() < until {
            if self.take_reservation() {
                return true;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        false
    }

    /// A release that a wait returned; of the first one of another reservation, those that came
    /// while there was none are lost.
    fn follow(&self, release: PageRelease) -> PageRelease {
        let Some(last) = self.before.take() else { return self.numbered(release) };
        let period = self.reserved.borrow().as_ref().map_or(0, |own| own.info().period_ns);
        let number = last.number_at(release.release, period);
        self.first.set(number.saturating_sub(release.number));
        let lost = number.saturating_sub(self.next.get()).try_into().unwrap_or(u32::MAX);
        PageRelease { number, lost, ..release }
    }

    fn numbered(&self, release: PageRelease) -> PageRelease {
        PageRelease { number: self.first.get() + release.number, ..release }
    }

    /// The job is done, and the task suspended: as [`wait_period`](ServiceThread::wait_period), and
    /// returns only when it was resumed as often as it was suspended. Waits for an answer of the
    /// service first.
    pub fn suspend(&self) -> Option<PageRelease> {
        if let (Some(reservation), Some(reserved), false) =
            (self.entry.reservation.get(), &*self.reserved.borrow(), self.is_over())
        {
            if let Some(client) = lock(&self.entry.client).as_mut() {
                // Where it cannot be suspended, it waits for its next release.
                let _ = reserved.suspend_by(|| reservation.suspend(client));
            }
        }
        self.wait_period()
    }

    /// The release on whose budget the thread executes; `lost` is what no wait has returned yet.
    #[must_use]
    pub fn current(&self) -> PageRelease {
        let reserved = self.reserved.borrow();
        self.numbered(reserved.as_ref().map_or_else(PageRelease::default, ReservedThread::current))
    }

    /// The remaining budget of this release, ns of execution.
    #[must_use]
    pub fn remaining_budget(&self) -> u64 {
        self.reserved.borrow().as_ref().map_or(0, ReservedThread::remaining_budget)
    }

    /// The run, the reservation or the service has ended.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.entry.is_over()
    }

    /// Its end, to be reported once this is dropped; else it returned.
    pub fn end_with(&self, how: TaskEnd) {
        *self.end.borrow_mut() = how;
    }
}

impl Drop for ServiceThread {
    fn drop(&mut self) {
        // The host reserves no more from here on.
        self.entry.set_over();
        if let Some(client) = lock(&self.entry.client).as_mut() {
            // What is on its way is the latest.
            let _ = self.take_reservation();
            let reserved = self.reserved.take().filter(|reserved| !reserved.is_over());
            // A service that has ended has released it.
            let _ = reserved.map(|reserved| client.release(reserved.info().id));
        }
        IS_TASK.set(false);
        let _ = self.entry.how.set(self.end.replace(TaskEnd::Returned));
    }
}

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
