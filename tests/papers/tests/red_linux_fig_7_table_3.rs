//! RED-Linux, V-B.1, Fig. 7 with Table 3: a tree of budget groups. J3 wants 40, and gets 30.

use punctual_dispatcher::{Attribute, Event, For, Job, JobId, Standing, TaskId};
use punctual_papers::Machine;

/// J0 and J1 are segments; J2, J3 and J4 jobs. Where a leaf's server is its own group it has none
/// (papers' errata).
struct Table3 {
    machine: Machine,
    segments: [JobId; 2],
    jobs: [(TaskId, JobId); 3],
}

fn table_3() -> Table3 {
    let mut machine = Machine::new();
    machine.dispatcher.set_order(0, &[Attribute::Priority]).expect("group 0 is there");
    let j0 = machine.add(Job::new(For::Budget(1), 30));
    let j1 = machine.add(Job { budget_group: 1, ..Job::new(For::Budget(2), 80) });
    let j2 = machine.add_new(|task| Job { budget_group: 1, priority: 1, ..Job::new(task, 50) });
    let j3 = machine.add_new(|task| Job { budget_group: 2, priority: 3, ..Job::new(task, 40) });
    let j4 = machine.add_new(|task| Job { budget_group: 2, priority: 2, ..Job::new(task, 30) });
    Table3 { machine, segments: [j0, j1], jobs: [j2, j3, j4] }
}

#[test]
fn j3_wants_40_and_may_have_30() {
    let Table3 { mut machine, jobs: [_, (_, j3), _], .. } = table_3();
    assert_eq!(machine.select(), Some(j3));
    assert_eq!(machine.dispatcher.remaining(j3), 40);
    assert_eq!(machine.dispatcher.allowance(j3), 30, "limited by the root");
    assert_eq!(machine.dispatcher.timer(0, 1, 0), 30, "which is when the timer is set to");
}

#[test]
fn when_j3_is_interrupted_its_ancestors_have_less_by_what_it_used() {
    let Table3 { mut machine, segments: [j0, j1], jobs: [_, (_, j3), _] } = table_3();
    machine.run_until(12);
    let left = |job| machine.dispatcher.remaining(job);
    assert_eq!((left(j0), left(j1), left(j3)), (18, 68, 28));
}

#[test]
fn with_the_root_used_up_all_below_wait_until_it_is_replenished() {
    let Table3 { mut machine, segments: [j0, j1], jobs: [(_, j2), (t3, j3), (_, j4)] } = table_3();
    machine.run_until(50);
    assert_eq!(machine.received(t3, 0, 50), 30, "J3 gets 30 of its 40");
    assert_eq!(machine.executed.len(), 1, "and no other task gets any: {:?}", machine.executed);
    assert_eq!(machine.dispatcher.standing(j0), None, "J0 is used up");
    assert_eq!((machine.dispatcher.remaining(j1), machine.dispatcher.remaining(j3)), (50, 10));
    for job in [j2, j3, j4] {
        assert_eq!(machine.dispatcher.standing(job), Some(Standing::Throttled));
    }
    let reported = machine
        .events
        .iter()
        .any(|e| matches!(e, Event::SegmentEnded { at: 30, node: 1, used: 30, remaining: 0, .. }));
    assert!(reported, "the allocator is given the event: {:?}", machine.events);

    machine.add(Job::new(For::Budget(1), 30));
    machine.run_until(60);
    assert_eq!(machine.received(t3, 50, 60), 10, "J3 continues");
}
