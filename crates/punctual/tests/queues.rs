//! Condition variables and semaphores between tasks, and what waits in queues have in common.

mod common;

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::SeqCst};
use std::sync::Arc;

use common::{execute, start, start_with, turn, two_cpus, MS};
use punctual::{Barrier, Condvar, LockError, Mutex, Policy, Punctual, Semaphore, Time, WaitError};
use punctual_test_support::comes_true;

/// A mutex with the condition variable of what it protects.
#[derive(Default)]
struct Monitor<T> {
    mutex: Mutex<T>,
    changed: Condvar,
}

#[test]
fn no_notification_is_lost_between_producers_and_consumers() {
    const ITEMS: u64 = 300;
    let _turn = turn();
    let monitor = Arc::new(Monitor::<VecDeque<u64>>::default());
    let [made, sum, count] = std::array::from_fn(|_| Arc::new(AtomicU64::new(0)));
    let declare = |mut set: Punctual| {
        for (name, period) in [("one consumer", 7), ("another", 31)] {
            let (monitor, sum, count) = (monitor.clone(), sum.clone(), count.clone());
            let consumer = set.add(name).period(period * MS).budget(period * MS / 6);
            consumer.spawn(move |task| loop {
                let mut held = monitor.mutex.lock(task)?;
                let item = loop {
                    match held.pop_front() {
                        Some(item) => break item,
                        None => held = monitor.changed.wait(held)?,
                    }
                };
                drop(held);
                execute(MS / 20);
                sum.fetch_add(item, SeqCst);
                if count.fetch_add(1, SeqCst) + 1 == 2 * ITEMS {
                    return Ok::<(), WaitError>(());
                }
            });
        }
        for (name, period) in [("one producer", 11), ("another producer", 13)] {
            let (monitor, made) = (monitor.clone(), made.clone());
            set.add(name).period(period * MS).budget(period * MS / 6).spawn(move |task| {
                for _ in 0..ITEMS {
                    let mut held = monitor.mutex.lock(task).expect("no deadlock");
                    held.push_back(made.fetch_add(1, SeqCst));
                    monitor.changed.notify_one();
                    drop(held);
                    execute(MS / 20);
                }
            });
        }
        set
    };
    let Some(running) = start(declare) else { return };
    let all = || count.load(SeqCst) == 2 * ITEMS;
    assert!(comes_true(all), "{} of {}", count.load(SeqCst), made.load(SeqCst));
    assert_eq!(sum.load(SeqCst), (0..2 * ITEMS).sum::<u64>());
    // A consumer waits still: the end of the run wakes it.
    let outcome = running.stop().expect("it stops");
    assert!(outcome.problems.is_empty(), "{:?}", outcome.problems);
}

/// The tasks begin to wait in the inverse order of their priorities.
#[test]
fn the_task_that_comes_first_in_selection_is_woken_first() {
    let _turn = turn();
    let monitor = Arc::new(Monitor::<(u32, Vec<u32>)>::default());
    let order = Arc::new(AtomicU32::new(0));
    let declare = |set: Punctual| {
        let mut set = set.policy(Policy::RateMonotonic);
        for rank in 0..3 {
            let monitor = monitor.clone();
            let waiter = set.add(format!("waiter {rank}")).period((20 << rank) * MS).budget(2 * MS);
            waiter.spawn(move |task| {
                let mut held = monitor.mutex.lock(task)?;
                while held.0 != 2 - rank {
                    drop(held);
                    std::thread::sleep(MS);
                    held = monitor.mutex.lock(task)?;
                }
                held.0 += 1;
                held = monitor.changed.wait(held)?;
                held.1.push(rank);
                Ok::<(), WaitError>(())
            });
        }
        let (monitor, order) = (monitor.clone(), order.clone());
        set.add("notifies").period(200 * MS).budget(20 * MS).spawn(move |task| {
            let mut held = monitor.mutex.lock(task)?;
            // Who has counted itself waits when the mutex can be had.
            while held.0 < 3 {
                drop(held);
                std::thread::sleep(MS);
                held = monitor.mutex.lock(task)?;
            }
            for woken in 1..=3 {
                monitor.changed.notify_one();
                while held.1.len() < woken {
                    drop(held);
                    std::thread::sleep(MS);
                    held = monitor.mutex.lock(task)?;
                }
            }
            order.store(held.1.iter().fold(1, |all, rank| 10 * all + rank), SeqCst);
            Ok::<(), WaitError>(())
        });
        set
    };
    let Some(running) = start(declare) else { return };
    assert!(comes_true(|| order.load(SeqCst) != 0), "all are woken");
    assert_eq!(order.load(SeqCst), 1012);
    running.stop().expect("it stops");
}

