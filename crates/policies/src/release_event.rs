//! What the allocators report to the host about its tasks' releases.

use punctual_dispatcher::{End, TaskId};
use punctual_trace::PolicyStop;

/// What became of a task's releases. For each release that was made there is one `Released` and,
/// when it is over, one `Ended` or `Replenished`, whatever number of jobs the policy makes of it.
/// `index` is the task's place in the task set; `number` counts the releases of its grid from 0 (of
/// random arrivals, and of tasks that their policy paces: those that were made); times are ns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum ReleaseEvent {
    /// A release, due at `release` (not the time at which the host noticed); `deadline` is
    /// absolute, `budget` what the release may execute, `assigned` the same without carried
    /// enforcement error.
    Released {
        at: u64,
        task: TaskId,
        index: u32,
        number: u64,
        release: u64,
        deadline: u64,
        budget: u64,
        assigned: u64,
    },
    /// A release is over, because its server was replenished: another one follows at once.
    /// Otherwise as `Ended`.
    Replenished {
        at: u64,
        task: TaskId,
        index: u32,
        number: u64,
        used: u64,
        remaining: u64,
        unused: u64,
    },
    /// A release is over: `used` is the execution time, `remaining` the budget left, `unused` the
    /// part of the budget that the task gave up: at completion, by a suspension that lasted until
    /// the finish, or by one after which the wake-up rule cut the budget; `extended` what it
    /// executed beyond its budget, in time that its policy added ([`Context::extend`]).
    ///
    /// [`Context::extend`]: crate::Context::extend
    Ended {
        at: u64,
        task: TaskId,
        index: u32,
        number: u64,
        end: End,
        used: u64,
        remaining: u64,
        unused: u64,
        extended: u64,
    },
    /// Releases `first .. first + count` were never made: the dispatcher was not advanced in time,
    /// or had no room for a job.
    Lost { at: u64, task: TaskId, index: u32, first: u64, count: u64 },
    /// A task with the overrun policy `Signal` overran this release.
    Overrun { at: u64, task: TaskId, index: u32, number: u64 },
    /// A task with the overrun policy `Background` overran this release: ordinary class until its
    /// next one.
    Background { at: u64, task: TaskId, index: u32, number: u64 },
    /// A task's delayed waits reached 30,000 and are not counted further.
    DelayedSaturated { at: u64, task: TaskId, index: u32 },
    /// The dispatcher had no room for `count` events. What queries could find is reported as if
    /// they had come; ends found so are [`End::Cancelled`].
    EventsLost { at: u64, count: u64 },
    /// A job that the program added has ended, after the `Ended` of the release that it was, if it
    /// had begun: `used` is its execution time, `remaining` what is left of its budget for other
    /// jobs of the task. `index` is `u32::MAX` for a job of a group.
    JobEnded { at: u64, index: u32, id: u64, cookie: u64, end: End, used: u64, remaining: u64 },
    /// A policy of the program was stopped, and its group has another one.
    PolicyStopped(PolicyStop),
}
