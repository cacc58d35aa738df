//! What people are told of sets that do not fit: the cause that holds, once, and soon.

mod common;

use common::{cpu, group, server, set, task, windows};
use punctual_analysis::{advise, analyse, report, summary, Fit, Help};
use punctual_taskset::{GroupSpec, ServerSpec, TaskSpec};

#[test]
fn where_only_groups_are_late_the_summary_names_groups() {
    // 1 in 10 for a group below one that gets its 2 in 10 late.
    let mut set = set("rm", Vec::new());
    let slow = ServerSpec::Periodic {
        period: 10,
        budget: 2,
        deadline: 10,
        start: 0,
        kind: punctual_taskset::ServerKind::Polling,
    };
    set.groups.push(group("rm", slow.clone()));
    set.groups.push(GroupSpec { name: "below".to_owned(), parent: Some(0), ..group("rm", slow) });
    let analysis = analyse(&set);
    assert!(!analysis.fits() && analysis.cpus[0].excess.is_none());
    assert!(summary(&analysis).contains("1 group is not sure to get its budget"), "{}", summary(&analysis));

    let mut full = common::set("rm", vec![TaskSpec { group: Some(0), ..task(99, 100, 100) }]);
    full.groups.push(group("rm", server(10, 10)));
    let full = analyse(&full);
    assert!(summary(&full).contains("99 % promised, more than 90 %"), "{}", summary(&full));
}

#[test]
fn periods_that_do_not_meet_in_a_table_are_told_once_and_no_budget_is_searched() {
    // Odd numbers in a row share no large factors: their cycle is beyond 2^60.
    let tasks = (0..10_000).map(|n| task(1, 1_000_000_007 + 2 * n, 1_000_000_007)).collect();
    let set = set("td", tasks);
    let analysis = analyse(&set);
    let cpu = &analysis.cpus[0];
    assert!(cpu.tasks.iter().all(|t| t.fit == Fit::Late));
    let advice = advise(&set, cpu);
    assert_eq!((&advice.help, advice.own.len()), (&Help::Periods, 0));
    let text = report(&analysis, &[advice]);
    assert_eq!(text.matches("come again only after more than 36 years").count(), 3, "{text}");
    assert!(text.contains("and 9997 more tasks, for reasons that are told above"), "{text}");
    assert!(text.contains("to make it fit: choose periods that are multiples of each other"), "{text}");
}

#[test]
fn more_windows_than_a_table_takes_are_named() {
    let mut set = set("td", vec![TaskSpec { group: Some(0), ..task(1, 10_000, 10_000) }]);
    let many: Vec<(u64, u64)> = (0..5_000).map(|n| (2 * n, 1)).collect();
    set.groups.push(group("edf", windows(10_000, &many)));
    let cpu = cpu(&set);
    assert_eq!(cpu.groups[0].fit, Fit::Late);
    assert!(cpu.groups[0].cause().contains("5000 windows are given beside each other, 4096 is the most"));
}

#[test]
fn a_table_whose_overload_shows_after_many_cycles_is_refused() {
    // 25/24 of a CPU, with offsets: nobody is late before 151.
    let at = |start, task: TaskSpec| TaskSpec { start, ..task };
    let set = set("td", vec![at(13, task(1, 24, 24)), at(7, task(4, 12, 11)), at(15, task(16, 24, 24))]);
    let cpu = cpu(&set);
    assert!(cpu.tasks.iter().all(|t| t.fit == Fit::Late));
    assert!(cpu.tasks[0].cause().contains("more than the time that is left"), "{}", cpu.tasks[0].cause());
}