#[test]
fn a_wait_ends_when_its_time_has_come() {
    let _turn = turn();
    let Some(running) = start(|set| set) else { return };
    let monitor = Arc::new(Monitor::<u32>::default());
    let task = running.task("waits").period(20 * MS).budget(5 * MS).spawn(move |task| {
        let until = Time::from_nanos(Time::now().as_nanos() + 3_000_000);
        let semaphore = Semaphore::new(0, 1);
        assert_eq!(semaphore.acquire_until(task, until), Err(WaitError::TimedOut));
        assert!(Time::now() >= until);
        assert!(semaphore.release() && !semaphore.release());
        assert_eq!(semaphore.acquire_until(task, until), Ok(()));
        assert!(!semaphore.try_acquire());

        // A task that waits no longer has not come.
        let barrier = Barrier::new(2);
        for _ in 0..2 {
            let until = Time::now() + 3 * MS;
            assert_eq!(barrier.wait_until(task, until), Err(WaitError::TimedOut));
            assert!(Time::now() >= until);
        }

        let held = monitor.mutex.lock(task).expect("it is free");
        let until = Time::from_nanos(Time::now().as_nanos() + 3_000_000);
        let (mut held, timed_out) = monitor.changed.wait_until(held, until).expect("it is alone");
        *held += 1;
        assert!(timed_out && Time::now() >= until);
        // A notification that no task waits for is for none.
        monitor.changed.notify_all();
        let (held, timed_out) = monitor.changed.wait_until(held, Time::now()).expect("as above");
        assert!(timed_out);
        *held
    });
    assert_eq!(task.expect("it fits").join(), Ok(1));
    running.stop().expect("it stops");
}

/// More tasks than the dispatcher keeps unparked wait before the one that they wait for.
#[test]
fn tasks_that_wait_for_a_semaphore_keep_none_from_executing() {
    const WAITERS: u32 = 7;
    const ROUNDS: u32 = 20;
    let _turn = turn();
    let [full, empty] = [(0, WAITERS), (WAITERS, WAITERS)]
        .map(|(units, maximum)| Arc::new(Semaphore::new(units, maximum)));
    let got = Arc::new(AtomicU32::new(0));
    let declare = |set: Punctual| {
        let mut set = set.policy(Policy::RateMonotonic);
        for n in 0..WAITERS {
            let (full, empty, got) = (full.clone(), empty.clone(), got.clone());
            let waiter = set.add(format!("waiter {n}")).period(20 * MS).budget(MS);
            waiter.spawn(move |task| {
                while full.acquire(task).is_ok() {
                    got.fetch_add(1, SeqCst);
                    assert!(empty.release());
                }
            });
        }
        let (full, empty) = (full.clone(), empty.clone());
        set.add("releases").period(100 * MS).budget(20 * MS).spawn(move |task| {
            for _ in 0..ROUNDS * WAITERS {
                empty.acquire(task)?;
                execute(MS / 50);
                assert!(full.release());
            }
            Ok::<(), WaitError>(())
        });
        set
    };
    let Some(running) = start(declare) else { return };
    let all = || got.load(SeqCst) == ROUNDS * WAITERS;
    assert!(comes_true(all), "{} units", got.load(SeqCst));
    let outcome = running.stop().expect("it stops");
    assert!(outcome.problems.is_empty(), "{:?}", outcome.problems);
    assert!(!full.try_acquire(), "all were taken");
}

