//! What one instant tells, and in which order.

use punctual_dispatcher::{Dispatcher, Event, For, Job, Limits, Reservation, INFINITE};

const LIMITS: Limits = Limits {
    jobs: 8,
    tasks: 4,
    reservations: 1,
    groups: 2,
    budget_groups: 2,
    timers: 1,
    depth: 2,
    events: 32,
    records: 64,
    windows: 0,
};

/// Drains the events, each in short.
fn drain_events(d: &mut Dispatcher) -> Vec<String> {
    std::iter::from_fn(|| d.next_event())
        .map(|e| match e {
            Event::JobEnded { end, cookie, .. } => format!("{end:?} {cookie}"),
            Event::SegmentEnded { end, node, .. } => format!("{end:?} segment of {node}"),
            Event::GroupActive { group, .. } => format!("active {group}"),
            Event::GroupIdle { group, .. } => format!("idle {group}"),
            Event::Timer { cookie, .. } => format!("timer {cookie}"),
            Event::Released { .. } => "released".into(),
            other => format!("{other:?}"),
        })
        .collect()
}

/// The order at one instant (design, "Events"; docs/model.md, "One instant"): exhausted, expired,
/// the same of segments, starts, timers, releases; and groups when all that is settled. Group 0,
/// which loses its ready members and gets another, was never idle.
#[test]
fn the_order_at_one_instant() {
    let mut d = Dispatcher::new(LIMITS).expect("valid limits");
    let tasks: Vec<_> = (0..4).map(|_| d.add_task(0).expect("room")).collect();
    let job = |task, start, finish, cookie| Job {
        start,
        finish,
        cookie,
        ..Job::new(For::Task(task), 50)
    };
    d.add_job(&Job { group: 1, ..job(tasks[0], 100, INFINITE, 3) }, 0).expect("room");
    d.add_job(&job(tasks[1], 0, 100, 2), 0).expect("room");
    d.add_job(&Job { finish: 100, ..Job::new(For::Budget(1), 90) }, 0).expect("room");
    d.add_job(&Job { finish: 100, ..Job::new(For::Budget(2), 50) }, 0).expect("room");
    let exhausted =
        d.add_job(&Job { budget_group: 2, ..job(tasks[2], 0, 100, 1) }, 0).expect("room");
    let reservation = Reservation { start: 100, ..Reservation::new(For::Task(tasks[3]), 50, 10) };
    d.add_reservation(&reservation, 0).expect("it is valid");
    d.ask_timer(100, 7, 0).expect("room");
    assert_eq!(drain_events(&mut d), ["active 0"]);
    d.charge_job(exhausted, 50, 100).expect("it is there");
    d.advance(100);
    let expected = [
        "Exhausted 1",
        "Expired 2",
        "Exhausted segment of 2",
        "Expired segment of 1",
        "timer 7",
        "released",
        "active 1",
    ];
    assert_eq!(drain_events(&mut d), expected);
}

/// A timer of the past comes with the next instant, not within the call that asks for it.
#[test]
fn a_timer_of_the_past_comes_at_once() {
    let mut d = Dispatcher::new(LIMITS).expect("valid limits");
    d.ask_timer(5, 1, 9).expect("room");
    assert!(drain_events(&mut d).is_empty());
    assert_eq!(d.timer(0, 1, 9), 5);
    d.advance(9);
    assert_eq!(drain_events(&mut d), ["timer 1"]);
    assert_eq!(d.timer(0, 1, 9), INFINITE);
}

/// A full ring says how many it lost as soon as there is room, before anything else happens.
#[test]
fn lost_events_are_reported_at_once() {
    let limits = Limits { jobs: 8, reservations: 0, events: 4, records: 8, ..Limits::for_tasks(1) };
    let mut d = Dispatcher::new(limits).expect("valid limits");
    let task = d.add_task(0).expect("room");
    for at in 0..4 {
        d.task_blocked(task, at).expect("it is there");
        d.task_ready(task, at).expect("it is there");
    }
    for at in 0..2 {
        assert_eq!(d.next_event(), Some(Event::TaskBlocked { at, task }));
        assert_eq!(d.next_event(), Some(Event::TaskReady { at, task }));
    }
    assert_eq!(d.next_event(), Some(Event::Lost { at: 3, count: 4 }));
    assert_eq!(d.next_event(), None);
}
