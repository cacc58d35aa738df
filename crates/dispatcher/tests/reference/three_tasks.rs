//! Three tasks of one group with a job each, of which the first one has the earliest finish and the
//! largest priority: where sequences begin.

use punctual_dispatcher::{Attribute, For, Job, Limits, TaskId};

use crate::operation::Op;

pub const A: u32 = 0;
pub const B: u32 = 1;
pub const C: u32 = 2;

/// Room for them, and for one more job.
pub const LIMITS: Limits = Limits {
    jobs: 4,
    tasks: 3,
    reservations: 0,
    groups: 1,
    budget_groups: 0,
    timers: 0,
    depth: 1,
    events: 32,
    records: 1,
    windows: 0,
};

/// A job of a task; that of A finishes `within` this time.
pub fn job(task: u32, now: u64, within: u64) -> Job {
    let finish = now + within + u64::from(task);
    Job { start: now, finish, priority: -i64::from(task), ..Job::new(For::Task(TaskId(task)), 3) }
}

pub fn beginning(order: Attribute, within: u64) -> Vec<Op> {
    let mut ops = vec![Op::Order(0, vec![order])];
    ops.extend([A, B, C].map(|_| Op::AddTask));
    ops.extend([A, B, C].map(|task| Op::AddJob(job(task, 0, within))));
    ops
}
