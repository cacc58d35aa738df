//! Tasks that suspend themselves in mid-job: which deadlines are guaranteed, and why others are
//! not.

mod common;

use common::{cpu, group, responses, server, set, task, windows};
use punctual_analysis::Fit;
use punctual_taskset::{Body, ServerKind, ServerSpec, Spin, Step, TaskSet, TaskSpec, Window};

/// Execution and sleep in turn, beginning with execution.
fn steps(of: &[u64]) -> Body {
    let step = |(n, &ns): (usize, &u64)| {
        if n % 2 == 0 {
            Step::Spin(Spin::For(ns))
        } else {
            Step::Sleep(ns)
        }
    };
    Body::Steps(of.iter().enumerate().map(step).collect())
}

fn suspending(of: &[u64], budget: u64, period: u64) -> TaskSpec {
    TaskSpec { body: steps(of), ..task(budget, period, period) }
}

/// Its only task is late, and the reason names that.
fn late_because(set: &TaskSet, reason: &str) {
    let task = cpu(set).tasks.remove(0);
    assert_eq!((task.fit, task.exact), (Fit::Late, false), "{task:?}");
    assert!(task.cause().contains(reason), "{}", task.cause());
}

#[test]
fn under_edf_a_budget_that_is_cut_on_waking_is_not_promised() {
    // It wakes 3 before its deadline: 3 * 4 / 10 are left to it, and it needs 2.
    late_because(
        &set("edf", vec![suspending(&[2, 5, 2], 4, 10)]),
        "under EDF what is left of its budget is cut",
    );
    // The same set under fixed priorities: 2 + 5 + 2.
    assert_eq!(responses(&set("fp", vec![suspending(&[2, 5, 2], 4, 10)])), [Some(9)]);
}

#[test]
fn under_edf_a_suspending_task_with_room_is_promised_what_the_cut_leaves() {
    // Awake again 8 after its release at the latest: 12 * 4 / 20 are the 2 that it needs.
    assert_eq!(responses(&set("edf", vec![suspending(&[2, 5, 2], 4, 20)])), [Some(11)]);
    late_because(&set("edf", vec![suspending(&[2, 9, 2], 4, 20)]), "split it into two");
    // Others may delay it until more would be cut; they are in time all the same.
    let cpu = cpu(&set("edf", vec![suspending(&[2, 5, 2], 4, 20), task(10, 20, 20)]));
    assert_eq!((cpu.tasks[0].fit, cpu.tasks[1].fit), (Fit::Late, Fit::Fits));
}

#[test]
fn under_edf_a_cut_that_leaves_nothing_for_the_last_sleep_is_not_enough() {
    // On waking 38 before its deadline: 38 * 3 / 39 are the 2 that it spins, and it is stopped in
    // its last sleep.
    let body = |last| Body::Steps(vec![Step::Sleep(1), Step::Spin(Spin::For(2)), last]);
    let of = |last| set("edf", vec![TaskSpec { body: body(last), ..task(3, 39, 39) }]);
    late_because(&of(Step::Sleep(4)), "under EDF what is left of its budget is cut");
    assert!(cpu(&of(Step::Spin(Spin::For(0)))).schedulable());
}

#[test]
fn under_edf_a_suspending_task_in_a_group_with_a_server_is_refused() {
    let mut set = set("rm", vec![TaskSpec { group: Some(0), ..suspending(&[1, 1, 1], 2, 100) }]);
    set.groups.push(group("edf", server(5, 10)));
    late_because(&set, "under EDF what is left of its budget is cut");
}

#[test]
fn in_a_table_windows_pass_while_a_task_sleeps_unless_they_follow_its_steps() {
    let alone = suspending(&[2, 5, 2], 4, 10);
    late_because(&set("td", vec![alone.clone()]), "its windows may pass while it sleeps");
    let given = |of: &[(u64, u64)]| {
        let windows = of.iter().map(|&(start, length)| Window { start, length }).collect();
        set("td", vec![TaskSpec { windows, ..alone.clone() }])
    };
    late_because(&given(&[(0, 6)]), "its windows may pass while it sleeps");
    assert_eq!(responses(&given(&[(0, 2), (7, 2)])), [Some(9)]);
    assert_eq!(responses(&given(&[(0, 3), (6, 4)])), [Some(9)]);
}

#[test]
fn in_a_group_each_wake_up_may_meet_a_new_blackout() {
    let polling = ServerSpec::Periodic {
        period: 5,
        budget: 3,
        deadline: 5,
        offset: 0,
        kind: ServerKind::Polling,
    };
    let within = |deadline| {
        let sleeper = TaskSpec { deadline, group: Some(0), ..suspending(&[2, 1, 2], 4, 40) };
        let mut set = set("rm", vec![sleeper]);
        set.groups.push(group("rm", polling.clone()));
        set
    };
    // A blackout of 5 and 2 of execution, twice, and the sleep of 1 between.
    assert_eq!(responses(&within(15)), [Some(5 + 2 + 1 + 5 + 2)]);
    late_because(&within(14), "each time it wakes its group may have to wait for its budget again");
}

#[test]
fn a_sleep_behind_all_of_the_budget_is_never_slept_to_its_end() {
    late_because(&set("fp", vec![suspending(&[4, 1], 4, 10)]), "raise its budget");
    late_because(&set("td", vec![suspending(&[4, 1], 4, 10)]), "raise its budget");
    assert!(cpu(&set("fp", vec![suspending(&[4, 1], 5, 10)])).schedulable());
}

#[test]
fn a_job_that_ends_with_a_sleep_needs_a_promotion_in_the_set() {
    late_because(&set("dual", vec![suspending(&[4, 1], 5, 20)]), "give it its promotion");
    let given = TaskSpec { promotion: Some(3), ..suspending(&[4, 1], 5, 20) };
    assert!(cpu(&set("dual", vec![given])).schedulable());
}

#[test]
fn a_blocked_task_may_be_blocked_at_each_wake_up() {
    let blocked = TaskSpec { blocking: 3, ..suspending(&[2, 1, 2], 4, 40) };
    assert_eq!(responses(&set("fp", vec![blocked])), [Some(4 + 1 + 2 * 3)]);
}

#[test]
fn a_program_whose_sleeps_are_not_known_is_promised_its_budget_if_it_stays_ready() {
    let program = TaskSpec { body: Body::Command(vec!["true".to_owned()]), ..task(4, 10, 10) };
    for policy in ["edf", "td", "fp"] {
        assert!(cpu(&set(policy, vec![program.clone()])).schedulable(), "{policy}");
    }
}

#[test]
fn windows_of_a_group_do_not_spare_it_a_second_gap() {
    let mut set = set("td", vec![TaskSpec { group: Some(0), ..suspending(&[1, 1, 1], 2, 40) }]);
    set.groups.push(group("fp", windows(10, &[(0, 2)])));
    // The gap of 8 and 1 of execution, twice, and the sleep.
    assert_eq!(responses(&set), [Some(9 + 1 + 9)]);
}
