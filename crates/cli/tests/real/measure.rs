//! `punctual measure latency` and `overhead`: rows, requirements, and that nothing outlives them.

use punctual_test_support::comes_true;

use crate::kills::NEEDS;
use crate::machine::permitted_cpu;
use crate::process::{marked, parent_of};
use crate::punctual::{assert_nothing_left, run, Running};

const BUILT_IN: [&str; 4] = ["measure", "latency", "--generator", "built-in"];
/// Hours of periods.
const ENDLESS: &str = "100000000";

fn kill(pid: i32, signal: i32) {
    // SAFETY: a system call without memory arguments; the process is a child that is not reaped.
    unsafe { libc::kill(pid, signal) };
}

/// A process of the measurement that is not its guardian: the load.
fn load_of(running: &Running) -> Option<i32> {
    let is_load = |pid: &i32| {
        let name = std::fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
        parent_of(*pid) == Some(running.pid()) && name.trim() == "punctual"
    };
    marked(&running.mark).into_iter().find(is_load)
}

#[test]
fn a_task_of_the_user_host_is_measured_idle_and_under_load() {
    let Some(cpu) = permitted_cpu(&NEEDS) else { return };
    let number = cpu.0.to_string();
    let args =
        ["--cpu", &number, "--periods", "200", "--load", "idle,memory,non-real-time", "--json"];
    let ended = run(&[&BUILT_IN[..], &args].concat());
    ended.assert_code(0).assert_nothing_left(&[cpu.0]);
    let result = ended.result();
    let rows = result["rows"].as_array().unwrap();
    let classes: Vec<_> = rows.iter().map(|row| &row["class"]).collect();
    assert_eq!(classes, ["user", "user", "other"]);
    for row in &rows[..2] {
        assert_eq!(row["latency"]["count"], 200, "{row:#}");
        assert!(
            row["dispatcher"]["events"].as_u64() > Some(200),
            "its dispatcher released it: {row:#}"
        );
    }
    assert!(rows[2]["dispatcher"].is_null(), "an ordinary job has no dispatcher");
}

#[test]
fn a_requirement_that_is_not_kept_fails_and_names_the_row() {
    let Some(cpu) = permitted_cpu(&NEEDS) else { return };
    let number = cpu.0.to_string();
    let args =
        ["--cpu", &number, "--host", "fifo", "--periods", "50", "--load", "idle", "--require"];
    let with = |bounds| run(&[&BUILT_IN[..], &args, &[bounds]].concat());
    let ended = with("p50=1ns,max=60min");
    ended.assert_code(1).assert_nothing_left(&[cpu.0]);
    assert!(
        ended.out.starts_with("Not kept: p50 ") && ended.out.contains(" of idle exceeds "),
        "{}",
        ended.out
    );
    let ended = with("max=60min");
    ended.assert_code(0);
    assert!(ended.out.starts_with("All requirements are kept"), "{}", ended.out);
}

#[test]
fn an_interrupted_measurement_prints_its_rows_and_ends_its_load() {
    let Some(cpu) = permitted_cpu(&NEEDS) else { return };
    let number = cpu.0.to_string();
    let args = ["--cpu", &number, "--periods", ENDLESS, "--load", "fork,idle", "--json"];
    let mut running = Running::start(&[&BUILT_IN[..], &args].concat());
    running.wait_for("the dispatcher beside the load", |r| {
        load_of(r).is_some() && r.dispatcher().is_some()
    });
    std::thread::sleep(std::time::Duration::from_millis(300));
    kill(running.pid(), libc::SIGINT);
    let ended = running.end();
    ended.assert_code(130).assert_nothing_left(&[cpu.0]);
    let result = ended.result();
    assert_eq!(result["interrupted"], true);
    assert_eq!(result["rows"].as_array().map(Vec::len), Some(1), "{result:#}");
}

#[test]
fn loads_die_with_a_measurement_that_is_killed() {
    let Some(cpu) = permitted_cpu(&NEEDS) else { return };
    let number = cpu.0.to_string();
    for load in ["memory", "io-both", "fork", "network"] {
        let args = ["--cpu", &number, "--host", "other", "--periods", ENDLESS, "--load", load];
        let mut running = Running::start(&[&BUILT_IN[..], &args].concat());
        running.wait_for("the load", |r| load_of(r).is_some());
        let pid = running.pid();
        kill(pid, libc::SIGKILL);
        running.reap();
        let mark = running.mark.clone();
        assert!(comes_true(|| marked(&mark).is_empty()), "{load} lives on");
        assert_nothing_left(pid, &mark, &[cpu.0]);
    }
}

const OVERHEAD: [&str; 4] = ["measure", "overhead", "--quick", "--generator"];

/// Whether a row was measured, or says why this machine cannot have it.
fn measured_or_explained(row: &serde_json::Value, figure: &str) {
    assert_ne!(row[figure].is_null(), row["not_possible"].is_null(), "{row:#}");
}

#[test]
fn overhead_measures_each_part_on_each_host_that_there_is() {
    let Some(cpu) = permitted_cpu(&NEEDS) else { return };
    let number = cpu.0.to_string();
    let args = ["built-in", "--cpu", &number, "--part", "events,budgets,square-wave", "--json"];
    let ended = run(&[&OVERHEAD[..], &args].concat());
    ended.assert_code(0).assert_nothing_left(&[cpu.0]);
    let result = ended.result();
    let rows = |part: &str| result[part]["rows"].as_array().unwrap().clone();
    for row in rows("events") {
        measured_or_explained(&row, "switch");
        assert_ne!(row["switch"]["count"], 0, "tasks were switched to: {row:#}");
    }
    assert!(!rows("events")[0]["dispatcher"].is_null(), "the user host has a dispatcher thread");
    let user = &rows("budgets")[0];
    for task in user["tasks"].as_array().unwrap() {
        let counted = task["periods"].as_u64().unwrap() + task["not_ready"].as_u64().unwrap();
        assert_eq!(counted, 100, "{task:#}");
        assert_eq!(task["rates_ppm"].as_array().map(Vec::len), Some(100), "{task:#}");
    }
    let waves = rows("square_wave");
    assert_eq!(waves.len(), 20, "two hosts, one and two tasks, five loads");
    for row in &waves {
        measured_or_explained(row, "variation");
    }
    assert_eq!(result["square_wave"]["paper_variation"]["cycles"], 1_800);
}

#[test]
fn an_interrupted_overhead_keeps_what_was_measured() {
    let Some(cpu) = permitted_cpu(&NEEDS) else { return };
    let number = cpu.0.to_string();
    let args = ["measure", "overhead", "--cpu", &number, "--part", "events,square-wave", "--json"];
    let mut running = Running::start(&args);
    running.wait_for("the dispatcher", |r| r.dispatcher().is_some());
    std::thread::sleep(std::time::Duration::from_millis(300));
    kill(running.pid(), libc::SIGINT);
    let ended = running.end();
    ended.assert_code(130).assert_nothing_left(&[cpu.0]);
    let result = ended.result();
    assert_eq!(result["interrupted"], true);
    assert_eq!(result["events"]["rows"].as_array().map(Vec::len), Some(1), "{result:#}");
    assert!(result["square_wave"].is_null(), "{result:#}");
}
