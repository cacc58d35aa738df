//! Tasks that misbehave: each as docs/faults.md says, and the budgets of the others hold.

use std::time::Duration;

use punctual_test_support::judge_timing;
use serde_json::Value;

use crate::kills::NEEDS;
use crate::machine::{one_cpu, permitted, permitted_cpu, wait_for_cpu, Cpu};
use crate::process::{eventually, kill, marked, name_of};
use crate::punctual::{adversarial, list, run, run_on, run_set, task, Ended, Running, Scratch};

/// Two good tasks beside a wild one.
pub fn set(cpu: u32, command: &[String]) -> String {
    format!(
        r#"
cpu = {cpu}
policy = "edf"
duration = "800ms"
[[task]]
name = "steady"
period = "10ms"
budget = "2ms"
work = {{ spin = "forever" }}
[[task]]
name = "servo"
period = "4ms"
budget = "800us"
work = {{ spin = "500us" }}
[[task]]
name = "wild"
period = "20ms"
budget = "6ms"
command = {}
"#,
        list(command)
    )
}

fn beside(cpu: &Cpu, command: &[String]) -> Ended {
    let ended = run_set(&set(cpu.0, command), &["--json"]);
    ended.assert_ran().assert_nothing_left(&[cpu.0]);
    judge_timing(|| assert_others_hold(&ended.result()));
    ended
}

/// The steady task gets all of its budget, the servo executes its 500 us, the wild one gets no more
/// than its own.
pub fn assert_others_hold(results: &Value) {
    let steady = task(results, "steady");
    let share = steady["long_run_ppm"].as_u64().unwrap();
    assert!((970_000..=1_030_000).contains(&share), "steady got {share} ppm: {results:#}");
    let servo = task(results, "servo");
    let used = received(servo);
    assert!(
        (550..=800).contains(&used),
        "the servo used {used} of 1,000 of its budget, not 625: {results:#}"
    );
    let wild = received(task(results, "wild"));
    assert!(wild <= 1030, "the wild one got {wild} of 1,000 of its budget: {results:#}");
}

/// Of 1,000 of its budget.
fn received(task: &Value) -> u64 {
    let of = |key: &str| task[key].as_u64().unwrap();
    of("received_ns") * 1000 / of("assigned_ns").max(1)
}

/// A wild one that wants the CPU all the time gets all of its budget and no more.
fn assert_bounded(results: &Value) {
    let wild = received(task(results, "wild"));
    assert!(
        (970..=1030).contains(&wild),
        "the wild one got {wild} of 1,000 of its budget: {results:#}"
    );
}

fn bounded(role: &str) {
    if permitted(&NEEDS) {
        let cpu = one_cpu();
        let results = beside(&cpu, &adversarial(role)).result();
        judge_timing(|| assert_bounded(&results));
    }
}

#[test]
fn a_task_that_never_waits_gets_its_budget_and_no_more() {
    bounded("spin");
}

#[test]
fn a_task_of_many_threads_shares_one_budget() {
    bounded("spin-threads 8");
}

#[test]
fn children_and_their_orphans_share_one_budget_and_die_with_the_run() {
    bounded("family");
}

#[test]
fn a_fork_storm_stays_within_its_budget() {
    if permitted(&NEEDS) {
        let cpu = one_cpu();
        // Forking and dying are its own execution; what it leaves unused while it waits for its
        // children is its own too.
        let wild = received(task(&beside(&cpu, &adversarial("fork-storm")).result(), "wild"));
        judge_timing(|| assert!(wild > 800, "{wild}"));
    }
}

#[test]
fn a_task_that_becomes_other_programs_keeps_its_budget() {
    bounded("exec");
}

#[test]
fn threads_that_come_later_share_the_budget() {
    bounded("late-threads");
}

#[test]
fn a_task_that_blocks_and_ignores_all_signals_is_bounded_and_ends_with_the_run() {
    bounded("deaf");
}

