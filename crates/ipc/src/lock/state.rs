//! Locks of any kind, seen from outside.

use std::sync::atomic::Ordering;

use punctual_diagnostic::Diagnostic;
use punctual_sys::pi_futex::{OWNER, OWNER_DIED};

use super::owner::process_of;
use super::page::LockPage;
use super::{LockKind, SharedBarrier, SharedSemaphore};
use crate::name::Name;
use crate::namespace::{Lifetime, Namespace};
use crate::object::{Object, ObjectKind};

/// What is known of a lock at one instant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SharedLockState {
    /// Its kind, and what is particular to it.
    pub usage: SharedLockUse,
    /// Threads that wait for it; at least so many, where they are more than 64.
    pub waiters: usize,
    /// Whether another process has it open.
    pub in_use: bool,
    /// How long it lives.
    pub lifetime: Lifetime,
}

/// The state of each kind of lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SharedLockUse {
    /// A mutex.
    Mutex {
        /// The thread that holds it.
        owner: Option<SharedLockOwner>,
        /// A holder died, and none called it consistent since.
        inconsistent: bool,
    },
    /// A condition variable.
    Condvar,
    /// A semaphore.
    Semaphore {
        /// Units that it has.
        units: u32,
        /// Units that it can have.
        maximum: u32,
    },
    /// A barrier.
    Barrier {
        /// How many wait for the others.
        came: u32,
        /// How many meet.
        parties: u32,
    },
}

/// The thread that holds a mutex.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SharedLockOwner {
    /// Its number.
    pub thread: u32,
    /// Its process; `None`: there is no such thread, so the memory is damaged, or the holder is of
    /// another PID namespace.
    pub process: Option<u32>,
}

impl SharedLockUse {
    /// The kind of lock.
    #[must_use]
    pub fn kind(&self) -> LockKind {
        match self {
            Self::Mutex { .. } => LockKind::Mutex,
            Self::Condvar => LockKind::Condvar,
            Self::Semaphore { .. } => LockKind::Semaphore,
            Self::Barrier { .. } => LockKind::Barrier,
        }
    }
}

impl SharedLockState {
    /// That of the lock of this name, of any kind.
    ///
    /// # Errors
    /// There is none (ENOENT); it is of another version of Punctual, or damaged (EBADMSG).
    pub fn of(namespace: &Namespace, name: &Name) -> Result<Self, Diagnostic> {
        let page = LockPage::open(namespace, name, None)?;
        let object = page.object();
        let usage = match page.kind() {
            LockKind::Mutex => {
                let word = page.word().load(Ordering::Relaxed);
                let owner = |thread| SharedLockOwner { thread, process: process_of(thread) };
                SharedLockUse::Mutex {
                    owner: Some(word & OWNER).filter(|&thread| thread != 0).map(owner),
                    inconsistent: word & OWNER_DIED != 0
                        || page.state().inconsistent.load(Ordering::Relaxed) != 0,
                }
            }
            LockKind::Condvar => SharedLockUse::Condvar,
            LockKind::Semaphore => SharedLockUse::Semaphore {
                units: SharedSemaphore::units_of(&page),
                maximum: page.parameter(),
            },
            LockKind::Barrier => SharedLockUse::Barrier {
                came: SharedBarrier::came_of(&page),
                parties: page.parameter(),
            },
        };
        Ok(Self {
            usage,
            waiters: page.waiters().count(),
            in_use: object.in_use_elsewhere(),
            lifetime: object.lifetime(),
        })
    }
}

/// The names of all locks, sorted. Removes those that no process has open any more.
///
/// # Errors
/// The folder cannot be read.
pub fn lock_names(namespace: &Namespace) -> Result<Vec<Name>, Diagnostic> {
    namespace.names(ObjectKind::Lock)
}

/// Removes the name of a lock of any kind, also of a damaged one. Programs that have it open keep
/// it.
///
/// # Errors
/// There is none (ENOENT).
pub fn remove_lock(namespace: &Namespace, name: &Name) -> Result<(), Diagnostic> {
    Object::remove(namespace, ObjectKind::Lock, name)
}
