//! Budgets that are too small, and tasks that sleep.

mod common;

use common::{run, set, MS};
use punctual_taskset::{Body, Spin, TaskSet};
use punctual_trace::{JobEnd, NEVER};

/// RTAI paper, Fig. 2(a): W = 2, P = 5, execution 3, 1, 1 (papers' notes: one unit runs over into
/// period 1; the wait that was due in period 0 comes in period 1 and is ignored). The release
/// before them makes it known that the task waits: only then are its waits counted.
fn fig_2a(overrun: &str, others: &[&str]) -> TaskSet {
    let first = format!(
        "period = \"5ms\"; budget = \"2ms\"; overrun = \"{overrun}\"; work = {{ spin = \"1ms\" }}"
    );
    let mut set = set("rm", &[&[first.as_str()][..], others].concat());
    set.tasks[0].body = Body::Spin(Spin::Recorded(vec![MS, 3 * MS, MS, MS, MS]));
    set
}

#[test]
fn rtai_fig_2a_the_rest_runs_in_the_next_period_and_its_late_wait_is_ignored() {
    let seen = run(&fig_2a("carry", &[]), 20 * MS);
    // 3 = 2 in its own period and 1 in the next, where the wait is ignored and the next job follows
    // at once; the last is on time again.
    assert_eq!(seen.in_ms(), [(0, 0, 1), (0, 5, 7), (0, 10, 12), (0, 15, 16)]);
    let ends: Vec<JobEnd> = seen.whole(0, 20 * MS).iter().map(|p| p.end).collect();
    assert_eq!(ends, [JobEnd::Completed, JobEnd::Exhausted, JobEnd::Completed, JobEnd::Completed]);
    let completed: Vec<u64> = seen.whole(0, 20 * MS).iter().map(|p| p.completed).collect();
    assert_eq!(completed, [MS, NEVER, 12 * MS, 16 * MS], "the task has caught up");
}

#[test]
fn under_skip_the_late_wait_returns_at_the_next_release() {
    let seen = run(&fig_2a("skip", &[]), 25 * MS);
    assert_eq!(seen.in_ms(), [(0, 0, 1), (0, 5, 7), (0, 10, 11), (0, 15, 16), (0, 20, 21)]);
}

#[test]
fn under_background_the_rest_runs_in_the_ordinary_class_below_every_job() {
    let below = "period = \"20ms\"; budget = \"5ms\"; work = { spin = \"5ms\" }";
    let seen = run(&fig_2a("background", &[below]), 20 * MS);
    // t1 has a job until 8 ms, so that t0's third unit waits until then.
    assert_eq!(
        seen.in_ms(),
        [(0, 0, 1), (1, 1, 5), (0, 5, 7), (1, 7, 8), (0, 8, 9), (0, 10, 11), (0, 15, 16)]
    );
    assert_eq!(seen.background, MS);
    assert_eq!(seen.whole(0, 20 * MS)[1].received, 2 * MS, "background is no budget");
}

#[test]
fn a_runaway_gets_its_budget_each_period_and_no_more() {
    let tasks = [
        "period = \"4ms\"; budget = \"1ms\"; work = { spin = \"forever\" }",
        "period = \"8ms\"; budget = \"6ms\"; work = { spin = \"6ms\" }",
    ];
    let seen = run(&set("rm", &tasks), 80 * MS);
    assert!(seen.whole(0, 80 * MS).iter().all(|p| p.end == JobEnd::Exhausted && p.received == MS));
    assert!(seen.whole(1, 80 * MS).iter().all(|p| !p.miss && p.completed == p.deadline));
    // It never says that it is done, so that using up its budget is its normal life.
    assert_eq!((seen.misses(), seen.whole(0, 80 * MS).len()), (vec![], 20));
}

#[test]
fn who_sleeps_in_a_job_lets_others_run_and_continues_after_it() {
    let tasks = [
        "period = \"10ms\"; budget = \"4ms\"; work = { steps = [{ spin = \"1ms\" }, { sleep = \
         \"3ms\" }, { spin = \"2ms\" }] }",
        "period = \"20ms\"; budget = \"5ms\"; work = { spin = \"5ms\" }",
    ];
    let seen = run(&set("rm", &tasks), 10 * MS);
    assert_eq!(seen.in_ms(), [(0, 0, 1), (1, 1, 4), (0, 4, 6), (1, 6, 8)]);
    assert_eq!(seen.whole(0, 10 * MS)[0].completed, 6 * MS);
}

#[test]
fn who_sleeps_beyond_its_deadline_has_missed_it_and_continues_in_the_next_period() {
    let tasks = ["period = \"5ms\"; budget = \"2ms\"; work = { steps = [{ spin = \"1ms\" }, { \
                  sleep = \"6ms\" }, { spin = \"1ms\" }] }"];
    let seen = run(&set("rm", &tasks), 10 * MS);
    assert_eq!(seen.in_ms(), [(0, 0, 1), (0, 7, 8)]);
    let first = seen.whole(0, 10 * MS)[0];
    assert_eq!((first.end, first.miss, first.ready_throughout), (JobEnd::Expired, true, false));
}

/// The revised CBS rule (design, Reservation): woken 5 ms before its finish, 2 in 10 ms may use 1.
#[test]
fn under_edf_who_wakes_late_has_its_budget_cut_to_its_bandwidth() {
    let tasks = ["period = \"10ms\"; budget = \"2ms\"; work = { steps = [{ spin = \"100us\" }, { \
                  sleep = \"4900us\" }, { spin = \"5ms\" }] }"];
    let seen = run(&set("edf", &tasks), 10 * MS);
    let first = seen.whole(0, 10 * MS)[0];
    assert_eq!((first.end, first.received, first.unused), (JobEnd::Exhausted, 1_100_000, 900_000));
    assert!(!first.ready_throughout, "it suspended itself");
}

#[test]
fn what_a_task_leaves_of_its_budget_when_it_is_done_is_unused() {
    let seen = run(
        &set("edf", &["period = \"10ms\"; budget = \"2ms\"; work = { spin = \"1500us\" }"]),
        10 * MS,
    );
    let first = seen.whole(0, 10 * MS)[0];
    assert_eq!((first.received, first.unused, first.ready_throughout), (1_500_000, 500_000, false));
}
