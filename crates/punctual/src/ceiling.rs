//! Priority ceilings of mutexes.

use std::time::Duration;

use punctual_host_user::LockCeiling;

/// The priority ceiling of a [`Mutex`](crate::Mutex): the best value of all tasks that lock it.
///
/// A task that holds the mutex is not preempted by any task at this value or below it (immediate
/// ceilings: Sha, Rajkumar and Lehoczky 1990; under `edf` deadline floors: Burns 2012). So each job
/// of these tasks is delayed by one critical section at most, however many mutexes it locks, and
/// mutexes that are nested in opposite orders make no deadlock: on one CPU, as long as no holder
/// suspends itself or uses up its budget. Where one does, the waiting tasks lend, as without a
/// ceiling.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ceiling {
    /// The shortest relative deadline of these tasks; under `rm`, their shortest period. For tasks
    /// under `edf`, `dm` and `rm`. What exceeds 584 years counts as that.
    Deadline(Duration),
    /// Their largest priority. For tasks under `fp`.
    Priority(i64),
}

impl Ceiling {
    pub(crate) const fn raw(self) -> LockCeiling {
        match self {
            Self::Priority(priority) => LockCeiling::Priority(priority),
            Self::Deadline(deadline) => {
                let ns = deadline.as_nanos();
                LockCeiling::Deadline(if ns > u64::MAX as u128 { u64::MAX } else { ns as u64 })
            }
        }
    }
}
