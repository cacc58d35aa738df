//! What the dispatcher tells the allocators.

use crate::{JobId, TaskId, TimerId};

/// How a job ended; each ends exactly once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// The task said that it was done.
    Completed,
    /// The budget was used up.
    Exhausted,
    /// The finish was reached.
    Expired,
    /// The allocator took it back.
    Cancelled,
    /// The task is gone.
    TaskGone,
}

/// As results have it.
impl From<End> for punctual_trace::JobEnd {
    fn from(end: End) -> punctual_trace::JobEnd {
        use punctual_trace::JobEnd;
        match end {
            End::Completed => JobEnd::Completed,
            End::Exhausted => JobEnd::Exhausted,
            End::Expired => JobEnd::Expired,
            End::Cancelled => JobEnd::Cancelled,
            End::TaskGone => JobEnd::TaskGone,
        }
    }
}

/// What the dispatcher tells the allocators. `at` is ns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Event {
    /// A job ended. `task` is [`TaskId::NONE`] for server jobs and for cancelled segments.
    JobEnded {
        at: u64,
        end: End,
        job: JobId,
        task: TaskId,
        cookie: u64,
        /// Its execution time, ns.
        used: u64,
        /// Its remaining budget, ns.
        remaining: u64,
    },
    /// The job of a window ended, exhausted or expired; its release continues in the next window.
    WindowEnded {
        at: u64,
        end: End,
        job: JobId,
        task: TaskId,
        cookie: u64,
        used: u64,
        remaining: u64,
    },
    /// A segment of this budget-group node ended by itself: exhausted or expired.
    SegmentEnded {
        at: u64,
        end: End,
        job: JobId,
        node: u32,
        cookie: u64,
        used: u64,
        remaining: u64,
    },
    /// A timer that an allocator asked for, due at `due`.
    Timer { at: u64, timer: TimerId, cookie: u64, due: u64 },
    /// A reservation released a job, due at `release` (not the time of the call that noticed it).
    /// `task` is [`TaskId::NONE`] for server jobs and segments.
    Released { at: u64, job: JobId, task: TaskId, number: u64, release: u64, budget: u64 },
    /// Releases `first .. first + count` of the task were never made: `advance` was called too
    /// late.
    ReleasesLost { at: u64, task: TaskId, first: u64, count: u64 },
    /// A task with [`OverrunPolicy::Signal`](crate::OverrunPolicy::Signal) overran release
    /// `number`.
    Overrun { at: u64, task: TaskId, number: u64 },
    /// A task with [`OverrunPolicy::Background`](crate::OverrunPolicy::Background) overran:
    /// ordinary class until its next release.
    Background { at: u64, task: TaskId, number: u64 },
    /// A task's delayed waits reached 30,000 and are not counted further.
    DelayedSaturated { at: u64, task: TaskId },
    /// A task woke.
    TaskReady { at: u64, task: TaskId },
    /// A task fell asleep.
    TaskBlocked { at: u64, task: TaskId },
    /// A scheduling group got its first ready member.
    GroupActive { at: u64, group: u32 },
    /// A scheduling group lost its last ready member.
    GroupIdle { at: u64, group: u32 },
    /// The number of events that had no room.
    Lost { at: u64, count: u64 },
}
