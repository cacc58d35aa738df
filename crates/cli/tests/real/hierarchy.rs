//! Groups inside groups, shared budgets and policies beyond the periodic ones, with real processes:
//! each gets its share and no more, and the recorded run leads to the same decisions again.

use punctual_test_support::judge_timing;
use serde_json::Value;

use crate::kills::NEEDS;
use crate::machine::permitted_cpu;
use crate::punctual::{adversarial, list, run, run_set, task, Scratch};

/// Three levels: `video` inside `media` inside the top, beside a greedy group with a program of
/// four threads that all want everything. In `video` two tasks want 30 % of the CPU and may have
/// 20.
fn three_levels(cpu: u32) -> String {
    format!(
        r#"
cpu = {cpu}
policy = "edf"
duration = "1s"

[[group]]
name = "media"
period = "10ms"
budget = "4ms"
policy = "rm"

[[group]]
name = "video"
parent = "media"
period = "20ms"
budget = "4ms"
policy = "edf"

[[group]]
name = "greedy"
period = "10ms"
budget = "2ms"
policy = "fp"

[[task]]
name = "audio"
group = "media"
period = "10ms"
budget = "1500us"
work = {{ spin = "1ms" }}

[[task]]
name = "decode"
group = "video"
period = "20ms"
budget = "4ms"
work = {{ spin = "forever" }}

[[task]]
name = "show"
group = "video"
period = "40ms"
budget = "4ms"
work = {{ spin = "forever" }}

[[task]]
name = "wild"
group = "greedy"
priority = 1
period = "20ms"
budget = "10ms"
work = {{ spin = "forever" }}

[[task]]
name = "threads"
group = "greedy"
priority = 2
period = "20ms"
budget = "2ms"
command = {}

[[task]]
name = "servo"
period = "5ms"
budget = "500us"
work = {{ spin = "forever" }}
"#,
        list(&adversarial("spin-threads 4"))
    )
}

/// Of 1,000 of what the group is promised.
fn received(results: &Value, group: &str) -> u64 {
    let groups = results["groups"].as_array().unwrap_or_else(|| panic!("no groups in {results:#}"));
    let group = groups
        .iter()
        .find(|g| g["name"] == group)
        .unwrap_or_else(|| panic!("no {group} in {results:#}"));
    group["received_ppm"].as_u64().unwrap() * 1000 / group["assigned_ppm"].as_u64().unwrap()
}

fn assert_all_of_it(results: &Value, group: &str) {
    let got = received(results, group);
    assert!((970..=1030).contains(&got), "{group} got {got} of 1,000 of its budget: {results:#}");
}

/// Whether a task got all of its own budget in the long run, within so many ppm.
fn assert_task_gets_it(results: &Value, name: &str, within: u64) {
    let got = task(results, name)["long_run_ppm"].as_u64().unwrap();
    assert!(got.abs_diff(1_000_000) <= within, "{name} got {got} ppm: {results:#}");
}

/// Runs the set, and judges its shares by `check`.
fn as_promised(cpu: u32, text: &str, check: impl FnOnce(&Value)) {
    let ended = run_set(text, &["--json", "--overload"]);
    ended.assert_ran().assert_nothing_left(&[cpu]);
    judge_timing(|| check(&ended.result()));
}

#[test]
fn three_levels_beside_a_greedy_group_each_get_their_share_and_no_more() {
    let Some(cpu) = permitted_cpu(&NEEDS) else { return };
    as_promised(cpu.0, &three_levels(cpu.0), |results| {
        // Those who want more than they may have get exactly that; `media` is left what audio does
        // not want.
        assert_all_of_it(results, "video");
        assert_all_of_it(results, "greedy");
        assert!(received(results, "media") < 850, "{results:#}");
        let audio = task(results, "audio");
        assert!(
            audio["misses"].as_u64().unwrap() * 20 < audio["periods"].as_u64().unwrap(),
            "{results:#}"
        );
        assert_task_gets_it(results, "servo", 30_000);
    });
}

#[test]
fn the_trace_of_three_levels_leads_to_the_same_decisions_again() {
    let Some(cpu) = permitted_cpu(&NEEDS) else { return };
    let scratch = Scratch::new();
    let trace = scratch.path("levels.trace");
    let ended = run_set(&three_levels(cpu.0), &["--json", "--overload", "--trace", &trace]);
    ended.assert_ran().assert_nothing_left(&[cpu.0]);
    let again = run(&["sim", "--replay", &trace, "--json"]);
    let replay = &again.assert_code(0).result()["replay"];
    assert_eq!(replay["same"], true, "{replay:#}");
    let decisions = replay["decisions"].as_u64().unwrap();
    assert!(decisions > 0, "{replay:#}");
    judge_timing(|| assert!(decisions > 1_000, "{replay:#}"));
    assert_eq!(replay["host"], "user");
}