#[test]
fn a_task_that_continues_inside_the_kernel_while_it_is_parked_takes_nothing_from_the_others() {
    if permitted(&NEEDS) {
        let cpu = one_cpu();
        let ended = until_said(&cpu, "map", "", "continues inside the kernel while it is parked");
        assert_eq!(
            ended.err.matches("continues inside the kernel").count(),
            1,
            "reported once: {}",
            ended.err
        );
    }
}

#[test]
fn a_task_that_leaves_its_policy_gets_no_more_for_it() {
    if permitted(&NEEDS) {
        let cpu = one_cpu();
        beside(&cpu, &adversarial("demote"));
    }
}

#[test]
fn a_task_that_leaves_its_cpu_gets_no_more_for_it() {
    if permitted(&NEEDS) {
        let cpu = one_cpu();
        beside(&cpu, &adversarial("escape"));
    }
}

#[test]
fn a_daemon_stays_in_its_budget_and_ends_with_the_run() {
    let Some(cpu) = permitted_cpu(&NEEDS) else { return };
    let ended = beside(&cpu, &adversarial("daemon"));
    judge_timing(|| assert_bounded(&ended.result()));
    assert!(
        !ended.err.contains("exited with"),
        "its daemon continues, so the task has not ended: {}",
        ended.err
    );
}

#[test]
fn a_task_that_exits_early_is_reported_and_the_others_continue() {
    let Some(cpu) = permitted_cpu(&NEEDS) else { return };
    let results = until_said(&cpu, "exit 50 7", "", "wild: exited with 7").result();
    assert!(
        task(&results, "wild")["periods"].as_u64() < task(&results, "steady")["periods"].as_u64()
    );
}

#[test]
fn a_task_that_crashes_is_reported_and_the_others_continue() {
    if permitted(&NEEDS) {
        let cpu = one_cpu();
        until_said(&cpu, "crash", "", "wild: ended by signal 11");
    }
}

#[test]
fn a_run_whose_tasks_have_all_ended_ends() {
    let Some(cpu) = permitted_cpu(&NEEDS) else { return };
    for (role, said, code) in [
        ("exit 0 0", "exited with 0", 0),
        ("exit 30 3", "exited with 3", 3),
        ("crash", "ended by signal 11", 128 + libc::SIGSEGV),
    ] {
        let words = run_on(cpu.0, "--period 10ms --budget 5ms --duration 120s --");
        let ended = run(&[words, adversarial(role)].concat());
        ended.assert_code(code).assert_says(&[said]).assert_nothing_left(&[]);
        judge_timing(|| assert!(ended.took < Duration::from_secs(2), "{:?}", ended.took));
    }
}

/// The wild task's first process, once it runs.
fn wild_of(punctual: &mut Running, name: &str) -> i32 {
    let mut pid = 0;
    punctual.wait_for("the wild task", |p| {
        let all = marked(&p.mark);
        pid = all.into_iter().find(|q| *q != p.pid() && name_of(*q).starts_with(name)).unwrap_or(0);
        pid != 0
    });
    pid
}

/// Runs the set, with `keys` added to the wild task. Interrupts the run 600 ms after `started` has
/// returned, but not before its reports contain all of `said`, however slow the machine is.
fn run_until(
    cpu: &Cpu,
    role: &str,
    keys: &str,
    started: impl FnOnce(&mut Running),
    said: &[&str],
) -> Ended {
    let scratch = Scratch::new();
    let file = scratch.file("set.toml", &(set(cpu.0, &adversarial(role)) + keys));
    let reports = scratch.path("reports");
    wait_for_cpu(cpu.0);
    let mut punctual = Running::from(|c| {
        c.args(["run", &file, "--json", "--duration", "600s"])
            .stderr(std::fs::File::create(&reports).unwrap())
    });
    started(&mut punctual);
    std::thread::sleep(Duration::from_millis(600));
    let text = || std::fs::read_to_string(&reports).unwrap();
    eventually(&format!("{said:?}"), || said.iter().all(|words| text().contains(words)));
    kill(punctual.pid(), libc::SIGINT);
    let mut ended = punctual.end();
    ended.err = text();
    ended.assert_code(130).assert_nothing_left(&[cpu.0]);
    judge_timing(|| assert_others_hold(&ended.result()));
    ended
}

