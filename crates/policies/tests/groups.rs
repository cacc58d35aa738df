//! Servers, budget groups and hierarchies from a task set.

mod support;

use punctual_dispatcher::End;
use punctual_taskset::{BudgetGroupSpec, DomainId, GroupSpec, ServerKind, ServerSpec, TaskSpec};
use support::{at_times, group, set, task, windowed, Cpu};

fn within(g: usize, t: TaskSpec) -> TaskSpec {
    TaskSpec { group: Some(g), ..t }
}

fn served(kind: ServerKind) -> Cpu {
    // A server of 2 in 5; its one task comes at 3 and at 11.
    let mut all =
        set("rm", vec![within(0, at_times(task("soft", 40, 2), &[3, 11])), task("hard", 10, 4)]);
    all.groups.push(group("server", "fp", 5, 2, kind));
    Cpu::new(&all, &[&[2], &[4]])
}

#[test]
fn a_deferrable_server_keeps_its_budget_for_who_comes_in_its_period() {
    let mut cpu = served(ServerKind::Deferrable);
    cpu.run(20);
    assert_eq!(cpu.when(0), [(3, 5), (11, 13)]);
    assert_eq!(cpu.when(1), [(0, 3), (5, 6), (10, 11), (13, 16)]);
}

#[test]
fn a_polling_server_serves_only_who_is_there_at_its_release() {
    let mut cpu = served(ServerKind::Polling);
    cpu.run(20);
    assert_eq!(cpu.when(0), [(5, 7), (15, 17)]);
}

#[test]
fn a_polling_server_loses_the_rest_when_its_group_is_idle() {
    let mut all = set("rm", vec![within(0, at_times(task("soft", 40, 1), &[5, 7]))]);
    all.groups.push(group("server", "fp", 5, 2, ServerKind::Polling));
    let mut cpu = Cpu::new(&all, &[&[1]]);
    cpu.run(20);
    // At 6 one unit of the server is left; what comes at 7 waits for the next period all the same.
    assert_eq!(cpu.when(0), [(5, 6), (10, 11)]);
}

#[test]
fn a_constant_bandwidth_server_keeps_what_its_bandwidth_allows_until_its_deadline() {
    // 40 in 100. Its task comes at 50, when 50 * 40 / 100 are left; at 100 it has all 40 again.
    let mut all = set("edf", vec![within(0, at_times(task("soft", 400, 100), &[50]))]);
    all.groups.push(group("server", "fp", 100, 40, ServerKind::ConstantBandwidth));
    let mut cpu = Cpu::new(&all, &[&[100]]);
    cpu.run(400);
    assert_eq!(cpu.when(0), [(50, 70), (100, 140), (200, 240)]);
}

#[test]
fn a_constant_bandwidth_server_that_is_cut_to_nothing_waits_for_its_next_budget() {
    // 2 in 10. At 6, 4 * 2 / 10 are less than 1.
    let mut all = set("edf", vec![within(0, at_times(task("soft", 40, 2), &[6, 21]))]);
    all.groups.push(group("server", "fp", 10, 2, ServerKind::ConstantBandwidth));
    let mut cpu = Cpu::new(&all, &[&[2]]);
    cpu.run(40);
    // At 21, 9 * 2 / 10 are 1.
    assert_eq!(cpu.when(0), [(10, 12), (21, 22), (30, 31)]);
}

/// Under EDF a deferrable server may use its budget just before its deadline, which is more than
/// its utilization then; a constant bandwidth server never is (Abeni and Buttazzo 1998).
#[test]
fn isolation_under_edf_needs_a_constant_bandwidth_server() {
    let late = |kind| {
        let hard = TaskSpec { offset: 50, ..task("hard", 60, 30) };
        let soft = within(0, at_times(task("soft", 1000, 500), &[50]));
        let mut all = set("edf", vec![hard, soft]);
        all.groups.push(group("server", "fp", 100, 50, kind));
        let mut cpu = Cpu::new(&all, &[&[30], &[500]]);
        cpu.run(700);
        cpu.ends(0).iter().filter(|end| end.2 != End::Completed).count()
    };
    assert!(late(ServerKind::Deferrable) > 0);
    assert_eq!(late(ServerKind::ConstantBandwidth), 0);
}

