//! RTAI with budgets, Fig. 2(a) (rebuilt, see papers/notes.md): W = 2, P = 5, execution 3, 1, 1.
//! One unit runs over into period 1; the wait that was due in period 0 comes in period 1 and is
//! ignored.

use punctual_dispatcher::{End, Event, For, Reservation, Wait};
use punctual_papers::{Machine, Stretch};

#[test]
fn the_delayed_wait_is_ignored_and_the_task_catches_up() {
    let mut m = Machine::new();
    let task = m.task();
    let reservation = Reservation { start: 5, ..Reservation::new(For::Task(task), 5, 2) };
    let r = m.dispatcher.add_reservation(&reservation, 0).expect("it is in range");
    // Delayed waits are counted once a task has called wait_period: its first call waits for its
    // first release, at 5.
    assert_eq!(m.dispatcher.task_done(task, 0), Ok(Wait::UntilRelease));
    m.run_until(5);

    m.wants(task, 3);
    m.run_until(10);
    assert_eq!(m.received(task, 5, 10), 2, "suspended with W used up");
    assert_eq!(m.dispatcher.delayed(r), 1);
    // Period 1: the third unit of the first job, then its late wait, which is ignored.
    m.run_until(11);
    assert_eq!(m.dispatcher.delayed(r), 0);
    // It continues at once with the second job's unit, and waits in time.
    m.wants(task, 1);
    m.run_until(15);
    assert_eq!(m.received(task, 10, 15), 2);
    assert_eq!(m.dispatcher.delayed(r), 0);
    // Period 2: the third job, as if nothing had happened.
    m.wants(task, 1);
    m.run_until(20);
    assert_eq!(
        m.executed,
        [(5, 7), (10, 12), (15, 16)].map(|(from, to)| Stretch { task, from, to })
    );
    let ends: Vec<End> = m
        .events
        .iter()
        .filter_map(|e| if let Event::JobEnded { end, .. } = e { Some(*end) } else { None })
        .collect();
    assert_eq!(ends, [End::Exhausted, End::Completed, End::Completed]);
}
