//! Handles of tasks, scopes, and threads that become tasks for a while.

mod common;

use std::cell::RefCell;
use std::process::Command;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use common::{class, cpu, execute, executed, start, turn, MS};
use punctual::{ErrorKind, Parameters, Punctual, Released, Running, Task, TaskEnd, TaskHandle};
use punctual_test_support::{comes_true, execute_briefly};

/// A set of one task that works all the time.
fn with_worker(set: Punctual) -> Punctual {
    set.task("worker")
        .period(20 * MS)
        .budget(2 * MS)
        .spawn(|task: &Task<'_>| for _ in task.releases() {})
}

/// The CPUs that the calling thread may use.
fn affinity() -> Vec<u32> {
    punctual_sys::sched::cpus(&punctual_sys::sched::affinity(0).expect("it is this thread"))
        .collect()
}

#[test]
fn a_task_returns_a_value_and_a_panic_is_its_end() {
    let _turn = turn();
    let Some(running) = start(with_worker) else { return };
    let sum = running.task("sum").period(10 * MS).budget(MS);
    let sum =
        sum.spawn(|task| task.releases().take(3).map(|r| r.number).sum::<u64>()).expect("it fits");
    assert_eq!(sum.name(), "sum");
    assert_eq!(sum.join(), Ok(3), "releases 0, 1 and 2: the first is not wasted");
    let wreck = running.task("wreck").period(10 * MS).budget(MS);
    let wreck = wreck.spawn(|_| -> u32 { panic!("the servo is gone") }).expect("it fits");
    assert_eq!(wreck.join(), Err(TaskEnd::Panicked("the servo is gone".to_owned())));
    let brief = running
        .task("brief")
        .period(10 * MS)
        .budget(MS)
        .command(["sh", "-c", "exit 3"])
        .expect("it fits");
    assert_eq!(brief.join(), Ok(TaskEnd::Exited(3)));
}

#[test]
fn the_end_of_its_task_restores_a_process_which_continues() {
    let _turn = turn();
    let Some(running) = start(with_worker) else { return };
    let mut sleeper = Command::new("sleep").arg("600").spawn().expect("coreutils are here");
    let pid = sleeper.id();
    let class_of = || {
        // SAFETY: only asks.
        unsafe { libc::sched_getscheduler(pid as i32) }
    };
    let cgroup = || std::fs::read_to_string(format!("/proc/{pid}/cgroup")).expect("it is there");
    let home = cgroup();
    for round in 0..3 {
        let task = running.task(format!("adopted {round}")).period(10 * MS).budget(MS);
        let task = task.pid(pid as i32).expect("it fits");
        assert_ne!(class_of(), libc::SCHED_OTHER);
        task.stop().expect("it runs");
        assert_eq!(task.join(), Ok(TaskEnd::Stopped));
        assert_eq!((class_of(), cgroup()), (libc::SCHED_OTHER, home.clone()));
    }
    assert_eq!(running.alive().expect("it runs"), ["worker"]);
    sleeper.kill().expect("it is ours");
    common::await_end(&mut sleeper);
}

#[test]
fn a_handle_stops_its_task_and_no_other() {
    let _turn = turn();
    let Some(running) = start(with_worker) else { return };
    let count = running.task("count").period(10 * MS).budget(MS);
    let count = count.spawn(|task| task.releases().count()).expect("it fits");
    let sleeper = running
        .task("sleeper")
        .period(10 * MS)
        .budget(MS)
        .command(["sleep", "86399"])
        .expect("it fits");
    assert!(comes_true(|| count.results().is_ok_and(|r| r.periods > 2)));
    assert!(!count.is_finished() && !sleeper.is_finished());
    count.stop().expect("it lives");
    sleeper.stop().expect("it lives");
    assert!(count.join().is_ok_and(|releases| releases > 2));
    assert_eq!(sleeper.join(), Ok(TaskEnd::Signalled(libc::SIGKILL)));
    assert_eq!(running.alive().expect("it runs"), ["worker"]);
}

#[test]
fn a_handle_outlives_its_run() {
    let _turn = turn();
    let held = RefCell::new(None);
    let Some(running) = start(|mut set| {
        let looper = set.add("looper").period(10 * MS).budget(MS);
        *held.borrow_mut() = Some(looper.spawn(|task| task.releases().count()));
        set
    }) else {
        return;
    };
    let looper = held.into_inner().expect("it was declared");
    assert!(comes_true(|| looper.results().is_ok_and(|r| r.periods > 0)));
    running.stop().expect("it runs");
    assert!(looper.is_finished() && looper.stop().is_err() && looper.results().is_err());
    assert!(
        looper.join().is_ok_and(|releases| releases > 0),
        "its thread saw the end and returned"
    );
}

#[test]
fn a_set_that_was_never_started_has_no_values() {
    let mut set = Punctual::on_cpu(cpu());
    let idle = set.add("idle").period(10 * MS).budget(MS).spawn(|_| 1);
    assert!(idle.stop().is_err_and(|e| e.kind == ErrorKind::Usage));
    drop(set.admit());
    assert_eq!(idle.join(), Err(TaskEnd::NeverReleased));
}

#[test]
fn a_budget_changes_while_the_task_runs_unless_it_does_not_fit() {
    let _turn = turn();
    let Some(running) = start(with_worker) else { return };
    let used = Arc::new(AtomicU64::new(0));
    let in_task = used.clone();
    let greedy = running.task("greedy").period(20 * MS).budget(2 * MS);
    let greedy = greedy.spawn(move |task| {
        while !task.is_over() {
            execute_briefly();
            in_task.store(executed().as_nanos() as u64, SeqCst);
        }
    });
    let greedy = greedy.expect("it fits");
    let share = || {
        let (before, since) = (used.load(SeqCst), punctual::Time::now());
        std::thread::sleep(400 * MS);
        (used.load(SeqCst) - before) as f64 / (punctual::Time::now() - since).as_nanos() as f64
    };
    assert!(comes_true(|| (0.05..0.15).contains(&share())), "2 ms of 20");
    let refusal = greedy.set_budget(19 * MS).expect_err("90 % of a CPU at most");
    assert_eq!(refusal.kind, ErrorKind::NotAdmitted);
    assert!(
        greedy.set_budget(21 * MS).is_err_and(|e| e.kind == ErrorKind::Usage),
        "more than its deadline"
    );
    greedy.set_budget(8 * MS).expect("it fits");
    assert!(comes_true(|| (0.3..0.45).contains(&share())), "8 ms of 20");
    let results = running.stop().expect("it runs").results;
    let greedy = results.tasks.iter().find(|t| t.name == "greedy").expect("it was there");
    assert!(greedy.received_ns > 0);
}

#[test]
fn a_period_changes_while_the_task_runs_and_its_deadline_follows() {
    let _turn = turn();
    let Some(running) = start(with_worker) else { return };
    let seen = Arc::new(Mutex::new(Vec::<Released>::new()));
    let in_task = seen.clone();
    let servo = running.task("servo").period(10 * MS).budget(MS);
    let servo = servo.spawn(move |task| {
        for release in task.releases() {
            in_task.lock().expect("none panics").push(release);
        }
    });
    let servo = servo.expect("it fits");
    let length = |release: &Released| release.deadline - release.release;
    let latest = || seen.lock().expect("none panics").last().map(length);
    assert!(comes_true(|| latest() == Some(10 * MS)));
    let same = Parameters::new();
    for wrong in [
        same.deadline(11 * MS),
        same.period(MS / 1000),
        same.period(Duration::MAX),
        same.budget(Duration::ZERO),
        same.deadline(MS / 2),
    ] {
        let refusal = servo.change(&wrong).expect_err("out of its range");
        assert_eq!(refusal.kind, ErrorKind::Usage, "{wrong:?}: {refusal}");
        assert!(refusal.cause.contains("servo"), "{refusal}");
    }
    let refusal = servo.change(&same.period(20 * MS).budget(19 * MS)).expect_err("no room");
    assert_eq!(refusal.kind, ErrorKind::NotAdmitted);
    servo.change(&same.period(15 * MS).budget(2 * MS)).expect("it fits");
    assert!(comes_true(|| latest() == Some(15 * MS)));
    servo.change(&same.deadline(8 * MS).priority(3)).expect("it fits");
    assert!(comes_true(|| latest() == Some(8 * MS)));
    servo.stop().expect("it lives");
    servo.join().expect("it returns");
    let all = seen.lock().expect("none panics");
    let lengths: Vec<_> = all.iter().map(length).collect();
    let changes = lengths.windows(2).filter(|pair| pair[0] != pair[1]).count();
    assert_eq!((lengths[0], changes), (10 * MS, 2), "neither sooner nor partly: {lengths:?}");
    for pair in all.windows(2) {
        // Of the releases in between, which were lost, some may be of either period.
        let (count, time) =
            ((pair[1].number - pair[0].number) as u32, pair[1].release - pair[0].release);
        let short = if length(&pair[0]) == 10 * MS { 10 * MS } else { 15 * MS };
        let long = if length(&pair[1]) == 10 * MS { 10 * MS } else { 15 * MS };
        let beyond = time - short * count;
        assert!(beyond <= (long - short) * (count - 1), "{pair:?}");
        assert_eq!(beyond.as_nanos() % (5 * MS).as_nanos(), 0, "{pair:?}");
    }
}

#[test]
fn a_scope_lends_to_its_tasks_and_outlives_none_of_them() {
    let _turn = turn();
    let Some(running) = start(with_worker) else { return };
    let (counted, endless) = (AtomicU64::new(0), AtomicU64::new(0));
    running.scope(|scope| {
        let count = scope.task("count").period(10 * MS).budget(MS);
        let count = count.spawn_scoped(|task| {
            task.releases().take(3).for_each(|_| {
                counted.fetch_add(1, SeqCst);
            });
        });
        let loops = scope.task("endless").period(10 * MS).budget(MS);
        let loops = loops.spawn_scoped(|task| {
            task.releases().for_each(|_| {
                endless.fetch_add(1, SeqCst);
            });
        });
        assert_eq!(count.expect("it fits").join(), Ok(()));
        assert!(loops.is_ok() && comes_true(|| endless.load(SeqCst) > 0));
    });
    let seen = endless.load(SeqCst);
    assert_eq!(counted.load(SeqCst), 3);
    std::thread::sleep(50 * MS);
    assert_eq!(endless.load(SeqCst), seen, "its task has ended");
}

#[test]
fn a_panic_in_a_scope_continues_after_its_tasks_have_ended() {
    let _turn = turn();
    let Some(running) = start(with_worker) else { return };
    let releases = AtomicU64::new(0);
    let scoped = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        running.scope(|scope| {
            let loops = scope.task("loops").period(10 * MS).budget(MS);
            let started = loops.spawn_scoped(|task| {
                task.releases().for_each(|_| {
                    releases.fetch_add(1, SeqCst);
                });
            });
            assert!(started.is_ok() && comes_true(|| releases.load(SeqCst) > 0));
            panic!("in the scope");
        })
    }));
    let seen = releases.load(SeqCst);
    assert!(scoped.is_err());
    std::thread::sleep(50 * MS);
    assert_eq!(releases.load(SeqCst), seen);
}

