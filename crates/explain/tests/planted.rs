//! Misses whose cause is planted in a simulated set: the main cause must be that one, by name.

mod common;

use common::{check, explain, simulate};
use punctual_explain::{Activity, CauseKind};
use punctual_taskset::Costs;

/// A set, and the miss in it.
struct Planted {
    name: &'static str,
    policy: &'static str,
    /// The task that misses, the number of its release, and how long to simulate, ms.
    task: &'static str,
    number: u64,
    until_ms: u64,
    kind: CauseKind,
    /// The tasks or the group that the cause names.
    names: &'static [&'static str],
    set: &'static str,
}

/// A miss of the first release within 20 ms, by its own doing.
const FIRST: Planted = Planted {
    name: "",
    policy: "",
    task: "",
    number: 0,
    until_ms: 20,
    kind: CauseKind::Unaccounted,
    names: &[],
    set: "",
};

const PLANTED: &[Planted] = &[
    Planted {
        name: "a task of higher priority",
        policy: "fp",
        task: "low",
        kind: CauseKind::HigherPriority,
        names: &["high"],
        set: r#"task = [
            { name = "high", period = "20ms", budget = "4ms", priority = 2,
              work = { spin = "4ms" } },
            { name = "low", period = "20ms", deadline = "6ms", budget = "3ms", priority = 1,
              work = { spin = "3ms" } },
        ]"#,
        ..FIRST
    },
    Planted {
        name: "a task of shorter period",
        policy: "rm",
        task: "low",
        kind: CauseKind::HigherPriority,
        names: &["high"],
        set: r#"task = [
            { name = "low", period = "20ms", deadline = "6ms", budget = "3ms",
              work = { spin = "3ms" } },
            { name = "high", period = "10ms", budget = "4ms", work = { spin = "4ms" } },
        ]"#,
        ..FIRST
    },
    Planted {
        name: "a task of shorter deadline",
        policy: "dm",
        task: "low",
        kind: CauseKind::HigherPriority,
        names: &["high"],
        set: r#"task = [
            { name = "low", period = "20ms", deadline = "6ms", budget = "3ms",
              work = { spin = "3ms" } },
            { name = "high", period = "20ms", deadline = "5ms", budget = "4ms",
              work = { spin = "4ms" } },
        ]"#,
        ..FIRST
    },
    Planted {
        name: "several tasks, none of which alone took enough",
        policy: "fp",
        task: "low",
        kind: CauseKind::SeveralTasks,
        names: &["first", "second"],
        set: r#"task = [
            { name = "second", period = "20ms", budget = "2ms", priority = 2,
              work = { spin = "2ms" } },
            { name = "first", period = "20ms", budget = "2500us", priority = 3,
              work = { spin = "2500us" } },
            { name = "low", period = "20ms", deadline = "6ms", budget = "5ms", priority = 1,
              work = { spin = "5ms" } },
        ]"#,
        ..FIRST
    },
    Planted {
        name: "an overrun of a task of higher priority",
        policy: "fp",
        task: "low",
        number: 1,
        until_ms: 40,
        kind: CauseKind::OtherOverrun,
        names: &["high"],
        set: r#"task = [
            { name = "high", period = "20ms", budget = "6ms", priority = 2,
              work = { recorded = ["2ms", "9ms"] } },
            { name = "low", period = "20ms", deadline = "10ms", budget = "5ms", priority = 1,
              work = { spin = "5ms" } },
        ]"#,
    },
    Planted {
        name: "work of an earlier release of a task of higher priority",
        policy: "fp",
        task: "low",
        number: 2,
        until_ms: 60,
        kind: CauseKind::OtherOverrun,
        names: &["high"],
        set: r#"task = [
            { name = "high", period = "20ms", budget = "6ms", priority = 2,
              work = { recorded = ["2ms", "9ms", "2ms"] } },
            { name = "low", period = "20ms", deadline = "9ms", budget = "5ms", priority = 1,
              work = { spin = "5ms" } },
        ]"#,
    },
    Planted {
        name: "a job longer than its budget",
        policy: "edf",
        task: "servo",
        number: 1,
        until_ms: 30,
        kind: CauseKind::DemandBeyondBudget,
        set: r#"task = [
            { name = "servo", period = "10ms", budget = "3ms",
              work = { recorded = ["2ms", "5ms", "500us"] } },
        ]"#,
        ..FIRST
    },
    Planted {
        name: "a budget that was used up by a job of unknown length",
        policy: "edf",
        task: "runaway",
        until_ms: 10,
        kind: CauseKind::BudgetExhausted,
        set: r#"task = [
            { name = "runaway", period = "10ms", budget = "3ms",
              work = { uniform = ["5ms", "6ms"] } },
        ]"#,
        ..FIRST
    },
    Planted {
        name: "a budget that the wake-up rule cut",
        policy: "edf",
        task: "sleeper",
        kind: CauseKind::BudgetCut,
        set: r#"task = [{ name = "sleeper", period = "10ms", budget = "4ms",
            work = { steps = [{ spin = "1ms" }, { sleep = "5ms" }, { spin = "3ms" }] } }]"#,
        ..FIRST
    },
    Planted {
        name: "the exhausted server of its group",
        policy: "edf",
        task: "video",
        kind: CauseKind::ServerExhausted,
        names: &["media"],
        set: r#"group = [{ name = "media", policy = "fp", period = "20ms", budget = "3ms" }]
        task = [
            { name = "audio", group = "media", priority = 2, period = "20ms", budget = "2ms",
              work = { spin = "2ms" } },
            { name = "video", group = "media", priority = 1, period = "20ms", deadline = "10ms",
              budget = "2ms", work = { spin = "2ms" } },
        ]"#,
        ..FIRST
    },
    Planted {
        name: "the exhausted server of the group above its own",
        policy: "edf",
        task: "video",
        kind: CauseKind::ServerExhausted,
        names: &["outer"],
        set: r#"group = [
            { name = "inner", parent = "outer", policy = "fp", period = "20ms", budget = "6ms" },
            { name = "outer", policy = "edf", period = "20ms", budget = "3ms" },
        ]
        task = [
            { name = "video", group = "inner", priority = 1, period = "20ms", deadline = "10ms",
              budget = "5ms", work = { spin = "5ms" } },
        ]"#,
        ..FIRST
    },
    Planted {
        name: "a polling server that gave up its budget",
        policy: "edf",
        task: "late",
        until_ms: 40,
        kind: CauseKind::ServerExhausted,
        names: &["poll"],
        set: r#"group = [{ name = "poll", policy = "fp", period = "20ms", budget = "8ms",
            server = "polling" }]
        task = [
            { name = "early", group = "poll", priority = 2, period = "20ms", budget = "1ms",
              work = { spin = "1ms" } },
            { name = "late", group = "poll", priority = 1, period = "20ms", offset = "4ms",
              deadline = "10ms", budget = "2ms", work = { spin = "2ms" } },
        ]"#,
        ..FIRST
    },
    Planted {
        name: "a group's server whose first replenishment comes late",
        policy: "edf",
        task: "member",
        until_ms: 40,
        kind: CauseKind::ServerNotReplenished,
        names: &["later"],
        set: r#"group = [{ name = "later", policy = "fp", period = "20ms", budget = "5ms",
            offset = "8ms" }]
        task = [
            { name = "member", group = "later", priority = 1, period = "20ms", deadline = "10ms",
              budget = "4ms", work = { spin = "4ms" } },
        ]"#,
        ..FIRST
    },
    Planted {
        name: "a group's window",
        policy: "td",
        task: "member",
        until_ms: 40,
        kind: CauseKind::ServerNotReplenished,
        names: &["slots"],
        set: r#"group = [{ name = "slots", policy = "fp", cycle = "20ms",
            windows = [{ start = "8ms", length = "5ms" }] }]
        task = [
            { name = "member", group = "slots", priority = 1, period = "20ms", deadline = "10ms",
              budget = "4ms", work = { spin = "4ms" } },
        ]"#,
        ..FIRST
    },
    Planted {
        name: "the exhausted segment of its budget group",
        policy: "fp",
        task: "second",
        kind: CauseKind::SegmentExhausted,
        names: &["cap"],
        set: r#"budget_group = [{ name = "cap", period = "20ms", budget = "3ms" }]
        task = [
            { name = "first", budget_group = "cap", priority = 2, period = "20ms", budget = "2ms",
              work = { spin = "2ms" } },
            { name = "second", budget_group = "cap", priority = 1, period = "20ms",
              deadline = "10ms", budget = "2ms", work = { spin = "2ms" } },
        ]"#,
        ..FIRST
    },
    Planted {
        name: "the exhausted segment of a budget group above its group",
        policy: "fp",
        task: "second",
        kind: CauseKind::SegmentExhausted,
        names: &["all"],
        set: r#"budget_group = [{ name = "all", period = "20ms", budget = "3ms" }, { name = "part",
            parent = "all", period = "20ms", budget = "6ms" }]
        group = [{ name = "media", policy = "fp", priority = 1, period = "20ms", budget = "6ms",
            budget_group = "part" }]
        task = [
            { name = "second", group = "media", priority = 1, period = "20ms", deadline = "10ms",
              budget = "5ms", work = { spin = "5ms" } },
        ]"#,
        ..FIRST
    },
    Planted {
        name: "a sleep in mid-job",
        policy: "fp",
        task: "low",
        kind: CauseKind::Suspended,
        set: r#"task = [
            { name = "high", period = "20ms", budget = "4ms", priority = 2,
              work = { spin = "4ms" } },
            { name = "low", period = "20ms", deadline = "9ms", budget = "5ms", priority = 1,
              work = { steps = [{ spin = "1ms" }, { sleep = "2ms" }, { spin = "3500us" }] } },
        ]"#,
        ..FIRST
    },
    Planted {
        name: "a sleep, while a task executes in the ordinary class",
        policy: "fp",
        task: "low",
        kind: CauseKind::Suspended,
        set: r#"task = [
            { name = "other", period = "20ms", budget = "1ms", priority = 2, overrun = "background",
              work = { spin = "9ms" } },
            { name = "low", period = "20ms", deadline = "9ms", budget = "5ms", priority = 1,
              work = { steps = [{ spin = "1ms" }, { sleep = "5ms" }, { spin = "3500us" }] } },
        ]"#,
        ..FIRST
    },
    Planted {
        name: "a task with an earlier deadline",
        policy: "edf",
        task: "long",
        kind: CauseKind::EarlierDeadline,
        names: &["short"],
        set: r#"task = [
            { name = "long", period = "20ms", deadline = "4ms", budget = "3ms",
              work = { spin = "3ms" } },
            { name = "short", period = "20ms", deadline = "3ms", budget = "2ms",
              work = { spin = "2ms" } },
        ]"#,
        ..FIRST
    },
    Planted {
        name: "the server of another group with an earlier deadline",
        policy: "edf",
        task: "long",
        kind: CauseKind::EarlierDeadline,
        names: &["member"],
        set: r#"group = [{ name = "quick", policy = "fp", period = "20ms", deadline = "3ms",
            budget = "2ms" }]
        task = [
            { name = "long", period = "20ms", deadline = "4ms", budget = "3ms",
              work = { spin = "3ms" } },
            { name = "member", group = "quick", priority = 1, period = "20ms", budget = "2ms",
              work = { spin = "2ms" } },
        ]"#,
        ..FIRST
    },
    Planted {
        name: "a task of equal priority that came first",
        policy: "fp",
        task: "second",
        kind: CauseKind::EqualPriority,
        names: &["first"],
        set: r#"task = [
            { name = "first", period = "20ms", budget = "4ms", priority = 1,
              work = { spin = "4ms" } },
            { name = "second", period = "20ms", deadline = "6ms", budget = "3ms", priority = 1,
              work = { spin = "3ms" } },
        ]"#,
        ..FIRST
    },
    Planted {
        name: "the mandatory part of another task",
        policy: "imprecise",
        task: "second",
        kind: CauseKind::PolicyOrder,
        names: &["first"],
        set: r#"task = [
            { name = "first", period = "20ms", deadline = "19ms", budget = "6ms",
              work = { spin = "6ms" } },
            { name = "second", period = "20ms", deadline = "8ms", budget = "4ms", mandatory = "1ms",
              work = { spin = "4ms" } },
        ]"#,
        ..FIRST
    },
    Planted {
        name: "more promised than there is",
        policy: "rm",
        task: "second",
        kind: CauseKind::Overload,
        names: &["first"],
        set: r#"task = [
            { name = "first", period = "10ms", budget = "6ms", work = { spin = "6ms" } },
            { name = "second", period = "10ms", budget = "6ms", work = { spin = "6ms" } },
        ]"#,
        ..FIRST
    },
    Planted {
        name: "released again while it was late",
        policy: "edf",
        task: "servo",
        number: 2,
        until_ms: 40,
        kind: CauseKind::CarriedOver,
        set: r#"task = [
            { name = "servo", period = "10ms", budget = "3ms",
              work = { recorded = ["1ms", "5ms", "2ms", "500us"] } },
        ]"#,
        ..FIRST
    },
];

