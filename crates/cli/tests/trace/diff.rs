//! `trace diff`: how two runs differ, and that the same run does not.

use crate::{json, simulated, text, trace, Scratch, FITS, OVERRUNS};

/// Traces of two sets.
fn pair(scratch: &Scratch, a: &str, b: &str) -> [String; 2] {
    let traced = |name: &str, set: &str| {
        let (file, _) = simulated(scratch, set);
        let to = scratch.path(name);
        std::fs::rename(file, &to).expect("it was written");
        to
    };
    [traced("a", a), traced("b", b)]
}

fn diff(a: &str, b: &str, more: &[&str]) -> (Option<i32>, serde_json::Value) {
    let output = trace(&[&["diff", a, b, "--json"], more].concat());
    (output.status.code(), json(&output))
}

#[test]
fn a_run_is_the_same_as_itself() {
    let scratch = Scratch::new();
    let [a, b] = pair(&scratch, FITS, FITS);
    let (code, document) = diff(&a, &b, &[]);
    assert_eq!(code, Some(0), "{document}");
    let found = &document["result"]["diff"];
    assert_eq!((&found["same"], &found["tolerance_ns"]), (&true.into(), &0.into()));
    assert!(found["parting"].is_null() && found["apart_ns"] == 0, "{found}");
    assert_eq!(found["tasks"][0]["a"], found["tasks"][0]["b"]);
    let output = text(&trace(&["diff", &a, &b]).stdout);
    assert!(output.starts_with("The same: 2 tasks, 12 releases, 0 missed, in 35 ms."), "{output}");
}

#[test]
fn another_policy_differs_by_its_misses_and_the_first_other_execution() {
    // At 5 ms `short` has the shorter period; `long` has the earlier deadline, 7 ms.
    let rm = FITS.replace("edf", "rm");
    let scratch = Scratch::new();
    let [a, b] = pair(&scratch, FITS, &rm);
    let (code, document) = diff(&a, &b, &[]);
    assert_eq!(code, Some(1), "{document}");
    let parting = &document["result"]["diff"]["parting"];
    assert_eq!(parting["at_ns"], 5_000_000, "{parting}");
    assert_eq!((&parting["a_task"], &parting["b_task"]), (&"long".into(), &"short".into()));
    let long = &document["result"]["diff"]["tasks"][1];
    assert_eq!((&long["a"]["misses"], &long["same"]), (&0.into(), &false.into()));
    assert!(long["b"]["misses"].as_u64() > Some(0), "{long}");
    let output = trace(&["diff", &a, &b]);
    let output = text(&output.stdout);
    assert!(output.starts_with("Different: missed 0 and "), "{output}");
    assert!(output.contains("the schedules part at 5 ms for 1 ms: A executes long"), "{output}");
    assert!(output.contains("response worst"), "{output}");
}

#[test]
fn times_within_the_tolerance_are_the_same() {
    let scratch = Scratch::new();
    let [a, b] = pair(&scratch, FITS, &FITS.replace("spin = \"2ms\"", "spin = \"1990us\""));
    let (code, document) = diff(&a, &b, &[]);
    assert_eq!(code, Some(1), "{document}");
    assert_eq!(document["result"]["diff"]["parting"]["at_ns"], 1_990_000);
    let (code, document) = diff(&a, &b, &["--tolerance", "50us"]);
    assert_eq!(code, Some(0), "{document}");
    let wrong = trace(&["diff", &a, &b, "--tolerance", "50"]);
    assert_eq!(wrong.status.code(), Some(2));
    assert!(text(&wrong.stderr).contains("--tolerance"), "{wrong:?}");
}

#[test]
fn a_task_that_only_one_has_is_named() {
    let third = "[[task]]\nname = \"third\"\nperiod = \"35ms\"\nbudget = \"1ms\"\n\
        work = { spin = \"1ms\" }\n";
    let scratch = Scratch::new();
    let [a, b] = pair(&scratch, FITS, &format!("{FITS}{third}"));
    let (code, document) = diff(&a, &b, &["--tolerance", "20ms"]);
    assert_eq!(code, Some(1), "{document}");
    assert!(document["result"]["diff"]["tasks"][2]["a"].is_null(), "{document}");
    let output = text(&trace(&["diff", &b, &a]).stdout);
    assert!(output.starts_with("Different: only A has the task third"), "{output}");
}

#[test]
fn a_longer_run_is_compared_as_long_as_both_continue() {
    let scratch = Scratch::new();
    let [a, b] = pair(&scratch, FITS, &FITS.replace("35ms", "105ms"));
    let (code, document) = diff(&a, &b, &[]);
    assert_eq!(code, Some(0), "{document}");
    let found = &document["result"]["diff"];
    assert_eq!(
        (&found["compared_ns"], &found["a"]["left_out_periods"]),
        (&35_000_000.into(), &0.into())
    );
    assert_eq!(found["b"]["left_out_periods"], 24);
}

#[test]
fn forty_columns_are_enough() {
    let scratch = Scratch::new();
    let [a, b] = pair(&scratch, FITS, OVERRUNS);
    let output = crate::in_columns(40, &["trace", "diff", &a, &b]);
    assert!(output.contains("only in A") && output.contains("only in B"), "{output}");
    let calm = OVERRUNS.replace("1500us", "900us");
    let [a, b] = pair(&scratch, OVERRUNS, &calm);
    let output = crate::in_columns(40, &["trace", "diff", &a, &b]);
    assert!(output.contains("overruns"), "{output}");
    let paths = |line: &&str| !line.contains('/');
    for line in output.lines().filter(paths) {
        assert!(line.chars().count() <= 40, "{line:?} in {output}");
    }
}
