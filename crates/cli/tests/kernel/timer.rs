//! Where the kernel has no timer for BPF programs (PREEMPT_RT), a process wakes the dispatcher. It
//! is forced here, so that 7.3 without PREEMPT_RT shows it too.

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use punctual_test_support::judge_timing;
use serde_json::Value;

use crate::budgets::TWO;
use crate::check;
use crate::kernels_own::KernelsOwn;
use crate::machine::{
    children, executed_by, is_dead, name, pids, preempt_rt, scheduler_becomes, until, Machine,
};
use crate::punctual::{
    keeps_its_budget, replays, results, says, task, words_of, Running, Scratch, PUNCTUAL, TIMER,
};

const ENDED: i32 = 5;
/// For so long, and so often, a SCHED_FIFO program occupies the CPU.
const OCCUPIED: Duration = Duration::from_millis(10);
const ROUNDS: u64 = 24;
/// Wake-ups of the timer process meanwhile: eight until its sleep is 1 ms long, one for each
/// millisecond, and one for each of two releases.
const WAKES: u64 = 8 + 10 + 2;
/// So long the exit of the process took (7.3.4, PREEMPT_RT, counted clock).
const EXIT: Duration = Duration::from_millis(2);
/// From one wake-up of a SCHED_FIFO thread to the next.
const INTERVAL: Duration = Duration::from_micros(200);
/// One of them takes some 11 us (counted clock), ns.
const WAKE: u64 = 15_000;
/// Of a budget of 1 ms, the tick at its end, ppm.
const TICK: u64 = 7_000;
/// What the kernel says of a scheduler that ended itself.
pub const BY_ITSELF: &str = "unregistered from BPF";

/// Where the scheduler loads without a timer: up to 6.18 the verifier counts the timer's callback
/// as called, used or not, and finds the chain too long.
pub fn machine() -> Option<Machine> {
    let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    if release.starts_with("6.") {
        eprintln!("not run: Linux {}", release.trim());
        return None;
    }
    Machine::with_sched_ext()
}

/// `TWO`, with a timer process whatever kernel this is.
pub fn start(scratch: &Scratch, more: &[&str]) -> Running {
    start_set(scratch, TWO, more)
}

/// `TWO` with another period of the task that is judged. Its 2 ms are half of the kernel's tick
/// (4 ms with HZ=250): in a boot in which one budget's end meets the tick, that of each second
/// period does. Here the end comes at another one of 400 phases in each of 400 periods.
fn out_of_step() -> String {
    TWO.replace("\"2ms\"", "\"2110us\"")
}

fn start_set(scratch: &Scratch, set: &str, more: &[&str]) -> Running {
    let mut command = Command::new(&*PUNCTUAL);
    command.args(["run", "--host", "kernel", "--json", "--overload"]).args(more);
    command.arg(scratch.file("set.toml", set)).env("PUNCTUAL_KERNEL_TIMER", "process");
    let child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
    Running::of(child.expect("it was built"))
}

/// Its timer process, when the tasks have executed for a while.
pub fn timer_process_of(run: &Running) -> u32 {
    scheduler_becomes("enabled");
    let processes = || -> Vec<u32> {
        children(run.id()).into_iter().filter(|&pid| name(pid) == TIMER).collect()
    };
    until("its timer process is there, and tasks execute", || {
        processes().len() == 1 && executed_by(&children(run.id())) >= 100_000_000
    });
    processes()[0]
}

/// A run has one if it has commands, or where the kernel's threads of RCU are real-time.
pub fn guardian_of(run: &Running) -> Option<u32> {
    children(run.id()).into_iter().find(|&pid| name(pid) == "punctual-guard")
}

/// Calls `act` with a real-time priority above all sched_ext tasks, and below the timer process.
pub fn with_priority(act: impl FnOnce()) {
    let set = |policy, sched_priority| {
        // SAFETY: a valid pointer; of this thread alone.
        unsafe { libc::sched_setscheduler(0, policy, &libc::sched_param { sched_priority }) }
    };
    assert_eq!(set(libc::SCHED_FIFO, 50), 0);
    act();
    assert_eq!(set(libc::SCHED_OTHER, 0), 0);
}

