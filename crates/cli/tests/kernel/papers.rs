//! The papers' task sets, run inside the kernel: the invariants hold in the trace, and it replays
//! to the same decisions.

use std::collections::HashMap;

use punctual_trace::Trace;
use serde_json::Value;

use crate::check::{self, Seen};
use crate::kernels_own::KernelsOwn;
use crate::machine::Machine;
use crate::punctual::{
    adversarial, keeps_its_budget, list, replays, results_with, start, task, trace, Scratch,
};

/// One run of a set.
struct Ran {
    results: Value,
    seen: HashMap<u32, Seen>,
    trace: Trace,
    /// ns.
    longest_soft_interrupt: u64,
}

impl Ran {
    /// What became of a task of that name.
    fn task(&self, name: &str) -> &Seen {
        let at = self.trace.header.tasks.iter().position(|task| task == name);
        let at = at.unwrap_or_else(|| panic!("no task {name} in the trace"));
        &self.seen[&(at as u32)]
    }

    fn all_meet_their_deadlines(&self, tasks: &[&str]) {
        for name in tasks {
            assert_eq!(task(&self.results, name)["misses"], 0, "{name}");
        }
    }

    /// In every period to so many ns, but for one at whose end a soft interrupt was on.
    fn keeps_its_budget(&self, name: &str, within: u64) {
        keeps_its_budget(task(&self.results, name), within + self.longest_soft_interrupt);
    }

    fn all_executed(&self, tasks: &[&str]) {
        for name in tasks {
            assert!(self.task(name).executed > 0, "{name}");
        }
    }
}

/// Runs a set of examples/ on the machine's first CPU.
fn example(text: &str, options: &[&str], code: i32) -> Option<Ran> {
    let _machine = Machine::with_sched_ext()?;
    let scratch = Scratch::new();
    let set = scratch.file("set.toml", &text.replace("cpu = 1\n", "cpu = 0\n"));
    let path = scratch.path("trace");
    let mut words = vec!["--trace", path.to_str().expect("plain")];
    words.extend(options);
    let own = KernelsOwn::watch();
    let results = results_with(&start(&set, &words).output(), code);
    let trace = trace(&path);
    let seen = check::holds(&trace, &own, check::lateness(&own));
    replays(&path);
    has_execution_and_periods(&trace, &seen, &results);
    Some(Ran { results, seen, trace, longest_soft_interrupt: own.longest_soft_interrupt() })
}

/// The trace has when each task executed, but for what had not stopped at the end, and the periods
/// of which the results are made.
fn has_execution_and_periods(trace: &Trace, seen: &HashMap<u32, Seen>, results: &Value) {
    const CUT_OFF: u64 = 20_000_000;
    let intervals = trace.intervals();
    for (task, seen) in seen {
        let ran: u64 = intervals.iter().filter(|i| i.task == *task).map(|i| i.to - i.from).sum();
        assert!(ran + CUT_OFF >= seen.executed, "task {task}: {ran} ns of {}", seen.executed);
    }
    for (task, result) in results["tasks"].as_array().expect("tasks").iter().enumerate() {
        let periods = trace.periods().filter(|p| p.task as usize == task).count() as u64;
        assert!(Some(periods) >= result["periods"].as_u64(), "{periods} in the trace: {result:#}");
    }
}

const TABLE_2: &str = include_str!("../../../../examples/rtai-table2.toml");

fn both_get_half_of_the_cpu(set: &str) {
    let Some(ran) = example(set, &["--load", "--duration", "600ms"], 0) else { return };
    for name in ["task 1", "task 2"] {
        ran.keeps_its_budget(name, 10_000);
    }
    let executed = ran.task("task 1").executed;
    assert!(executed >= 298_000_000, "{executed} ns of 300 ms");
}

/// The paper's tasks inside RTAI: ours speak to the dispatcher.
#[test]
fn rtai_table_2() {
    both_get_half_of_the_cpu(TABLE_2);
}

