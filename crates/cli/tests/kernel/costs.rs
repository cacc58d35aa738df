//! What this host takes of the CPU, and what it leaves to ordinary programs, is in admission: what
//! is admitted is kept, however many events there are, and however long the budgets are.

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

/// The largest number below this one whose set fits; 0 for none.
fn fullest(scratch: &Scratch, below: u64, set: impl Fn(u64) -> String) -> u64 {
    let (mut fits, mut most) = (0, below);
    while fits < most {
        let middle = (fits + most).div_ceil(2);
        if check(scratch, &set(middle))["fits"] == true {
            fits = middle;
        } else {
            most = middle - 1;
        }
    }
    fits
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

    let fits = fullest(&scratch, MANY, small);
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

    let fits = |share: &u64| check(&scratch, &table(*share))["fits"] == true;
    let share = (40..=95).rev().map(|percent| 10 * percent).find(fits).expect("some table fits");
    let fullest = scratch.file("table.toml", &table(share));
    let results = results(&run(&[fullest.to_str().expect("a plain path")]).output());
    eprintln!("{share} thousandths, {}", results["kernel_dispatcher"]);
    for task in results["tasks"].as_array().expect("tasks") {
        assert_eq!((&task["misses"], &task["shortfall_ns"]), (&0.into(), &0.into()), "{task:#}");
    }
}

/// A task with a short deadline beside one whose budget is long, both periods and that budget.
fn beside_a_long_budget(period: &str, long: &str, budget: &str) -> String {
    format!(
        "cpu = 0\npolicy = \"edf\"\nduration = \"600ms\"\n\
         [[task]]\nname = \"a\"\nperiod = \"{period}\"\nbudget = \"300us\"\n\
         work = {{ spin = \"200us\" }}\n\
         [[task]]\nname = \"b\"\nperiod = \"{long}\"\nbudget = \"{budget}\"\n\
         work = {{ spin = \"forever\" }}\n"
    )
}

/// Runs it beside a load; no task may miss a deadline. Whether jobs were held back.
fn is_kept(scratch: &Scratch, text: &str) -> bool {
    let set = scratch.file("kept.toml", text);
    let results = results(&run(&["--load", set.to_str().expect("a plain path")]).output());
    assert_eq!(results["overload"], false);
    for task in results["tasks"].as_array().expect("tasks") {
        assert_eq!((&task["misses"], &task["shortfall_ns"]), (&0.into(), &0.into()), "{task:#}");
    }
    results["notes"].to_string().contains("jobs were held back")
}

#[test]
fn a_long_budget_is_admitted_beside_deadlines_that_the_cap_leaves_time_for() {
    let Some(_machine) = Machine::with_sched_ext() else { return };
    let scratch = Scratch::new();
    let long = scratch.file("long.toml", &beside_a_long_budget("2ms", "2s", "400ms"));
    says(
        &run(&[long.to_str().expect("a plain path")]).output(),
        3,
        &[
            "jobs may use 100 ms of an interval of 100 ms",
            "it may hold back all jobs for 5 ms at a time",
            "no job is held back where jobs need at most 95 ms of any 100 ms",
        ],
    );
    assert!(is_kept(&scratch, &beside_a_long_budget("5500us", "2s", "400ms")));
    assert!(!is_kept(&scratch, &beside_a_long_budget("2ms", "100ms", "20ms")));
}

#[test]
fn the_fullest_sets_that_are_admitted_beside_the_cap_are_kept() {
    let Some(_machine) = Machine::with_sched_ext() else { return };
    let scratch = Scratch::new();
    let mut held = false;
    // Periods in us; the parts of the CPU are as 3 to 2 to 1 and so on.
    for (policy, periods) in [
        ("edf", vec![500_000, 90_000, 17_000, 7_000]),
        ("rm", vec![310_000, 130_000, 21_000]),
        ("edf", vec![9_000, 6_500, 4_100, 3_000, 2_300]),
        ("rm", vec![5_000, 2_700, 1_900]),
    ] {
        let parts: u64 = (1..=periods.len() as u64).sum();
        let text = |share: u64| {
            let head = format!("cpu = 0\npolicy = \"{policy}\"\nduration = \"600ms\"\n");
            periods.iter().zip((1..=periods.len()).rev()).fold(head, |mut text, (period, part)| {
                let budget = period * share * part as u64 / parts / 1_000;
                let times = format!("period = \"{period}us\"\nbudget = \"{budget}us\"");
                let work = "work = { spin = \"forever\" }";
                writeln!(text, "[[task]]\nname = \"t{part}\"\n{times}\n{work}").expect("room");
                text
            })
        };
        let share = fullest(&scratch, 950, text);
        let is_held = is_kept(&scratch, &text(share));
        eprintln!("{policy} {periods:?}: {share} thousandths, held back: {is_held}");
        held |= is_held;
    }
    assert!(held, "no admitted set uses more than jobs have in 100 ms");
}