#[test]
fn the_calling_thread_is_a_task_for_a_while_and_what_it_was_afterwards() {
    let _turn = turn();
    let Some(running) = start(with_worker) else { return };
    let me = || (class(), affinity());
    let before = me();
    let within = |running: &Running| {
        let task = running.task("me").period(10 * MS).budget(2 * MS);
        task.enter(|task| {
            let mut numbers = Vec::new();
            for release in task.releases().take(3) {
                execute(MS);
                numbers.push(release.number);
            }
            (numbers, me())
        })
    };
    let (numbers, inside) = within(&running).expect("it fits");
    assert_eq!(numbers, [0, 1, 2]);
    assert_ne!(inside, before, "it had a real-time level on the set's CPU");
    assert_eq!(me(), before);
    assert!(comes_true(|| running.alive().is_ok_and(|alive| alive == ["worker"])));
    // The name is free again, and the thread may become a task again.
    assert_eq!(within(&running).expect("it fits").0.len(), 3);
    let results = running.stop().expect("it runs").results;
    assert_eq!(results.tasks.iter().filter(|t| t.name == "me").count(), 2);
}

#[test]
fn a_thread_that_is_not_admitted_stays_what_it_was() {
    let _turn = turn();
    let Some(running) = start(with_worker) else { return };
    let before = (class(), affinity());
    let refusal = running.task("me").period(10 * MS).budget(9 * MS).enter(|_| unreachable!()).err();
    assert_eq!(refusal.map(|e| e.kind), Some(ErrorKind::NotAdmitted));
    assert_eq!((class(), affinity()), before);
    running.stop().expect("it runs");
}