pub fn send(pid: u32, signal: i32) {
    // SAFETY: a system call without memory.
    assert_eq!(unsafe { libc::kill(pid as i32, signal) }, 0);
}

/// The tick at a budget's end delays the stop, and takes up to 6.7 us (7.3.4 with PREEMPT_RT,
/// counted clock, 40 boots). It meets the ends of few periods of a task that is out of step with
/// it.
fn keeps_its_budget_but_for_the_tick(results: &Value, own: &KernelsOwn) {
    let spinning = task(results, "spinning");
    keeps_its_budget(spinning, check::precision(own));
    for (key, most) in [("median_ppm", 1_000), ("p1_ppm", TICK), ("p99_ppm", TICK)] {
        let received = spinning["budget_received"][key].as_u64().expect("a figure");
        assert!(received.abs_diff(1_000_000) <= most, "{spinning:#}");
    }
}

#[test]
fn with_a_timer_process_budgets_are_kept_and_the_trace_replays() {
    let Some(_machine) = machine() else { return };
    let (scratch, own) = (Scratch::new(), KernelsOwn::watch());
    let trace = scratch.path("trace");
    let run = start_set(
        &scratch,
        &out_of_step(),
        &["--load", "--duration", "600ms", "--trace", trace.to_str().expect("a plain path")],
    );
    let timer = timer_process_of(&run);
    // SAFETY: a system call without memory.
    assert_eq!(unsafe { libc::sched_getscheduler(timer as i32) }, libc::SCHED_FIFO);
    let results = results(&run.output());
    keeps_its_budget_but_for_the_tick(&results, &own);
    assert_eq!(task(&results, "periodic")["misses"], 0);
    assert!(is_dead(timer));
    replays(&trace);
}

#[test]
fn reservations_continue_by_a_timer_process_while_the_loader_is_stopped() {
    let Some(_machine) = machine() else { return };
    let (scratch, own) = (Scratch::new(), KernelsOwn::watch());
    let run = start_set(&scratch, &out_of_step(), &["--duration", "1s"]);
    let timer = timer_process_of(&run);
    let tasks: Vec<u32> = children(run.id()).into_iter().filter(|&pid| pid != timer).collect();
    run.send(libc::SIGSTOP);
    let before = executed_by(&tasks);
    std::thread::sleep(Duration::from_millis(500));
    let meanwhile = executed_by(&tasks) - before;
    run.send(libc::SIGCONT);
    // 237 ms and 60 ms.
    assert!(
        (292_000_000..=307_000_000).contains(&meanwhile),
        "{meanwhile} ns by the kernel's count"
    );
    keeps_its_budget_but_for_the_tick(&results(&run.output()), &own);
}

#[test]
fn a_killed_loader_leaves_no_timer_process() {
    let Some(_machine) = machine() else { return };
    let scratch = Scratch::new();
    let run = start(&scratch, &[]);
    let timer = timer_process_of(&run);
    run.send(libc::SIGKILL);
    assert_eq!(run.output().status.code(), None, "it was killed");
    scheduler_becomes("disabled");
    until("the timer process is dead", || is_dead(timer));
}

#[test]
fn a_killed_or_stopped_timer_process_ends_the_scheduler_with_a_word() {
    let Some(mut machine) = machine() else { return };
    for signal in [libc::SIGKILL, libc::SIGSTOP] {
        machine.expects(BY_ITSELF);
        let scratch = Scratch::new();
        let run = start(&scratch, &["--duration", "120s"]);
        send(timer_process_of(&run), signal);
        says(&run.output(), ENDED, &["timer process of CPU 0", "ended, stopped", "normal class"]);
    }
}

/// A process that wakes a real-time process all the time makes it consume the CPU.
#[test]
fn a_timer_process_that_is_woken_all_the_time_ends_the_scheduler_with_a_word() {
    let Some(mut machine) = machine() else { return };
    machine.expects(BY_ITSELF);
    let scratch = Scratch::new();
    let run = start(&scratch, &["--duration", "120s"]);
    let timer = timer_process_of(&run);
    // A real-time process may not use half of a CPU that has other work.
    with_priority(|| {
        for _ in 0..2_000 {
            if is_dead(timer) {
                break;
            }
            for _ in 0..100 {
                // SAFETY: a system call without memory. A zombie at most: the loader waits for it.
                unsafe { libc::kill(timer as i32, libc::SIGUSR1) };
            }
        }
    });
    says(&run.output(), ENDED, &["timer process of CPU 0", "half of the CPU", "normal class"]);
}

