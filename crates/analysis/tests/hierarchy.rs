//! Groups on servers and windows, and budget groups.

mod common;

use common::{cpu, fits, group, responses, server, set, task, windows};
use punctual_analysis::{analyse, Fit, Test};
use punctual_taskset::{
    BudgetGroupSpec, DomainId, GroupSpec, PolicySpec, ServerKind, ServerSpec, TaskSet, TaskSpec,
};

fn inside(group: usize, task: TaskSpec) -> TaskSpec {
    TaskSpec { group: Some(group), ..task }
}

fn node(budget: u64, period: u64) -> BudgetGroupSpec {
    BudgetGroupSpec {
        name: "b".to_owned(),
        parent: None,
        period,
        budget,
        domain: DomainId(0),
        line: None,
    }
}

#[test]
fn a_lone_server_under_fixed_priorities_leaves_a_blackout_of_its_gap() {
    // 3 in every 5, received within 3: the gap of 2 and nothing beside it. 4 are done after
    // 2 + 3 + 2 + 1.
    let mut set = set("rm", vec![inside(0, task(4, 20, 20))]);
    set.groups.push(group("rm", server(3, 5)));
    assert_eq!(cpu(&set).groups[0].blackout, Some(2));
    assert_eq!(responses(&set), [Some(8)]);
    assert!(!cpu(&set).tasks[0].exact, "only sufficient: the phases are unknown");
}

#[test]
fn a_server_that_may_be_preempted_has_the_blackout_of_shin_and_lee_at_most() {
    // Above it 2 in every 5 execute: received by the end of the period, 2 (5 - 3) without any.
    let above = TaskSpec { priority: 9, ..task(2, 5, 5) };
    let mut set = set("fp", vec![above, inside(0, task(3, 20, 20))]);
    set.groups.push(group("fp", server(3, 5)));
    assert_eq!(cpu(&set).groups[0].blackout, Some(4));
    assert_eq!(responses(&set), [Some(2), Some(7)]);
}

#[test]
fn a_polling_server_makes_its_group_wait_a_period_more_than_its_gap() {
    let polling = ServerSpec::Periodic {
        period: 5,
        budget: 3,
        deadline: 5,
        offset: 0,
        kind: ServerKind::Polling,
    };
    let mut set = set("rm", vec![inside(0, task(3, 20, 20))]);
    set.groups.push(group("rm", polling));
    assert_eq!(cpu(&set).groups[0].blackout, Some(5));
}

#[test]
fn a_deferrable_server_hits_those_below_it_twice_in_a_row() {
    // Strosnider, Lehoczky and Sha 1995: at the end of one period and the beginning of the next.
    let of = |kind| {
        let mut set = set("rm", vec![task(3, 12, 12)]);
        set.groups.push(group(
            "rm",
            ServerSpec::Periodic { period: 5, budget: 2, deadline: 5, offset: 0, kind },
        ));
        responses(&set)[0]
    };
    assert_eq!(of(ServerKind::Polling), Some(5));
    assert_eq!(of(ServerKind::Deferrable), Some(7));
}

#[test]
fn utilization_decides_for_constant_bandwidth_servers_under_edf() {
    // 36.7 % and 41.6 %, as in the periodic resource model (Shin and Lee 2003).
    let of = |kind, more: u64| {
        let server = |period, budget| ServerSpec::Periodic {
            period,
            budget,
            deadline: period,
            offset: 0,
            kind,
        };
        let mut set =
            set("edf", vec![inside(0, task(20, 400, 400)), inside(1, task(20, 400, 400))]);
        set.groups.push(group("edf", server(30, 11)));
        set.groups.push(GroupSpec { name: "h".to_owned(), ..group("rm", server(101, 42 + more)) });
        set
    };
    let accepted = cpu(&of(ServerKind::ConstantBandwidth, 0));
    assert!(accepted.schedulable(), "{accepted:#?}");
    assert!(accepted.groups[0].blackout <= Some(2 * (30 - 11)));
    assert!(accepted.groups[1].blackout <= Some(2 * (101 - 42)));
    assert!(!cpu(&of(ServerKind::Deferrable, 0)).schedulable());
    // 11/30 and 63/101 are less than 1, 11/30 and 64/101 more.
    assert!(cpu(&of(ServerKind::ConstantBandwidth, 21)).schedulable());
    assert!(!cpu(&of(ServerKind::ConstantBandwidth, 22)).schedulable());
}

#[test]
fn three_levels_get_what_is_left_of_each() {
    let mut set =
        set("edf", vec![inside(1, task(1, 100, 100)), inside(0, task(1, 40, 40)), task(2, 10, 10)]);
    set.groups.push(group("rm", server(4, 10)));
    set.groups.push(GroupSpec {
        name: "below".to_owned(),
        parent: Some(0),
        ..group("edf", server(2, 20))
    });
    let cpu = cpu(&set);
    assert!(cpu.schedulable(), "{cpu:#?}");
    assert!(cpu.groups[1].blackout > cpu.groups[0].blackout);
    assert_eq!(
        cpu.load.utilization.0, 235_000,
        "no more than the members may execute: 1/100 + 1/40 + 2/10"
    );
}

#[test]
fn a_server_that_does_not_fit_takes_its_group_with_it() {
    let mut set = set("edf", vec![task(6, 10, 10), inside(0, task(1, 40, 40))]);
    set.groups.push(group("edf", server(5, 10)));
    let cpu = cpu(&set);
    assert_eq!((cpu.groups[0].fit, cpu.tasks[1].fit), (Fit::Late, Fit::Late));
    assert!(cpu.tasks[1].cause().contains("group \"g\""), "{}", cpu.tasks[1].cause());
}