#[test]
fn an_attached_thread_is_a_task_until_it_is_dropped() {
    let _turn = turn();
    let Some(running) = start(with_worker) else { return };
    let draft = |name: &str| running.task(name).period(10 * MS).budget(2 * MS);
    let before = (class(), affinity());
    let mut handle = None;
    let attached = draft("me").attach_with(|admitted| handle = Some(admitted)).expect("it fits");
    let handle = handle.expect("it was admitted");
    let (first, next) = (attached.task().current(), attached.task().wait_period());
    assert!(next.is_some_and(|next| next.number > first.number), "{first:?}, {next:?}");
    let again = draft("me too").attach().expect_err("it is a task already");
    assert_eq!((again.kind, again.errno), (ErrorKind::Usage, Some(libc::EALREADY)), "{again}");
    assert!(!handle.is_finished());
    handle.stop().expect("it is alive");
    assert_eq!(attached.task().wait_period(), None);
    drop(attached);
    assert_eq!((class(), affinity()), before);
    assert_eq!(handle.join(), Ok(()));
    let refusal = draft("worker").attach().expect_err("the name is taken");
    assert_eq!(refusal.errno, Some(libc::EEXIST), "{refusal}");
    drop(draft("me").attach().expect("the name is free again"));
    running.stop().expect("it runs");
}

