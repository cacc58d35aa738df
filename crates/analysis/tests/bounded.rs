//! Large and odd sets get an answer, and a right one. No time is measured here: a test that takes
//! too long is seen.

mod common;

use common::{cpu, group, server, set, task};
use punctual_analysis::{admit, analyse, hyperperiod, Fit};
use punctual_taskset::{BudgetGroupSpec, DomainId, GroupSpec, TaskSet, TaskSpec};

/// Ten thousand tasks that fill 50 % together, each with a period of its own.
fn ten_thousand(policy: &str) -> TaskSet {
    let tasks = (0..10_000u64).map(|n| {
        let period = 100_000_000 + n * 7_919;
        TaskSpec { priority: -(n as i64), ..task(period / 20_000, period, period - n * 100) }
    });
    set(policy, tasks.collect())
}

#[test]
fn ten_thousand_tasks_are_judged_under_every_policy() {
    for policy in ["rm", "dm", "fp", "edf", "imprecise", "dual"] {
        let set = ten_thousand(policy);
        let cpu = cpu(&set);
        assert_eq!(cpu.tasks.len(), 10_000);
        assert!(cpu.fits(), "{policy}");
    }
}

#[test]
fn ten_thousand_tasks_of_one_priority_are_judged() {
    let mut set = ten_thousand("fp");
    set.tasks.iter_mut().for_each(|t| t.priority = 1);
    assert!(cpu(&set).fits());
    // One too many for the last: all are equal, so that each may be last.
    set.tasks[0].deadline = 50_000_000;
    let cpu = cpu(&set);
    assert!(!cpu.fits());
    assert!(admit(&set).unwrap_err().to_string().contains("t1"));
}

#[test]
fn a_thousand_groups_and_nodes_are_judged() {
    let mut set = ten_thousand("edf");
    for n in 0..1_000usize {
        set.groups
            .push(GroupSpec { name: format!("g{n}"), ..group("rm", server(80_000, 100_000_000)) });
        set.budget_groups.push(BudgetGroupSpec {
            name: format!("b{n}"),
            parent: (n % 10 > 0).then(|| n - 1),
            period: 100_000_000,
            budget: 90_000_000,
            domain: DomainId(0),
            line: None,
        });
    }
    for (n, t) in set.tasks.iter_mut().enumerate() {
        t.budget = 4_000;
        t.group = Some(n % 1_000);
        t.budget_group = Some(n % 1_000);
    }
    assert_eq!(cpu(&set).groups.len(), 1_000);
}

#[test]
fn hyperperiods_beyond_64_bits_are_no_obstacle() {
    // Primes near 2^61 and 2^40.
    let long = [2_305_843_009_213_693_951u64, 2_305_843_009_213_693_921, 1_099_511_627_689];
    for policy in ["rm", "edf"] {
        let tasks = long.iter().map(|&period| task(period / 4, period, period)).collect();
        let set = set(policy, tasks);
        assert_eq!(hyperperiod(&set, u64::MAX).ok(), None);
        assert!(analyse(&set).fits(), "{policy}");
        let constrained =
            long.iter().map(|&period| task(period / 4, period, period / 4 + 1)).collect();
        let set = common::set(policy, constrained);
        assert!(!analyse(&set).fits(), "{policy}");
    }
}

#[test]
fn a_full_cpu_whose_periods_never_meet_is_judged_or_reported_as_not_computed() {
    // Exactly 1 with short deadlines: the interval to look at is as long as the hyperperiod.
    let primes = [1_000_003u64, 1_000_033, 1_000_037, 1_000_039];
    let mut tasks: Vec<TaskSpec> = primes.iter().map(|&p| task(p / 4, p, p - 1)).collect();
    tasks[3].budget += 3;
    let cpu = cpu(&set("edf", tasks));
    assert!(cpu.tasks.iter().all(|t| t.fit != Fit::BestEffort));
    assert!(!cpu.fits());
}

#[test]
fn a_response_that_takes_a_billion_steps_is_given_up() {
    // The more important ones leave a billionth of the CPU.
    let tasks = vec![
        TaskSpec { priority: 2, ..task(999_999_999, 1_000_000_000, 1_000_000_000) },
        TaskSpec { priority: 1, ..task(1_000_000_000, 1 << 61, 1 << 61) },
    ];
    let cpu = cpu(&set("fp", tasks));
    assert_eq!(cpu.tasks[0].fit, Fit::Fits);
    assert!(matches!(cpu.tasks[1].fit, Fit::Fits | Fit::NotComputed), "{:?}", cpu.tasks[1]);
}
