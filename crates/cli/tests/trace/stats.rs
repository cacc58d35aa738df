//! `trace stats`: figures that follow from the schedule.

use crate::{json, records_at, simulated, text, trace, Scratch, FITS};

#[test]
fn figures_are_those_of_the_schedule() {
    let scratch = Scratch::new();
    let (file, _) = simulated(&scratch, FITS);
    let output = trace(&["stats", &file, "--json"]);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let tasks = json(&output)["result"]["stats"]["tasks"].clone();
    // By hand: `long` is preempted at 15 ms; it completes 6, 5, 6, 5 and 4 ms after its releases.
    let long = &tasks[1];
    assert_eq!(long["name"], "long");
    assert_eq!(long["preemptions"], 1, "{long}");
    assert_eq!(long["executed_ns"], 20_000_000);
    assert_eq!((&long["completed"], &long["misses"]), (&5.into(), &0.into()));
    assert_eq!(long["response_worst_ns"], 6_000_000);
    assert!(
        long["response_p50_ns"].as_u64().is_some_and(|ns| ns.abs_diff(5_000_000) <= 5_000),
        "{long}"
    );
    assert_eq!(tasks[0]["preemptions"], 0);
    assert!(text(&trace(&["stats", &file]).stdout).starts_with("0 of "), "the verdict comes first");
}

#[test]
fn what_stands_before_the_damage_is_counted() {
    let scratch = Scratch::new();
    let (file, _) = simulated(&scratch, FITS);
    let whole = std::fs::read(&file).expect("it was written");
    let cut = scratch.file("cut", &whole[..records_at(&whole) + 36 * 60]);
    let output = trace(&["stats", &cut, "--json"]);
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    let document = json(&output);
    assert_eq!(document["result"]["stats"]["records"], 60);
    assert!(document["error"]["cause"]
        .as_str()
        .is_some_and(|cause| cause.contains("cut short at record 60")));
}
