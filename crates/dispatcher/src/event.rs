//! What the dispatcher tells the allocators.

use crate::{ffi, JobId, TaskId, TimerId};

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

/// What the dispatcher tells the allocators. `at` is ns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Event {
    /// A job ended; `used` is what it executed, `remaining` what it did not use. `task` is
    /// [`TaskId::NONE`] for server jobs, and for segments that were cancelled.
    JobEnded { at: u64, end: End, job: JobId, task: TaskId, cookie: u64, used: u64, remaining: u64 },
    /// The job of a window ended, exhausted or expired, and its release goes on in the next window.
    WindowEnded { at: u64, end: End, job: JobId, task: TaskId, cookie: u64, used: u64, remaining: u64 },
    /// A segment of this budget-group node ended by itself: exhausted or expired.
    SegmentEnded { at: u64, end: End, job: JobId, node: u32, cookie: u64, used: u64, remaining: u64 },
    /// A timer that an allocator asked for, due at `due`.
    Timer { at: u64, timer: TimerId, cookie: u64, due: u64 },
    /// A reservation released a job, due at `release` (not the time anybody noticed). `task` is
    /// [`TaskId::NONE`] for server jobs and segments.
    Released { at: u64, job: JobId, task: TaskId, number: u64, release: u64, budget: u64 },
    /// Releases `first .. first + count` of the task were never made: nobody looked in time.
    ReleasesLost { at: u64, task: TaskId, first: u64, count: u64 },
    /// A task with [`Overrun::Signal`](crate::Overrun::Signal) overran its release `number`.
    Overrun { at: u64, task: TaskId, number: u64 },
    /// A task with [`Overrun::Background`](crate::Overrun::Background) overran: ordinary class
    /// until its next release.
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
    /// So many events had no room.
    Lost { at: u64, count: u64 },
}

impl Event {
    pub(crate) fn from_raw(e: &ffi::RawEvent) -> Option<Event> {
        let (at, task, job) = (e.time, TaskId(e.task), JobId(e.job));
        let (cookie, used, remaining) = (e.cookie, e.used, e.remaining);
        let ended = |end| Event::JobEnded { at, end, job, task, cookie, used, remaining };
        let window = |end| Event::WindowEnded { at, end, job, task, cookie, used, remaining };
        let segment = |end| Event::SegmentEnded { at, end, job, node: e.task, cookie, used, remaining };
        Some(match e.kind {
            1 => ended(End::Completed),
            2 => ended(End::Exhausted),
            3 => ended(End::Expired),
            4 => ended(End::Cancelled),
            5 => ended(End::TaskGone),
            6 => Event::TaskReady { at, task },
            7 => Event::TaskBlocked { at, task },
            8 => Event::GroupActive { at, group: e.task },
            9 => Event::GroupIdle { at, group: e.task },
            10 => segment(End::Exhausted),
            11 => Event::Timer { at, timer: TimerId(e.job), cookie, due: used },
            12 => Event::Lost { at, count: used },
            13 => Event::Released { at, job, task, number: cookie, release: used, budget: remaining },
            14 => Event::ReleasesLost { at, task, first: cookie, count: used },
            15 => Event::Overrun { at, task, number: cookie },
            16 => Event::Background { at, task, number: cookie },
            17 => Event::DelayedSaturated { at, task },
            18 => segment(End::Expired),
            19 => window(End::Exhausted),
            20 => window(End::Expired),
            _ => return None,
        })
    }
}
