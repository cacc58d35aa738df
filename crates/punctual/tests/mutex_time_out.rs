//! Waits for a mutex that end at a time: lending ends with them.

mod common;

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::SeqCst};
use std::sync::Arc;

use common::{execute, start, turn, MS};
use punctual::{LockError, Mutex, Policy, Punctual, Time};
use punctual_test_support::{comes_true, LIVENESS};

/// The holder has used up its own budget, and executes on that of the task that waits, until that
/// one waits no longer.
#[test]
fn lending_ends_when_a_wait_times_out() {
    let _turn = turn();
    let mutex = Arc::new(Mutex::new(()));
    let [executed, release, ended] = std::array::from_fn(|_| Arc::new(AtomicU64::new(0)));
    let declare = |set: Punctual| {
        let mut set = set.policy(Policy::RateMonotonic);
        let (held, counter, released) = (mutex.clone(), executed.clone(), release.clone());
        set.add("holder").period(1000 * MS).budget(MS).spawn(move |task| {
            let _held = held.lock(task).expect("it is free");
            while released.load(SeqCst) == 0 {
                counter.fetch_add(1, SeqCst);
            }
        });
        let (mutex, counter) = (mutex.clone(), executed.clone());
        let (release, ended) = (release.clone(), ended.clone());
        let waiter = set.add("waiter").period(100 * MS).budget(20 * MS).start(10 * MS);
        waiter.spawn(move |task| {
            let mut before = 0;
            // Until its budget is used up.
            while counter.load(SeqCst) == 0 || counter.load(SeqCst) != before {
                before = counter.load(SeqCst);
                std::thread::sleep(2 * MS);
            }
            let until = Time::now() + 3 * MS;
            assert_eq!(mutex.lock_until(task, until).err(), Some(LockError::TimedOut));
            assert!(Time::now() >= until);
            let after = counter.load(SeqCst);
            execute(2 * MS);
            assert!(after > before && counter.load(SeqCst) == after, "it executes still");
            release.store(1, SeqCst);
            drop(mutex.lock_until(task, Time::now() + LIVENESS).expect("lending begins again"));
            drop(mutex.lock_until(task, until).expect("it is free, though the time is over"));
            ended.store(1, SeqCst);
        });
        set
    };
    let Some(running) = start(declare) else { return };
    assert!(comes_true(|| ended.load(SeqCst) == 1), "it has the mutex at last");
    running.stop().expect("it stops");
}

#[test]
fn when_the_run_is_over_waits_time_out_as_before() {
    let _turn = turn();
    let mutex = Arc::new(Mutex::new(()));
    let [held, timed_out, release] = std::array::from_fn(|_| Arc::new(AtomicU32::new(0)));
    let declare = |mut set: Punctual| {
        let (mine, at, released) = (mutex.clone(), held.clone(), release.clone());
        set.add("holder").period(20 * MS).budget(2 * MS).spawn(move |task| {
            let _held = mine.lock(task).expect("it is free");
            at.store(1, SeqCst);
            while released.load(SeqCst) == 0 {
                std::thread::sleep(MS);
            }
        });
        let (mutex, held) = (mutex.clone(), held.clone());
        let (timed_out, release) = (timed_out.clone(), release.clone());
        set.add("waiter").period(20 * MS).budget(5 * MS).spawn(move |task| {
            while held.load(SeqCst) == 0 {
                std::thread::sleep(MS);
            }
            let mut is_over = false;
            while !is_over {
                // The last wait is that of an ordinary thread.
                is_over = task.is_over();
                let waited = mutex.lock_until(task, Time::now() + MS);
                assert_eq!(waited.err(), Some(LockError::TimedOut));
                timed_out.fetch_add(1, SeqCst);
            }
            release.store(1, SeqCst);
            drop(mutex.lock(task).expect("no deadlock"));
        });
        set
    };
    let Some(running) = start(declare) else { return };
    assert!(comes_true(|| timed_out.load(SeqCst) > 2), "they begin");
    running.stop().expect("it stops");
}
