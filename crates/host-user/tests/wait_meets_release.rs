//! A wait_period that is handled at the very instant of the next release.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::Arc;
use std::time::Duration;

use punctual_host_user::{now, ThreadTask};
use punctual_taskset::{Body, Spin, TaskSpec};
use punctual_test_support::{judge_timing, LIVENESS};

mod common;

const PERIOD: u64 = 1_000_000;
const PERIODS: u64 = 1_500;

fn spec() -> TaskSpec {
    TaskSpec::new("late", PERIOD, PERIOD / 2, Body::Spin(Spin::Forever))
}

fn sleep_until(at: u64) {
    let left = at.saturating_sub(now());
    std::thread::sleep(Duration::from_nanos(left));
}

/// Sleeps until shortly before its deadline, which is its next release, then waits at a time that
/// sweeps over it, microsecond by microsecond.
fn sweep(task: &mut ThreadTask, returns: &AtomicU64, done: &AtomicBool) {
    for k in 0.. {
        let deadline = task.current().deadline;
        sleep_until(deadline.saturating_sub(150_000));
        let at = deadline - 30_000 + k % 60 * 1_000;
        while now() < at && !done.load(Relaxed) {}
        if task.wait_period().is_none() {
            return;
        }
        returns.fetch_add(1, Relaxed);
    }
}

#[test]
fn a_task_whose_wait_meets_its_next_release_continues_with_it() {
    let Some(mut host) = common::start(0, None) else { return };
    let (returns, done) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicBool::new(false)));
    let (counted, over) = (returns.clone(), done.clone());
    host.add_thread(0, &spec(), 64 << 10, move |task| sweep(task, &counted, &over))
        .expect("there is room");
    host.begin(now() + 10_000_000).expect("there is room");
    let end = now() + 10_000_000 + PERIODS * PERIOD;
    // Left standing in its gate, it would return a few times at best. Some waits count for the
    // release after, so that not every period has one.
    let returned = || returns.load(Relaxed);
    let until = end + LIVENESS.as_nanos() as u64;
    while now() < end || (returned() <= 10 && now() < until) {
        std::thread::sleep(Duration::from_millis(20));
        host.housekeep(&mut |_| {});
    }
    done.store(true, Relaxed);
    host.finish(&mut |_| {});
    let returned = returned();
    assert!(returned > 10, "{returned} returns in {PERIODS} periods");
    judge_timing(|| assert!(returned > PERIODS / 4, "{returned} returns in {PERIODS} periods"));
}