#[test]
fn two_tasks_and_a_group_keep_the_budget_that_they_share() {
    let Some(cpu) = permitted_cpu(&NEEDS) else { return };
    let text = format!(
        r#"
cpu = {}
policy = "rm"
duration = "1s"

[[budget_group]]
name = "all"
period = "10ms"
budget = "3ms"

[[budget_group]]
name = "some"
parent = "all"
period = "10ms"
budget = "1ms"

[[group]]
name = "inside"
period = "20ms"
budget = "8ms"
policy = "edf"
budget_group = "all"

[[task]]
name = "one"
period = "10ms"
budget = "700us"
budget_group = "some"
work = {{ spin = "forever" }}

[[task]]
name = "two"
period = "10ms"
budget = "2ms"
budget_group = "some"
command = {}

[[task]]
name = "three"
group = "inside"
period = "40ms"
budget = "20ms"
work = {{ spin = "forever" }}
"#,
        cpu.0,
        list(&adversarial("spin"))
    );
    as_promised(cpu.0, &text, |results| {
        // In each 10 ms the two have 1 ms together, by their importance; what `all` has left is the
        // group's.
        assert_all_of_it(results, "some");
        assert_all_of_it(results, "all");
        let inside = received(results, "inside");
        assert!(
            (480..=520).contains(&inside),
            "the group got {inside} of 1,000 and was left 500: {results:#}"
        );
        assert_task_gets_it(results, "one", 30_000);
    });
}

/// Programs that sleep and wake as they like, more of them than stand unparked, in a group with
/// little budget.
fn suspending(cpu: u32, kind: &str) -> String {
    let shell = list(
        &[
            "sh",
            "-c",
            "while :; do sleep 0.004; i=0; while [ $i -lt 300 ]; do i=$((i+1)); done; done",
        ]
        .map(String::from),
    );
    let task = |n: u32| {
        format!(
            "[[task]]\nname = \"t{n}\"\ngroup = \"few\"\nperiod = \"20ms\"\nbudget = \"4ms\"\n\
             deadline = \"15ms\"\n\
             command = {shell}\n"
        )
    };
    let tasks: String = (0..5).map(task).collect();
    format!(
        r#"
cpu = {cpu}
policy = "edf"
duration = "1500ms"
[[group]]
name = "few"
period = "10ms"
budget = "500us"
server = "{kind}"
policy = "edf"
[[task]]
name = "steady"
period = "10ms"
budget = "6ms"
work = {{ spin = "forever" }}
{tasks}
"#
    )
}

#[test]
fn programs_that_sleep_and_wake_get_no_more_than_their_groups_budget() {
    let Some(cpu) = permitted_cpu(&NEEDS) else { return };
    for kind in ["deferrable", "polling"] {
        as_promised(cpu.0, &suspending(cpu.0, kind), |results| {
            let got = received(results, "few");
            assert!(
                (300..=1030).contains(&got),
                "{kind}: the suspending got {got} of 1,000: {results:#}"
            );
            assert_task_gets_it(results, "steady", 30_000);
        });
    }
}

#[test]
fn budgets_handed_out_job_by_job_are_exact_in_the_long_run() {
    let Some(cpu) = permitted_cpu(&NEEDS) else { return };
    let text = format!(
        r#"
cpu = {}
policy = "imprecise"
duration = "1500ms"
[[task]]
name = "parts"
period = "2ms"
budget = "300us"
mandatory = "100us"
work = {{ spin = "forever" }}
[[task]]
name = "program"
period = "5ms"
budget = "1ms"
mandatory = "500us"
command = {}
[[task]]
name = "sporadic"
period = "4ms"
budget = "200us"
arrival = {{ sporadic = "8ms", seed = 1 }}
work = {{ spin = "forever" }}
"#,
        cpu.0,
        list(&adversarial("spin"))
    );
    as_promised(cpu.0, &text, |results| {
        for name in ["parts", "program", "sporadic"] {
            assert_task_gets_it(results, name, 5_000);
        }
    });
}
