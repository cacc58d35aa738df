//! Beside storms of forks, which keep the kernel itself busy: with soft interrupts above all, which
//! no scheduler can preempt and which the kernel charges to the interrupted task. A timer that
//! expires in the midst of one is late by it.

use crate::budgets::TWO;
use crate::check;
use crate::kernels_own::KernelsOwn;
use crate::machine::{executed_by, family, Machine};
use crate::punctual::{companion, keeps_its_budget, results, start, task, Scratch};

/// A period that drifts by 5 us a time against the kernel's tick, at which soft interrupts begin:
/// timers expire at all instants.
const DRIFTING: &str = r#"
cpu = 0
policy = "edf"
[[task]]
name = "spinning"
period = "1005us"
budget = "400us"
work = { spin = "forever" }
"#;

/// The first task leaves most of its budget. Then the second one begins, whose budget ends long
/// before the dispatcher's next event: under PREEMPT_RT the timer process is signalled.
const EARLIER: &str = r#"
cpu = 0
policy = "edf"
[[task]]
name = "first"
period = "10050us"
budget = "6ms"
deadline = "9ms"
work = { spin = "500us" }
[[task]]
name = "spinning"
period = "10050us"
budget = "1ms"
work = { spin = "forever" }
"#;

/// The set beside a storm of another program: the task that spins has its budget in each period. A
/// failure brings back what the run and the kernel's tracer recorded.
fn beside_a_storm(set: &str, duration: &str) {
    let Some(_machine) = Machine::with_sched_ext() else { return };
    let scratch = Scratch::new();
    let storm = companion("fork-storm");
    // Or the loader waits for forty at each turn while it loads.
    // SAFETY: a system call without memory.
    assert_eq!(unsafe { libc::setpriority(libc::PRIO_PGRP, storm.id(), 19) }, 0);
    let (own, trace) = (KernelsOwn::watch(), scratch.path("trace"));
    let words = ["--duration", duration, "--trace", trace.to_str().expect("a plain path")];
    let output = start(&scratch.file("set.toml", set), &words).output();
    keeps_its_budget(task(&results(&output), "spinning"), check::precision(&own));
    assert!(executed_by(&family(storm.id())) > 0);
}

#[test]
fn budgets_are_kept_beside_a_fork_storm_of_another_program() {
    beside_a_storm(TWO, "500ms");
}

#[test]
fn a_timer_that_expires_in_the_midst_of_a_soft_interrupt_is_not_put_off_beyond_it() {
    beside_a_storm(DRIFTING, "1200ms");
}

/// A program that exits leaves the kernel work for the next tick. Under PREEMPT_RT a signal that a
/// BPF program sends would wait behind it.
#[test]
fn a_budget_that_ends_before_the_next_event_is_kept_beside_programs_that_exit() {
    beside_a_storm(EARLIER, "600ms");
}
