//! Queues share one store of places: each takes what it needs and gives it back, however full the
//! others were before.

use punctual_dispatcher::{Attribute, For, Job, Limits, TaskId, INFINITE};

use crate::operation::Op;
use crate::pair::Pair;

const JOBS: u32 = 150;
const GROUPS: u32 = 5;

const LIMITS: Limits = Limits {
    jobs: JOBS,
    tasks: 2,
    reservations: 0,
    groups: GROUPS,
    budget_groups: 2,
    timers: JOBS,
    depth: 2,
    events: 1024,
    records: 64,
    windows: 0,
};

/// As many jobs as there may be, all in one queue; then none.
fn fill_and_empty(pair: &mut Pair, job: impl Fn(u64) -> Job, last_first: bool) {
    let room = LIMITS.jobs as usize - pair.model.jobs.len();
    let before = pair.model.jobs.len();
    for n in 0..=room as u64 {
        // The last is refused.
        pair.apply(&Op::AddJob(job(n * 7 % 40)));
    }
    pair.apply(&Op::Advance);
    pair.apply(&Op::Look { ranks: 3 });
    for n in 0..room {
        let left = room - n;
        pair.apply(&Op::Cancel(before + if last_first { left - 1 } else { n * 13 % left }));
    }
    pair.apply(&Op::Look { ranks: 3 });
}

#[test]
fn every_queue_can_take_all_jobs_after_every_other() {
    let mut pair = Pair::new(LIMITS, 1000, true, true);
    pair.apply(&Op::AddTask);
    pair.apply(&Op::AddTask);
    let task = For::Task(TaskId(0));
    let orders = [
        Attribute::Finish,
        Attribute::Priority,
        Attribute::Budget,
        Attribute::Start,
        Attribute::Finish,
    ];
    for (group, by) in (0..).zip(orders) {
        pair.apply(&Op::Order(group, vec![by]));
    }
    for round in 0..2 {
        for group in 0..GROUPS {
            let ready =
                |n| Job { finish: 5000 + n, priority: n as i64, group, ..Job::new(task, 100 + n) };
            fill_and_empty(&mut pair, ready, round == 0);
        }
        // Those whose start is ahead, and those without a finish.
        fill_and_empty(
            &mut pair,
            |n| Job { start: 4000 + n, finish: INFINITE, ..Job::new(task, 5) },
            round == 1,
        );
        // Segments of one node, open and to come.
        fill_and_empty(
            &mut pair,
            |n| Job { finish: 6000 + n, ..Job::new(For::Budget(1), 5) },
            round == 0,
        );
        fill_and_empty(
            &mut pair,
            |n| Job { start: 4000 + n, ..Job::new(For::Budget(2), 5) },
            round == 0,
        );
        // Server jobs of one group, idle, then ready.
        fill_and_empty(
            &mut pair,
            |n| Job { finish: 6000 + n, ..Job::new(For::Group(1), 5) },
            round == 1,
        );
        pair.apply(&Op::AddJob(Job { group: 1, ..Job::new(task, 5) }));
        fill_and_empty(
            &mut pair,
            |n| Job { finish: 6000 + n, ..Job::new(For::Group(1), 5) },
            round == 0,
        );
        pair.apply(&Op::Cancel(0));
        for n in 0..=u64::from(JOBS) {
            pair.apply(&Op::AskTimer(1000 + n * 7 % 40, n));
        }
        for _ in 0..10 {
            pair.apply(&Op::CancelTimer(20));
        }
        pair.apply(&Op::Pass(41));
        pair.apply(&Op::Advance);
        pair.apply(&Op::Take(usize::MAX));
    }
    assert!(pair.ring.lost_ever > 0 && pair.model.jobs.is_empty());
}