/// Runs the set until `said` is reported.
fn until_said(cpu: &Cpu, role: &str, keys: &str, said: &str) -> Ended {
    run_until(cpu, role, keys, |_| {}, &[said])
}

/// Runs the set until all of `said` is reported; calls `act` with the wild task's pid after its
/// first 200 ms.
fn while_it_runs(cpu: &Cpu, role: &str, act: impl Fn(i32), said: &[&str]) -> Ended {
    let started = |punctual: &mut Running| {
        let wild = wild_of(punctual, "real");
        std::thread::sleep(Duration::from_millis(200));
        act(wild);
    };
    run_until(cpu, role, "", started, said)
}

#[test]
fn a_task_stopped_by_a_signal_leaves_its_budget_unused_until_it_is_continued() {
    let Some(cpu) = permitted_cpu(&NEEDS) else { return };
    let ended = while_it_runs(
        &cpu,
        "spin",
        |wild| {
            kill(wild, libc::SIGSTOP);
            std::thread::sleep(Duration::from_millis(200));
            kill(wild, libc::SIGCONT);
        },
        &[],
    );
    let share = received(task(&ended.result(), "wild"));
    judge_timing(|| {
        assert!(
            (500..=950).contains(&share),
            "stopped for a quarter of the run, it got {share} of 1,000"
        )
    });
    while_it_runs(&cpu, "spin", |wild| kill(wild, libc::SIGSTOP), &[]);
    while_it_runs(&cpu, "stop-itself", |_| {}, &[]);
}

#[test]
fn a_task_killed_by_a_signal_is_reported_and_the_others_continue() {
    let Some(cpu) = permitted_cpu(&NEEDS) else { return };
    while_it_runs(&cpu, "deaf", |wild| kill(wild, libc::SIGKILL), &["wild: ended by signal 9"]);
    // A frozen task takes a signal that ends it when it next runs.
    while_it_runs(&cpu, "spin", |wild| kill(wild, libc::SIGTERM), &["wild: ended by signal 15"]);
}

#[test]
fn each_overrun_policy_keeps_its_word_for_a_runaway() {
    let Some(cpu) = permitted_cpu(&NEEDS) else { return };
    for policy in ["carry", "skip", "signal", "background"] {
        // SIGXCPU ends a program that does not expect it.
        let command = if policy == "signal" { adversarial("deaf") } else { adversarial("spin") };
        let text = format!("{}overrun = \"{policy}\"\n", set(cpu.0, &command));
        let ended = run_set(&text, &["--json"]);
        ended.assert_ran().assert_nothing_left(&[cpu.0]);
        judge_timing(|| {
            let results = ended.result();
            let steady = task(&results, "steady")["long_run_ppm"].as_u64().unwrap();
            assert!(
                (970_000..=1_030_000).contains(&steady),
                "{policy}: steady got {steady} ppm: {results:#}"
            );
            if policy != "background" {
                assert_bounded(&results);
            }
        });
    }
    until_said(&cpu, "spin", "overrun = \"signal\"\n", "wild: ended by signal 24");
}

#[test]
fn what_the_results_say_is_what_a_program_s_own_clock_says() {
    let Some(cpu) = permitted_cpu(&NEEDS) else { return };
    let scratch = Scratch::new();
    let clock = scratch.path("clock");
    let set = set(cpu.0, &adversarial(&format!("clock {clock}")));
    let ended = run_set(&set, &["--json", "--duration", "1500ms"]);
    ended.assert_ran().assert_nothing_left(&[cpu.0]);
    judge_timing(|| {
        let text = std::fs::read_to_string(&clock).unwrap();
        let used: u64 = text.split_whitespace().next().unwrap().parse().unwrap();
        // 75 periods of 6 ms; the first release comes at once, and the last one is there in whole.
        let periods = used as f64 / 6e6;
        assert!((73.0..=76.5).contains(&periods), "{periods} budgets in 75 periods: {}", ended.out);
        assert_bounded(&ended.result());
    });
}
