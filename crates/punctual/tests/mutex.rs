//! Mutexes between tasks: priority inheritance whose budgets stay true.

mod common;

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::SeqCst};
use std::sync::Arc;
use std::time::{Duration, Instant};

use common::{execute, start, turn, MS};
use punctual::{LockError, Mutex, MutexGuard, Policy, Punctual, RunEvent, Task, Time};
use punctual_test_support::{comes_true, judge_timing, LIVENESS};

/// Executes `time` with the data of the mutex.
type Use = dyn Fn(&Task<'_>, Duration) + Send + Sync;

/// What becomes of a guard.
type End = fn(MutexGuard<'_, ()>);

/// Misses and periods of the bus task of Mars Pathfinder (1997), whose mutex the meteorological
/// task holds now and then, as at the beginning, while communications execute for a long time.
fn pathfinder(bus: Arc<Use>) -> Option<(u64, u64)> {
    let declare = |set: Punctual| {
        let (of_bus, of_weather) = (bus.clone(), bus.clone());
        set.policy(Policy::DeadlineMonotonic)
            .task("bus")
            .period(20 * MS)
            .deadline(10 * MS)
            .budget(6 * MS)
            .start(2 * MS)
            .spawn(move |task| {
                for _ in task.releases() {
                    of_bus(task, MS);
                }
            })
            .task("communication")
            .period(33 * MS)
            .budget(9 * MS)
            .start(MS)
            .spawn(|task| {
                for _ in task.releases() {
                    execute(8 * MS);
                }
            })
            .task("weather")
            .period(55 * MS)
            .budget(8 * MS)
            .spawn(move |task| {
                for _ in task.releases() {
                    of_weather(task, 4 * MS);
                }
            })
    };
    let running = start(declare)?;
    std::thread::sleep(3000 * MS);
    let outcome = running.stop().expect("it stops");
    let bus = outcome.results.tasks.iter().find(|t| t.name == "bus").expect("it was there");
    Some((bus.misses, bus.periods))
}

#[test]
fn the_bus_task_of_pathfinder_meets_its_deadlines_by_lending_and_not_without() {
    let _turn = turn();
    let lending = Mutex::new(());
    let by_lending = pathfinder(Arc::new(move |task, time| {
        let _held = lending.lock(task).expect("no deadlock");
        execute(time);
    }));
    let Some((misses, periods)) = by_lending else { return };
    let plain = std::sync::Mutex::new(());
    let without = pathfinder(Arc::new(move |_, time| {
        let _held = plain.lock().expect("no panic");
        execute(time);
    }));
    println!("by lending {misses} of {periods} missed; without {without:?}");
    judge_timing(|| {
        assert!(misses == 0 && periods > 100, "{misses} of {periods}");
        assert!(without.is_some_and(|(misses, _)| misses > 0), "{without:?}");
    });
}

/// Locks it, by attempts of so long each.
fn lock_within<'a, T>(
    mutex: &'a Mutex<T>,
    task: &'a Task<'_>,
    limit: Duration,
) -> (MutexGuard<'a, T>, u64) {
    let mut timed_out = 0;
    loop {
        match mutex.lock_until(task, Time::now() + limit) {
            Ok(held) => return (held, timed_out),
            Err(LockError::TimedOut) => timed_out += 1,
            Err(e) => panic!("{e}"),
        }
    }
}

#[test]
fn no_two_tasks_hold_it_at_once() {
    exclude_each_other(Duration::MAX, || execute(MS / 20));
}

/// Many waits end just when the holder hands it over.
#[test]
fn no_two_tasks_hold_it_at_once_where_waits_time_out() {
    exclude_each_other(MS / 8, || std::thread::sleep(MS / 20));
}

fn exclude_each_other(limit: Duration, section: fn()) {
    let _turn = turn();
    let timed_out = Arc::new(AtomicU64::new(0));
    let shared = Arc::new(Mutex::new((0u64, 0u64)));
    let rounds = Arc::new(AtomicU64::new(0));
    let task = |set: Punctual, name: &str, period: u32| {
        let (shared, rounds, timed_out) = (shared.clone(), rounds.clone(), timed_out.clone());
        set.task(name).period(period * MS).budget(period * MS / 6).spawn(move |task| {
            for _ in task.releases() {
                for _ in 0..10 {
                    let (mut held, attempts) = lock_within(&shared, task, limit);
                    timed_out.fetch_add(attempts, SeqCst);
                    held.0 += 1;
                    section();
                    held.1 += 1;
                    assert_eq!(held.0, held.1, "another one was here");
                    drop(held);
                    rounds.fetch_add(1, SeqCst);
                }
            }
        })
    };
    let declare = |set| task(task(task(task(set, "a", 7), "b", 11), "c", 13), "d", 17);
    let Some(running) = start(declare) else { return };
    assert!(comes_true(|| rounds.load(SeqCst) > 1000), "the tasks make progress");
    let outcome = running.stop().expect("it stops");
    assert!(outcome.problems.is_empty(), "{:?}", outcome.problems);
    println!("{} waits timed out", timed_out.load(SeqCst));
    let held = Arc::try_unwrap(shared).expect("all have ended").into_inner();
    assert_eq!((held.0, held.1), (rounds.load(SeqCst), rounds.load(SeqCst)));
}

/// Each of four tasks holds a mutex and waits for the next one's; the last has used up its budget
/// of 1 ms in 100 ms, and has 1 ms to execute when the first in the row waits with 10 ms.
#[test]
fn a_budget_is_lent_through_four_mutexes_to_a_holder_that_is_parked() {
    let _turn = turn();
    let mutexes: Arc<[Mutex<()>; 4]> = Arc::new(std::array::from_fn(|_| Mutex::new(())));
    let waited = Arc::new(AtomicU64::new(0));
    let declare = |mut set: Punctual| {
        for held in (0..4).rev() {
            let mutexes = mutexes.clone();
            let start = 5 * MS * (3 - held as u32);
            let task = set.add(format!("holder {held}")).period(100 * MS).budget(MS).start(start);
            task.spawn(move |task| {
                let _held = mutexes[held].lock(task).expect("no deadlock");
                match mutexes.get(held + 1) {
                    Some(next) => drop(next.lock(task).expect("no deadlock")),
                    None => execute(5 * MS),
                }
            });
        }
        let (mutexes, waited) = (mutexes.clone(), waited.clone());
        let head = set.add("head").period(100 * MS).budget(10 * MS).start(20 * MS);
        head.spawn(move |task| {
            let begin = Instant::now();
            let _first = mutexes[0].lock(task).expect("no deadlock");
            waited.store(begin.elapsed().as_nanos() as u64, SeqCst);
        });
        set
    };
    let Some(running) = start(declare) else { return };
    assert!(comes_true(|| waited.load(SeqCst) > 0), "it has the mutex at last");
    running.stop().expect("it stops");
    let waited = Duration::from_nanos(waited.load(SeqCst));
    println!("it waited for {waited:?}");
    judge_timing(|| assert!(waited < 5 * MS, "{waited:?}"));
}

/// In each period the bus task finds the mutex locked, and gets it after 1 ms of the holder; it
/// executes for 1 ms, and sleeps while the holder executes on its own budget.
#[test]
fn what_is_executed_before_and_after_a_hand_over_is_charged_to_whose_it_is() {
    const PERIODS: u32 = 20;
    let _turn = turn();
    let periods = Arc::new(std::sync::Mutex::new(Vec::new()));
    let declare = |set: Punctual| {
        let periods = periods.clone();
        let mut set = set.policy(Policy::DeadlineMonotonic).observe(move |event| {
            if let RunEvent::Period { task, period } = event {
                periods.lock().expect("no panic").push((&*task == "bus", period.received));
            }
        });
        let mutex = Arc::new(Mutex::new(()));
        let comes = Arc::new(AtomicU32::new(0));
        let (held, at) = (mutex.clone(), comes.clone());
        set.add("holder").period(20 * MS).budget(8 * MS).spawn(move |task| {
            for (n, _) in task.releases().enumerate().take(PERIODS as usize) {
                let guard = held.lock(task).expect("no deadlock");
                let give_up = Instant::now() + LIVENESS;
                while at.load(SeqCst) == n as u32 && Instant::now() < give_up {
                    std::hint::spin_loop();
                }
                execute(MS);
                drop(guard);
                execute(2 * MS);
            }
        });
        let bus = set.add("bus").period(20 * MS).deadline(10 * MS).budget(5 * MS).start(MS);
        bus.spawn(move |task| {
            for _ in task.releases().take(PERIODS as usize) {
                comes.fetch_add(1, SeqCst);
                let guard = mutex.lock(task).expect("no deadlock");
                execute(MS);
                drop(guard);
                std::thread::sleep(4 * MS);
            }
        });
        set
    };
    let Some(running) = start(declare) else { return };
    running.wait();
    running.stop().expect("it stops");
    let periods = periods.lock().expect("no panic");
    println!("bus or not, and what was received: {periods:?}");
    judge_timing(|| {
        for is_bus in [true, false] {
            let received = periods.iter().filter(|p| p.0 == is_bus).map(|p| p.1);
            // The first period has page faults. The bus task preempts the holder some microseconds
            // before the holder has executed for 1 ms.
            let received: Vec<u64> = received.skip(1).collect();
            let expected = if is_bus { 2_000_000 } else { 3_000_000 };
            assert!(received.len() > PERIODS as usize / 2);
            let as_expected = |received: &u64| received.abs_diff(expected) < 100_000;
            assert!(received.iter().all(as_expected), "{is_bus}: {received:?}");
        }
    });
}

#[test]
fn a_deadlock_is_an_error_of_the_task_that_would_make_it() {
    let _turn = turn();
    let mutexes = Arc::new([Mutex::new(()), Mutex::new(())]);
    let deadlocks = Arc::new(AtomicU32::new(0));
    let [hold, ended] = std::array::from_fn(|_| Arc::new(AtomicU32::new(0)));
    let task = |set: Punctual, name: &str, first: usize| {
        let (mutexes, deadlocks) = (mutexes.clone(), deadlocks.clone());
        let (hold, ended) = (hold.clone(), ended.clone());
        set.task(name).period(20 * MS).budget(5 * MS).spawn(move |task| {
            let _first = mutexes[first].lock(task).expect("it is free");
            assert_eq!(mutexes[first].lock(task).err(), Some(LockError::Deadlock));
            assert!(mutexes[first].try_lock(task).is_none());
            hold.fetch_add(1, SeqCst);
            while hold.load(SeqCst) < 2 {
                std::thread::sleep(MS);
            }
            if mutexes[1 - first].lock(task).is_err() {
                deadlocks.fetch_add(1, SeqCst);
            }
            ended.fetch_add(1, SeqCst);
        })
    };
    let Some(running) = start(|set| task(task(set, "one", 0), "other", 1)) else { return };
    assert!(comes_true(|| ended.load(SeqCst) == 2), "neither waits for ever");
    assert_eq!(deadlocks.load(SeqCst), 1);
    running.stop().expect("it stops");
}

/// Locks it, and makes it consistent where it is poisoned; true: it was.
fn lock_any<'a>(mutex: &'a Mutex<()>, task: &'a Task<'_>) -> (MutexGuard<'a, ()>, bool) {
    match mutex.lock(task) {
        Ok(held) => (held, false),
        Err(LockError::Poisoned) => {
            let held = mutex.lock_poisoned(task).expect("no deadlock");
            assert!(mutex.is_poisoned() && mutex.try_lock(task).is_none());
            mutex.clear_poison();
            (held, true)
        }
        Err(e) => panic!("{e}"),
    }
}

