//! Policies that are swapped while the set runs inside the kernel.

use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::check;
use crate::kernels_own::KernelsOwn;
use crate::machine::{scheduler_becomes, until, Machine};
use crate::punctual::{replays, results_with, run, task, trace, Scratch, PUNCTUAL};

/// 50 % of the CPU: two tasks at the top, one in a group.
fn set(top: &str, media: &str) -> String {
    let task = |name: &str, period: u64, budget: u64, more: &str| {
        format!(
            "[[task]]\nname = \"{name}\"\nperiod = \"{period}ms\"\nbudget = \"{budget}ms\"\n\
             priority = {period}\n{more}work = {{ spin = \"1ms\" }}\n"
        )
    };
    format!(
        "cpu = 0\npolicy = \"{top}\"\n[[group]]\nname = \"media\"\npolicy = \"{media}\"\n\
         period = \"20ms\"\nbudget = \"4ms\"\npriority = 20\nserver = \"deferrable\"\n{}{}{}",
        task("short", 10, 2, ""),
        task("long", 40, 4, "mandatory = \"2ms\"\n"),
        task("video", 40, 4, "group = \"media\"\n"),
    )
}

/// Runs a set under one policy after the other; each answer of `punctual reload`.
fn reloaded(sets: &[(&str, &str)], trace: &Path, scratch: &Scratch) -> (Value, Vec<String>) {
    let file = scratch.file("set.toml", &set(sets[0].0, sets[0].1));
    let path = file.to_str().expect("a plain path");
    let trace = trace.to_str().expect("a plain path");
    let running = run(&["--quiet", "--trace", trace, "--duration", "2s", path]);
    scheduler_becomes("enabled");
    let mut said = Vec::new();
    for (top, media) in &sets[1..] {
        std::thread::sleep(std::time::Duration::from_millis(150));
        scratch.file("set.toml", &set(top, media));
        let pid = running.id().to_string();
        until("it answers", || {
            let output = Command::new(&*PUNCTUAL).args(["reload", &pid]).output();
            let output = output.expect("it was built");
            let text = String::from_utf8_lossy(&output.stdout).into_owned()
                + &String::from_utf8_lossy(&output.stderr);
            let answers = !text.contains("runs no set");
            said.extend(answers.then_some(text));
            answers
        });
    }
    (results_with(&running.output(), 0), said)
}

/// All releases came, one period apart, and met their deadlines.
fn nothing_is_lost(path: &Path, results: &Value, own: &KernelsOwn) {
    let trace = trace(path);
    check::holds(&trace, own, check::lateness(own));
    replays(path);
    for (place, name) in ["short", "long", "video"].into_iter().enumerate() {
        assert_eq!(task(results, name)["misses"], 0, "{name}: {results:#}");
        let periods: Vec<_> = trace.periods().filter(|p| p.task as usize == place).collect();
        let period = task(results, name)["period_ns"].as_u64().expect("a number");
        assert!(periods.len() as u64 + 3 >= 2_000_000_000 / period, "{name}: {}", periods.len());
        for pair in periods.windows(2) {
            assert_eq!(pair[1].number, pair[0].number + 1, "{name}");
            assert_eq!(pair[1].release, pair[0].release + period, "{name}: {pair:?}");
        }
    }
}

#[test]
fn policies_inside_the_kernel_are_swapped_and_others_are_refused() {
    let Some(_machine) = Machine::with_sched_ext() else { return };
    let (scratch, own) = (Scratch::new(), KernelsOwn::watch());
    let path = scratch.path("trace");
    let sets = [("edf", "edf"), ("rm", "fp"), ("imprecise", "fp"), ("td", "edf"), ("edf", "rm")];
    let (results, said) = reloaded(&sets, &path, &scratch);
    assert_eq!(said[0], "Reloaded: policy edf -> rm, group \"media\" edf -> fp.\n");
    assert!(said[1].contains("in user space") && said[1].contains("--host user"), "{}", said[1]);
    assert!(said[2].contains("windows") || said[2].contains("td"), "{}", said[2]);
    assert!(said[3].contains("policy rm -> edf"), "{}", said[3]);
    assert_eq!(results["policy_changes"].as_array().map(Vec::len), Some(4), "{results:#}");
    nothing_is_lost(&path, &results, &own);
    let named = trace(&path).records.iter().filter_map(|r| r.policy_name()).collect::<Vec<_>>();
    assert_eq!(named, ["rm", "fp", "edf", "rm"]);
}

#[test]
fn policies_in_user_space_are_swapped_to_reservations_and_back() {
    let Some(_machine) = Machine::with_sched_ext() else { return };
    let (scratch, own) = (Scratch::new(), KernelsOwn::watch());
    let path = scratch.path("trace");
    let sets = [("imprecise", "edf"), ("edf", "imprecise"), ("dual", "rm"), ("rm", "rm")];
    let (results, said) = reloaded(&sets, &path, &scratch);
    assert!(said.iter().all(|line| line.starts_with("Reloaded: policy ")), "{said:?}");
    assert_eq!(results["policy"], "rm");
    nothing_is_lost(&path, &results, &own);
}
