//! Errors of locks as error numbers and texts. All real-time safe.

use punctual::{LockError, WaitError};

use crate::current::is_to_end;
use crate::error::{failed, CallError};

#[cold]
pub fn owner_dead() -> CallError {
    failed(
        libc::EOWNERDEAD,
        c"a task ended while it held the mutex, which is locked; repair the data, and call \
          punctual_mutex_consistent",
    )
}

#[cold]
pub fn timed_out() -> CallError {
    failed(libc::ETIMEDOUT, c"the time is over")
}

#[cold]
pub fn lock_refused(e: LockError) -> CallError {
    match e {
        LockError::Deadlock => failed(
            libc::EDEADLK,
            c"this task holds the mutex, or its holder waits for a mutex of this task",
        ),
        LockError::OtherCpu => {
            failed(libc::EINVAL, c"a task of another CPU holds the mutex, or waits; use one CPU's")
        }
        LockError::TimedOut => timed_out(),
        LockError::Ceiling => failed(
            libc::EINVAL,
            c"the task is above the ceiling of the mutex, or its policy has none of that kind",
        ),
        LockError::TooMany => {
            failed(libc::EAGAIN, c"the task holds as many mutexes with ceilings as it can: 16")
        }
        LockError::NotLent => failed(
            libc::ENOTSUP,
            c"the service schedules the task, and lends no jobs; use PUNCTUAL_HOST_USER, or other \
              locks",
        ),
        _ => owner_dead(),
    }
}

#[cold]
pub fn wait_refused(e: WaitError) -> CallError {
    match e {
        WaitError::TimedOut => timed_out(),
        WaitError::Lock(e) => lock_refused(e),
        _ => is_to_end(),
    }
}

/// A task that waited for a condition cannot have its mutex again.
#[cold]
pub fn not_locked() -> CallError {
    failed(
        libc::ENOLCK,
        c"the mutex cannot be locked again, and is not: a deadlock, or a task of another CPU \
          holds it",
    )
}