#[test]
fn an_ordinary_thread_releases_what_tasks_acquire() {
    const UNITS: u32 = 2_000;
    let _turn = turn();
    let semaphore = Arc::new(Semaphore::new(0, 3));
    let got = Arc::new(AtomicU32::new(0));
    let declare = |mut set: Punctual| {
        for (name, period) in [("one", 5), ("another", 7)] {
            let (semaphore, got) = (semaphore.clone(), got.clone());
            set.add(name).period(period * MS).budget(period * MS / 3).spawn(move |task| {
                while semaphore.acquire(task).is_ok() {
                    got.fetch_add(1, SeqCst);
                }
            });
        }
        set
    };
    let Some(running) = start(declare) else { return };
    let mut released = 0;
    let all_released = comes_true(|| {
        while released < UNITS && semaphore.release() {
            released += 1;
        }
        released == UNITS
    });
    assert!(all_released, "{released} released, {} acquired", got.load(SeqCst));
    assert!(comes_true(|| got.load(SeqCst) == UNITS), "{} acquired", got.load(SeqCst));
    running.stop().expect("it stops");
}

#[test]
fn tasks_on_two_cpus_exchange_units_and_meet() {
    const ROUNDS: u32 = 200;
    let _turn = turn();
    let Some(cpus) = two_cpus() else { return };
    let ended = Arc::new(AtomicU32::new(0));
    let set = || {
        // Each waits for the other's unit, and both for each other.
        let units: Arc<[Semaphore; 2]> = Arc::new(std::array::from_fn(|_| Semaphore::new(0, 1)));
        let barrier = Arc::new(Barrier::new(2));
        let mut set = Punctual::on_cpus(cpus);
        for n in 0..2 {
            let (units, barrier, ended) = (units.clone(), barrier.clone(), ended.clone());
            let task = set.add(format!("task {n}")).cpu(cpus[n]).period((5 + 2 * n as u32) * MS);
            task.budget(2 * MS).spawn(move |task| {
                for _ in 0..ROUNDS {
                    assert!(units[1 - n].release());
                    units[n].acquire(task)?;
                    barrier.wait(task)?;
                }
                ended.fetch_add(1, SeqCst);
                Ok::<(), WaitError>(())
            });
        }
        set
    };
    let Some(running) = start_with(set) else { return };
    assert!(comes_true(|| ended.load(SeqCst) == 2), "neither waits for ever");
    let outcome = running.stop().expect("it stops");
    assert!(outcome.problems.is_empty(), "{:?}", outcome.problems);
}

/// A task of another CPU has locked the mutex while this one waited without it.
#[test]
fn a_task_that_cannot_lock_its_mutex_again_does_not_unlock_it() {
    let _turn = turn();
    let Some(cpus) = two_cpus() else { return };
    let ended = Arc::new(AtomicU32::new(0));
    let set = || {
        let monitor = Arc::new(Monitor::<()>::default());
        let refused = Arc::new(AtomicU32::new(0));
        let mut set = Punctual::on_cpus(cpus);
        let locked = Arc::new(AtomicU32::new(0));
        let (waited, at, done) = (monitor.clone(), refused.clone(), ended.clone());
        let first = locked.clone();
        set.add("waits").cpu(cpus[0]).period(10 * MS).budget(2 * MS).spawn(move |task| {
            let held = waited.mutex.lock(task).expect("it is free");
            first.store(1, SeqCst);
            let error = waited.changed.wait(held).err();
            at.store(1, SeqCst);
            assert_eq!(error, Some(WaitError::Lock(LockError::OtherCpu)));
            done.fetch_add(1, SeqCst);
        });
        let done = ended.clone();
        set.add("holds").cpu(cpus[1]).period(10 * MS).budget(2 * MS).spawn(move |task| {
            // No try before: even one that is given back at once is in the way of the other's lock.
            while locked.load(SeqCst) == 0 {
                std::thread::sleep(MS);
            }
            let held = loop {
                match monitor.mutex.try_lock(task) {
                    Some(held) => break held,
                    None => std::thread::sleep(MS),
                }
            };
            while refused.load(SeqCst) == 0 {
                monitor.changed.notify_one();
                std::thread::sleep(MS);
            }
            assert!(monitor.mutex.try_lock(task).is_none(), "it holds it still");
            drop(held);
            done.fetch_add(1, SeqCst);
        });
        set
    };
    let Some(running) = start_with(set) else { return };
    assert!(comes_true(|| ended.load(SeqCst) == 2), "{} ended", ended.load(SeqCst));
    running.stop().expect("it stops");
}

