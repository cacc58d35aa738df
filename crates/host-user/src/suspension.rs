//! Tasks that are suspended by request, until they are resumed.
//!
//! Any thread counts suspensions up and down, and rings; the engine compares each member with its
//! count. While it is not 0, releases come and end at once. Programs are frozen at once. A thread
//! of this process, and one that waits by a page, is suspended where it waits for its next release,
//! because anywhere else it may hold a lock that the thread which is to resume it needs, such as
//! the allocator's.

use std::sync::atomic::{AtomicU32, Ordering::SeqCst};
use std::sync::Arc;

use punctual_policies::LocalDispatcher;

use crate::doorbell::Doorbell;
use crate::engine::Engine;
use crate::member::{MemberKind, RunMode};

/// The task has ended, or is to end.
const ENDED: u32 = u32::MAX;

/// How often a task is suspended. Real-time safe.
#[derive(Debug)]
pub struct Suspension {
    count: AtomicU32,
    doorbell: Arc<Doorbell>,
}

/// Why a task was neither suspended nor resumed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SuspensionError {
    /// It has ended, or is to end.
    Ended,
    /// It is suspended 2^32 - 2 times.
    Full,
    /// It is not suspended.
    NotSuspended,
}

impl Suspension {
    pub(crate) fn new(doorbell: Arc<Doorbell>) -> Suspension {
        Suspension { count: AtomicU32::new(0), doorbell }
    }

    /// Suspends the task once more.
    ///
    /// # Errors
    /// [`SuspensionError::Ended`], [`SuspensionError::Full`].
    pub fn suspend(&self) -> Result<(), SuspensionError> {
        self.change(|count| match count + 1 {
            ENDED => Err(SuspensionError::Full),
            more => Ok(more),
        })
    }

    /// Takes back one suspension; after the last one the task continues with its next release.
    ///
    /// # Errors
    /// [`SuspensionError::Ended`], [`SuspensionError::NotSuspended`].
    pub fn resume(&self) -> Result<(), SuspensionError> {
        self.change(|count| count.checked_sub(1).ok_or(SuspensionError::NotSuspended))
    }

    fn change(
        &self,
        to: impl Fn(u32) -> Result<u32, SuspensionError>,
    ) -> Result<(), SuspensionError> {
        let mut count = self.count.load(SeqCst);
        loop {
            if count == ENDED {
                return Err(SuspensionError::Ended);
            }
            match self.count.compare_exchange_weak(count, to(count)?, SeqCst, SeqCst) {
                Ok(_) => break,
                Err(now) => count = now,
            }
        }
        self.doorbell.note_suspension();
        Ok(())
    }

    /// The task has ended, or is to end: it cannot be suspended any more.
    pub(crate) fn end(&self) {
        if self.count.swap(ENDED, SeqCst) != 0 {
            self.doorbell.note_suspension();
        }
    }

    pub(crate) fn is_wanted(&self) -> bool {
        !matches!(self.count.load(SeqCst), 0 | ENDED)
    }
}

impl Engine {
    /// Follows all counts, if one has changed.
    pub(crate) fn follow_suspensions(&mut self, now: u64) {
        if self.doorbell.take_suspensions() {
            for i in 0..self.members.len() as u32 {
                self.follow_suspension(i, now);
            }
        }
    }

    /// Suspends or resumes the member of this slot, if its count says so and it is where it can be.
    pub(crate) fn follow_suspension(&mut self, i: u32, now: u64) {
        let Engine { dispatcher, allocators, members, .. } = self;
        let Some(m) = members.get_mut(i as usize).and_then(|m| m.as_deref_mut()) else { return };
        let wanted = m.suspension.is_wanted();
        let where_it_waits = matches!(m.kind, MemberKind::Thread(_)) || m.page.is_some();
        if wanted == m.suspended || wanted && where_it_waits && !m.waiting {
            return;
        }
        if !wanted {
            m.suspended = false;
            allocators.resume(m.task);
            let _ = dispatcher.task_ready(m.task, now);
            return;
        }
        // The control side has checked the policy, so that nothing refuses it.
        if allocators.suspend(&mut LocalDispatcher::new(dispatcher, now), m.task).is_err() {
            return;
        }
        m.suspended = true;
        // Jobs of tasks that wait for its mutexes do not execute it either.
        m.asleep = false;
        let _ = dispatcher.task_blocked(m.task, now);
        if m.run_mode == RunMode::Background {
            m.park();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn suspensions_are_counted_and_end_with_the_task() {
        let suspension = Suspension::new(Arc::new(Doorbell::new()));
        assert_eq!(suspension.resume(), Err(SuspensionError::NotSuspended));
        assert_eq!((suspension.suspend(), suspension.suspend()), (Ok(()), Ok(())));
        assert_eq!((suspension.resume(), suspension.is_wanted()), (Ok(()), true));
        assert_eq!((suspension.resume(), suspension.is_wanted()), (Ok(()), false));
        suspension.count.store(ENDED - 1, SeqCst);
        assert_eq!(suspension.suspend(), Err(SuspensionError::Full));
        suspension.end();
        assert!(!suspension.is_wanted());
        assert_eq!(suspension.suspend(), Err(SuspensionError::Ended));
        assert_eq!(suspension.resume(), Err(SuspensionError::Ended));
    }

    #[test]
    fn each_change_is_noted_for_the_engine() {
        let doorbell = Arc::new(Doorbell::new());
        let suspension = Suspension::new(doorbell.clone());
        assert!(suspension.resume().is_err() && !doorbell.take_suspensions());
        for change in [Suspension::suspend, Suspension::resume] {
            assert!(change(&suspension).is_ok() && !doorbell.is_quiet());
            assert!(doorbell.take_suspensions() && doorbell.is_quiet());
        }
        suspension.end();
        assert!(!doorbell.take_suspensions(), "it was not suspended");
    }
}
