//! Tasks are suspended, and resumed as often.

mod common;

use std::process::Command;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::sync::{Arc, Mutex as StdMutex};

use common::{start, turn, MS};
use punctual::{
    Error, Mutex, Punctual, Released, Running, SchedulingGroup, Task, TaskEnd, TaskHandle,
    TaskResult,
};
use punctual_test_support::{comes_true, execute_briefly};

/// A set without a task.
fn empty(set: Punctual) -> Punctual {
    set
}

/// A task that notes its releases.
fn noting(running: &Running, name: &str) -> (TaskHandle<()>, Arc<StdMutex<Vec<Released>>>) {
    let seen = Arc::new(StdMutex::new(Vec::new()));
    let in_task = seen.clone();
    let task = running.task(name).period(5 * MS).budget(MS).spawn(move |task| {
        for release in task.releases() {
            in_task.lock().expect("none panics").push(release);
        }
    });
    (task.expect("it fits"), seen)
}

fn figures<T>(task: &TaskHandle<T>) -> TaskResult {
    task.results().expect("it runs")
}

/// Waits until so many further periods of the task are reported.
fn periods_pass<T>(task: &TaskHandle<T>, periods: u64) {
    let before = figures(task).periods;
    assert!(comes_true(|| figures(task).periods >= before + periods));
}

/// Waits until so many further releases of a task that calls `wait_period` have ended because it is
/// suspended: they neither completed nor missed their deadlines.
fn suspended_periods_pass<T>(task: &TaskHandle<T>, periods: u64) {
    let cancelled = || {
        let figures = figures(task);
        figures.periods - figures.misses - figures.response_time.map_or(0, |times| times.count)
    };
    let before = cancelled();
    assert!(comes_true(|| cancelled() >= before + periods));
}

fn errno<T>(result: Result<T, Error>) -> Option<i32> {
    result.err().and_then(|e| e.errno)
}

#[test]
fn a_suspended_thread_executes_nothing_until_it_was_resumed_as_often() {
    let _turn = turn();
    let Some(running) = start(empty) else { return };
    let (task, seen) = noting(&running, "task");
    let count = || seen.lock().expect("none panics").len();
    assert!(comes_true(|| count() > 2));
    assert_eq!(errno(task.resume()), Some(libc::EALREADY));
    task.suspend().expect("it lives");
    task.suspend().expect("it lives");
    suspended_periods_pass(&task, 3);
    let (stood, before) = (count(), figures(&task));
    suspended_periods_pass(&task, 5);
    task.resume().expect("it is suspended");
    suspended_periods_pass(&task, 5);
    let after = figures(&task);
    assert_eq!((count(), after.misses), (stood, before.misses), "suspended once");
    assert_eq!(after.received_ns, before.received_ns);
    task.resume().expect("it is suspended");
    assert!(comes_true(|| count() > stood + 2));
    assert_eq!(errno(task.resume()), Some(libc::EALREADY));
    task.stop().expect("it lives");
    let seen = seen.lock().expect("none panics");
    for pair in seen.windows(2) {
        let between = pair[1].number - pair[0].number - 1;
        assert_eq!(u64::from(pair[1].lost), between, "{pair:?}");
        assert_eq!(pair[1].release - pair[0].release, 5 * MS * (between + 1) as u32);
    }
    assert!(seen[stood].lost >= 10, "{:?}", seen[stood]);
}

#[test]
fn a_task_suspends_itself_and_another_one_resumes_it() {
    let _turn = turn();
    let Some(running) = start(empty) else { return };
    let turns = Arc::new(AtomicU64::new(0));
    let in_task = turns.clone();
    let sleeper = running.task("sleeper").period(5 * MS).budget(MS);
    let sleeper = sleeper.spawn(move |task| {
        let mut numbers = vec![task.current().number];
        while let Some(release) = task.suspend() {
            numbers.push(release.number);
            in_task.fetch_add(1, SeqCst);
        }
        numbers
    });
    let sleeper = Arc::new(sleeper.expect("it fits"));
    let wakes = sleeper.clone();
    let seen = turns.clone();
    let waker = running.task("waker").period(5 * MS).budget(MS).spawn(move |task| {
        // Where the other one is not suspended yet, it is later.
        for _ in task.releases() {
            if seen.load(SeqCst) == 3 {
                break;
            }
            let _ = wakes.resume();
        }
    });
    assert_eq!(waker.expect("it fits").join(), Ok(()));
    assert!(comes_true(|| turns.load(SeqCst) >= 3));
    // It may have been resumed once more.
    let _ = sleeper.suspend();
    suspended_periods_pass(&sleeper, 3);
    let last = turns.load(SeqCst);
    suspended_periods_pass(&sleeper, 5);
    assert_eq!(turns.load(SeqCst), last, "it is suspended");
    sleeper.stop().expect("it lives");
    let sleeper = Arc::into_inner(sleeper).expect("the other task has ended");
    let numbers = sleeper.join().expect("it was asked to end");
    assert!(numbers.windows(2).all(|pair| pair[0] < pair[1]), "{numbers:?}");
}

