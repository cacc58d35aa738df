//! Roles of programs that suspend their tasks by the service (see library_roles.rs).

use std::process::Command;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use ::punctual::{Released, Running, TaskHandle};
use punctual_service::{ServiceClient, TaskRequest};
use punctual_sys::clock::{thread_cpu_ns, CpuClock};
use punctual_test_support::comes_true;

use super::{by_service, drop_of, patiently, start, MS};

/// Waits until so many further releases of a task that calls `wait_period` have ended because it is
/// suspended: they neither completed nor missed their deadlines.
fn suspended_periods_pass<T>(task: &TaskHandle<T>, periods: u64) {
    let cancelled = || {
        let figures = task.results().expect("it runs");
        figures.periods - figures.misses - figures.response_time.map_or(0, |times| times.count)
    };
    let before = cancelled();
    assert!(comes_true(|| cancelled() >= before + periods));
}

pub fn suspends(cpu: u32) {
    let running = start(|| by_service(cpu).task("first").period(20 * MS).budget(MS).spawn(drop_of));
    threads(&running);
    in_jobs(&running);
    itself(&running);
    process(&running);
    drop(running.stop().expect("it runs"));
    of_this_process();
}

/// A task that does nothing but wait, and the releases that its waits returned.
fn notes(running: &Running) -> (TaskHandle<()>, Arc<Mutex<Vec<Released>>>) {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let in_task = seen.clone();
    let task = running.task("notes").period(10 * MS).budget(MS).spawn(move |task| {
        for release in task.releases() {
            in_task.lock().expect("none panics").push(release);
        }
    });
    (task.expect("it fits"), seen)
}

/// A thread is suspended where it waits, and learns what it lost.
fn threads(running: &Running) {
    let (task, seen) = notes(running);
    let count = || seen.lock().expect("none panics").len();
    assert!(comes_true(|| count() > 2));
    assert_eq!(task.resume().expect_err("it executes").errno, Some(libc::EALREADY));
    task.suspend().expect("it lives");
    task.suspend().expect("it lives");
    suspended_periods_pass(&task, 3);
    let stood = count();
    task.resume().expect("it is suspended");
    suspended_periods_pass(&task, 3);
    assert_eq!(count(), stood, "suspended once");
    task.resume().expect("it is suspended");
    assert!(comes_true(|| count() > stood + 2));
    task.stop().expect("it lives");
    task.join().expect("it returns");
    let seen = seen.lock().expect("none panics");
    assert!(seen[stood].lost >= 6, "{:?}", seen[stood]);
    for pair in seen.windows(2) {
        let between = pair[1].number - pair[0].number - 1;
        assert_eq!(u64::from(pair[1].lost), between, "{pair:?}");
    }
}

/// A thread is suspended wherever it is, and resumed whether it had come to rest or not.
fn in_jobs(running: &Running) {
    let count = Arc::new(AtomicU64::new(0));
    let in_task = count.clone();
    let task = running.task("jobs").period(10 * MS).budget(MS).spawn(move |task| {
        for release in task.releases() {
            in_task.fetch_add(1, SeqCst);
            // Each fourth job takes three budgets.
            let until = thread_cpu_ns() + if release.number % 4 == 0 { 3_000_000 } else { 0 };
            while thread_cpu_ns() < until {}
        }
    });
    let task = task.expect("it fits");
    let goes_on = || {
        let before = count.load(SeqCst);
        assert!(comes_true(|| count.load(SeqCst) > before + 4));
    };
    goes_on();
    for turn in 0..10 {
        std::thread::sleep(MS * turn * 17 / 10);
        task.suspend().expect("it lives");
        if turn % 2 == 0 {
            suspended_periods_pass(&task, 3);
            let stood = count.load(SeqCst);
            suspended_periods_pass(&task, 3);
            assert_eq!(count.load(SeqCst), stood);
        }
        task.resume().expect("it is suspended");
        goes_on();
    }
    task.stop().expect("it lives");
    task.join().expect("it returns");
}

/// A thread is suspended for longer than the kernel bears one that is ready and does not execute.
pub fn suspends_for_long(cpu: u32) {
    let running = start(|| by_service(cpu).task("first").period(20 * MS).budget(MS).spawn(drop_of));
    let (task, seen) = notes(&running);
    let count = || seen.lock().expect("none panics").len();
    assert!(comes_true(|| count() > 2));
    task.suspend().expect("it lives");
    suspended_periods_pass(&task, 3);
    let stood = count();
    std::thread::sleep(Duration::from_secs(35));
    assert_eq!(count(), stood);
    task.resume().expect("it is suspended");
    assert!(comes_true(|| count() > stood + 2));
    assert!(seen.lock().expect("none panics")[stood].lost > 3_000);
    drop(running.stop().expect("it runs"));
}

/// A task suspends itself, and another thread resumes it.
fn itself(running: &Running) {
    let turns = Arc::new(AtomicU64::new(0));
    let in_task = turns.clone();
    let task = running.task("itself").period(10 * MS).budget(MS).spawn(move |task| {
        while task.suspend().is_some() {
            in_task.fetch_add(1, SeqCst);
        }
    });
    let task = task.expect("it fits");
    for turn in 1..=3 {
        assert!(comes_true(|| task.resume().is_ok()));
        assert!(comes_true(|| turns.load(SeqCst) >= turn));
    }
    suspended_periods_pass(&task, 3);
    let last = turns.load(SeqCst);
    suspended_periods_pass(&task, 3);
    assert_eq!(turns.load(SeqCst), last, "it is suspended");
    task.stop().expect("it lives");
    task.join().expect("it was asked to end");
}

/// This process could not resume itself.
fn of_this_process() {
    let mut client = ServiceClient::require(&punctual_service::socket()).expect("it serves");
    let request = TaskRequest::new("me", std::process::id() as i32, 10_000_000, 2_000_000);
    let id = patiently(|| client.reserve(std::slice::from_ref(&request)))[0].id;
    let refused = client.suspend(id).expect_err("it cannot resume itself");
    assert!(refused.cause.contains("suspends itself"), "{refused}");
    client.release(id).expect("its own");
}

/// A process is frozen.
fn process(running: &Running) {
    let mut child = Command::new("sh").args(["-c", "while :; do :; done"]).spawn().expect("sh");
    let pid = child.id() as i32;
    let executed = || CpuClock::of_process(pid).read().expect("it lives");
    let grows = || {
        let before = executed();
        comes_true(|| executed() > before)
    };
    let task = running.task("process").period(10 * MS).budget(2 * MS).pid(pid).expect("it fits");
    assert!(grows());
    task.suspend().expect("it lives");
    let (mut before, mut still) = (executed(), 0);
    assert!(comes_true(|| {
        let now = executed();
        still = if now == before { still + 1 } else { 0 };
        before = now;
        still > 20
    }));
    task.resume().expect("it is suspended");
    assert!(grows());
    // Released while it is frozen, it continues.
    task.suspend().expect("it lives");
    task.stop().expect("it lives");
    let _ = task.wait();
    assert!(grows());
    child.kill().expect("it lives");
    child.wait().expect("it is killed");
}
