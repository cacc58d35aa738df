//! What would help: enough, and not a nanosecond more than that.

mod common;

use common::{cpu, group, server, set, task};
use proptest::prelude::*;
use punctual_analysis::{advise, analyse, Change, ChangeTarget, Help, Quantity};
use punctual_taskset::{BudgetGroupSpec, DomainId, ServerSpec, TaskSet, TaskSpec};

/// The set with a change made, as its user would: an implicit deadline goes with its period.
fn changed(set: &TaskSet, change: &Change, to: u64) -> TaskSet {
    let mut set = set.clone();
    match (change.target, change.quantity) {
        (ChangeTarget::Task, Quantity::Budget) => set.tasks[change.index].budget = to,
        (ChangeTarget::Task, Quantity::Deadline) => set.tasks[change.index].deadline = to,
        (ChangeTarget::Task, Quantity::Period) => {
            let task = &mut set.tasks[change.index];
            if task.deadline == task.period {
                task.deadline = to;
            }
            task.period = to;
        }
        (ChangeTarget::BudgetGroup, _) => set.budget_groups[change.index].budget = to,
        (ChangeTarget::Group, what) => {
            let ServerSpec::Periodic { period, budget, deadline, .. } =
                &mut set.groups[change.index].server
            else {
                panic!("windows are not changed");
            };
            match what {
                Quantity::Budget => *budget = to,
                _ => (*period, *deadline) = (to, (*deadline).min(to)),
            }
        }
    }
    set
}

fn one_less(change: &Change) -> u64 {
    if change.to < change.from {
        change.to + 1
    } else {
        change.to - 1
    }
}

fn change_of(set: &TaskSet) -> Change {
    match advise(set, &cpu(set)).help {
        Help::Change(change) => change,
        other => panic!("{other:?}"),
    }
}

#[test]
fn two_tasks_that_miss_under_rm_get_the_smallest_change() {
    // Buttazzo's 2 in 5 and 4 in 7, in ms, 97 %. A seventh more of the period makes 90 % of it, and
    // 8 are just met; of the budget it would be a quarter.
    let ms = 1_000_000;
    let set = set("rm", vec![task(2 * ms, 5 * ms, 5 * ms), task(4 * ms, 7 * ms, 7 * ms)]);
    let change = change_of(&set);
    assert_eq!(change.to_string(), "lengthen the period of task \"t2\" from 7 ms to 8 ms");
    assert!(
        cpu(&changed(&set, &change, 8 * ms)).fits()
            && !cpu(&changed(&set, &change, 8 * ms - 1)).fits()
    );
}

#[test]
fn a_deadline_that_is_a_little_too_short_is_lengthened() {
    let set = set("rm", vec![task(20, 100, 100), task(20, 200, 39)]);
    let change = change_of(&set);
    assert_eq!(
        (change.index, change.quantity, change.from, change.to),
        (1, Quantity::Deadline, 39, 40)
    );
    assert_eq!(advise(&set, &cpu(&set)).own, [change]);
}

#[test]
fn a_server_that_is_too_small_for_its_group_is_enlarged() {
    let mut set = set("edf", vec![TaskSpec { group: Some(0), ..task(300, 1_000, 1_000) }]);
    set.groups.push(group("edf", server(70, 200)));
    let change = change_of(&set);
    let bigger =
        matches!((change.target, change.quantity), (ChangeTarget::Group, Quantity::Budget))
            && change.to > 70;
    let shorter = change.target == ChangeTarget::Group
        && change.quantity == Quantity::Period
        && change.to < 200;
    let lower = change.target == ChangeTarget::Task && change.quantity == Quantity::Budget;
    assert!(bigger || shorter || lower, "{change}");
    assert!(cpu(&changed(&set, &change, change.to)).fits());
    assert!(!cpu(&changed(&set, &change, one_less(&change))).fits());
}

#[test]
fn a_budget_group_that_may_run_dry_is_filled() {
    let mut set = set("rm", vec![TaskSpec { budget_group: Some(0), ..task(400, 1_000, 1_000) }]);
    set.tasks.push(set.tasks[0].clone());
    let node = BudgetGroupSpec {
        name: "b".to_owned(),
        parent: None,
        period: 1_000,
        budget: 790,
        domain: DomainId(0),
        line: None,
    };
    set.budget_groups.push(node);
    let change = change_of(&set);
    assert_eq!((change.target, change.from, change.to), (ChangeTarget::BudgetGroup, 790, 800));
}

fn specs() -> impl Strategy<Value = Vec<TaskSpec>> {
    let one = (1..40u64, 1..30u64, 0..100u64).prop_map(|(percent, period, late)| {
        let period = period * 1_000;
        let budget = (period * percent / 100).max(1);
        task(budget, period, budget + (period - budget) * (100 - late / 2) / 100)
    });
    prop::collection::vec(one, 1..6)
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 150, failure_persistence: None, ..ProptestConfig::default()
    })]

    #[test]
    fn the_change_is_enough_and_one_nanosecond_less_is_not(tasks in specs(), edf in any::<bool>()) {
        let set = set(if edf { "edf" } else { "rm" }, tasks);
        let before = cpu(&set);
        if before.fits() { return Ok(()); }
        let advice = advise(&set, &before);
        match &advice.help {
            Help::Change(change) => {
                prop_assert!(cpu(&changed(&set, change, change.to)).fits(), "{}", change);
                prop_assert!(!cpu(&changed(&set, change, one_less(change))).fits(), "{}", change);
            }
            Help::Scale { to } => {
                let mut set = set.clone();
                for t in &mut set.tasks {
                    t.budget = t.budget * to.0 / 1_000_000;
                }
                prop_assert!(analyse(&set).fits());
            }
            Help::Periods
                | Help::LeastBudget { .. }
                | Help::NoTest
                | Help::Quantum
                | Help::Unknown => {
                prop_assert!(false, "nothing helps")
            }
        }
        for change in &advice.own {
            let fits = |set: &TaskSet| cpu(set).tasks[change.index].fit.admitted();
            prop_assert!(!fits(&set));
            prop_assert!(fits(&changed(&set, change, change.to)), "{}", change);
            prop_assert!(!fits(&changed(&set, change, one_less(change))), "{}", change);
        }
    }
}
