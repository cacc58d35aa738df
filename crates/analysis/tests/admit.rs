//! What fits and what does not, to the nanosecond.

use num_bigint::BigUint;
use proptest::prelude::*;
use punctual_analysis::{admit, Help, Ppm, Quantity, Unschedulable};
use punctual_taskset::{Body, DomainId, DomainSpec, PolicySpec, Spin, TaskSet, TaskSpec};

/// A set from (cpu, budget, period) in ns.
fn set(tasks: &[(u32, u64, u64)]) -> TaskSet {
    let mut cpus: Vec<u32> = tasks.iter().map(|task| task.0).collect();
    cpus.sort_unstable();
    cpus.dedup();
    let domain = |cpu| DomainId(cpus.partition_point(|&before| before < cpu) as u32);
    let tasks = tasks.iter().enumerate().map(|(n, &(cpu, budget, period))| TaskSpec {
        domain: domain(cpu),
        ..TaskSpec::new(format!("t{n}"), period, budget, Body::Spin(Spin::Forever))
    });
    TaskSet {
        domains: cpus.iter().copied().map(DomainSpec::of_cpu).collect(),
        policy: PolicySpec::named("edf"),
        duration: None,
        tasks: tasks.collect(),
        groups: Vec::new(),
        budget_groups: Vec::new(),
    }
}

/// Applies the help for every CPU, as its user would.
fn fixed(mut set: TaskSet, refusal: &Unschedulable) -> TaskSet {
    for over in &refusal.over {
        match &over.help {
            Help::Change(change) => {
                let task = &mut set.tasks[change.index];
                match change.quantity {
                    Quantity::Budget => task.budget = change.to,
                    Quantity::Deadline => task.deadline = change.to,
                    Quantity::Period => (task.period, task.deadline) = (change.to, change.to),
                }
            }
            Help::Scale { to } => {
                for task in set.tasks.iter_mut().filter(|task| task.domain == over.load.domain) {
                    let scaled = u128::from(task.budget) * u128::from(to.0) / 1_000_000;
                    task.budget = u64::try_from(scaled).unwrap();
                }
            }
            Help::Periods
            | Help::LeastBudget { .. }
            | Help::NoTest
            | Help::Quantum
            | Help::Unknown => {
                panic!("no help")
            }
        }
    }
    set
}

/// Over one common denominator, without any of the library's own arithmetic.
fn naive_fits(tasks: &[(u32, u64, u64)], cpu: u32) -> bool {
    let mine = || tasks.iter().filter(move |task| task.0 == cpu);
    let all: BigUint = mine().map(|task| BigUint::from(task.2)).product();
    let used: BigUint = mine().map(|task| &all / task.2 * task.1).sum();
    used * 10u8 <= all * 9u8
}

#[test]
fn ninety_percent_fits_and_one_nanosecond_more_does_not() {
    let verdict = admit(&set(&[(1, 900_000, 1_000_000)])).unwrap();
    assert_eq!(verdict.domains[0].utilization, Ppm(900_000));
    let refusal = admit(&set(&[(1, 900_001, 1_000_000)])).unwrap_err();
    assert_eq!(refusal.over[0].excess, Some(Ppm(1)));
    // A billionth of a ppm above the limit is shown as a whole one.
    let long = 1_000_000_000_000_000_000;
    let refusal = admit(&set(&[(1, long / 10 * 9 + 1, long)])).unwrap_err();
    assert_eq!(refusal.over[0].load.utilization, Ppm(900_001));
    // 3/7 + 33/70 = 63/70: exact thirds and sevenths, where binary fractions would err.
    assert!(admit(&set(&[(1, 300_000, 700_000), (1, 330_000, 700_000)])).is_ok());
    assert!(admit(&set(&[(1, 100_000, 300_000), (1, 170_000, 300_000)])).is_ok());
}

#[test]
fn fig6_of_the_rtai_paper_is_refused_with_the_budget_to_lower() {
    let text = include_str!("../../../examples/rtai-fig6-overload.toml");
    let set = TaskSet::parse(text, "fig6").unwrap();
    let refusal = admit(&set).unwrap_err();
    assert_eq!(
        refusal.to_string(),
        "CPU 1: the budgets are 100 % of it, 10 % more than the 90 % that can be promised; \
         lower the budget of task \"player\" (line 31) from 5 ms to 3 ms"
    );
    let text = include_str!("../../../examples/rtai-fig6.toml");
    let verdict = admit(&TaskSet::parse(text, "fig6").unwrap()).unwrap();
    assert_eq!(verdict.domains[0].utilization.to_string(), "90 %");
    assert_eq!(verdict.domains[0].tasks, 4);
}

