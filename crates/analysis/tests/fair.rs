//! Tasks with weights: the delay bounds of fair queueing, by hand.

mod common;

use common::{cpu, group, server, set, windows};
use punctual_analysis::{admit, admit_within, Capacity, Fit, Help, Ppm, Test};
use punctual_taskset::{Body, BudgetGroupSpec, Costs, DomainId, PolicySpec, ServerSpec, Spin};
use punctual_taskset::{TaskSet, TaskSpec};

fn weighted(weight: u32, group: Option<usize>) -> TaskSpec {
    let forever = Body::Spin(Spin::Forever);
    TaskSpec { weight: Some(weight), group, ..TaskSpec::new("t", 1, 1, forever) }
}

fn by_weight(policy: &str, quantum: u64) -> PolicySpec {
    PolicySpec { quantum: Some(quantum), ..PolicySpec::named(policy) }
}

/// Tasks of these weights in a group with this server, by quanta of 4.
fn shared(policy: &str, server: ServerSpec, weights: &[u32]) -> TaskSet {
    let tasks = weights.iter().map(|&weight| weighted(weight, Some(0))).collect();
    let mut set = set("edf", tasks);
    set.groups.push(group(policy, server));
    set.groups[0].policy = by_weight(policy, 4);
    set.apply_weights();
    set
}

/// Alone, a server of 8 in 20 may be without execution for 2 * 12.
#[test]
fn sfq_a_quantum_waits_for_its_share_and_one_quantum_of_each_other_task() {
    let cpu = cpu(&shared("sfq", server(8, 20), &[1, 3, 4]));
    let blackout = cpu.groups[0].blackout.unwrap();
    // 4 * 8 / 1 and 2 * 4: five budgets of 8; 4 * 8 / 3, rounded up, and 8: two of 8, and 3.
    for (task, work, rest) in [(0, 40, 4 * 20 + 8), (1, 19, 2 * 20 + 3), (2, 16, 20 + 8)] {
        let t = &cpu.tasks[task];
        assert_eq!((t.fit, t.test, t.exact), (Fit::Fits, Test::FairShare, false));
        assert_eq!(t.response, Some(blackout + rest), "{work} in all");
        // At the rate of the server, after the longest blackout.
        let deadline = (work * 20u64).div_ceil(8) + 32;
        assert_eq!((t.deadline, t.slack), (deadline, Some(deadline - blackout - rest)));
    }
}

#[test]
fn wfq_a_quantum_waits_for_its_share_and_one_quantum_and_has_no_bound_from_its_release() {
    let cpu = cpu(&shared("wfq", server(8, 20), &[1, 3, 4]));
    let blackout = cpu.groups[0].blackout.unwrap();
    for (task, work, rest) in [(0, 36, 4 * 20 + 4), (1, 15, 20 + 7), (2, 12, 20 + 4)] {
        let t = &cpu.tasks[task];
        let deadline = (work * 20u64).div_ceil(8) + 32;
        assert_eq!((t.fit, t.response, t.deadline), (Fit::Fits, None, deadline));
        assert_eq!(t.slack, Some(deadline - blackout - rest));
    }
}

#[test]
fn in_windows_the_longest_wait_is_a_cycle() {
    let mut set = shared("sfq", windows(20, &[(0, 4), (10, 4)]), &[1]);
    set.policy = PolicySpec::named("td");
    let cpu = cpu(&set);
    // The first window may have begun just before the end of one: 6 until the next.
    assert_eq!(cpu.tasks[0].response, Some(6 + 4));
    assert_eq!(cpu.tasks[0].deadline, 10 + 20);
}

#[test]
fn tasks_with_weights_make_no_set_fail_and_none_is_promised_more_than_its_group_has() {
    // As many as there are: only the server counts.
    let many = shared("wfq", server(8, 20), &[7; 50]);
    assert_eq!(admit(&many).unwrap().domains[0].utilization, Ppm(400_000));
    // A budget group that may be exhausted.
    let mut limited = shared("sfq", server(8, 20), &[1, 1]);
    limited.budget_groups.push(BudgetGroupSpec {
        name: "b".to_owned(),
        parent: None,
        period: 40,
        budget: 4,
        domain: DomainId(0),
        line: None,
    });
    limited.tasks[0].budget_group = Some(0);
    assert!(admit(&limited).is_ok());
    assert_eq!([0, 1].map(|n| cpu(&limited).tasks[n].fit), [Fit::BestEffort, Fit::Fits]);
    // A server that may begin later than its tasks.
    let mut late = shared("sfq", server(8, 20), &[1]);
    if let ServerSpec::Periodic { offset, .. } = &mut late.groups[0].server {
        *offset = 1_000;
    }
    assert!(admit(&late).is_ok());
    assert_eq!(cpu(&late).tasks[0].fit, Fit::BestEffort);
    // Where the server does not fit, it is what is refused.
    let full = shared("sfq", server(19, 20), &[1]);
    assert!(admit(&full).is_err());
}

#[test]
fn at_the_top_the_tasks_share_what_is_promised_of_a_cpu() {
    let top = |quantum| {
        let mut set = set("sfq", vec![weighted(1, None), weighted(2, None)]);
        set.policy = by_weight("sfq", quantum);
        set.apply_weights();
        set
    };
    let long = top(4_000_000);
    // Rounded down to a nanosecond each, that is 90 % and no more.
    let load = admit(&long).unwrap().domains[0].utilization;
    assert!(load <= Ppm(900_000) && load > Ppm(899_999), "{load}");
    assert_eq!(cpu(&long).tasks[0].response, Some(4_000_000 * 3 + 4_000_000));
    // A host that takes 50 us for each quantum.
    let costs = Costs { release: 25_000, timer: 25_000, ..Costs::NONE };
    let capacity = Capacity { total: Ppm(950_000), costs, ..Capacity::THEORY };
    assert!(admit_within(&long, &capacity).is_ok());
    let refused = admit_within(&top(400_000), &capacity).unwrap_err();
    assert_eq!(refused.over[0].help, Help::Quantum);
}
