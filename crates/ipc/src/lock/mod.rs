//! Locks between processes, found by name: mutexes, condition variables, semaphores, barriers.
//!
//! Each is a page in shared memory, and system calls on it. A process that is killed in any of the
//! calls leaves a state from which the others continue. A page in which another process of the same
//! user writes at random can keep threads waiting, and can let two hold one mutex; it cannot have a
//! call read or write outside of the page, or fail other than by an error.

mod barrier;
mod condvar;
mod mutex;
mod owner;
mod page;
mod semaphore;
mod state;
mod thread;
mod waiters;

use std::fmt;

use punctual_diagnostic::Diagnostic;

pub use barrier::{SharedBarrier, MOST_PARTIES};
pub use condvar::{ConditionWait, SharedCondvar};
pub use mutex::{LockOutcome, SharedMutex, SharedMutexGuard};
pub use semaphore::{SharedSemaphore, MOST_UNITS};
pub use state::{lock_names, remove_lock, SharedLockOwner, SharedLockState, SharedLockUse};
pub use thread::MOST_HELD;

use crate::name::Name;
use crate::namespace::Namespace;
use crate::object::{Object, ObjectKind};
use page::LockPage;

/// How long a sleeping thread relies on being woken, ns: the thread that is to wake it may be
/// killed before it does.
const LOOK_AGAIN_NS: u64 = 1_000_000_000;

/// What a lock is. All kinds have their names in common.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LockKind {
    /// A [`SharedMutex`].
    Mutex,
    /// A [`SharedCondvar`].
    Condvar,
    /// A [`SharedSemaphore`].
    Semaphore,
    /// A [`SharedBarrier`].
    Barrier,
}

impl LockKind {
    const ALL: [Self; 4] = [Self::Mutex, Self::Condvar, Self::Semaphore, Self::Barrier];

    fn number(self) -> u32 {
        self as u32
    }

    fn of_number(number: u32) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.number() == number)
    }

    /// Whether this is a parameter of such a lock.
    fn takes(self, parameter: u32) -> bool {
        match self {
            Self::Mutex | Self::Condvar => parameter == 0,
            Self::Semaphore => (1..=MOST_UNITS).contains(&parameter),
            Self::Barrier => (1..=MOST_PARTIES).contains(&parameter),
        }
    }
}

impl fmt::Display for LockKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Mutex => "mutex",
            Self::Condvar => "condition variable",
            Self::Semaphore => "semaphore",
            Self::Barrier => "barrier",
        })
    }
}

/// Why a call of a lock between processes failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SharedLockError {
    /// Waiting would never end.
    #[error("this thread holds the mutex, or its holder waits for a mutex of this thread")]
    Deadlock,
    /// Another thread holds the mutex.
    #[error("another thread holds the mutex")]
    Busy,
    /// The semaphore has no unit.
    #[error("the semaphore has no unit")]
    NoUnit,
    /// The semaphore has as many units as it can have.
    #[error("the semaphore has its maximum")]
    Full,
    /// The time is over.
    #[error("the time is over")]
    TimedOut,
    /// Another thread holds the mutex, or none does.
    #[error("this thread does not hold the mutex")]
    NotHeld,
    /// No holder has died since the mutex was last called consistent.
    #[error("no thread ended while it held the mutex")]
    Consistent,
    /// The thread holds as many mutexes as it can.
    #[error("the thread holds as many mutexes between processes as it can: {MOST_HELD}")]
    TooMany,
    /// Another program wrote into the memory of the lock what no call writes.
    #[error("the memory of the lock is damaged")]
    Damaged,
    /// The C library has no robust list for this thread, to which others can add.
    #[error("the thread has no robust list; make it by the C library, glibc")]
    NoRobustList,
    /// The thread is ending: its destructors have unlocked what it held.
    #[error("the thread is ending")]
    Ending,
}

impl SharedLockError {
    /// The error number of the C interface.
    #[must_use]
    pub fn errno(self) -> i32 {
        match self {
            Self::Deadlock => libc::EDEADLK,
            Self::Busy => libc::EBUSY,
            Self::Full => libc::EOVERFLOW,
            Self::TimedOut => libc::ETIMEDOUT,
            Self::NotHeld | Self::Ending => libc::EPERM,
            Self::Consistent => libc::EINVAL,
            Self::TooMany | Self::NoUnit => libc::EAGAIN,
            Self::Damaged => libc::EBADMSG,
            Self::NoRobustList => libc::ENOTSUP,
        }
    }
}

/// Removes the name of a lock of this kind, or of one that is damaged.
fn remove(namespace: &Namespace, name: &Name, kind: LockKind) -> Result<(), Diagnostic> {
    match LockPage::open(namespace, name, Some(kind)) {
        Err(error) if error.errno != Some(libc::EBADMSG) => Err(error),
        _ => Object::remove(namespace, ObjectKind::Lock, name),
    }
}
