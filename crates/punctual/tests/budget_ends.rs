//! How a dispatcher finds the ends of budgets: by its own timer, and by one that tasks move which
//! wait for their releases in most periods long before their budgets end.

mod common;

use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

use common::{execute, executed, start, start_with, turn, MS};
use punctual::Punctual;
use punctual_test_support::{execute_briefly, judge_timing, Scratch, LIVENESS};

/// What a budget is exceeded by at most, once: the time of an event on the slowest of the kernels.
const LATE: Duration = Duration::from_micros(200);

/// Executes without a wait for so long, and returns the longest execution without a gap of more
/// than 0.5 ms.
fn longest_burst(time: Duration) -> Duration {
    let end = Instant::now() + time;
    let (mut begun, mut longest) = (executed(), Duration::ZERO);
    let (mut seen, mut last) = (Instant::now(), begun);
    while Instant::now() < end {
        execute_briefly();
        let (now, clock) = (Instant::now(), executed());
        if now - seen > clock - last + MS / 2 {
            longest = longest.max(last - begun);
            begun = clock;
        }
        (seen, last) = (now, clock);
    }
    longest
}

#[test]
fn small_budgets_are_used_up_by_tasks_that_never_wait() {
    const TIME: Duration = Duration::from_millis(500);
    let _turn = turn();
    let scratch = Scratch::new();
    let tasks = [1u32, 2, 4].map(|period| {
        let budget = period * 250;
        format!(
            "[[task]]\nname = \"{period}\"\nperiod = \"{period}ms\"\nbudget = \"{budget}us\"\n\
             work = {{ spin = \"forever\" }}\n"
        )
    });
    let file = scratch.file("set.toml", &format!("policy = \"rm\"\n{}", tasks.concat()));
    let set = || Punctual::from_file(&file).expect("it is in order").duration(TIME);
    let Some(running) = start_with(set) else { return };
    assert!(running.wait_timeout(LIVENESS), "it ends");
    let outcome = running.stop().expect("it stops");
    let tasks = outcome.results.tasks.iter();
    let received: Vec<u64> =
        tasks.map(|t| t.received_ns * 100 / (t.periods * t.budget_ns)).collect();
    // A dispatcher that kept the CPU from them until their budgets ended would leave them little.
    assert!(received.iter().all(|percent| *percent > 75), "{received:?}");
    judge_timing(|| assert!(received.iter().all(|percent| *percent >= 99), "{received:?}"));
}

#[test]
fn a_budget_holds_when_a_task_no_longer_waits() {
    let _turn = turn();
    let (answer, answered) = channel();
    let running = start(|set| {
        let answer = answer.clone();
        set.task("calm").period(10 * MS).budget(2 * MS).spawn(move |task| {
            for _ in 0..50 {
                let Some(_) = task.wait_period() else { return };
                execute(MS / 10);
            }
            let Some(_) = task.wait_period() else { return };
            answer.send(longest_burst(55 * MS)).expect("the receiver exists");
        })
    });
    let Some(running) = running else { return };
    assert!(running.wait_timeout(LIVENESS), "it ends");
    running.stop().expect("it stops");
    let longest = answered.recv().expect("it answered");
    judge_timing(|| {
        assert!(longest <= 2 * MS + LATE, "{longest:?}");
        assert!(longest >= 2 * MS - LATE, "{longest:?}");
    });
}

#[test]
fn a_budget_holds_beside_tasks_that_move_the_timer() {
    const PERIODS: u32 = 20;
    let _turn = turn();
    let (answer, answered) = channel();
    let running = start(|set| {
        let answer = answer.clone();
        let set = set.task("short").period(4 * MS).budget(MS).spawn(|task| {
            while let Some(release) = task.wait_period() {
                execute(MS * (release.number % 4) as u32 / 10);
            }
        });
        let set = set.task("other").period(6 * MS).budget(MS).spawn(|task| {
            while let Some(release) = task.wait_period() {
                execute(MS * (release.number % 5) as u32 / 10);
            }
        });
        set.task("runs away").period(40 * MS).budget(10 * MS).spawn(move |task| {
            let Some(_) = task.wait_period() else { return };
            let (end, begun) = (Instant::now() + PERIODS * 40 * MS - MS, executed());
            while Instant::now() < end {
                execute_briefly();
            }
            answer.send(executed() - begun).expect("the receiver exists");
        })
    });
    let Some(running) = running else { return };
    let time = answered.recv_timeout(LIVENESS).expect("it answers");
    running.stop().expect("it stops");
    // What one period exceeds its budget by, the next one has less.
    judge_timing(|| {
        assert!(time <= PERIODS * 10 * MS + LATE, "{time:?}");
        assert!(time >= PERIODS * 10 * MS - LATE, "{time:?}");
    });
}