/// While it waits, the jobs of the task that waits for its mutex are blocked, too.
#[test]
fn the_holder_of_a_mutex_may_wait_for_a_semaphore() {
    let _turn = turn();
    let mutex = Arc::new(Mutex::new(0u32));
    let semaphore = Arc::new(Semaphore::new(0, 1));
    let [holds, waits, got] = std::array::from_fn(|_| Arc::new(AtomicU32::new(0)));
    let declare = |set: Punctual| {
        let mut set = set.policy(Policy::RateMonotonic);
        let (held, units, at) = (mutex.clone(), semaphore.clone(), holds.clone());
        set.add("holder").period(100 * MS).budget(5 * MS).spawn(move |task| {
            let mut held = held.lock(task)?;
            at.store(1, SeqCst);
            units.acquire(task)?;
            *held += 1;
            Ok::<(), WaitError>(())
        });
        let (wanted, at) = (mutex.clone(), holds.clone());
        let (comes, got) = (waits.clone(), got.clone());
        set.add("waiter").period(20 * MS).budget(5 * MS).spawn(move |task| {
            while at.load(SeqCst) == 0 {
                std::thread::sleep(MS);
            }
            comes.store(1, SeqCst);
            got.store(1 + *wanted.lock(task)?, SeqCst);
            Ok::<(), WaitError>(())
        });
        let (units, waits) = (semaphore.clone(), waits.clone());
        set.add("releases").period(200 * MS).budget(5 * MS).spawn(move |_| {
            while waits.load(SeqCst) == 0 {
                std::thread::sleep(MS);
            }
            assert!(units.release());
        });
        set
    };
    let Some(running) = start(declare) else { return };
    assert!(comes_true(|| got.load(SeqCst) == 2), "it has the mutex at last");
    running.stop().expect("it stops");
}

#[test]
fn a_task_that_is_stopped_and_the_end_of_the_run_end_every_wait() {
    let _turn = turn();
    let monitor = Arc::new(Monitor::<()>::default());
    let (semaphore, barrier) = (Arc::new(Semaphore::new(0, 1)), Arc::new(Barrier::new(4)));
    let waiting = Arc::new(AtomicU32::new(0));
    let Some(running) = start(|set| set) else { return };
    let (shared, at) = (semaphore.clone(), waiting.clone());
    let stopped = running.task("is stopped").period(20 * MS).budget(2 * MS).spawn(move |task| {
        at.fetch_add(1, SeqCst);
        let result = shared.acquire(task);
        assert_eq!(shared.acquire(task), result);
        result
    });
    let stopped = stopped.expect("it fits");
    assert!(comes_true(|| waiting.load(SeqCst) == 1), "it begins");
    stopped.stop().expect("it can be stopped");
    assert_eq!(stopped.join(), Ok(Err(WaitError::Over)));

    let at = waiting.clone();
    let a = running.task("semaphore").period(20 * MS).budget(2 * MS).spawn(move |task| {
        at.fetch_add(1, SeqCst);
        semaphore.acquire(task)
    });
    let at = waiting.clone();
    let b = running.task("condition").period(20 * MS).budget(2 * MS).spawn(move |task| {
        let held = monitor.mutex.lock(task)?;
        at.fetch_add(1, SeqCst);
        monitor.changed.wait(held).map(drop)
    });
    let at = waiting.clone();
    let c = running.task("barrier").period(20 * MS).budget(2 * MS).spawn(move |task| {
        at.fetch_add(1, SeqCst);
        barrier.wait(task).map(drop)
    });
    assert!(comes_true(|| waiting.load(SeqCst) == 4), "all begin");
    let outcome = running.stop().expect("it stops");
    assert!(outcome.problems.is_empty(), "{:?}", outcome.problems);
    for task in [a, b, c] {
        assert_eq!(task.expect("it fits").join(), Ok(Err(WaitError::Over)));
    }
}