#[test]
fn a_table_supplies_its_windows_and_no_more() {
    let mut set = set("td", vec![inside(0, task(5, 30, 30)), inside(1, task(5, 30, 24))]);
    set.groups.push(group("rm", windows(10, &[(0, 5)])));
    set.groups
        .push(GroupSpec { name: "h".to_owned(), ..group("rm", windows(10, &[(5, 3), (9, 1)])) });
    // The first waits 5 at most; the second has 4 in every 10 and is worst from 10 on: 3 from 15, 1
    // at 19, the fifth at 25.
    assert_eq!(responses(&set), [Some(10), Some(16)]);
    set.groups[1].server = windows(10, &[(4, 3)]);
    assert!(cpu(&set).groups.iter().all(|g| g.fit == Fit::Late), "they overlap");
}

#[test]
fn fig_6_of_red_linux_fits_because_its_offsets_are_looked_at() {
    let text = include_str!("../../../examples/red-linux-fig6.toml");
    let analysis = analyse(&TaskSet::parse(text, "fig6").unwrap());
    assert!(analysis.fits(), "{analysis:#?}");
    let groups = &analysis.domains[0].groups;
    assert_eq!(groups.iter().map(|g| g.test).collect::<Vec<_>>()[..2], [Test::Table, Test::Table]);
    // Servers that begin with the other half of the cycle get nothing before their deadlines.
    let half = "period = \"20ms\"\noffset = \"10ms\"";
    let moved = text.replace(half, "period = \"20ms\"\noffset = \"0ms\"");
    assert_ne!(moved, text);
    assert!(!analyse(&TaskSet::parse(&moved, "fig6").unwrap()).schedulable());
}

#[test]
fn what_is_overloaded_so_slowly_that_a_few_rounds_do_not_show_it_is_refused_within_windows() {
    // 11 of the 10 that the windows have in every 20; with offsets the first misses come much
    // later.
    let late = TaskSpec { offset: 10, ..task(5, 20, 20) };
    let mut set = set("td", vec![inside(0, task(6, 20, 20)), inside(0, late)]);
    set.groups.push(group("edf", windows(10, &[(0, 5)])));
    assert_eq!(fits(&set), [false, false]);
    set.tasks[0].budget = 5;
    assert_eq!(fits(&set), [true, true]);
}

#[test]
fn a_server_that_begins_later_than_its_tasks_has_a_first_blackout_until_then() {
    let of = |start| {
        let mut set = set("rm", vec![inside(0, task(1, 30, 30))]);
        let server = ServerSpec::Periodic {
            period: 20,
            budget: 7,
            deadline: 20,
            offset: start,
            kind: ServerKind::Deferrable,
        };
        set.groups.push(group("rm", server));
        responses(&set)
    };
    assert_eq!(of(0), [Some(14)]);
    assert_eq!(of(17), [Some(18)]);
}

#[test]
fn an_interval_without_supply_is_not_too_short_to_fail() {
    // A server that wants 1 within 2, in a group whose blackout is 4: between the bends of its
    // demand.
    let mut set = set("dm", vec![inside(1, task(1, 80, 74))]);
    set.groups.push(group(
        "edf",
        ServerSpec::Periodic {
            period: 6,
            budget: 2,
            deadline: 3,
            offset: 0,
            kind: ServerKind::Deferrable,
        },
    ));
    let below = ServerSpec::Periodic {
        period: 18,
        budget: 1,
        deadline: 2,
        offset: 0,
        kind: ServerKind::Deferrable,
    };
    set.groups.push(GroupSpec { name: "below".to_owned(), parent: Some(0), ..group("edf", below) });
    assert_eq!(cpu(&set).groups[1].fit, Fit::Late);
}

#[test]
fn a_budget_group_that_is_never_exhausted_limits_no_task() {
    let of = |budget| {
        let member = || TaskSpec { budget_group: Some(0), ..task(2, 10, 10) };
        let mut set = set("rm", vec![member(), member()]);
        set.budget_groups.push(node(budget, 20));
        set
    };
    assert!(!cpu(&of(8)).budget_groups[0].exhaustible);
    assert_eq!(responses(&of(8)), [Some(2), Some(4)]);
    // With 7 in 20 the last one may have to wait for the next 20.
    let dry = cpu(&of(7));
    assert!(dry.budget_groups[0].exhaustible && dry.budget_groups[0].demand == 8);
    assert_eq!(dry.tasks[1].fit, Fit::Late);
    assert!(dry.tasks[1].cause().contains("budget group"), "{}", dry.tasks[1].cause());
}

#[test]
fn a_group_that_nothing_leads_to_is_not_admitted() {
    let mut set = set("edf", vec![inside(0, task(1, 10, 10))]);
    set.groups.push(GroupSpec { parent: Some(1), ..group("edf", server(1, 2)) });
    set.groups.push(GroupSpec { parent: Some(0), ..group("edf", server(1, 2)) });
    assert_eq!(fits(&set), [false]);
}

#[test]
fn a_policy_without_a_test_is_not_admitted() {
    let mut set = set("pd2", vec![task(1, 10, 10)]);
    assert_eq!(fits(&set), [false]);
    set.policy = PolicySpec::named("edf");
    assert_eq!(fits(&set), [true]);
}
