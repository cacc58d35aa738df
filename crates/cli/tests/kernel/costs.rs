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
