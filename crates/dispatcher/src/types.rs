//! The model's words as Rust types.

use crate::ffi;

/// Later than any time there is; an absent limit.
pub const INFINITE: u64 = u64::MAX;

/// A task's number in its dispatcher.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TaskId(pub u32);

/// A job. Its slot is used again after its end, the id is not (for 2^31 uses).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct JobId(pub(crate) u64);

impl JobId {
    /// The number as it stands in traces.
    pub fn as_u64(self) -> u64 {
        self.0
    }
}

/// A reservation's number in its dispatcher.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ReservationId(pub u32);

/// What a group may order its members by (design, "Job").
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Attribute {
    /// Earlier start first.
    Start = 1,
    /// Earlier finish first.
    Finish = 2,
    /// Less remaining budget first.
    Budget = 3,
    /// Larger priority first.
    Priority = 4,
}

/// Limits of a dispatcher, fixed at its creation.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Jobs at one time, 1 to 2^20.
    pub jobs: u32,
    /// Tasks, 1 to 2^20.
    pub tasks: u32,
    /// Reservations, at most 2^20.
    pub reservations: u32,
    /// Events that may wait to be taken: a power of two.
    pub events: u32,
    /// Records in the trace ring, 32 bytes each: a power of two.
    pub records: u32,
}

impl Limits {
    /// Room for so many periodic tasks, one job each, and the last 65,536 trace records.
    pub fn for_tasks(tasks: u32) -> Limits {
        Limits {
            jobs: tasks + 1,
            tasks,
            reservations: tasks,
            events: (8 * (tasks + 8)).next_power_of_two(),
            records: 1 << 16,
        }
    }

    pub(crate) fn raw(&self) -> ffi::Limits {
        ffi::Limits {
            jobs: self.jobs,
            tasks: self.tasks,
            reservations: self.reservations,
            groups: 1,
            budget_groups: 0,
            events: self.events,
            records: self.records,
            cpus: 1,
        }
    }
}

/// A job's attributes (design, "Job"; RED-Linux, IV-B). Times are ns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Job {
    /// Whom it runs.
    pub task: TaskId,
    /// Not eligible before.
    pub start: u64,
    /// Not eligible at or after; [`INFINITE`] for none.
    pub finish: u64,
    /// Execution time it may use.
    pub budget: u64,
    /// Importance.
    pub priority: i64,
    /// The allocator's own word, given back in the job's events.
    pub cookie: u64,
}

/// A periodic reservation (design, "Reservation"). Times are ns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reservation {
    /// Whom it serves; a task has one reservation at most.
    pub task: TaskId,
    /// First release.
    pub start: u64,
    /// At least 1.
    pub period: u64,
    /// 1 to `deadline`.
    pub budget: u64,
    /// Relative, `budget` to `period`.
    pub deadline: u64,
    /// Of its jobs.
    pub priority: i64,
    /// When the budget is used up, or the finish reached, before the task is done.
    pub overrun: Overrun,
    /// Cut what is left to the reservation's bandwidth when its task wakes in mid-job (the
    /// revised CBS rule): for policies that order by finish.
    pub wakeup_rule: bool,
}

/// Overrun policies (RTAI paper, 3.2 and 3.3.1, for `Carry`; the others are ours).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Overrun {
    /// Suspended until its next release; delayed waits are ignored, one each.
    Carry = 0,
    /// Likewise, but a late wait returns at the next release after the call.
    Skip = 1,
    /// In the ordinary class until its next release.
    Background = 2,
    /// As `Carry`, and [`Event::Overrun`].
    Signal = 3,
}

/// What a task's `wait_period` does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wait {
    /// Returns at the next release.
    UntilRelease,
    /// It was a delayed one: the task goes on at once.
    Ignored,
}

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
    /// A job ended; `used` is what it executed, `remaining` what it did not use.
    JobEnded { at: u64, end: End, job: JobId, task: TaskId, cookie: u64, used: u64, remaining: u64 },
    /// A reservation released a job, due at `release` (not the time anybody noticed).
    Released { at: u64, job: JobId, task: TaskId, number: u64, release: u64, budget: u64 },
    /// Releases `first .. first + count` of the task were never made: nobody looked in time.
    ReleasesLost { at: u64, task: TaskId, first: u64, count: u64 },
    /// A task with [`Overrun::Signal`] overran its release `number`.
    Overrun { at: u64, task: TaskId, number: u64 },
    /// A task with [`Overrun::Background`] overran: ordinary class until its next release.
    Background { at: u64, task: TaskId, number: u64 },
    /// A task's delayed waits reached 30,000 and are not counted further.
    DelayedSaturated { at: u64, task: TaskId },
    /// A task woke.
    TaskReady { at: u64, task: TaskId },
    /// A task fell asleep.
    TaskBlocked { at: u64, task: TaskId },
    /// A scheduling group got its first eligible member.
    GroupActive { at: u64, group: u32 },
    /// A scheduling group lost its last eligible member.
    GroupIdle { at: u64, group: u32 },
    /// So many events had no room.
    Lost { at: u64, count: u64 },
}

impl Event {
    pub(crate) fn from_raw(e: &ffi::RawEvent) -> Option<Event> {
        let (at, task, job) = (e.time, TaskId(e.task), JobId(e.job));
        let ended =
            |end| Event::JobEnded { at, end, job, task, cookie: e.cookie, used: e.used, remaining: e.remaining };
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
            12 => Event::Lost { at, count: e.used },
            13 => Event::Released { at, job, task, number: e.cookie, release: e.used, budget: e.remaining },
            14 => Event::ReleasesLost { at, task, first: e.cookie, count: e.used },
            15 => Event::Overrun { at, task, number: e.cookie },
            16 => Event::Background { at, task, number: e.cookie },
            17 => Event::DelayedSaturated { at, task },
            _ => return None,
        })
    }
}

/// Why the dispatcher refused; nothing has changed then.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// A limit set at creation is reached.
    Full,
    /// No such job, task, group, CPU or reservation, or it is gone.
    Nothing,
    /// A value outside its range.
    Invalid,
    /// A part of the model that this version does not carry out.
    Unsupported,
    /// It is in use.
    Busy,
}

impl std::fmt::Display for Refusal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Refusal::Full => "a limit of the dispatcher, set at its creation, is reached",
            Refusal::Nothing => "no such job, task, group or reservation (any more)",
            Refusal::Invalid => "a value is outside its range",
            Refusal::Unsupported => "this version of the dispatcher does not carry that out",
            Refusal::Busy => "it is in use",
        })
    }
}

impl std::error::Error for Refusal {}

pub(crate) fn refusal(code: i64) -> Refusal {
    match code {
        -1 => Refusal::Full,
        -2 => Refusal::Nothing,
        -4 => Refusal::Unsupported,
        -5 => Refusal::Busy,
        _ => Refusal::Invalid,
    }
}
