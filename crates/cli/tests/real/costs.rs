//! What this host takes of the CPU is in admission: what is admitted is kept, however many events
//! there are.

use std::fmt::Write;

use punctual_test_support::judge_timing;

use crate::kills::NEEDS;
use crate::machine::permitted_cpu;
use crate::punctual::{run, run_set, Scratch};

/// Twelve tasks of 2 to 33 ms with so many percent of the CPU together.
fn family(cpu: u32, percent: u64) -> String {
    let mut text = format!("cpu = {cpu}\npolicy = \"edf\"\nduration = \"200ms\"\n");
    for (n, period) in
        [2_000, 3_000, 5_000, 8_000, 16_000, 33_000].repeat(2).into_iter().enumerate()
    {
        let times =
            format!("period = \"{period}us\"\nbudget = \"{}us\"", period * percent / 100 / 12);
        writeln!(text, "[[task]]\nname = \"t{n}\"\n{times}\nwork = {{ spin = \"forever\" }}")
            .unwrap();
    }
    text
}

#[test]
fn tiny_budgets_are_refused_and_the_fullest_set_that_is_admitted_is_kept() {
    let Some(cpu) = permitted_cpu(&NEEDS) else { return };
    let scratch = Scratch::new();
    let tiny = run_set(&family(cpu.0, 12), &[]);
    tiny.assert_code(3)
        .assert_says(&["its budget of 20 us is below", "the least that this host enforces"]);

    judge_timing(|| {
        let check = |text: &str| {
            run(&["check", "--host", "user", "--json", &scratch.file("set.toml", text)]).result()
        };
        let fits = (50..=90)
            .rev()
            .step_by(2)
            .find(|&percent| check(&family(cpu.0, percent))["fits"] == true);
        let percent = fits.expect("some set fits");
        let results = run_set(&family(cpu.0, percent), &["--json"]).assert_code(0).result();
        eprintln!("{percent} %: {}, {}", results["costs"], results["dispatcher"]);
        assert_eq!(results["costs"]["basis"], "counted");
        let mut periods = 0;
        for task in results["tasks"].as_array().unwrap() {
            assert_eq!(
                (&task["misses"], &task["shortfall_ns"]),
                (&0.into(), &0.into()),
                "{task:#}"
            );
            periods += task["periods"].as_u64().unwrap();
        }
        // What admission counts for each period: its release, and two events at its budget's end.
        let events = results["dispatcher"]["events"].as_u64().unwrap();
        assert!(events <= 3 * periods, "{events} events in {periods} periods");
    });
}

/// Tasks without windows of their own, with so many percent of the CPU together.
fn table(cpu: u32, percent: u64) -> String {
    let mut text = format!("cpu = {cpu}\npolicy = \"td\"\nduration = \"200ms\"\n");
    for (n, period) in [4_000, 5_000, 8_000, 10_000, 20_000].into_iter().enumerate() {
        let budget = period * percent / 100 / 5;
        let times = format!("period = \"{period}us\"\nbudget = \"{budget}us\"");
        writeln!(text, "[[task]]\nname = \"t{n}\"\n{times}\nwork = {{ spin = \"forever\" }}")
            .unwrap();
    }
    text
}

#[test]
fn the_fullest_time_table_that_is_admitted_is_kept() {
    let Some(cpu) = permitted_cpu(&NEEDS) else { return };
    let scratch = Scratch::new();
    let window = |length: &str| {
        format!(
            "cpu = {}\npolicy = \"td\"\nduration = \"200ms\"\n[[task]]\nname = \"t\"\n\
             period = \"5ms\"\nbudget = \"1ms\"\n\
             windows = [{{ start = \"1ms\", length = \"{length}\" }}]\n\
             work = {{ spin = \"forever\" }}\n",
            cpu.0
        )
    };
    run_set(&window("1ms"), &[])
        .assert_code(3)
        .assert_says(&["its windows are 1 ms long together, of which the host takes up to"]);

    judge_timing(|| {
        let check = |text: &str| {
            run(&["check", "--host", "user", "--json", &scratch.file("table.toml", text)]).result()
        };
        let fits = (40..=90).rev().find(|&percent| check(&table(cpu.0, percent))["fits"] == true);
        let percent = fits.expect("some table fits");
        let length = (1_000..=1_200)
            .step_by(10)
            .map(|us| window(&format!("{us}us")))
            .find(|text| check(text)["fits"] == true);
        for text in [table(cpu.0, percent), length.expect("some window is long enough")] {
            let results = run_set(&text, &["--json"]).assert_code(0).result();
            eprintln!("{percent} %: {}", results["dispatcher"]);
            for task in results["tasks"].as_array().unwrap() {
                assert_eq!(
                    (&task["misses"], &task["shortfall_ns"]),
                    (&0.into(), &0.into()),
                    "{task:#}"
                );
            }
        }
    });
}
