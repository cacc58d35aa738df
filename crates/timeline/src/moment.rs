//! What can happen in a schedule.

use punctual_trace::{JobEnd, Period};

/// Something that happened at one time.
///
/// Moments come in the order of the trace, so that `at` may go back: execution is known when it
/// ends, a period when the next one begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Moment {
    /// When, ns on the recording's clock.
    pub at: u64,
    /// The number of the record that completes it, from 0.
    pub record: u64,
    /// What happened.
    pub what: What,
}

/// What happened. `task` is a task's place in its set, from 0; tasks that a program added have the
/// places that follow. Times are ns; execution times are ns of a CPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum What {
    /// The task can execute, after it could not.
    Ready {
        /// Its place.
        task: u32,
    },
    /// The task waits for something else than its release.
    Blocked {
        /// Its place.
        task: u32,
    },
    /// The task says that it is done for this release.
    Done {
        /// Its place.
        task: u32,
    },
    /// The task has ended.
    Gone {
        /// Its place.
        task: u32,
    },
    /// A reservation released a job of the task. `at` is when the dispatcher was advanced; the
    /// time for which it was due stands in [`What::Period`].
    Released {
        /// Its place.
        task: u32,
        /// Number of the release, from 0.
        number: u64,
        /// What the job may execute, enforcement errors settled.
        budget: u64,
    },
    /// Releases were never made, because the dispatcher was not advanced in time.
    ReleasesLost {
        /// Its place.
        task: u32,
        /// Number of the first, from 0.
        first: u64,
        /// How many.
        count: u64,
    },
    /// A policy outside the dispatcher added a job of the task.
    JobAdded {
        /// Its place.
        task: u32,
        /// When it may start.
        start: u64,
        /// When it expires; `u64::MAX`: never.
        finish: u64,
        /// What it may execute; `u64::MAX`: no bound.
        budget: u64,
    },
    /// The dispatcher selected another job, or none. Records name jobs by number only: which task
    /// executes is said by [`What::Executed`].
    Selected {
        /// The dispatcher's number of the job.
        job: Option<u64>,
    },
    /// A job ended.
    JobEnded {
        /// Its task's place; `None` for the job of a server or of a budget group.
        task: Option<u32>,
        /// The dispatcher's number of the job.
        job: u64,
        /// How it ended.
        end: JobEnd,
        /// What it executed.
        used: u64,
    },
    /// The job of a window ended, and its release continues in the next window (`td`).
    WindowEnded {
        /// Its task's place.
        task: u32,
        /// The dispatcher's number of the job.
        job: u64,
        /// Exhausted or expired.
        end: JobEnd,
        /// What it executed.
        used: u64,
    },
    /// A budget group's segment ended by itself.
    SegmentEnded {
        /// The group's node, from 1.
        node: u32,
        /// The dispatcher's number of the segment.
        job: u64,
        /// Exhausted or expired.
        end: JobEnd,
        /// What it executed.
        used: u64,
    },
    /// A scheduling group got its first ready member, or lost its last.
    Group {
        /// The dispatcher's number of the group.
        group: u32,
        /// It has ready members now.
        active: bool,
    },
    /// The task executed without a break from `from` to the moment's time.
    Executed {
        /// Its place.
        task: u32,
        /// When it began.
        from: u64,
        /// In the ordinary class, on no budget.
        background: bool,
    },
    /// What the task's job may still execute: after a release, a charge, and 0 after its end.
    Remaining {
        /// Its place.
        task: u32,
        /// The remaining budget; jobs without a bound have none of these moments.
        budget: u64,
    },
    /// The task used up its budget, or reached its finish, before it was done, and its overrun
    /// policy is `signal` or `background`. [`Period::overrun`] has it for all policies.
    Overrun {
        /// Its place.
        task: u32,
        /// It continues in the ordinary class until its next release.
        background: bool,
    },
    /// A release as it turned out: deadline, miss, overrun, completion. `at` is its release.
    Period(Period),
    /// Records are missing here: what happened is not known until the next moment.
    LostRecords {
        /// How many.
        count: u64,
    },
}

impl What {
    /// The task that it is about, if it is about one.
    #[must_use]
    pub fn task(&self) -> Option<u32> {
        match *self {
            What::Ready { task }
            | What::Blocked { task }
            | What::Done { task }
            | What::Gone { task }
            | What::Released { task, .. }
            | What::ReleasesLost { task, .. }
            | What::JobAdded { task, .. }
            | What::WindowEnded { task, .. }
            | What::Executed { task, .. }
            | What::Remaining { task, .. }
            | What::Overrun { task, .. } => Some(task),
            What::JobEnded { task, .. } => task,
            What::Period(period) => Some(period.task),
            What::Selected { .. }
            | What::SegmentEnded { .. }
            | What::Group { .. }
            | What::LostRecords { .. } => None,
        }
    }
}
