//! What tasks and other programs share: named objects in memory, which programs that were started
//! separately find by name.
//!
//! ```text
//! Namespace    the objects of one user: a folder in /dev/shm, closed to others
//!   Name       of an object: a word or a number
//!   Object     its files: shared memory, locks that end with their process, named pipes
//! Fifo         bytes or messages in order (RT-Linux, sections 3 and 4)
//!   Writer     put, all or nothing
//!   Reader     get, all or nothing
//! SharedMutex, SharedCondvar, SharedSemaphore, SharedBarrier
//!              locks that the death of a process does not leave locked
//! Region       memory of one size, zeros at first
//! RobustMutex  a mutex in it, unlocked by the death of its owner
//! ```
//!
//! An object lives as long as a process has it open. What processes that were killed leave behind
//! is removed by the next program that makes, opens or lists objects. A persistent object lives
//! until it is removed, the user's last session ends where logind removes IPC objects (its
//! `RemoveIPC`), or the machine restarts.

mod fifo;
mod lock;
mod mapping;
mod name;
mod namespace;
mod object;
mod region;
mod robust_mutex;

pub use fifo::{
    Access, Content, Error, Fifo, FifoAttr, FifoState, Reader, Writer, MAX_CAPACITY, MIN_CAPACITY,
};
pub use lock::{
    lock_names, remove_lock, ConditionWait, LockKind, LockOutcome, SharedBarrier, SharedCondvar,
    SharedLockError, SharedLockOwner, SharedLockState, SharedLockUse, SharedMutex,
    SharedMutexGuard, SharedSemaphore, MOST_HELD, MOST_PARTIES, MOST_UNITS,
};
pub use name::Name;
pub use namespace::{Lifetime, Namespace};
pub use region::Region;
pub use robust_mutex::{Locked, RobustMutex};
