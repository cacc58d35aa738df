//! Names of the dispatcher's objects.

/// Later than any time there is; an absent limit.
pub const INFINITE: u64 = u64::MAX;

/// A task's number in its dispatcher.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TaskId(pub u32);

impl TaskId {
    /// What stands for "no task" where the dispatcher has a task's number.
    pub const NONE: TaskId = TaskId(u32::MAX);
}

/// A job. Its slot is used again after its end, the id is not (for 2^31 uses).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct JobId(pub(crate) u64);

impl JobId {
    /// The number as it stands in traces.
    pub fn as_u64(self) -> u64 {
        self.0
    }

    /// From a trace's number; one that names no job is refused where it is used.
    pub fn from_u64(id: u64) -> JobId {
        JobId(id)
    }
}

/// A reservation's number in its dispatcher.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ReservationId(pub u32);

/// A timer that an allocator asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TimerId(pub(crate) u64);

impl TimerId {
    /// The number as it stands in traces.
    pub fn as_u64(self) -> u64 {
        self.0
    }

    /// From a trace's number; one that names no timer is refused where it is used.
    pub fn from_u64(id: u64) -> TimerId {
        TimerId(id)
    }
}
