//! Counting and binary semaphores between processes.
//!
//! The units are in one word, with a bit that the first thread sets that has to wait: from then on
//! each release is a system call. A release adds the unit before it wakes a thread, and gives it to
//! none: if that thread is killed, the unit is still there, for the next one that asks, or that
//! looks again after a second.

use std::sync::atomic::{AtomicU32, Ordering};

use punctual_diagnostic::Diagnostic;
use punctual_sys::{clock, futex};

use super::page::LockPage;
use super::{remove, LockKind, SharedLockError, LOOK_AGAIN_NS};
use crate::name::Name;
use crate::namespace::{Lifetime, Namespace};

/// Threads wait, or have waited.
const WAITED: u32 = 1 << 31;

/// The most units that a [`SharedSemaphore`] can have.
pub const MOST_UNITS: u32 = WAITED - 1;

/// A number of units that threads of any processes acquire and release.
///
/// Waiting is a self-suspension; nothing is lent, as a semaphore has no holder. A process that is
/// killed does not give back the units that it has acquired. Of threads that wait, the kernel wakes
/// the best one of its real-time levels, then the one that has waited longest; another one may take
/// the unit before it.
#[derive(Debug)]
pub struct SharedSemaphore {
    page: LockPage,
}

impl SharedSemaphore {
    /// Makes a semaphore of this name that has `units` and at most `maximum`: 1 for a binary
    /// semaphore, at most [`MOST_UNITS`].
    ///
    /// # Errors
    /// More units than the maximum, or a maximum of 0 or beyond [`MOST_UNITS`] (EINVAL); as of
    /// [`SharedMutex::create`](super::SharedMutex::create).
    pub fn create(
        namespace: &Namespace,
        name: &Name,
        units: u32,
        maximum: u32,
        lifetime: Lifetime,
    ) -> Result<Self, Diagnostic> {
        if units > maximum || !LockKind::Semaphore.takes(maximum) {
            return Err(Diagnostic::usage(
                format!("a semaphore cannot have {units} units and at most {maximum}"),
                format!("use a maximum of 1 to {MOST_UNITS}, and at most as many units"),
            )
            .with_errno(libc::EINVAL));
        }
        let kind = LockKind::Semaphore;
        let fill = |state: &super::page::LockState| state.units.store(units, Ordering::Relaxed);
        Ok(Self { page: LockPage::create(namespace, name, kind, lifetime, maximum, fill)? })
    }

    /// Opens the semaphore of this name.
    ///
    /// # Errors
    /// As of [`SharedMutex::open`](super::SharedMutex::open).
    pub fn open(namespace: &Namespace, name: &Name) -> Result<Self, Diagnostic> {
        Ok(Self { page: LockPage::open(namespace, name, Some(LockKind::Semaphore))? })
    }

    /// Removes the name. Programs that have it open keep it.
    ///
    /// # Errors
    /// As of [`SharedMutex::remove`](super::SharedMutex::remove).
    pub fn remove(namespace: &Namespace, name: &Name) -> Result<(), Diagnostic> {
        remove(namespace, name, LockKind::Semaphore)
    }

    /// The most units that it can have.
    #[must_use]
    pub fn maximum(&self) -> u32 {
        self.page.parameter()
    }

    /// Takes a unit, and waits for one. Real-time safe.
    ///
    /// # Errors
    /// [`SharedLockError::Damaged`].
    pub fn acquire(&self) -> Result<(), SharedLockError> {
        self.acquire_until(u64::MAX)
    }

    /// The same until `until` at most (CLOCK_MONOTONIC ns).
    ///
    /// # Errors
    /// [`SharedLockError::TimedOut`]; [`SharedLockError::Damaged`].
    pub fn acquire_until(&self, until: u64) -> Result<(), SharedLockError> {
        match self.try_acquire() {
            Err(SharedLockError::NoUnit) => self.wait(until),
            done => done,
        }
    }

    #[cold]
    fn wait(&self, until: u64) -> Result<(), SharedLockError> {
        let units = &self.page.state().units;
        let _waits = self.page.waiters().enter(punctual_sys::sched::thread_id() as u32);
        loop {
            units.fetch_or(WAITED, Ordering::SeqCst);
            match self.try_acquire() {
                Err(SharedLockError::NoUnit) => {}
                done => return done,
            }
            let now = clock::monotonic_ns();
            if now >= until {
                return Err(SharedLockError::TimedOut);
            }
            futex::wait_shared(units, WAITED, until.min(now.saturating_add(LOOK_AGAIN_NS)));
        }
    }

    /// Takes a unit, if there is one. Real-time safe.
    ///
    /// # Errors
    /// [`SharedLockError::NoUnit`]: there is none; [`SharedLockError::Damaged`].
    #[inline]
    pub fn try_acquire(&self) -> Result<(), SharedLockError> {
        self.change(|units| units.checked_sub(1), SharedLockError::NoUnit).map(drop)
    }

    /// Adds a unit, and wakes a thread that waits. Real-time safe.
    ///
    /// # Errors
    /// [`SharedLockError::Full`]: it has its maximum; [`SharedLockError::Damaged`].
    #[inline]
    pub fn release(&self) -> Result<(), SharedLockError> {
        let more = |units: u32| (units < self.maximum()).then_some(units + 1);
        let before = self.change(more, SharedLockError::Full)?;
        if before & WAITED != 0 {
            futex::wake_one_shared(&self.page.state().units);
        }
        Ok(())
    }

    /// Changes the number of units; returns the word before.
    #[inline]
    fn change(
        &self,
        to: impl Fn(u32) -> Option<u32>,
        refusal: SharedLockError,
    ) -> Result<u32, SharedLockError> {
        let (units, maximum) = (&self.page.state().units, self.maximum());
        let changed = |word: u32| {
            let units = word & !WAITED;
            to(units).filter(|_| units <= maximum).map(|to| to | word & WAITED)
        };
        units.fetch_update(Ordering::SeqCst, Ordering::SeqCst, changed).map_err(|word| {
            match word & !WAITED {
                units if units > maximum => SharedLockError::Damaged,
                _ => refusal,
            }
        })
    }

    /// The units of a semaphore's page; no more than its maximum.
    pub(super) fn units_of(page: &LockPage) -> u32 {
        let units: &AtomicU32 = &page.state().units;
        (units.load(Ordering::Relaxed) & !WAITED).min(page.parameter())
    }
}