/// A job whose budget ends long before the next release.
const SHORT: &str = r#"
cpu = 0
policy = "edf"
[[task]]
name = "short"
period = "10ms"
budget = "50us"
work = { spin = "forever" }
[[task]]
name = "long"
period = "20ms"
budget = "10ms"
work = { spin = "forever" }
"#;

/// The process wakes for the end of a job, which has not begun yet, and takes the CPU from the
/// SCHED_FIFO program each time.
#[test]
fn a_timer_process_sleeps_twice_as_long_each_time_while_a_fifo_program_delays_a_job() {
    let Some(_machine) = machine() else { return };
    let scratch = Scratch::new();
    let run = start_set(&scratch, SHORT, &["--duration", "1s"]);
    let timer = timer_process_of(&run);
    let mut taken = Vec::new();
    with_priority(|| {
        // Begins at all phases of the period.
        for round in 0..ROUNDS {
            std::thread::sleep(Duration::from_micros(10_000 + 700 * round));
            let (began, before) = (Instant::now(), executed_by(&[timer]));
            while began.elapsed() < OCCUPIED {}
            taken.push(executed_by(&[timer]) - before);
        }
    });
    let output = run.output();
    assert!(matches!(output.status.code(), Some(0 | 1)), "{}", words_of(&output));
    eprintln!("the timer process executed {taken:?} ns");
    judge_timing(|| {
        let most = taken.iter().max().copied().unwrap_or_default();
        assert!(most <= WAKES * WAKE, "{taken:?} ns of {OCCUPIED:?}");
    });
}

/// The exit of a process takes time for each page that it has.
#[test]
fn a_timer_process_ends_as_an_ordinary_process() {
    let Some(mut machine) = machine() else { return };
    machine.may_end_itself();
    for end in [libc::SIGINT, libc::SIGKILL] {
        let scratch = Scratch::new();
        let run = start(&scratch, &[]);
        let timer = timer_process_of(&run);
        let mut worst = Duration::ZERO;
        // It would delay this thread, too, by up to 8 ms (docs/process.md).
        let guardian = guardian_of(&run);
        let stopped = guardian.filter(|_| end == libc::SIGKILL);
        stopped.into_iter().for_each(|guardian| send(guardian, libc::SIGSTOP));
        run.send(end);
        with_priority(|| {
            while !is_dead(timer) {
                let begun = Instant::now();
                std::thread::sleep(INTERVAL);
                worst = worst.max(begun.elapsed() - INTERVAL);
            }
        });
        run.output();
        eprintln!("signal {end}: woken late by {worst:?}");
        judge_timing(|| assert!(worst < EXIT / 2, "{worst:?}"));
        scheduler_becomes("disabled");
        stopped.into_iter().for_each(|guardian| send(guardian, libc::SIGCONT));
        until("the guardian is done", || guardian.is_none_or(is_dead));
    }
}

/// As a real-time thread it delays jobs by up to milliseconds beside programs that fork.
#[test]
fn the_kernels_thread_of_rcu_is_ordinary_during_a_run_and_real_time_after_any_end() {
    let Some(_machine) = machine() else { return };
    if !preempt_rt() {
        eprintln!("not run: RCU has no real-time thread here");
        return;
    }
    let rcu = pids().into_iter().find(|&pid| name(pid) == "rcuc/0").expect("it has one");
    // SAFETY: a system call without memory.
    let policy = || unsafe { libc::sched_getscheduler(rcu as i32) };
    for end in [libc::SIGINT, libc::SIGKILL] {
        assert_eq!(policy(), libc::SCHED_FIFO);
        let scratch = Scratch::new();
        let run = start(&scratch, &[]);
        timer_process_of(&run);
        assert_eq!(policy(), libc::SCHED_OTHER);
        run.send(end);
        run.output();
        until("it is real-time again", || policy() == libc::SCHED_FIFO);
        scheduler_becomes("disabled");
    }
}
