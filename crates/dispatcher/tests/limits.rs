//! Invariant 5 of the design: limits are set at creation and refused clearly.

use punctual_dispatcher::{Attribute, Dispatcher, For, Job, Limits, Refusal, TaskId};

const LIMITS: Limits = Limits {
    jobs: 3,
    tasks: 1,
    reservations: 1,
    groups: 5,
    budget_groups: 4,
    timers: 1,
    depth: 3,
    events: 64,
    records: 8,
    windows: 6,
};

fn is_refused(limits: Limits) -> bool {
    matches!(Dispatcher::new(limits), Err(Refusal::Invalid))
}

#[test]
fn limits_beyond_their_ranges_are_refused_at_creation() {
    let over = (1 << 20) + 1;
    for jobs in [0, over, u32::MAX] {
        assert!(is_refused(Limits { jobs, ..LIMITS }));
    }
    for tasks in [0, over, u32::MAX] {
        assert!(is_refused(Limits { tasks, ..LIMITS }));
    }
    for many in [over, u32::MAX] {
        assert!(is_refused(Limits { reservations: many, ..LIMITS }));
        assert!(is_refused(Limits { timers: many, ..LIMITS }));
    }
    for groups in [0, 1025, u32::MAX] {
        assert!(is_refused(Limits { groups, ..LIMITS }));
    }
    for budget_groups in [1025, u32::MAX] {
        assert!(is_refused(Limits { budget_groups, ..LIMITS }));
    }
    for depth in [0, 65, u32::MAX] {
        assert!(is_refused(Limits { depth, ..LIMITS }));
    }
    for no_power_of_two in [0, 3, 48, u32::MAX] {
        assert!(is_refused(Limits { events: no_power_of_two, ..LIMITS }));
        assert!(is_refused(Limits { records: no_power_of_two, ..LIMITS }));
    }
    let least = Limits {
        jobs: 1,
        tasks: 1,
        reservations: 0,
        groups: 1,
        budget_groups: 0,
        timers: 0,
        depth: 1,
        events: 1,
        records: 1,
        windows: 6,
    };
    assert!(!is_refused(least));
}

#[test]
fn what_has_no_room_is_refused_until_there_is_room() {
    let mut d = Dispatcher::new(LIMITS).expect("valid limits");
    let task = d.add_task(0).expect("the first");
    assert_eq!(d.add_task(0), Err(Refusal::Full));
    let timer = d.ask_timer(9, 0, 0).expect("the first");
    assert_eq!(d.ask_timer(9, 0, 0), Err(Refusal::Full));
    d.cancel_timer(timer, 0).expect("it is there");
    assert_eq!(d.cancel_timer(timer, 0), Err(Refusal::Nothing));
    d.ask_timer(9, 0, 0).expect("room again");
    let job = Job::new(For::Task(task), 1);
    let jobs: Vec<_> = (0..3).map(|_| d.add_job(&job, 0).expect("room")).collect();
    assert_eq!(d.add_job(&job, 0), Err(Refusal::Full));
    d.cancel_job(jobs[1], 0).expect("it is there");
    assert_eq!(d.cancel_job(jobs[1], 0), Err(Refusal::Nothing));
    d.add_job(&job, 0).expect("room again");
}