#[test]
fn a_task_that_panics_or_leaks_its_guard_leaves_it_to_the_others_poisoned() {
    let _turn = turn();
    let shared = Arc::new(Mutex::new(()));
    let [got, poisoned] = std::array::from_fn(|_| Arc::new(AtomicU32::new(0)));
    let declare = |set: Punctual| {
        // The first two hold it while others come to wait; the third comes after them.
        let end: [(&str, End); 3] = [
            ("panics", |_held| panic!("as the test wants it")),
            ("leaks", |held| std::mem::forget(held)),
            ("unlocks", |held| drop(held)),
        ];
        end.into_iter().fold(set.policy(Policy::RateMonotonic), |set, (name, end)| {
            let (shared, got, poisoned) = (shared.clone(), got.clone(), poisoned.clone());
            set.task(name).period(20 * MS).budget(2 * MS).spawn(move |task| {
                while name == "unlocks" && got.load(SeqCst) < 2 {
                    std::thread::sleep(MS);
                }
                let (held, was_poisoned) = lock_any(&shared, task);
                poisoned.fetch_add(was_poisoned.into(), SeqCst);
                got.fetch_add(1, SeqCst);
                std::thread::sleep(30 * MS);
                end(held);
            })
        })
    };
    let Some(running) = start(declare) else { return };
    assert!(comes_true(|| got.load(SeqCst) == 3), "{} had it", got.load(SeqCst));
    assert_eq!(poisoned.load(SeqCst), 2);
    running.stop().expect("it stops");
    assert!(!shared.is_poisoned());
}

