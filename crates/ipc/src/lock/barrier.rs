//! A barrier between processes.
//!
//! One word has the number of the phase, and how many have come in it; it changes by one step for
//! each that comes. Those that wait sleep on the phase.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use punctual_diagnostic::Diagnostic;
use punctual_sys::{clock, futex};

use super::page::LockPage;
use super::{remove, LockKind, SharedLockError, LOOK_AGAIN_NS};
use crate::name::Name;
use crate::namespace::{Lifetime, Namespace};

/// Where the phase is; below it, how many have come.
const PHASE: u32 = 32;

/// The most parties that a [`SharedBarrier`] can have.
pub const MOST_PARTIES: u32 = 1 << 20;

/// Threads of any processes wait until so many are there, again and again. Waiting is a
/// self-suspension.
///
/// A barrier counts those that come, and knows none of them. One that is killed while it waits has
/// come; from then on one is missing, and the others wait for another in its place. Wait until a
/// time where that may happen.
#[derive(Debug)]
pub struct SharedBarrier {
    page: LockPage,
}

impl SharedBarrier {
    /// Makes a barrier of this name, at which `parties` meet: 1 to [`MOST_PARTIES`].
    ///
    /// # Errors
    /// Too few or too many parties (EINVAL); as of
    /// [`SharedMutex::create`](super::SharedMutex::create).
    pub fn create(
        namespace: &Namespace,
        name: &Name,
        parties: u32,
        lifetime: Lifetime,
    ) -> Result<Self, Diagnostic> {
        let kind = LockKind::Barrier;
        if !kind.takes(parties) {
            return Err(Diagnostic::usage(
                format!("a barrier cannot be for {parties}"),
                format!("use 1 to {MOST_PARTIES}"),
            )
            .with_errno(libc::EINVAL));
        }
        Ok(Self { page: LockPage::create(namespace, name, kind, lifetime, parties, |_| ())? })
    }

    /// Opens the barrier of this name.
    ///
    /// # Errors
    /// As of [`SharedMutex::open`](super::SharedMutex::open).
    pub fn open(namespace: &Namespace, name: &Name) -> Result<Self, Diagnostic> {
        Ok(Self { page: LockPage::open(namespace, name, Some(LockKind::Barrier))? })
    }

    /// Removes the name. Programs that have it open keep it.
    ///
    /// # Errors
    /// As of [`SharedMutex::remove`](super::SharedMutex::remove).
    pub fn remove(namespace: &Namespace, name: &Name) -> Result<(), Diagnostic> {
        remove(namespace, name, LockKind::Barrier)
    }

    /// How many meet at it.
    #[must_use]
    pub fn parties(&self) -> u32 {
        self.page.parameter()
    }

    /// Waits until all are there; true in the one that came last. Real-time safe.
    ///
    /// # Errors
    /// [`SharedLockError::Damaged`].
    pub fn wait(&self) -> Result<bool, SharedLockError> {
        self.wait_until(u64::MAX)
    }

    /// The same until `until` at most (CLOCK_MONOTONIC ns).
    ///
    /// # Errors
    /// [`SharedLockError::TimedOut`]: this one has not come, unless the others have meanwhile;
    /// [`SharedLockError::Damaged`].
    pub fn wait_until(&self, until: u64) -> Result<bool, SharedLockError> {
        let (meeting, parties) = (&self.page.state().meeting, self.parties());
        let come = |state: u64| match state as u32 {
            came if came >= parties => None,
            came if came + 1 == parties => Some(next_phase(state)),
            _ => Some(state + 1),
        };
        let before = meeting
            .fetch_update(Ordering::SeqCst, Ordering::SeqCst, come)
            .map_err(|_| SharedLockError::Damaged)?;
        if before as u32 + 1 == parties {
            futex::wake_shared(phase_of(meeting));
            return Ok(true);
        }
        self.sleep((before >> PHASE) as u32, until).map(|()| false)
    }

    fn sleep(&self, phase: u32, until: u64) -> Result<(), SharedLockError> {
        let meeting = &self.page.state().meeting;
        let _waits = self.page.waiters().enter(punctual_sys::sched::thread_id() as u32);
        let is_over = |state: u64| (state >> PHASE) as u32 != phase;
        loop {
            let state = meeting.load(Ordering::SeqCst);
            if is_over(state) {
                return Ok(());
            }
            let now = clock::monotonic_ns();
            if now >= until {
                // Unless the others have come meanwhile.
                let leave = |state: u64| (!is_over(state) && state as u32 > 0).then(|| state - 1);
                return match meeting.fetch_update(Ordering::SeqCst, Ordering::SeqCst, leave) {
                    Ok(_) => Err(SharedLockError::TimedOut),
                    Err(state) if is_over(state) => Ok(()),
                    Err(_) => Err(SharedLockError::Damaged),
                };
            }
            // The one that came last may be killed before it wakes the others.
            let look_again = until.min(now.saturating_add(LOOK_AGAIN_NS));
            futex::wait_shared(phase_of(meeting), phase, look_again);
        }
    }

    /// How many have come in this phase, of a barrier's page.
    pub(super) fn came_of(page: &LockPage) -> u32 {
        (page.state().meeting.load(Ordering::Relaxed) as u32).min(page.parameter())
    }
}

fn next_phase(state: u64) -> u64 {
    (state >> PHASE).wrapping_add(1) << PHASE
}

/// The half of the word that those sleep on that wait.
fn phase_of(meeting: &AtomicU64) -> &AtomicU32 {
    let half = meeting.as_ptr().cast::<u32>();
    let half = if cfg!(target_endian = "big") { half } else { half.wrapping_add(1) };
    // SAFETY: within the word; only the kernel reads it.
    unsafe { AtomicU32::from_ptr(half) }
}