#[test]
fn a_prepared_thread_is_ordinary_and_its_handle_refuses_until_it_is_added() {
    let _turn = turn();
    let Some(running) = start(with_worker) else { return };
    let draft = |name: &str| running.task(name).period(10 * MS).budget(2 * MS);
    let before = (class(), affinity());
    let mut handle = None;
    let prepare = |prepared: TaskHandle<()>| {
        assert_eq!((class(), affinity()), before);
        assert!(!prepared.is_added());
        assert_eq!(prepared.stop().expect_err("it is none yet").kind, ErrorKind::Usage);
        handle = Some(prepared);
    };
    let attached = draft("me").attach_prepared(prepare).expect("it fits");
    let handle = handle.expect("it was prepared");
    assert!(handle.is_added());
    handle.stop().expect("it is alive");
    drop(attached);
    assert_eq!(handle.join(), Ok(()));
    let mut handle = None;
    draft("worker").attach_prepared(|prepared| handle = Some(prepared)).expect_err("it is taken");
    assert!(!handle.expect("it was prepared").is_added());
    assert_eq!((class(), affinity()), before);
    running.stop().expect("it runs");
}

#[test]
fn a_run_that_was_stopped_refuses_requests() {
    let _turn = turn();
    let Some(running) = start(with_worker) else { return };
    std::thread::scope(|threads| {
        let waits = threads.spawn(|| running.wait());
        running.stop().expect("it runs");
        waits.join().expect("it returns");
    });
    for refusal in [running.stop().err(), running.results().err()] {
        assert_eq!(refusal.and_then(|e| e.errno), Some(libc::ECANCELED));
    }
    let task = running.task("late").period(10 * MS).budget(MS).spawn(|_| ());
    assert_eq!(task.err().and_then(|e| e.errno), Some(libc::ECANCELED));
}