/// Each of four tasks holds a mutex and waits for the next one's; the last ends with the fourth.
#[test]
fn when_the_last_of_four_nested_holders_ends_the_others_get_on() {
    let _turn = turn();
    let mutexes: Arc<[Mutex<()>; 4]> = Arc::new(std::array::from_fn(|_| Mutex::new(())));
    let [holding, poisoned, ended] = std::array::from_fn(|_| Arc::new(AtomicU32::new(0)));
    let declare = |mut set: Punctual| {
        for held in (0..4).rev() {
            let mutexes = mutexes.clone();
            let (holding, poisoned, ended) = (holding.clone(), poisoned.clone(), ended.clone());
            let task = set.add(format!("holder {held}")).period(20 * MS).budget(2 * MS);
            task.spawn(move |task| {
                let guard = mutexes[held].lock(task).expect("it is free");
                holding.fetch_add(1, SeqCst);
                while holding.load(SeqCst) < 4 {
                    std::thread::sleep(MS);
                }
                match mutexes.get(held + 1) {
                    Some(next) => {
                        let (_next, was_poisoned) = lock_any(next, task);
                        poisoned.fetch_add(was_poisoned.into(), SeqCst);
                    }
                    None => {
                        std::thread::sleep(50 * MS);
                        std::mem::forget(guard);
                    }
                }
                ended.fetch_add(1, SeqCst);
            });
        }
        set
    };
    let Some(running) = start(declare) else { return };
    assert!(comes_true(|| ended.load(SeqCst) == 4), "{} ended", ended.load(SeqCst));
    assert_eq!(poisoned.load(SeqCst), 1);
    running.stop().expect("it stops");
}