#[test]
fn each_cpu_is_judged_by_itself() {
    let tasks = [
        (0, 500_000, 1_000_000),
        (2, 800_000, 1_000_000),
        (2, 400_000, 1_000_000),
        (1, 990_000, 1_000_000),
    ];
    let refusal = admit(&set(&tasks)).unwrap_err();
    let over: Vec<u32> = refusal.over.iter().map(|over| over.load.cpus[0]).collect();
    assert_eq!((refusal.domains.len(), over), (3, vec![1, 2]));
    assert_eq!(refusal.to_string().lines().count(), 2);
    assert!(admit(&fixed(set(&tasks), &refusal)).is_ok());
}

#[test]
fn where_no_single_budget_is_enough_all_are_lowered() {
    let tasks = [(0, 500_000, 1_000_000); 4];
    let refusal = admit(&set(&tasks)).unwrap_err();
    assert_eq!(refusal.over[0].help, Help::Scale { to: Ppm(450_000) });
    assert!(admit(&fixed(set(&tasks), &refusal)).is_ok());
}

#[test]
fn ten_thousand_different_periods_are_added_exactly() {
    let tasks: Vec<_> = (0..10_000).map(|n| (0, 1, 1_000_003 + 2 * n)).collect();
    assert_eq!(admit(&set(&tasks)).unwrap().domains[0].tasks, 10_000);
}

#[test]
fn the_greatest_numbers_neither_overflow_nor_panic() {
    for tasks in [
        [(0, u64::MAX, u64::MAX), (0, u64::MAX, u64::MAX - 1)],
        [(0, u64::MAX, 1), (0, u64::MAX, 0)],
        [(0, 0, 0), (0, u64::MAX, 2)],
    ] {
        assert!(admit(&set(&tasks)).is_err());
    }
    assert!(admit(&set(&[(0, 0, 1)])).is_ok());
    assert!(admit(&set(&[])).is_ok());
}

fn tasks() -> impl Strategy<Value = Vec<(u32, u64, u64)>> {
    let period = prop_oneof![
        prop::sample::select(vec![100_000u64, 1_000_000, 3_000_000, 7_000_000, 20_000_000]),
        100_000..(1u64 << 62),
    ];
    let task = (0..3u32, 1..500u64, period).prop_map(|(cpu, thousandths, period)| {
        let budget = u128::from(period) * u128::from(thousandths) / 1000;
        (cpu, u64::try_from(budget).unwrap(), period)
    });
    prop::collection::vec(task, 1..12)
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 1000, failure_persistence: None, ..ProptestConfig::default()
    })]

    #[test]
    fn admission_agrees_with_one_common_denominator(tasks in tasks()) {
        let set = set(&tasks);
        let fits = set.cpus().into_iter().all(|cpu| naive_fits(&tasks, cpu));
        prop_assert_eq!(admit(&set).is_ok(), fits);
    }

    #[test]
    fn the_help_is_enough_and_the_least(tasks in tasks()) {
        let before = set(&tasks);
        let Err(refusal) = admit(&before) else { return Ok(()); };
        let after = fixed(before, &refusal);
        prop_assert!(admit(&after).is_ok());
        for over in &refusal.over {
            if let Help::Change(change) = &over.help {
                prop_assert_eq!(change.quantity, Quantity::Budget);
                let mut one_more = after.clone();
                one_more.tasks[change.index].budget += 1;
                prop_assert!(admit(&one_more).is_err());
            }
        }
    }

    #[test]
    fn what_is_shown_is_never_less_than_what_is(tasks in tasks()) {
        let set = set(&tasks);
        let domains = match admit(&set) {
            Ok(verdict) => verdict.domains,
            Err(refusal) => refusal.domains,
        };
        for load in domains {
            prop_assert_eq!(load.utilization <= Ppm(900_000), naive_fits(&tasks, load.cpus[0]));
        }
    }
}

/// Each file of tests/overload is read, and refused with the lines of its .err sidecar; `UPDATE=1`
/// writes the sidecars again.
#[test]
fn every_overloaded_file_is_refused_with_cause_and_help() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/overload");
    let mut seen = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|ext| ext != "toml") {
            continue;
        }
        seen += 1;
        let set = TaskSet::load(&path).unwrap();
        let refusal = admit(&set).unwrap_err();
        assert!(admit(&fixed(set, &refusal)).is_ok(), "{}", path.display());
        let said = format!("{refusal}\n");
        assert_eq!(said.lines().count(), refusal.over.len());
        let sidecar = path.with_extension("err");
        if std::env::var_os("UPDATE").is_some() {
            std::fs::write(&sidecar, &said).unwrap();
        }
        let wanted = std::fs::read_to_string(&sidecar).unwrap_or_default();
        assert_eq!(said, wanted, "{}", path.display());
    }
    assert!(seen >= 9);
}