#[test]
fn a_budget_group_limits_tasks_of_different_groups_together() {
    let shared = |t: TaskSpec| TaskSpec { budget_group: Some(0), ..t };
    let mut all = set(
        "rm",
        vec![shared(task("a", 10, 4)), shared(within(0, task("b", 10, 4))), task("c", 20, 20)],
    );
    all.groups.push(group("g", "rm", 10, 10, ServerKind::Deferrable));
    all.budget_groups.push(BudgetGroupSpec {
        name: "both".to_owned(),
        parent: None,
        period: 10,
        budget: 5,
        domain: DomainId(0),
        line: None,
    });
    let mut cpu = Cpu::new(&all, &[&[9], &[9], &[20]]);
    cpu.run(100);
    assert_eq!(cpu.total(0) + cpu.total(1), 50);
    assert_eq!(cpu.total(2), 50, "what the budget group does not give is for others");
}

#[test]
fn a_child_may_stand_before_its_parent_in_the_file() {
    let node = |name: &str, parent, budget| BudgetGroupSpec {
        name: name.to_owned(),
        parent,
        period: 10,
        budget,
        domain: DomainId(0),
        line: None,
    };
    let mut all = set("edf", vec![TaskSpec { budget_group: Some(0), ..task("a", 10, 9) }]);
    all.budget_groups =
        vec![node("child", Some(2), 8), node("other", None, 1), node("parent", None, 3)];
    let mut cpu = Cpu::new(&all, &[&[9]]);
    cpu.run(30);
    assert_eq!(cpu.total(0), 9, "the parent's 3 of 10 are the limit");
}

#[test]
fn figure_6_runs_rate_monotonic_in_one_half_of_the_cycle_and_two_edf_groups_in_the_other() {
    // Table 2: RM 0..P/2, EDF P/2..P, in it EDF1 and EDF2 with P/4 each; P = 20.
    let inside = |parent, g: GroupSpec| GroupSpec { parent: Some(parent), ..g };
    let half = |name: &str| GroupSpec {
        server: ServerSpec::Periodic {
            period: 20,
            budget: 5,
            deadline: 10,
            offset: 10,
            kind: ServerKind::Deferrable,
        },
        ..inside(1, group(name, "edf", 1, 1, ServerKind::Deferrable))
    };
    let mut all = set(
        "td",
        vec![
            within(0, task("rm1", 10, 2)),
            within(0, task("rm2", 20, 20)),
            within(2, task("edf1", 20, 20)),
            within(3, task("edf2", 20, 20)),
        ],
    );
    all.groups = vec![
        windowed("rm", "rm", 20, &[(0, 10)]),
        windowed("edf", "edf", 20, &[(10, 10)]),
        half("edf1"),
        half("edf2"),
    ];
    let mut cpu = Cpu::new(&all, &[&[2], &[20], &[20], &[20]]);
    cpu.run(40);
    assert_eq!(
        cpu.when(0),
        [(0, 2), (20, 22)],
        "its releases at 10 and 30 are outside of the windows"
    );
    assert_eq!(cpu.when(1), [(2, 10), (22, 30)]);
    assert_eq!(cpu.when(2), [(10, 15), (30, 35)]);
    assert_eq!(cpu.when(3), [(15, 20), (35, 40)]);
}

#[test]
fn a_group_three_levels_down_has_its_policy_and_its_share() {
    let mut all = set(
        "rm",
        vec![within(2, task("a", 20, 2)), within(2, task("b", 20, 5)), task("c", 40, 40)],
    );
    all.groups = vec![
        group("outer", "rm", 20, 10, ServerKind::Deferrable),
        GroupSpec { parent: Some(0), ..group("middle", "edf", 20, 8, ServerKind::Deferrable) },
        GroupSpec { parent: Some(1), ..group("inner", "fp", 20, 6, ServerKind::Deferrable) },
    ];
    all.tasks[0].priority = 1;
    all.tasks[1].priority = 2;
    let mut cpu = Cpu::new(&all, &[&[2], &[5], &[40]]);
    cpu.run(40);
    assert_eq!(cpu.total(0) + cpu.total(1), 12, "6 of 20 in the innermost");
    assert_eq!(cpu.total(1), 10, "the larger priority has its 5");
    assert_eq!(cpu.ends(1).len(), 2);
    assert_eq!(cpu.ends(0)[0], (0, 0, End::Expired, 1));
}