#[test]
fn the_planted_cause_is_the_one_that_is_named() {
    let fails = PLANTED.iter().filter(|p| {
        let tried = std::panic::catch_unwind(|| {
            let head = format!("cpu = 0\npolicy = \"{}\"\n", p.policy);
            let trace = simulate(&format!("{head}{}", p.set), p.until_ms, Costs::default());
            check(p.name, &trace, p.task, p.number, p.kind, p.names);
        });
        tried.is_err()
    });
    let names: Vec<&str> = fails.map(|p| p.name).collect();
    assert!(names.is_empty(), "not named: {names:#?}");
}

#[test]
fn a_task_in_the_ordinary_class_is_no_cause() {
    let p = PLANTED.iter().find(|p| p.name.contains("ordinary class")).expect("it is there");
    let trace =
        simulate(&format!("cpu = 0\npolicy = \"fp\"\n{}", p.set), p.until_ms, Costs::default());
    let explanation = explain(&trace, p.task, p.number);
    let others: u64 = explanation
        .shares
        .iter()
        .filter(|s| matches!(s.what, Activity::Task { .. }))
        .map(|s| s.ns)
        .sum();
    // Its budget only: what it executes beyond that displaces nothing.
    assert_eq!(others, 1_000_000, "{:?}", explanation.shares);
}

#[test]
fn the_hosts_own_work_is_time_that_no_task_used() {
    let set = "cpu = 0\npolicy = \"edf\"\n[[task]]\nname = \"only\"\nperiod = \"20ms\"\n\
        deadline = \"5ms\"\nbudget = \"4ms\"\nwork = { spin = \"4ms\" }\n";
    let costs = Costs { release: 2_000_000, ..Costs::default() };
    check("work of the host", &simulate(set, 20, costs), "only", 0, CauseKind::Unaccounted, &[]);
}