#[test]
fn a_suspended_process_is_frozen_whether_or_not_it_has_budget() {
    let _turn = turn();
    let Some(running) = start(empty) else { return };
    let mut child = Command::new("sh").args(["-c", "while :; do :; done"]).spawn().expect("sh");
    let pid = child.id() as i32;
    let executed = || punctual_sys::clock::CpuClock::of_process(pid).read().expect("it lives");
    let task = running.task("process").period(10 * MS).budget(2 * MS).pid(pid).expect("it fits");
    let grows = || {
        let before = executed();
        comes_true(|| executed() > before)
    };
    for _ in 0..3 {
        assert!(grows());
        task.suspend().expect("it lives");
        assert!(comes_true(|| {
            let before = executed();
            periods_pass(&task, 3);
            executed() == before
        }));
        let (stood, before) = (executed(), figures(&task));
        periods_pass(&task, 5);
        assert_eq!((executed(), figures(&task).misses), (stood, before.misses));
        task.resume().expect("it is suspended");
    }
    assert!(grows());
    task.suspend().expect("it lives");
    task.stop().expect("it lives");
    assert_eq!(task.wait(), TaskEnd::Stopped);
    assert!(grows(), "restored, and no longer frozen");
    assert_eq!(errno(task.suspend()), Some(libc::ESRCH));
    let command = running.task("command").period(10 * MS).budget(MS).command(["sleep", "1000"]);
    let command = command.expect("it fits");
    command.suspend().expect("it lives");
    periods_pass(&command, 3);
    command.stop().expect("it lives");
    assert_eq!(command.join(), Ok(TaskEnd::Signalled(libc::SIGKILL)));
    child.kill().expect("it is ours");
    common::await_end(&mut child);
}

#[test]
fn a_task_in_a_group_is_suspended_and_the_others_of_the_group_execute() {
    let _turn = turn();
    let grouped = |set: Punctual| set.group(SchedulingGroup::new("g", 10 * MS, 6 * MS));
    let Some(running) = start(grouped) else { return };
    let draft = |name: &str| running.task(name).period(40 * MS).budget(2 * MS).group("g");
    let loops = |task: &Task<'_>| task.releases().count();
    let suspended = draft("suspended").spawn(loops).expect("it fits");
    let other = draft("other").spawn(loops).expect("it fits");
    suspended.suspend().expect("it lives");
    suspended_periods_pass(&suspended, 3);
    let before = figures(&suspended);
    let of_other = figures(&other).response_time.map_or(0, |times| times.count);
    suspended_periods_pass(&suspended, 3);
    assert_eq!(figures(&suspended).received_ns, before.received_ns);
    let completed = || figures(&other).response_time.map_or(0, |times| times.count);
    assert!(comes_true(|| completed() > of_other));
    suspended.resume().expect("it is suspended");
    assert!(comes_true(|| figures(&suspended).received_ns > before.received_ns));
}

#[test]
fn a_suspended_task_ends_with_its_run_and_when_it_is_asked_to() {
    let _turn = turn();
    let Some(running) = start(empty) else { return };
    let (task, seen) = noting(&running, "stopped");
    assert!(comes_true(|| !seen.lock().expect("none panics").is_empty()));
    task.suspend().expect("it lives");
    suspended_periods_pass(&task, 3);
    task.stop().expect("it lives");
    assert_eq!(task.wait(), TaskEnd::Returned);
    assert_eq!([errno(task.suspend()), errno(task.resume())], [Some(libc::ESRCH); 2]);
    let (task, _) = noting(&running, "remains");
    task.suspend().expect("it lives");
    suspended_periods_pass(&task, 3);
    let sleeps = running.task("command").period(10 * MS).budget(MS).command(["sleep", "1000"]);
    let sleeps = sleeps.expect("it fits");
    sleeps.suspend().expect("it lives");
    periods_pass(&task, 3);
    let outcome = running.stop().expect("it runs");
    assert!(outcome.problems.is_empty(), "{:?}", outcome.problems);
    assert!(task.is_finished() && sleeps.is_finished());
    assert_eq!(errno(task.suspend()), Some(libc::ECANCELED));
}

#[test]
fn a_suspended_task_that_holds_a_mutex_keeps_it_and_executes_for_none_that_waits() {
    let _turn = turn();
    let Some(running) = start(empty) else { return };
    let (mutex, turns) = (Arc::new(Mutex::new(0)), Arc::new(AtomicU64::new(0)));
    let (of_holder, count) = (mutex.clone(), turns.clone());
    let holder = running.task("holder").period(5 * MS).budget(MS).spawn(move |task| {
        let mut guard = of_holder.lock(task).expect("it is free");
        count.fetch_add(1, SeqCst);
        let released = task.suspend();
        count.fetch_add(1, SeqCst);
        *guard += 1;
        released.is_some()
    });
    let holder = holder.expect("it fits");
    assert!(comes_true(|| turns.load(SeqCst) == 1));
    let waiter = running.task("waiter").period(5 * MS).budget(MS);
    let waiter = waiter.spawn(move |task| {
        execute_briefly();
        *mutex.lock(task).expect("it is consistent")
    });
    let waiter = waiter.expect("it fits");
    periods_pass(&waiter, 5);
    assert_eq!((turns.load(SeqCst), waiter.is_finished()), (1, false));
    holder.resume().expect("it is suspended");
    assert_eq!((holder.join(), waiter.join()), (Ok(true), Ok(1)));
}
