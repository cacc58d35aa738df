//! The sched_ext slice of a job's thread is finite: where the dispatcher is not called in time, the
//! kernel's tick ends the slice and has it called.

use std::process::Command;
use std::time::Duration;

use crate::budgets::TWO;
use crate::check;
use crate::kernels_own::KernelsOwn;
use crate::machine::Machine;
use crate::punctual::{
    adversarial, keeps_its_budget, list, replays, results, start, task, trace, words_of, Scratch,
    PUNCTUAL,
};

/// Of Debian's kernels (CONFIG_HZ=250), ns.
const TICK: u64 = 4_000_000;

/// A timer process that is stopped for a while is one that cannot be signalled.
#[test]
fn a_stopped_timer_process_costs_a_tick_at_most() {
    let Some(_machine) = crate::timer::machine() else { return };
    let scratch = Scratch::new();
    let path = scratch.path("trace");
    let own = KernelsOwn::watch();
    let run = crate::timer::start(
        &scratch,
        &["--duration", "1s", "--trace", path.to_str().expect("plain")],
    );
    let timer = crate::timer::timer_process_of(&run);
    // After 100 ms without its timer process the scheduler ends itself: this thread must not wait
    // for the CPU.
    crate::timer::with_priority(|| {
        for _ in 0..3 {
            crate::timer::send(timer, libc::SIGSTOP);
            std::thread::sleep(Duration::from_millis(50));
            crate::timer::send(timer, libc::SIGCONT);
            std::thread::sleep(Duration::from_millis(20));
        }
    });
    let output = run.output();
    assert!(matches!(output.status.code(), Some(0 | 1)), "{}", words_of(&output));
    check::holds(&trace(&path), &own, TICK + check::lateness(&own));
    replays(&path);
}

/// Of kernels that arm a timer later, and may have no memory for that.
#[test]
fn a_timer_that_cannot_be_armed_at_times_is_armed_again() {
    if crate::machine::preempt_rt() {
        eprintln!("not run: timers are processes here");
        return;
    }
    let Some(_machine) = Machine::with_sched_ext() else { return };
    let scratch = Scratch::new();
    let (set, path) = (scratch.file("two.toml", TWO), scratch.path("trace"));
    let own = KernelsOwn::watch();
    let mut command = Command::new(&*PUNCTUAL);
    command
        .args(["run", "--host", "kernel", "--json", "--overload", "--duration", "500ms", "--trace"])
        .arg(&path);
    // A prime, so that it meets all kinds of event.
    let output =
        command.arg(set).env("PUNCTUAL_KERNEL_ARM_FAILS", "7").output().expect("it was built");
    let results = results(&output);
    keeps_its_budget(task(&results, "spinning"), check::precision(&own));
    assert!(words_of(&output).contains("to arm a timer"), "{}", words_of(&output));
    check::holds(&trace(&path), &own, check::lateness(&own));
    replays(&path);
}

/// Nothing else runs: it wakes on an idle CPU, in mid-period, and begins on behalf of the idle
/// thread. With PREEMPT_RT the kernel then refuses to signal the timer process, which sleeps until
/// the next release, until it is asked once more.
#[test]
fn a_job_that_wakes_on_an_idle_cpu_keeps_its_budget() {
    let Some(_machine) = Machine::with_sched_ext() else { return };
    let scratch = Scratch::new();
    let text = format!(
        "cpu = 0\npolicy = \"edf\"\nduration = \"1s\"\n\
         [[task]]\nname = \"sleeper\"\nperiod = \"100ms\"\nbudget = \"20ms\"\ncommand = {}\n",
        list(&adversarial("sleep-spin"))
    );
    let path = scratch.path("trace");
    let own = KernelsOwn::watch();
    let output =
        start(&scratch.file("set.toml", &text), &["--trace", path.to_str().expect("plain")])
            .output();
    assert!(matches!(output.status.code(), Some(0 | 1)), "{}", words_of(&output));
    let seen = check::holds(&trace(&path), &own, check::lateness(&own));
    // It wanted more than its budget in each of ten periods; a wake-up may cut it, to no less than
    // a half.
    assert!(seen[&0].executed >= 100_000_000, "{} ns", seen[&0].executed);
    replays(&path);
}
