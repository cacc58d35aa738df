//! Beside storms of forks, which keep the kernel itself busy: with soft interrupts above all, which
//! no scheduler can preempt and which the kernel charges to the interrupted task. A timer that
//! expires in the midst of one is late by it.

use serde_json::Value;

use crate::budgets::TWO;
use crate::check;
use crate::kernels_own::KernelsOwn;
use crate::machine::{executed_by, family, preempt_rt, Machine};
use crate::punctual::{companion, keeps_its_budget, misses_of, results_with, start, task, Scratch};

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

/// The set beside a storm of another program: the task that spins has its budget in each period.
///
/// With PREEMPT_RT the kernel frees in real-time threads (rcuc) what the storm's programs leave. A
/// deadline that is missed because of them is no defect of the host: they executed, by the kernel's
/// tracer, for all of the time that the run's trace does not account for.
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
    assert!(executed_by(&family(storm.id())) > 0);
    let (missed, precision) = (misses_of(&trace), check::precision(&own));
    let results = results_with(&output, i32::from(!missed.is_empty()));
    let spinning = task(&results, "spinning");
    if missed.is_empty() || !preempt_rt() {
        return keeps_its_budget(spinning, precision);
    }
    let figure = |value: &Value, key: &str| value[key].as_u64().expect("a figure");
    for miss in &missed {
        assert_eq!(miss["cause"], "unaccounted", "{miss:#}");
        let window = (figure(miss, "release_ns"), figure(miss, "deadline_ns"));
        let taken = own.real_time_between(window.0, window.1);
        let unknown = figure(miss, "cause_ns").saturating_sub(taken);
        assert!(unknown <= precision, "{taken} ns of it are the kernel's: {miss:#}");
    }
    let (received, assigned) = (figure(spinning, "received_ns"), figure(spinning, "assigned_ns"));
    assert!(received <= assigned + assigned / 10_000 + precision, "{spinning:#}");
}

#[test]
fn budgets_are_kept_beside_a_fork_storm_of_another_program() {
    beside_a_storm(TWO, "500ms");
}

#[test]
fn a_timer_that_expires_in_the_midst_of_a_soft_interrupt_is_not_put_off_beyond_it() {
    beside_a_storm(DRIFTING, "1200ms");
}
