//! What becomes of late waits and of the background, whether the kernel releases a task itself or a
//! policy in user space is asked at each job.

use crate::check;
use crate::kernels_own::KernelsOwn;
use crate::machine::{executed_by, Machine};
use crate::punctual::{
    adversarial, companion, list, replays, results_with, start, task, trace, Scratch,
};

/// One task that has 2 ms in 10 ms, for 400 ms.
fn set(policy: &str, overrun: &str, body: &str) -> String {
    format!(
        "cpu = 0\npolicy = \"{policy}\"\nduration = \"400ms\"\n\
         [[task]]\nname = \"late\"\nperiod = \"10ms\"\nbudget = \"2ms\"\n\
         overrun = \"{overrun}\"\n\
         {body}\n"
    )
}

const THREE_MS: &str = "work = { spin = \"3ms\" }";

/// What a task received in a period on average whose jobs take one and a half budgets each, ns.
fn received_when_late(policy: &str, overrun: &str) -> Option<u64> {
    let _machine = Machine::with_sched_ext()?;
    let scratch = Scratch::new();
    let path = scratch.path("trace");
    let set = scratch.file("set.toml", &set(policy, overrun, THREE_MS));
    let own = KernelsOwn::watch();
    let results = results_with(
        &start(&set, &["--load", "--trace", path.to_str().expect("plain")]).output(),
        1,
    );
    replays(&path);
    check::holds(&trace(&path), &own, check::lateness(&own));
    let number = |key: &str| {
        task(&results, "late")[key].as_u64().unwrap_or_else(|| panic!("no {key}: {results:#}"))
    };
    assert!(number("periods") >= 38, "{results:#}");
    Some(number("received_ns") / number("periods"))
}

/// Its waits are ignored while it is behind: it continues with its next job at once, and uses all
/// of its budgets.
fn catches_up(policy: &str) {
    let Some(received) = received_when_late(policy, "carry") else { return };
    // The first overrun leaves no late wait, for it had not waited before.
    assert!((1_960_000..=2_003_000).contains(&received), "{received} ns");
}

/// Each wait is for the next release: half of every second budget is not used.
fn skips(policy: &str) {
    let Some(received) = received_when_late(policy, "skip") else { return };
    assert!((1_480_000..=1_520_000).contains(&received), "{received} ns");
}

/// It continues after its budget, and waits for its release there as anywhere: three of ten
/// milliseconds in all.
fn waits_in_the_background(policy: &str) {
    let Some(_machine) = Machine::with_sched_ext() else { return };
    let scratch = Scratch::new();
    let path = scratch.path("trace");
    let set = scratch.file("set.toml", &set(policy, "background", THREE_MS));
    let own = KernelsOwn::watch();
    let run = start(&set, &["--trace", path.to_str().expect("plain")]);
    let tasks = run.tasks_after(1, 20_000_000);
    let before = executed_by(&tasks);
    std::thread::sleep(std::time::Duration::from_millis(200));
    let meanwhile = executed_by(&tasks) - before;
    results_with(&run.output(), 1);
    replays(&path);
    check::holds(&trace(&path), &own, check::lateness(&own));
    assert!((56_000_000..=64_000_000).contains(&meanwhile), "{meanwhile} ns of 60 ms");
}

#[test]
fn reservations_late_waits_are_ignored() {
    catches_up("edf");
}

#[test]
fn a_policys_late_waits_are_ignored() {
    catches_up("imprecise");
}

#[test]
fn reservations_late_waits_that_are_to_be_skipped_wait() {
    skips("edf");
}

#[test]
fn a_policys_late_waits_that_are_to_be_skipped_wait() {
    skips("imprecise");
}

#[test]
fn a_reservations_task_in_the_background_waits_for_its_release() {
    waits_in_the_background("edf");
}

#[test]
fn a_policys_task_in_the_background_waits_for_its_release() {
    waits_in_the_background("imprecise");
}

/// An ordinary program, beside a load: its budgets, and about half of what is left.
#[test]
fn a_policys_task_that_overran_continues_in_the_background() {
    let Some(_machine) = Machine::with_sched_ext() else { return };
    let scratch = Scratch::new();
    let path = scratch.path("trace");
    let command = format!("command = {}", list(&adversarial("spin")));
    let set =
        scratch.file("set.toml", &set("imprecise", "background", &command).replace("400ms", "1s"));
    let _load = companion("spin");
    let own = KernelsOwn::watch();
    let run = start(&set, &["--trace", path.to_str().expect("plain")]);
    let tasks = run.tasks_after(1, 20_000_000);
    let before = executed_by(&tasks);
    std::thread::sleep(std::time::Duration::from_millis(200));
    let meanwhile = executed_by(&tasks) - before;
    assert!(matches!(run.output().status.code(), Some(0 | 1)));
    replays(&path);
    check::holds(&trace(&path), &own, check::lateness(&own));
    // 20 % by budgets. Of the rest, 8 ms at a time, about half: turns are of 3 ms and end at the
    // tick, of 4 ms.
    assert!((93_000_000..=147_000_000).contains(&meanwhile), "{meanwhile} ns of 120 ms");
}