#[test]
fn what_a_stopped_task_of_an_earlier_run_holds_is_not_lost() {
    let _turn = turn();
    let shared = Arc::new(Mutex::new(()));
    let locked = Arc::new(AtomicU32::new(0));
    let Some(running) = start(|set| set) else { return };
    let (held, at) = (shared.clone(), locked.clone());
    let holder = running.task("holder").period(20 * MS).budget(5 * MS).spawn(move |task| {
        std::mem::forget(held.lock(task).expect("it is free"));
        at.store(1, SeqCst);
        for _ in task.releases() {}
    });
    let holder = holder.expect("it fits");
    assert!(comes_true(|| locked.load(SeqCst) == 1), "it is locked");
    holder.stop().expect("it can be stopped");
    assert!(comes_true(|| holder.is_finished()), "it ends");
    running.stop().expect("it stops");
    let Some(running) = start(|set| set) else { return };
    let next = running.task("next").period(20 * MS).budget(5 * MS).spawn(move |task| {
        assert!(shared.try_lock(task).is_none() && shared.is_poisoned());
        let (_held, was_poisoned) = lock_any(&shared, task);
        was_poisoned
    });
    assert_eq!(next.expect("it fits").join(), Ok(true));
    running.stop().expect("it stops");
}

#[test]
fn when_the_run_is_over_tasks_lock_as_ordinary_threads() {
    let _turn = turn();
    let shared = Arc::new(Mutex::new(0u32));
    let began = Arc::new(AtomicU32::new(0));
    let declare = |set: Punctual| {
        ["one", "other"].into_iter().fold(set, |set, name| {
            let (shared, began) = (shared.clone(), began.clone());
            set.task(name).period(20 * MS).budget(5 * MS).spawn(move |task| {
                while !task.is_over() {
                    *shared.lock(task).expect("no deadlock") += 1;
                    began.fetch_add(1, SeqCst);
                    let _ = task.wait_period();
                }
                for _ in 0..100 {
                    let mut held = shared.lock(task).expect("no deadlock");
                    let before = *held;
                    execute(MS / 100);
                    *held = before + 1;
                }
            })
        })
    };
    let Some(running) = start(declare) else { return };
    assert!(comes_true(|| began.load(SeqCst) > 4), "they begin");
    running.stop().expect("it stops");
    let held = Arc::try_unwrap(shared).expect("all have ended").into_inner();
    assert_eq!(held, began.load(SeqCst) + 200);
}
