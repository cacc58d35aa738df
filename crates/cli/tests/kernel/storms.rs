//! Beside storms of forks, which keep the kernel itself busy: with soft interrupts above all, which no scheduler can preempt
//! and which the kernel has whom they interrupt pay. An alarm that comes in the midst of one is late by it.

use std::path::PathBuf;

use serde_json::Value;

use crate::budgets::TWO;
use crate::machine::{executed_by, family, Machine};
use crate::punctual::{companion, results, start, task, Scratch};

/// A period that drifts by 5 us a time against the kernel's tick, at which soft interrupts begin: alarms come at all instants.
const DRIFTING: &str = r#"
cpu = 0
policy = "edf"
[[task]]
name = "spinning"
period = "1005us"
budget = "400us"
work = { spin = "forever" }
"#;

/// Of the interrupt that began them, of an alarm, and of the switch after it, ns: beyond the soft interrupts that it waits for.
const SWITCH: u64 = 15_000;
/// Between soft interrupts of which one goes on from the other, s: in one round, or the rest of it in the kernel's thread.
const GAP: f64 = 12e-6;

/// A record of all soft interrupts, in an instance of the kernel's tracer.
struct SoftInterrupts(PathBuf);

impl SoftInterrupts {
    fn watch() -> SoftInterrupts {
        let instance = PathBuf::from("/sys/kernel/tracing/instances/punctual-test");
        std::fs::create_dir(&instance).expect("tracefs is mounted");
        let put = |file: &str, text: &str| std::fs::write(instance.join(file), text).expect("tracefs takes it");
        put("buffer_size_kb", "8192");
        put("trace_clock", "mono");
        put("events/irq/softirq_entry/enable", "1");
        put("events/irq/softirq_exit/enable", "1");
        SoftInterrupts(instance)
    }

    /// The longest of them without a pause, ns, to a microsecond.
    fn longest(self) -> u64 {
        let text = std::fs::read_to_string(self.0.join("trace")).expect("what was traced");
        let (mut began, mut ended, mut longest, mut seen) = (None, 0.0, 0, 0);
        for line in text.lines() {
            let Some((before, what)) = line.split_once(": softirq_") else { continue };
            let at: f64 = before.rsplit(' ').next().and_then(|at| at.parse().ok()).expect("seconds");
            if what.starts_with("entry") {
                began = began.filter(|_| at - ended <= GAP).or(Some(at));
            } else if let Some(began) = began {
                longest = longest.max(((at - began) * 1e9) as u64);
                (ended, seen) = (at, seen + 1);
            }
        }
        assert!(seen > 0, "no soft interrupt was seen");
        longest
    }
}

impl Drop for SoftInterrupts {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir(&self.0);
    }
}

/// No miss, the budget in the long run to a ten-thousandth, and in no period off by more than what delayed its end.
fn keeps_its_budget_but_for(longest: u64, task: &Value) {
    assert_eq!(task["misses"], 0, "{task:#}");
    let number = |value: &Value| value.as_u64().unwrap_or_else(|| panic!("no figure: {task:#}"));
    assert!(number(&task["long_run_ppm"]).abs_diff(1_000_000) <= 100, "{task:#}");
    let off =
        number(&task["budget_received"]["worst_ppm"]).abs_diff(1_000_000) * number(&task["budget_ns"]) / 1_000_000;
    assert!(off <= longest + SWITCH, "{off} ns off, and the longest soft interrupt took {longest} ns: {task:#}");
}

/// The set beside a storm of somebody else's.
fn beside_a_storm(set: &str, duration: &str) {
    let Some(_machine) = Machine::with_sched_ext() else { return };
    let scratch = Scratch::new();
    let storm = companion("fork-storm");
    // Or the loader waits for forty at each turn while it loads.
    // SAFETY: a system call without memory.
    assert_eq!(unsafe { libc::setpriority(libc::PRIO_PGRP, storm.id(), 19) }, 0);
    let interrupts = SoftInterrupts::watch();
    let run = start(&scratch.file("set.toml", set), &["--duration", duration]).output();
    let longest = interrupts.longest();
    keeps_its_budget_but_for(longest, task(&results(&run), "spinning"));
    assert!(executed_by(&family(storm.id())) > 0);
}

#[test]
fn budgets_are_kept_beside_a_fork_storm_of_somebody_else() {
    beside_a_storm(TWO, "500ms");
}

#[test]
fn an_alarm_in_the_midst_of_a_soft_interrupt_is_not_put_off_beyond_it() {
    beside_a_storm(DRIFTING, "1200ms");
}