/// The same as LXRT tasks: ordinary programs in user space, which know nothing of us.
#[test]
fn rtai_table_3() {
    let command = format!("command = {}", list(&adversarial("spin")));
    both_get_half_of_the_cpu(&TABLE_2.replace("work = { spin = \"forever\" }", &command));
}

/// Three tasks that never stop and a program in the player's place, 90 % of the CPU. A single
/// period may be some microseconds off, for each time that another one comes in between; the next
/// one carries it.
#[test]
fn rtai_fig_6() {
    let text = include_str!("../../../../examples/rtai-fig6.toml");
    let player = text.lines().find(|l| l.starts_with("command = ")).expect("the example's player");
    let text = text.replace(player, &format!("command = {}", list(&adversarial("spin"))));
    let Some(ran) = example(&text, &["--load", "--duration", "600ms"], 0) else { return };
    for (name, within) in
        [("task 1", 10_000), ("task 2", 10_000), ("task 3", 10_000), ("player", 30_000)]
    {
        ran.keeps_its_budget(name, within);
    }
}

/// A time-driven table above rate monotonic and EDF, and two EDF groups below that one.
#[test]
fn red_linux_fig_6() {
    let text = include_str!("../../../../examples/red-linux-fig6.toml");
    let Some(ran) = example(text, &["--duration", "800ms"], 0) else { return };
    // Of each cycle of 20 ms: RM in the first half, EDF in the second.
    let in_first_half = |name: &str| {
        let number =
            ran.trace.header.tasks.iter().position(|task| task == name).expect("a task") as u32;
        let cycle = 20_000_000;
        let begun = crate::trace::table_began(&ran.trace);
        let of = crate::trace::runs(&ran.trace).into_iter().filter(move |run| run.0 == number);
        of.map(|(_, at)| (at - begun) % cycle < cycle / 2).collect::<Vec<_>>()
    };
    for (name, first) in [("rm fast", true), ("rm slow", true), ("edf1", false), ("edf2", false)] {
        let halves = in_first_half(name);
        assert!(!halves.is_empty(), "{name} never ran");
        assert!(halves.iter().all(|&half| half == first), "{name} ran in the other group's half");
        assert_eq!(task(&ran.results, name)["misses"], 0, "{name}");
    }
}

#[test]
fn imprecise_computation() {
    let text = include_str!("../../../../examples/imprecise.toml");
    let Some(ran) = example(text, &["--load", "--duration", "600ms"], 0) else { return };
    ran.all_meet_their_deadlines(&["tracker", "vision"]);
    ran.all_executed(&["tracker", "vision"]);
}

#[test]
fn dual_priority() {
    let text = include_str!("../../../../examples/dual.toml");
    let Some(ran) = example(text, &["--load", "--duration", "600ms"], 0) else { return };
    ran.all_meet_their_deadlines(&["control", "sensor", "logger"]);
    ran.all_executed(&["control", "sensor", "logger"]);
}

#[test]
fn a_time_table() {
    let text = include_str!("../../../../examples/time-driven.toml");
    let Some(ran) = example(text, &["--load", "--duration", "400ms"], 0) else { return };
    ran.all_meet_their_deadlines(&["sample", "control", "telemetry"]);
}

/// Aperiodic, sporadic and listed arrivals at a polling and a deferrable server.
#[test]
fn servers() {
    let text = include_str!("../../../../examples/servers.toml");
    let Some(ran) = example(text, &["--load", "--duration", "1s"], 0) else { return };
    ran.all_meet_their_deadlines(&["loop", "planner"]);
    ran.all_executed(&["request", "key press", "redraw"]);
}

#[test]
fn three_levels_of_groups_and_a_budget_across_them() {
    let text = include_str!("../../../../examples/three-levels.toml");
    let Some(ran) = example(text, &["--load", "--duration", "600ms"], 0) else { return };
    ran.all_meet_their_deadlines(&[
        "servo",
        "imu",
        "gps",
        "video",
        "audio",
        "reverb",
        "housekeeping",
    ]);
}

