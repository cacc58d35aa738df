//! Time-driven groups that have no table.

mod common;

use common::{cpu, group, set, task, windows};
use punctual_analysis::Fit;
use punctual_taskset::TaskSpec;

#[test]
fn more_windows_than_a_table_takes_are_named() {
    let mut set = set("td", vec![TaskSpec { group: Some(0), ..task(1, 10_000, 10_000) }]);
    let many: Vec<(u64, u64)> = (0..5_000).map(|n| (2 * n, 1)).collect();
    set.groups.push(group("edf", windows(10_000, &many)));
    let cpu = cpu(&set);
    assert_eq!(cpu.groups[0].fit, Fit::Late);
    assert!(cpu.groups[0].cause().contains("5000 windows are given in one group, more than 4096"));
}

#[test]
fn a_table_whose_overload_shows_after_many_cycles_is_refused() {
    // 25/24 of a CPU, with offsets: no task is late before 151.
    let at = |start, task: TaskSpec| TaskSpec { offset: start, ..task };
    let set =
        set("td", vec![at(13, task(1, 24, 24)), at(7, task(4, 12, 11)), at(15, task(16, 24, 24))]);
    let cpu = cpu(&set);
    assert!(cpu.tasks.iter().all(|t| t.fit == Fit::Late));
    assert!(
        cpu.tasks[0].cause().contains("more than the time that is left"),
        "{}",
        cpu.tasks[0].cause()
    );
}