/// Cycles and too many levels, in both trees; what was refused has fixed nothing.
#[test]
fn trees_that_close_or_grow_too_deep_are_refused() {
    let mut d = Dispatcher::new(LIMITS).expect("valid limits");
    let mut serve = |served, group| {
        let id = d.add_job(&Job { group, ..Job::new(For::Group(served), 1) }, 0)?;
        d.cancel_job(id, 0)
    };
    assert_eq!(serve(1, 1), Err(Refusal::Tree), "itself");
    assert_eq!(serve(1, 0), Ok(()));
    assert_eq!(serve(2, 1), Ok(()));
    assert_eq!(serve(3, 2), Err(Refusal::Tree), "a fourth level");
    assert_eq!(serve(1, 2), Err(Refusal::Tree), "another parent, and a cycle");
    assert_eq!(serve(3, 4), Ok(()), "a tree without a server yet");
    assert_eq!(serve(4, 3), Err(Refusal::Tree), "a cycle");
    assert_eq!(serve(4, 1), Err(Refusal::Tree), "two levels below the second");
    assert_eq!(serve(4, 0), Ok(()));
    assert_eq!(serve(5, 0), Err(Refusal::Invalid), "no such group");
    let mut pay = |node, budget_group| {
        let id = d.add_job(&Job { budget_group, ..Job::new(For::Budget(node), 1) }, 0)?;
        d.cancel_job(id, 0)
    };
    assert_eq!(pay(2, 1), Err(Refusal::Nothing), "node 1 is not made");
    assert_eq!(pay(1, 1), Err(Refusal::Tree), "itself");
    assert_eq!(pay(1, 0), Ok(()));
    assert_eq!(pay(2, 1), Ok(()));
    assert_eq!(pay(3, 2), Ok(()));
    assert_eq!(pay(4, 3), Err(Refusal::Tree), "a fourth level");
    assert_eq!(pay(2, 0), Err(Refusal::Tree), "another parent");
    assert_eq!(pay(5, 0), Err(Refusal::Invalid), "no such node");
}

#[test]
fn the_deepest_tree_there_may_be_is_carried_out() {
    let limits =
        Limits { jobs: 200, groups: 64, budget_groups: 64, depth: 64, events: 256, ..LIMITS };
    let mut d = Dispatcher::new(limits).expect("valid limits");
    let task = d.add_task(0).expect("room");
    for level in 1..64 {
        d.add_job(&Job { group: level - 1, ..Job::new(For::Group(level), 1000) }, 0).expect("room");
    }
    for node in 1..=64 {
        let budget = u64::from(500 - node);
        d.add_job(&Job { budget_group: node - 1, ..Job::new(For::Budget(node), budget) }, 0)
            .expect("room");
    }
    let job = d
        .add_job(&Job { group: 63, budget_group: 64, ..Job::new(For::Task(task), 1000) }, 0)
        .expect("room");
    assert_eq!(d.select(0, 0), Some(job));
    assert_eq!(d.path(0).count(), 64);
    assert_eq!(d.allowance(job), 500 - 64);
    assert_eq!(d.timer(0, 1, 0), 500 - 64);
    d.charge_job(job, 436, 436).expect("it is there");
    d.advance(436);
    assert_eq!(d.select(0, 436), None, "the lowest node is dry, and all groups idle");
}

#[test]
fn numbers_that_name_nothing_are_answered_with_nothing() {
    let limits = Limits { jobs: 40, tasks: 40, ..LIMITS };
    let mut d = Dispatcher::new(limits).expect("valid limits");
    let tasks: Vec<_> = (0..40).map(|_| d.add_task(0).expect("room")).collect();
    let jobs: Vec<_> =
        tasks.iter().map(|t| d.add_job(&Job::new(For::Task(*t), 5), 0).expect("room")).collect();
    assert_eq!(d.select(0, 0), Some(jobs[0]));
    for rank in 0..16 {
        assert_eq!(d.runner_up(0, rank), Some(jobs[rank as usize]));
    }
    for beyond in [16, 17, 63, 64, u32::MAX] {
        assert_eq!(d.runner_up(0, beyond), None);
        assert_eq!(d.select(beyond, 0), None);
        assert_eq!(d.runner_up(beyond, 0), None);
        assert_eq!(d.path(beyond).count(), 0);
        assert_eq!(d.set_order(beyond, &[Attribute::Finish]), Err(Refusal::Nothing));
    }
    assert_eq!(d.task_ready(TaskId(40), 0), Err(Refusal::Nothing));
    assert_eq!(d.task_ready(TaskId::NONE, 0), Err(Refusal::Nothing));
    assert_eq!(d.set_order(0, &[]), Err(Refusal::Invalid));
    assert_eq!(
        d.set_order(0, &[Attribute::Finish, Attribute::Start, Attribute::Finish]),
        Err(Refusal::Invalid)
    );
    assert_eq!(d.set_granularity(1 << 32), Err(Refusal::Invalid));
}
