//! What this host takes of the CPU is in admission: what is admitted is kept, however many events
//! there are.

use std::fmt::Write;

use punctual_test_support::PUNCTUAL;
use serde_json::Value;

use crate::machine::Machine;
use crate::punctual::{results, run, says, Running, Scratch};

/// The least budget that the host enforces, us.
const LEAST: u64 = 50;
/// More than fit.
const MANY: u64 = 180;

/// Tasks of 1 to 33 ms, in turn, each with the budget of its period that `budget` says, us.
fn family(count: u64, budget: impl Fn(u64) -> u64) -> String {
    let mut text = "cpu = 0\npolicy = \"edf\"\nduration = \"200ms\"\n".to_owned();
    for n in 0..count {
        let period = 1_000 + 32_000 * (n % 60) / 59;
        let times = format!("period = \"{period}us\"\nbudget = \"{}us\"", budget(period));
        writeln!(text, "[[task]]\nname = \"t{n}\"\n{times}\nwork = {{ spin = \"forever\" }}")
            .expect("room");
    }
    text
}

/// So many with the least budget.
fn small(count: u64) -> String {
    family(count, |_| LEAST)
}

fn check(scratch: &Scratch, text: &str) -> Value {
    let set = scratch.file("checked.toml", text);
    let words = ["check", "--host", "kernel", "--json", set.to_str().expect("a plain path")];
    let output = Running::of(
        std::process::Command::new(&*PUNCTUAL)
            .args(words)
            .stdout(std::process::Stdio::piped())
            .spawn()
            .expect("it was built"),
    )
    .output();
    let mut document: Value = serde_json::from_slice(&output.stdout).expect("it is JSON");
    document["result"].take()
}

#[test]
fn tiny_budgets_are_refused_and_the_largest_set_that_is_admitted_is_kept() {
    let Some(_machine) = Machine::with_sched_ext() else { return };
    let scratch = Scratch::new();
    let tiny = scratch.file("tiny.toml", &family(60, |period| period * 62 / 100 / 60));
    let refused = run(&[tiny.to_str().expect("a plain path")]).output();
    says(
        &refused,
        3,
        &["t0", "its budget of 10 us is below 50 us, the least that this host enforces"],
    );

    let (mut fits, mut most) = (0, MANY);
    while fits < most {
        let middle = (fits + most).div_ceil(2);
        if check(&scratch, &small(middle))["fits"] == true {
            fits = middle;
        } else {
            most = middle - 1;
        }
    }
    assert!(fits > 0 && fits < MANY, "none fits: {:#}", check(&scratch, &small(1)));
    let largest = scratch.file("largest.toml", &small(fits));
    let results = results(&run(&[largest.to_str().expect("a plain path")]).output());
    eprintln!("{fits} tasks, {}, {}", results["utilization_ppm"], results["kernel_dispatcher"]);
    assert_eq!(results["costs"]["least_budget_ns"], LEAST * 1_000);
    assert_eq!(results["overload"], false);
    for task in results["tasks"].as_array().expect("tasks") {
        assert_eq!((&task["misses"], &task["shortfall_ns"]), (&0.into(), &0.into()), "{task:#}");
    }
}

/// Tasks of 4 to 20 ms without windows of their own, with so many thousandths of the CPU together.
fn table(share: u64) -> String {
    let mut text = "cpu = 0\npolicy = \"td\"\nduration = \"200ms\"\n".to_owned();
    for (n, period) in [4_000, 5_000, 8_000, 10_000, 20_000].into_iter().enumerate() {
        let budget = period * share / 5_000;
        let times = format!("period = \"{period}us\"\nbudget = \"{budget}us\"");
        writeln!(text, "[[task]]\nname = \"t{n}\"\n{times}\nwork = {{ spin = \"forever\" }}")
            .expect("room");
    }
    text
}

#[test]
fn a_full_time_table_that_is_admitted_is_kept() {
    let Some(_machine) = Machine::with_sched_ext() else { return };
    let scratch = Scratch::new();
    let full = "cpu = 0\npolicy = \"td\"\nduration = \"200ms\"\n[[task]]\nname = \"t\"\n\
        period = \"5ms\"\n\
        budget = \"1ms\"\nwindows = [{ start = \"1ms\", length = \"1ms\" }]\n\
            work = { spin = \"forever\" }\n";
    let full = scratch.file("full.toml", full);
    let refused = run(&[full.to_str().expect("a plain path")]).output();
    says(&refused, 3, &["its windows are 1 ms long together, of which the host takes up to"]);

    // A fuller one may use up the 95 ms that jobs have in 100 ms before its last window.
    let share = (400..=900).rev().find(|&share| check(&scratch, &table(share))["fits"] == true);
    let share = share.expect("some table fits");
    let fullest = scratch.file("table.toml", &table(share));
    let results = results(&run(&[fullest.to_str().expect("a plain path")]).output());
    eprintln!("{share} thousandths, {}", results["kernel_dispatcher"]);
    for task in results["tasks"].as_array().expect("tasks") {
        assert_eq!((&task["misses"], &task["shortfall_ns"]), (&0.into(), &0.into()), "{task:#}");
    }
}
