//! The text of an analysis names the reason that holds, once.

#[path = "../../analysis/tests/common/mod.rs"]
mod common;

use common::{group, server, set, task};
use punctual_analysis::{advise, analyse, Fit, Help};
use punctual_report::analysis::{report, summary};
use punctual_taskset::{GroupSpec, ServerSpec, TaskSpec};

#[test]
fn where_only_groups_are_late_the_summary_names_groups() {
    // 1 in 10 for a group below one that gets its 2 in 10 late.
    let mut late = set("rm", Vec::new());
    let slow = ServerSpec::Periodic {
        period: 10,
        budget: 2,
        deadline: 10,
        offset: 0,
        kind: punctual_taskset::ServerKind::Polling,
    };
    late.groups.push(group("rm", slow.clone()));
    late.groups.push(GroupSpec { name: "below".to_owned(), parent: Some(0), ..group("rm", slow) });
    let analysis = analyse(&late);
    assert!(!analysis.fits() && analysis.domains[0].excess.is_none());
    assert!(
        summary(&analysis).contains("1 group is not sure to get its budget"),
        "{}",
        summary(&analysis)
    );

    let mut full = set("rm", vec![TaskSpec { group: Some(0), ..task(99, 100, 100) }]);
    full.groups.push(group("rm", server(10, 10)));
    let full = analyse(&full);
    assert!(summary(&full).contains("99 % promised, more than 90 %"), "{}", summary(&full));
}

#[test]
fn periods_that_do_not_meet_in_a_table_are_reported_once_and_no_budget_is_searched() {
    // Odd numbers in a row share no large factors: their cycle is beyond 2^60.
    let tasks = (0..10_000).map(|n| task(1, 1_000_000_007 + 2 * n, 1_000_000_007)).collect();
    let set = set("td", tasks);
    let analysis = analyse(&set);
    let cpu = &analysis.domains[0];
    assert!(cpu.tasks.iter().all(|t| t.fit == Fit::Late));
    let advice = advise(&set, cpu);
    assert_eq!((&advice.help, advice.own.len()), (&Help::Periods, 0));
    let text = report(&analysis, &[advice]);
    assert_eq!(text.matches("come again only after more than 36 years").count(), 3, "{text}");
    assert!(text.contains("and 9997 more tasks, for the reasons above"), "{text}");
    assert!(
        text.contains("to make it fit: choose periods that are multiples of each other"),
        "{text}"
    );
}
