//! RED-Linux, V-C, Fig. 8 with Table 4: both trees at once. J1 has 80, then 60.
//!
//! Starts and finishes are not printed; they are chosen so that the text's selections follow.
//! Leaves whose server is their own group have none (papers' errata).

use punctual_dispatcher::{Attribute, For, Job, JobId, Standing, TaskId};
use punctual_papers::Machine;

struct Table4 {
    machine: Machine,
    j0: JobId,
    j1: (TaskId, JobId),
    j2: (TaskId, JobId),
    j3: JobId,
    j4: (TaskId, JobId),
    j5: JobId,
    j6: JobId,
    j7: (TaskId, JobId),
    j8: (TaskId, JobId),
}

fn table_4() -> Table4 {
    let mut m = Machine::new();
    let order = |m: &mut Machine, group, by| {
        m.dispatcher.set_order(group, &[by]).expect("the group is there")
    };
    order(&mut m, 0, Attribute::Priority);
    order(&mut m, 1, Attribute::Start); // "using time-driven scheduling"
    order(&mut m, 2, Attribute::Finish); // "to select J1 using EDF"
    m.now = 10;
    let j5 = m.add(Job::new(For::Budget(1), 100));
    let j6 = m.add(Job { budget_group: 1, ..Job::new(For::Budget(2), 60) });
    let j0 = m.add(Job::new(For::Group(1), 200));
    let j3 = m.add(Job { group: 1, start: 1, ..Job::new(For::Group(2), 100) });
    let j1 = m.add_new(|task| Job { group: 2, budget_group: 2, finish: 500, ..Job::new(task, 80) });
    let j2 = m.add_new(|task| Job { group: 2, finish: 600, ..Job::new(task, 50) });
    let j4 = m.add_new(|task| Job { group: 1, start: 2, ..Job::new(task, 30) });
    let j7 = m.add_new(|task| Job { group: 1, budget_group: 1, start: 3, ..Job::new(task, 40) });
    let j8 = m.add_new(|task| Job { group: 1, budget_group: 2, start: 4, ..Job::new(task, 20) });
    Table4 { machine: m, j0, j1, j2, j3, j4, j5, j6, j7, j8 }
}

#[test]
fn the_dispatcher_goes_from_j0_by_j3_to_j1() {
    let mut t = table_4();
    assert_eq!(t.machine.select(), Some(t.j1.1));
    assert_eq!(t.machine.dispatcher.path(0).collect::<Vec<_>>(), [t.j0, t.j3, t.j1.1]);
}

#[test]
fn j1_has_80_as_far_as_its_servers_go() {
    let mut t = table_4();
    // The same without the budget tree.
    t.machine.dispatcher.cancel_job(t.j1.1, 10).expect("it is there");
    let job = Job { group: 2, finish: 500, ..Job::new(For::Task(t.j1.0), 80) };
    let alone = t.machine.add(job);
    assert_eq!(t.machine.select(), Some(alone));
    assert_eq!(t.machine.dispatcher.allowance(alone), 80, "J3 has 100, J0 has 200");
}

#[test]
fn and_60_because_of_j6_which_j5_leaves_as_it_is() {
    let mut t = table_4();
    t.machine.select();
    assert_eq!(t.machine.dispatcher.remaining(t.j1.1), 80);
    assert_eq!(t.machine.dispatcher.allowance(t.j1.1), 60);
    assert_eq!(t.machine.dispatcher.timer(0, 1, 10), 70);
}

#[test]
fn after_the_execution_all_nodes_are_reduced_by_the_time_that_j1_used() {
    let mut t = table_4();
    t.machine.run_until(10 + 25);
    let left = |job| t.machine.dispatcher.remaining(job);
    assert_eq!((left(t.j0), left(t.j3), left(t.j1.1)), (175, 75, 55), "the scheduling groups");
    assert_eq!((left(t.j5), left(t.j6)), (75, 35), "the budget groups");
    assert_eq!(
        (left(t.j2.1), left(t.j4.1), left(t.j7.1), left(t.j8.1)),
        (50, 30, 40, 20),
        "no other"
    );
}

#[test]
fn with_j6_used_up_j1_and_j8_sleep_and_the_next_by_each_policy_runs() {
    let mut t = table_4();
    t.machine.run_until(70);
    assert_eq!(t.machine.received(t.j1.0, 0, 70), 60);
    assert_eq!(t.machine.dispatcher.standing(t.j1.1), Some(Standing::Throttled));
    assert_eq!(t.machine.dispatcher.standing(t.j8.1), Some(Standing::Throttled));
    // J3 is still the first of group 1; of group 2, J2 is left.
    assert_eq!(t.machine.dispatcher.select(0, 70), Some(t.j2.1));
    // It has 50, but J3 only 40 any more.
    assert_eq!(t.machine.dispatcher.allowance(t.j2.1), 40);
    t.machine.run_until(110);
    // J3 is used up: J4 is next by start, then J7 with what J5 has left.
    assert_eq!(t.machine.dispatcher.select(0, 110), Some(t.j4.1));
    t.machine.run_until(140);
    assert_eq!(t.machine.dispatcher.select(0, 140), Some(t.j7.1));
    assert_eq!(t.machine.dispatcher.allowance(t.j7.1), 40, "J5 has 40, J7 too");
    t.machine.run_until(400);
    assert_eq!(t.machine.received(t.j7.0, 0, 400), 40);
    assert_eq!(t.machine.received(t.j8.0, 0, 400), 0, "J8 never had a budget");
    assert_eq!(t.machine.received(t.j2.0, 0, 400), 40, "J2 had no server after J3");
}
