//! The overrun policies with a real thread: RTAI's Fig. 2(a), ten times as slow, so that noise does
//! not matter.
//!
//! W = 20 ms, P = 50 ms; execution 29, 9, 9 ms (the figure's 3, 1, 1 units, a little less, because
//! 3 + 1 units are exactly two budgets). 9 ms run over into the next period.

mod common;

use std::sync::atomic::{AtomicI32, AtomicU64, Ordering::SeqCst};
use std::sync::mpsc::channel;
use std::time::Duration;

use common::{class, execute, executed, start, turn, MS};
use punctual::{Overrun, Task, Time};
use punctual_test_support::{judge_timing, LIVENESS};

const PERIOD: Duration = Duration::from_millis(50);
const BUDGET: Duration = Duration::from_millis(20);
const LONG: Duration = Duration::from_millis(29);
const SHORT: Duration = Duration::from_millis(9);

/// Runs `scenario` in a task, from the second release on (waits count from the first call), and
/// judges its answer as timing: a machine that takes the CPU for a whole period changes it.
fn run<T: Send + 'static + std::fmt::Debug>(
    overrun: Overrun,
    scenario: impl Fn(&Task<'_>, u64) -> T + Send + Sync + Copy + 'static,
    good: impl Fn(&T) -> bool,
) {
    let _turn = turn();
    let (answer, answered) = channel();
    let running = start(|set| {
        let answer = answer.clone();
        set.task("fig2a").period(PERIOD).budget(BUDGET).overrun(overrun).spawn(move |task| {
            let Some(first) = task.wait_period() else { return };
            answer.send(scenario(task, first.number)).expect("the receiver exists");
        })
    });
    let Some(running) = running else { return };
    assert!(running.wait_timeout(LIVENESS), "it ends");
    let outcome = running.stop().expect("it stops");
    assert!(outcome.problems.is_empty(), "{:?}", outcome.problems);
    let got = answered.recv().expect("it answered");
    judge_timing(|| assert!(good(&got), "{overrun:?}: {got:?}"));
}

/// For each of three waits, relative to the first release: the release before it, the release that
/// it returned, and how many were lost.
fn waits(task: &Task<'_>, base: u64) -> Vec<(u64, u64, u32)> {
    [LONG, SHORT, SHORT]
        .map(|time| {
            execute(time);
            let before = task.current().number - base;
            let r = task.wait_period().expect("it runs");
            (before, r.number - base, r.lost)
        })
        .to_vec()
}

#[test]
fn carry_ignores_the_wait_that_was_due_in_period_0() {
    // The first wait comes in period 1 and returns there; the task has caught up when it waits for
    // period 2.
    run(Overrun::Carry, waits, |got| *got == [(1, 1, 0), (1, 2, 0), (2, 3, 0)]);
}

#[test]
fn skip_returns_at_the_next_release_and_says_how_many_were_lost() {
    run(Overrun::Skip, waits, |got| *got == [(1, 2, 1), (2, 3, 0), (3, 4, 0)]);
}

#[test]
fn background_continues_in_the_ordinary_class_until_the_next_release() {
    let scenario = |task: &Task<'_>, _| {
        let (mut at_first, mut ordinary) = (class(), Duration::ZERO);
        let end = executed() + LONG;
        while executed() < end {
            // Read once: it changes at any instant.
            let class = class();
            if class == libc::SCHED_OTHER {
                execute(MS / 10);
                ordinary += MS / 10;
            } else if ordinary.is_zero() {
                at_first = class;
            }
        }
        while task.wait_period().is_some_and(|r| r.release.elapsed() > PERIOD) {}
        (at_first, ordinary > MS, class())
    };
    run(Overrun::Background, scenario, |got| *got == (libc::SCHED_FIFO, true, libc::SCHED_FIFO));
}

static HANDLED: AtomicI32 = AtomicI32::new(0);
static HANDLED_BY: AtomicI32 = AtomicI32::new(0);
static HANDLED_AT: AtomicU64 = AtomicU64::new(0);

extern "C" fn overran(_: i32) {
    HANDLED.fetch_add(1, SeqCst);
    // SAFETY: a system call without arguments.
    HANDLED_BY.store(unsafe { libc::gettid() }, SeqCst);
    HANDLED_AT.store(Time::now().as_nanos(), SeqCst);
}

#[test]
fn signal_calls_the_handler_on_the_next_budget() {
    // SAFETY: the handler stores to atomics and makes two system calls.
    unsafe { libc::signal(libc::SIGXCPU, overran as *const () as libc::sighandler_t) };
    let scenario = |task: &Task<'_>, _| {
        HANDLED.store(0, SeqCst);
        let next = task.release() + PERIOD;
        execute(LONG);
        let count = HANDLED.load(SeqCst);
        // SAFETY: a system call without arguments.
        let mine = HANDLED_BY.load(SeqCst) == unsafe { libc::gettid() };
        (count, mine, Time::from_nanos(HANDLED_AT.load(SeqCst)) >= next)
    };
    run(Overrun::Signal, scenario, |got| *got == (1, true, true));
}

#[test]
fn the_remaining_budget_falls_with_execution_and_never_exceeds_the_budget_by_much() {
    let scenario = |task: &Task<'_>, _| {
        let mut seen = vec![task.remaining_budget()];
        for _ in 0..5 {
            execute(2 * MS);
            seen.push(task.remaining_budget());
        }
        let number = task.current().number;
        // Sleeping uses none of it.
        std::thread::sleep(5 * MS);
        let slept = seen[5].saturating_sub(task.remaining_budget());
        (seen, slept, task.current().number == number)
    };
    run(Overrun::Carry, scenario, |(seen, slept, same)| {
        let falls = seen.windows(2).all(|w| w[0] >= w[1] + 2 * MS && w[0] <= w[1] + 4 * MS);
        // The wake-up rule may cut the remaining budget to the bandwidth. That is neither
        // execution nor reported.
        falls && seen[0] <= BUDGET + MS && *slept < MS && *same
    });
}
