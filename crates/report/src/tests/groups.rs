//! What groups and budget groups received, against sums by hand.

use super::*;
use punctual_taskset::{
    Body, BudgetGroupSpec, DomainId, DomainSpec, GroupSpec, PolicySpec, ServerKind, ServerSpec,
    Spin, TaskSet, TaskSpec, Window,
};

const MS: u64 = 1_000_000;

/// `top` with `below` in it; `all` with `some` in it, which limits `below`.
fn set() -> TaskSet {
    let policy = |name: &str| PolicySpec::named(name);
    let group = |name: &str, parent, server, budget_group| GroupSpec {
        name: name.to_owned(),
        parent,
        policy: policy("edf"),
        server,
        priority: 0,
        budget_group,
        domain: DomainId(0),
        line: None,
    };
    let node = |name: &str, parent| BudgetGroupSpec {
        name: name.to_owned(),
        parent,
        period: 10 * MS,
        budget: 2 * MS,
        domain: DomainId(0),
        line: None,
    };
    let task = |name: &str, group, budget_group| TaskSpec {
        domain: DomainId(0),
        group,
        budget_group,
        ..TaskSpec::new(name, 10 * MS, MS, Body::Spin(Spin::Forever))
    };
    let kind = ServerKind::Deferrable;
    let server = ServerSpec::Periodic {
        period: 10 * MS,
        budget: 3 * MS,
        deadline: 10 * MS,
        offset: 0,
        kind,
    };
    let windows = vec![Window { start: 0, length: MS }, Window { start: 4 * MS, length: MS }];
    TaskSet {
        domains: vec![DomainSpec::of_cpu(1)],
        policy: policy("rm"),
        duration: None,
        tasks: vec![
            task("free", None, None),
            task("a", Some(0), None),
            task("b", Some(1), None),
            task("c", None, Some(0)),
        ],
        groups: vec![
            group("top", None, server, None),
            group("below", Some(0), ServerSpec::Windows { cycle: 20 * MS, windows }, Some(1)),
        ],
        budget_groups: vec![node("all", None), node("some", Some(0))],
    }
}

/// Each task received its index + 1 tenths of a millisecond in each of eleven periods, the first of
/// which does not count.
fn results() -> Results {
    let run = Run { machine: machine().into(), ..Run::new(HostKind::User, "rm", &[1]) };
    let mut collector = Collector::for_set(run, &set());
    for number in 0..11 {
        for task in 0..4 {
            let release = number * 10 * MS;
            let received = (u64::from(task) + 1) * MS / 10;
            collector.record(&Period { task, release, received, assigned: MS, ..period(number) });
        }
    }
    collector.finish(110 * MS);
    collector.snapshot()
}

#[test]
fn a_groups_share_is_that_of_all_tasks_below_it() {
    let groups = results().groups;
    let received: Vec<(&str, u64, u64)> =
        groups.iter().map(|g| (g.name.as_str(), g.tasks, g.received_ppm)).collect();
    // 1 % of the CPU is 0.1 ms in 10.
    assert_eq!(
        received,
        [("top", 2, 50_000), ("below", 1, 30_000), ("all", 2, 70_000), ("some", 1, 30_000)]
    );
    let assigned: Vec<u64> = groups.iter().map(|g| g.assigned_ppm).collect();
    assert_eq!(assigned, [300_000, 100_000, 200_000, 200_000]);
    assert_eq!(groups[1].parent.as_deref(), Some("top"));
    assert_eq!((groups[1].period_ns, groups[1].budget_ns), (20 * MS, 2 * MS), "all its windows");
}

#[test]
fn what_is_promised_counts_a_group_by_its_server_and_by_what_its_members_may_execute() {
    // `free` and `c` 10 % each; in `top`, whose server has 30 %, `a` 10 % and `below` 10 %.
    assert_eq!(results().utilization_ppm, 400_000);
}

#[test]
fn the_table_has_a_line_for_each_group() {
    let text = shown(&results(), 100);
    println!("{text}");
    let below = text.lines().find(|l| l.starts_with("below")).expect("a line");
    let cells: Vec<&str> = below.split_whitespace().collect();
    assert_eq!(cells, ["below", "top", "edf", "20", "ms", "2", "ms", "1", "10.00", "3.00"]);
    assert!(text.lines().any(|l| l.starts_with("some") && l.contains("(budget)")));
    assert!(
        !shown(&rich(HostKind::User, 0), 100).contains("of a CPU (%)"),
        "a set without groups has none"
    );
}
