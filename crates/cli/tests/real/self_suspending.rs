//! Self-suspending programs, and tasks that are ranked behind one: the user host is not notified
//! when it blocks or wakes (docs/check.md). What keeps a task from executing is not to be taken for
//! a suspension.

use std::fmt::Write;
use std::io::BufReader;

use punctual_test_support::judge_timing;
use punctual_trace::{kind, Trace};
use serde_json::Value;

use crate::kills::NEEDS;
use crate::machine::permitted_cpu;
use crate::punctual::{adversarial, list, run_set, task, Scratch};
use crate::stalls::Stalls;

/// Fig. 6 of the RTAI paper, with any player or none. The player's budget is 2 ms and not 3: with
/// 90 % promised, the dispatcher's own 6 % leave too little for budgets to be kept in every period.
/// The host's limit is not what is tested here.
fn fig_6(cpu: u32, player: Option<&str>) -> String {
    let mut set = format!("cpu = {cpu}\npolicy = \"edf\"\nduration = \"2s\"\n");
    for (number, period, budget) in [(1, "4ms", "1ms"), (2, "2ms", "500us"), (3, "1ms", "250us")] {
        set += &format!(
            "[[task]]\nname = \"task {number}\"\nperiod = \"{period}\"\nbudget = \"{budget}\"\n\
             work = {{ spin = \"forever\" }}\n"
        );
    }
    if let Some(role) = player {
        let command = list(&adversarial(role));
        set += &format!(
            "[[task]]\nname = \"player\"\nperiod = \"20ms\"\nbudget = \"2ms\"\n\
             command = {command}\n"
        );
    }
    set
}

/// Periods of the three tasks whose budget was off by more than this many percent, of a thousand.
fn off(results: &Value, percent: u32) -> [u64; 3] {
    [1, 2, 3].map(|n| {
        let key = format!("off_{percent}_percent_ppm");
        task(results, &format!("task {n}"))["budget_received"][key].as_u64().unwrap() / 1000
    })
}

#[test]
fn budgets_beside_a_program_that_sleeps_are_kept_as_without_it() {
    let Some(cpu) = permitted_cpu(&NEEDS) else { return };
    let results = |player| {
        let ended = run_set(&fig_6(cpu.0, player), &["--json", "--load", "--overload"]);
        ended.assert_ran().assert_nothing_left(&[cpu.0]);
        ended.result()
    };
    let without = results(None);
    for player in ["deaf", "bursts 500 3000"] {
        let beside = results(Some(player));
        judge_timing(|| {
            // One and a half times as many, and one period.
            for (with, without) in off(&beside, 5).into_iter().zip(off(&without, 5)) {
                assert!(
                    with <= without * 3 / 2 + 2,
                    "beside {player}: {beside:#}\nwithout: {without:#}"
                );
            }
        });
    }
}

/// Like rt-tests under a budget: it sleeps most of the time and never uses up its budget.
#[test]
fn a_program_that_sleeps_is_not_ready_and_has_no_shortfall() {
    let Some(cpu) = permitted_cpu(&NEEDS) else { return };
    let sleeper = list(&adversarial("bursts 200 3000"));
    let set = format!(
        "cpu = {}\npolicy = \"edf\"\nduration = \"2s\"\n\
         [[task]]\nname = \"sleeper\"\nperiod = \"10ms\"\nbudget = \"4ms\"\ncommand = {sleeper}\n\
         [[task]]\nname = \"beside\"\nperiod = \"4ms\"\nbudget = \"1ms\"\n\
         work = {{ spin = \"forever\" }}\n",
        cpu.0
    );
    let ended = run_set(&set, &["--json"]);
    ended.assert_met().assert_nothing_left(&[cpu.0]);
    let results = ended.result();
    let sleeper = task(&results, "sleeper");
    let judged = sleeper["budget_received"]["periods"].as_u64().unwrap_or(0);
    let late = sleeper["late_wakeups"]["periods"].as_u64().unwrap();
    let not_ready = sleeper["not_ready"].as_u64().unwrap();
    assert_eq!(Some(judged + late + not_ready), sleeper["periods"].as_u64(), "{results:#}");
    judge_timing(|| {
        assert_eq!(Some(not_ready), sleeper["periods"].as_u64(), "{results:#}");
        assert_eq!(
            (sleeper["shortfall_ns"].as_u64(), results["totals"]["short"].as_u64()),
            (Some(0), Some(0))
        );
    });
}

/// Periods and budgets in us: more tasks than are unparked at a time, with 43 % of a CPU together.
const MANY: [[u64; 2]; 22] = [
    [8_853, 62],
    [17_932, 113],
    [17_730, 165],
    [26_761, 108],
    [3_532, 62],
    [33_000, 62],
    [9_430, 418],
    [17_735, 62],
    [18_207, 75],
    [33_000, 62],
    [3_389, 192],
    [4_683, 87],
    [15_966, 653],
    [10_062, 856],
    [17_921, 290],
    [4_646, 62],
    [33_000, 385],
    [1_352, 62],
    [16_211, 346],
    [4_815, 386],
    [1_419, 62],
    [13_773, 461],
];

/// A task that was taken for suspended although it was ready kept a level below tasks of lower
/// rank, and the polling for its wake-up took the CPU: both together cost ready tasks their
/// budgets.
#[test]
fn a_task_that_never_sleeps_is_not_taken_for_suspended_when_the_machine_stalls() {
    let Some(cpu) = permitted_cpu(&NEEDS) else { return };
    let scratch = Scratch::new();
    let mut set = format!("cpu = {}\npolicy = \"edf\"\nduration = \"200ms\"\n", cpu.0);
    for (n, [period, budget]) in MANY.into_iter().enumerate() {
        let times = format!("period = \"{period}us\"\nbudget = \"{budget}us\"");
        writeln!(set, "[[task]]\nname = \"t{n}\"\n{times}\nwork = {{ spin = \"forever\" }}")
            .unwrap();
    }
    let trace = scratch.path("run.trace");
    let stalls = Stalls::start(cpu.0);
    let ended = run_set(&set, &["--json", "--trace", &trace]);
    drop(stalls);
    ended.assert_ran().assert_nothing_left(&[cpu.0]);
    let read = Trace::read(&mut BufReader::new(std::fs::File::open(&trace).unwrap())).unwrap();
    let blocked = read.records.iter().filter(|r| r.kind == kind::TASK_BLOCKED).count();
    assert_eq!(blocked, 0, "tasks were taken for suspended");
    judge_timing(|| {
        let results = ended.result();
        for task in results["tasks"].as_array().unwrap() {
            assert_eq!(
                (&task["misses"], &task["shortfall_ns"]),
                (&0.into(), &0.into()),
                "{task:#}"
            );
        }
    });
}
