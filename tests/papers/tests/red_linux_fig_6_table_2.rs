//! RED-Linux, V-A, Fig. 6 with Table 2: time-driven above rate monotonic and EDF, with two groups
//! below EDF.

use punctual_dispatcher::{Attribute, For, Job, JobId, TaskId};
use punctual_papers::Machine;

/// The cycle, P_t.
const CYCLE: u64 = 400;
const RM: u32 = 1;
const EDF: u32 = 2;
const EDF1: u32 = 3;
const EDF2: u32 = 4;

/// The server jobs of Table 2, for the cycle that begins at `at`.
fn servers(m: &mut Machine, at: u64) -> [JobId; 4] {
    let half = CYCLE / 2;
    let server = |group, parent, from: u64, to: u64, budget| Job {
        start: at + from,
        finish: at + to,
        group: parent,
        ..Job::new(For::Group(group), budget)
    };
    [
        m.add(server(RM, 0, 0, half, half)),
        m.add(server(EDF, 0, half, CYCLE, half)),
        m.add(server(EDF1, EDF, half, CYCLE, CYCLE / 4)),
        m.add(server(EDF2, EDF, half, CYCLE, CYCLE / 4)),
    ]
}

fn machine() -> Machine {
    let mut m = Machine::new();
    let orders = [
        (0, Attribute::Start),
        (RM, Attribute::Priority),
        (EDF, Attribute::Finish),
        (EDF1, Attribute::Finish),
        (EDF2, Attribute::Finish),
    ];
    for (group, by) in orders {
        m.dispatcher.set_order(group, &[by]).expect("the group is there");
    }
    m
}

/// A task that wants the CPU all the time, in a group.
fn greedy(m: &mut Machine, group: u32, priority: i64, finish: u64) -> TaskId {
    m.add_new(|task| Job { group, priority, finish, ..Job::new(task, 100_000) }).0
}

#[test]
fn the_first_half_of_each_cycle_is_rm_s_and_the_second_edf_s_which_its_two_groups_share() {
    let mut m = machine();
    let low = greedy(&mut m, RM, 1, 90_000);
    let high = greedy(&mut m, RM, 2, 90_000);
    let first = greedy(&mut m, EDF1, 0, 90_000);
    let second = greedy(&mut m, EDF2, 0, 80_000);
    for cycle in 0..5 {
        let at = cycle * CYCLE;
        servers(&mut m, at);
        m.run_until(at + CYCLE);
        assert_eq!(
            m.received(high, at, at + CYCLE / 2),
            CYCLE / 2,
            "the higher priority has all of RM's half"
        );
        assert_eq!(m.received(low, at, at + CYCLE), 0);
        for task in [first, second] {
            assert_eq!(m.received(task, at, at + CYCLE / 2), 0, "EDF's have nothing in RM's half");
            assert_eq!(
                m.received(task, at + CYCLE / 2, at + CYCLE),
                CYCLE / 4,
                "and a quarter each in theirs"
            );
        }
    }
}

#[test]
fn a_job_of_the_lowest_level_is_reached_through_two_server_jobs() {
    let mut m = machine();
    let [_, edf, edf1, _] = servers(&mut m, 0);
    let (_, leaf) = m.add_new(|task| Job { group: EDF1, ..Job::new(task, 1_000) });
    m.run_until(CYCLE / 2);
    assert_eq!(m.dispatcher.select(0, m.now), Some(leaf));
    assert_eq!(m.dispatcher.path(0).collect::<Vec<_>>(), [edf, edf1, leaf]);
    // V-A, step 3a: now + budget of the server that ends first, before its finish.
    assert_eq!(m.dispatcher.timer(0, 1, m.now), CYCLE / 2 + CYCLE / 4);
    m.run_until(CYCLE / 2 + 30);
    // Step 4: the execution is deducted from all servers in the list.
    let left = |job| m.dispatcher.remaining(job);
    assert_eq!((left(edf), left(edf1), left(leaf)), (CYCLE / 2 - 30, CYCLE / 4 - 30, 970));
}

#[test]
fn within_edf1_the_earlier_finish_is_first() {
    let mut m = machine();
    servers(&mut m, 0);
    let late = greedy(&mut m, EDF1, 9, 90_000);
    let early = greedy(&mut m, EDF1, 1, 70_000);
    m.run_until(CYCLE);
    assert_eq!(m.received(early, 0, CYCLE), CYCLE / 4);
    assert_eq!(m.received(late, 0, CYCLE), 0);
}

#[test]
fn an_idle_group_leaves_its_time_to_no_other_and_its_budget_is_kept() {
    let mut m = machine();
    let [rm, ..] = servers(&mut m, 0);
    let only = greedy(&mut m, EDF2, 0, 90_000);
    m.run_until(CYCLE / 2 - 1);
    assert!(m.executed.is_empty(), "EDF's windows have not begun: {:?}", m.executed);
    assert_eq!(m.dispatcher.remaining(rm), CYCLE / 2, "uncharged");
    m.run_until(CYCLE);
    assert_eq!(m.received(only, 0, CYCLE), CYCLE / 4, "no more than EDF2's own budget");
}
