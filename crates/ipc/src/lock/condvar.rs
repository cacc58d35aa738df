//! A condition variable between processes.
//!
//! A notification adds to a sequence number, and wakes threads that sleep while it is what they
//! have read with the mutex locked. Nothing else is written, so that a thread that is killed leaves
//! nothing behind. A notification that wakes a thread which is then killed is lost to the others:
//! so each looks again once a second, which returns without a notification.

use std::sync::atomic::Ordering;

use punctual_diagnostic::Diagnostic;
use punctual_sys::{clock, futex};

use super::mutex::{LockOutcome, SharedMutex, SharedMutexGuard};
use super::page::LockPage;
use super::thread::CallingThread;
use super::{remove, LockKind, SharedLockError, LOOK_AGAIN_NS};
use crate::name::Name;
use crate::namespace::{Lifetime, Namespace};

/// Threads of any processes wait for a condition of what a [`SharedMutex`] protects.
///
/// Waiting is a self-suspension. A wait may return without a notification, once a second at least:
/// look at the condition again.
///
/// ```no_run
/// # use punctual_ipc::{LockOutcome, SharedCondvar, SharedLockError, SharedMutex};
/// # fn wait(mutex: &SharedMutex, filled: &SharedCondvar, is_empty: impl Fn() -> bool)
/// #     -> Result<(), SharedLockError> {
/// let mut guard = mutex.lock()?.into_guard();
/// while is_empty() {
///     guard = filled.wait(guard)?.into_guard();
/// }
/// # Ok(()) }
/// ```
#[derive(Debug)]
pub struct SharedCondvar {
    page: LockPage,
}

/// How a wait of [`SharedCondvar::wait_unlocked`] ended, after which the mutex is locked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ConditionWait {
    /// False: the mutex is locked after the death of a holder.
    pub consistent: bool,
    /// The time was over before a notification came.
    pub timed_out: bool,
}

impl SharedCondvar {
    /// Makes a condition variable of this name.
    ///
    /// # Errors
    /// As of [`SharedMutex::create`].
    pub fn create(
        namespace: &Namespace,
        name: &Name,
        lifetime: Lifetime,
    ) -> Result<Self, Diagnostic> {
        let page = LockPage::create(namespace, name, LockKind::Condvar, lifetime, 0, |_| ())?;
        Ok(Self { page })
    }

    /// Opens the condition variable of this name.
    ///
    /// # Errors
    /// As of [`SharedMutex::open`].
    pub fn open(namespace: &Namespace, name: &Name) -> Result<Self, Diagnostic> {
        Ok(Self { page: LockPage::open(namespace, name, Some(LockKind::Condvar))? })
    }

    /// Removes the name. Programs that have it open keep it.
    ///
    /// # Errors
    /// As of [`SharedMutex::remove`].
    pub fn remove(namespace: &Namespace, name: &Name) -> Result<(), Diagnostic> {
        remove(namespace, name, LockKind::Condvar)
    }

    /// Unlocks the mutex, waits for a notification, and locks it again. Real-time safe.
    ///
    /// # Errors
    /// An error of locking: the mutex is not locked then.
    pub fn wait<'a>(
        &self,
        guard: SharedMutexGuard<'a>,
    ) -> Result<LockOutcome<'a>, SharedLockError> {
        self.wait_until(guard, u64::MAX).map(|(outcome, _)| outcome)
    }

    /// The same until `until` at most (CLOCK_MONOTONIC ns); true: that time came first.
    ///
    /// # Errors
    /// As of [`wait`](Self::wait).
    pub fn wait_until<'a>(
        &self,
        guard: SharedMutexGuard<'a>,
        until: u64,
    ) -> Result<(LockOutcome<'a>, bool), SharedLockError> {
        let mutex = guard.into_mutex();
        let waited = self.wait_unlocked(mutex, until)?;
        let guard = SharedMutexGuard::of(mutex);
        let outcome = match waited.consistent {
            true => LockOutcome::Locked(guard),
            false => LockOutcome::LockedAfterDeath(guard),
        };
        Ok((outcome, waited.timed_out))
    }

    /// [`wait_until`](Self::wait_until) without a guard, for interfaces of other languages.
    ///
    /// # Errors
    /// [`SharedLockError::NotHeld`] by this thread; or an error of locking: the mutex is not locked
    /// then.
    pub fn wait_unlocked(
        &self,
        mutex: &SharedMutex,
        until: u64,
    ) -> Result<ConditionWait, SharedLockError> {
        let tid = CallingThread::current()?.tid;
        let sequence = &self.page.state().sequence;
        // With the mutex locked: a notification that comes later has another number.
        let seen = sequence.load(Ordering::SeqCst);
        match mutex.release() {
            // The word says what it will; locking again finds out.
            Ok(()) | Err(SharedLockError::Damaged) => {}
            Err(error) => return Err(error),
        }
        let look_again = clock::monotonic_ns().saturating_add(LOOK_AGAIN_NS);
        let waits = self.page.waiters().enter(tid);
        let timed_out = loop {
            if sequence.load(Ordering::SeqCst) != seen {
                break false;
            }
            let now = clock::monotonic_ns();
            if now >= until {
                break true;
            }
            if now >= look_again {
                break false;
            }
            futex::wait_shared(sequence, seen, until.min(look_again));
        };
        drop(waits);
        let consistent = mutex.acquire(u64::MAX)?;
        Ok(ConditionWait { consistent, timed_out })
    }

    /// Wakes a thread that waits, if one does: the best one of the kernel's real-time levels, then
    /// the one that has waited longest. Real-time safe.
    pub fn notify_one(&self) {
        let sequence = &self.page.state().sequence;
        sequence.fetch_add(1, Ordering::SeqCst);
        futex::wake_one_shared(sequence);
    }

    /// Wakes all threads that wait. Real-time safe.
    pub fn notify_all(&self) {
        let sequence = &self.page.state().sequence;
        sequence.fetch_add(1, Ordering::SeqCst);
        futex::wake_shared(sequence);
    }
}