#[test]
fn one_budget_for_programs_of_two_groups() {
    let text = include_str!("../../../../examples/budget-group.toml");
    let Some(ran) = example(text, &["--load", "--duration", "500ms"], 0) else { return };
    ran.all_meet_their_deadlines(&["servo", "decoder", "renderer"]);
}

/// Constant bandwidth servers under EDF, beside bursts and a task that sleeps.
#[test]
fn control_loops_and_media_under_one_edf() {
    let text = include_str!("../../../../examples/control-and-media.toml");
    let Some(ran) = example(text, &["--load", "--duration", "1s"], 0) else { return };
    ran.all_meet_their_deadlines(&["axis x", "axis y", "decoder", "monitor"]);
    ran.all_executed(&["thumbnails"]);
}

/// Inside the kernel at the top, at each release in a group.
#[test]
fn an_order_of_the_sets_own() {
    let text = include_str!("../../../../examples/objective.toml");
    let Some(ran) = example(text, &["--load", "--duration", "600ms"], 0) else { return };
    ran.all_meet_their_deadlines(&["control", "valve", "audio", "video"]);
    ran.all_executed(&["control", "valve", "audio", "video"]);
}

/// Bandwidth servers, a constant utilization server, a soft one, and a sporadic one.
#[test]
fn tasks_on_servers_of_their_own() {
    let text = include_str!("../../../../examples/requests.toml");
    let Some(ran) = example(text, &["--load", "--duration", "1s"], 0) else { return };
    ran.all_meet_their_deadlines(&["control", "query", "upload", "index", "events", "logger"]);
    ran.all_executed(&["query", "upload", "compile", "events"]);
}

/// Two groups that are shared by weight, beside control loops and media.
#[test]
fn shares_by_weight() {
    let text = include_str!("../../../../examples/shares.toml");
    let Some(ran) = example(text, &["--load", "--duration", "1s"], 0) else { return };
    ran.all_meet_their_deadlines(&["axis x", "axis y", "audio", "compile", "lint", "find"]);
    ran.all_executed(&["video", "shell", "find"]);
    // Three times as much while both want to execute, and all of it while "lint" sleeps.
    let [compile, lint] = ["compile", "lint"].map(|name| ran.task(name).executed);
    assert!(lint > 20_000_000 && compile > 3 * lint, "{compile} and {lint} ns");
}

/// Fifty frames of ffmpeg's recording, within half the time of the example: the whole budget, then
/// what the frames need.
#[test]
fn an_adaptive_budget_follows_its_task() {
    let text = include_str!("../../../../examples/adaptive.toml");
    let text = text
        .replace("period = \"40ms\"\nbudget = \"20ms\"", "period = \"20ms\"\nbudget = \"10ms\"")
        .replace("\"decoding.txt\"", "[\"800us\", \"700us\", \"2ms\", \"900us\", \"600us\"]");
    let Some(ran) = example(&text, &["--load", "--duration", "1s"], 0) else { return };
    ran.all_meet_their_deadlines(&["control", "decoder"]);
    let budget = &task(&ran.results, "decoder")["adaptive_budget"];
    let ns = |key: &str| budget[key].as_u64().expect("a number");
    assert_eq!((ns("most_ns"), ns("exhausted")), (10_000_000, 0), "{budget:#}");
    // 2 ms and an eighth, and what the switches of the kernel add.
    assert!((2_250_000..2_500_000).contains(&ns("last_ns")), "{budget:#}");
}

/// What two tasks do not use a third one takes, some 19 ms in each of its periods.
#[test]
fn tasks_reclaim_the_budgets_that_others_do_not_use() {
    let text = include_str!("../../../../examples/reclaiming.toml");
    let Some(ran) = example(text, &["--load", "--duration", "1s"], 0) else { return };
    ran.all_meet_their_deadlines(&["control", "planner", "vision"]);
    let vision = task(&ran.results, "vision");
    let [periods, reclaimed] =
        ["periods", "reclaimed_ns"].map(|key| vision[key].as_u64().expect("a number"));
    assert!((14_000_000..21_000_000).contains(&(reclaimed / periods)), "{vision:#}");
}
