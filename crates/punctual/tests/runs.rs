//! Runs as a whole: one after another, one beside another, ended by any way there is.

mod common;

use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering::SeqCst};
use std::sync::{mpsc, Arc};
use std::time::{Duration, Instant};

use common::{await_end, class, cpu, execute, executed, locked_kib, output_of, start, turn, MS};
use punctual::{ErrorKind, Punctual, RunEvent, Time};
use punctual_test_support::{comes_true, judge_timing, LIVENESS};

const CHILD: &str = "PUNCTUAL_TEST_CHILD";

fn idle(set: Punctual) -> Punctual {
    set.task("idle")
        .period(20 * MS)
        .budget(2 * MS)
        .spawn(|task| while task.wait_period().is_some() {})
}

/// Not a test of its own: the other process of the test below.
#[test]
fn the_other_process() {
    if std::env::var_os(CHILD).is_some() {
        let e = idle(Punctual::on_cpu(cpu()))
            .admit()
            .expect("it fits")
            .start()
            .expect_err("the CPU is taken");
        assert_eq!((e.kind, e.exit_code()), (ErrorKind::Machine, 4));
        println!("REFUSED {e}");
    }
}

#[test]
fn a_second_process_is_refused_and_its_error_names_the_owner_of_the_cpu() {
    let _turn = turn();
    let Some(running) = start(|set| idle(set.owner("the one who was first"))) else { return };
    let exe = std::env::current_exe().expect("we are somewhere");
    let text = output_of(
        Command::new(exe).args(["--exact", "the_other_process", "--nocapture"]).env(CHILD, "1"),
    );
    let pid = std::process::id().to_string();
    assert!(
        text.contains("REFUSED") && text.contains("the one who was first") && text.contains(&pid),
        "{text}"
    );
    // Nor may this one have it twice.
    let e = idle(Punctual::on_cpu(cpu()))
        .admit()
        .expect("it fits")
        .start()
        .expect_err("the CPU is taken");
    assert!(common::is_taken(&e), "{e}");
    let problems = running.stop().expect("it stops").problems;
    assert!(problems.is_empty(), "{problems:?}");
}

#[test]
fn memory_is_locked_during_a_run_only() {
    let _turn = turn();
    let Some(running) = start(idle) else { return };
    assert!(locked_kib() > 0);
    drop(running);
    assert_eq!(locked_kib(), 0);
}

#[test]
fn a_run_after_a_run_works_whether_stopped_or_dropped() {
    let _turn = turn();
    for round in 0..4 {
        let (at_end, ended) = mpsc::channel();
        let running = start(|set| {
            let at_end = at_end.clone();
            set.task("t").period(10 * MS).budget(2 * MS).spawn(move |task| {
                let mut periods = 0;
                while task.wait_period().is_some() {
                    periods += 1;
                }
                at_end.send((periods, class())).expect("the receiver exists");
            })
        });
        let Some(running) = running else { return };
        assert!(!running.wait_timeout(200 * MS), "it does not end by itself");
        if round % 2 == 0 {
            drop(running);
        } else {
            let outcome = running.stop().expect("it stops");
            assert!(outcome.problems.is_empty(), "{:?}", outcome.problems);
            let events = outcome.results.dispatcher.expect("it ran").events;
            judge_timing(|| assert!(events > 10, "{events}"));
        }
        let (periods, class) = ended.recv_timeout(LIVENESS).expect("it returns");
        judge_timing(|| assert!((5..60).contains(&periods), "{periods} periods in 0.2 s"));
        assert_eq!(class, libc::SCHED_OTHER, "what continues is ordinary");
    }
}

#[test]
fn a_start_that_fails_calls_no_task_and_leaves_nothing() {
    let _turn = turn();
    let called = Arc::new(AtomicU32::new(0));
    if start(idle).is_none() {
        return;
    }
    let until = Instant::now() + LIVENESS;
    let e = loop {
        let called = called.clone();
        let set =
            Punctual::on_cpu(cpu()).task("t").period(10 * MS).budget(2 * MS).spawn(move |_| {
                called.fetch_add(1, SeqCst);
            });
        let set = set.task("gone").period(10 * MS).budget(2 * MS).command(["/no/such/program"]);
        let e = set.admit().expect("it fits").start().expect_err("there is no such program");
        if !common::is_taken(&e) || Instant::now() > until {
            break e;
        }
    };
    assert_eq!(e.kind, ErrorKind::Command, "{e}");
    assert!(e.cause.contains("/no/such/program"), "{e}");
    std::thread::sleep(100 * MS);
    assert_eq!(called.load(SeqCst), 0, "no closure was called");
    drop(start(idle));
}

#[test]
fn a_run_that_ends_before_its_first_release_calls_no_task() {
    let _turn = turn();
    let called = Arc::new(AtomicU32::new(0));
    for stop in [true, false] {
        let running = start(|set| {
            let called = called.clone();
            set.task("t").period(20 * MS).budget(2 * MS).start(Duration::from_secs(60)).spawn(
                move |_| {
                    called.fetch_add(1, SeqCst);
                },
            )
        });
        let Some(running) = running else { return };
        if stop {
            assert_eq!(running.stop().expect("it stops").problems, Vec::<String>::new());
        }
    }
    assert_eq!(called.load(SeqCst), 0);
}

fn is_there(pid: &str) -> bool {
    let stat =
        std::fs::read_to_string(Path::new("/proc").join(pid).join("stat")).unwrap_or_default();
    stat.rsplit(')')
        .next()
        .and_then(|rest| rest.trim().chars().next())
        .is_some_and(|state| state != 'Z')
}

/// Commands die with the thread that started them; it must not be the program's.
#[test]
fn commands_outlive_the_thread_that_started_the_run_but_not_the_run() {
    let _turn = turn();
    let dir = std::env::temp_dir().join(format!("punctual-test-{}", std::process::id()));
    std::fs::create_dir_all(&dir).expect("a place for it");
    let file = dir.join("pid");
    let script = format!("echo $$ > {}; exec sleep 1000", file.display());
    let starter = std::thread::spawn(move || {
        start(|set| {
            set.task("sleeper").period(20 * MS).budget(5 * MS).command(["sh", "-c", &script])
        })
    });
    let Some(running) = starter.join().expect("it starts") else { return };
    let mut pid = String::new();
    comes_true(|| {
        pid = std::fs::read_to_string(&file).unwrap_or_default().trim().to_owned();
        !pid.is_empty()
    });
    std::thread::sleep(200 * MS);
    assert!(!pid.is_empty() && is_there(&pid), "process {pid:?} runs");
    assert_eq!(running.alive().expect("it runs"), ["sleeper"]);
    drop(running);
    assert!(!is_there(&pid), "process {pid} is gone");
    drop(std::fs::remove_dir_all(dir));
}

#[test]
fn a_command_that_ends_is_reported_and_a_running_process_gets_its_class_back() {
    let _turn = turn();
    let (sender, receiver) = mpsc::channel();
    // Ends by itself, even if this test is killed.
    let mut load = Command::new("timeout")
        .args(["200", "sh", "-c", "while :; do :; done"])
        .stdin(Stdio::null())
        .spawn();
    let load = load.as_mut().expect("coreutils are here");
    let pid = i32::try_from(load.id()).expect("a pid");
    std::thread::sleep(100 * MS);
    let began = Instant::now();
    let running = start(|set| {
        let sender = sender.clone();
        let set = set.observe(move |report| {
            if let RunEvent::Ended { task, how } = report {
                let _ = sender.send(format!("{task}: {how}"));
            }
        });
        let set = set.task("brief").period(20 * MS).budget(4 * MS).command(["sh", "-c", "exit 3"]);
        set.task("load").period(20 * MS).budget(5 * MS).pid(pid)
    });
    // At its real-time level it executes nothing before its first release, 20 ms ahead.
    judge_timing(|| assert!(began.elapsed() < 200 * MS, "{:?}", began.elapsed()));
    if let Some(running) = running {
        let end = receiver.recv_timeout(LIVENESS).expect("it ends");
        assert_eq!(end, "brief: exited with 3");
        std::thread::sleep(1200 * MS);
        let outcome = running.stop().expect("it stops");
        let load = &outcome.results.tasks[1];
        let share = load.long_run_ppm.unwrap_or(0);
        judge_timing(|| {
            let periods = load.periods;
            assert!(
                periods > 30 && (900_000..1_100_000).contains(&share),
                "{share} ppm of {periods} periods"
            );
        });
        assert!(outcome.problems.is_empty(), "{:?}", outcome.problems);
        // SAFETY: only asks.
        assert_eq!(unsafe { libc::sched_getscheduler(pid) }, libc::SCHED_OTHER);
        assert!(is_there(&pid.to_string()), "it continues");
    }
    // `timeout` may have made a process group for its child: end the child through `timeout`.
    // SAFETY: our own child, which is not reaped yet.
    unsafe { libc::kill(pid, libc::SIGTERM) };
    await_end(load);
}

#[test]
fn a_task_that_never_looks_is_named_and_left_in_the_ordinary_class() {
    let _turn = turn();
    let started = Arc::new(AtomicU32::new(0));
    let running = start(|set| {
        let started = started.clone();
        set.task("stubborn").period(20 * MS).budget(5 * MS).spawn(move |_| {
            started.store(1, SeqCst);
            // Bounded: it costs the tests after it three seconds of one CPU at most.
            let end = executed() + 2 * Duration::from_secs(1);
            while executed() < end {
                execute(MS);
            }
            std::thread::sleep(Duration::from_secs(3));
        })
    });
    let Some(running) = running else { return };
    assert!(comes_true(|| started.load(SeqCst) == 1));
    let outcome = running.stop().expect("it stops");
    assert!(outcome.problems.iter().any(|p| p.contains("stubborn")), "{:?}", outcome.problems);
}

#[test]
fn a_further_task_is_released_whole_periods_from_a_given_time() {
    let _turn = turn();
    let Some(running) = start(idle) else { return };
    let period = 20 * MS;
    let passed = Time::now();
    std::thread::sleep(3 * MS);
    for at in [passed, Time::now() + 70 * MS] {
        let task = running.task("further").period(period).budget(1 * MS).first_release(at);
        let release = task.spawn(|task| task.release()).expect("it fits").join().expect("it ran");
        let after = release.since(at).as_nanos();
        assert!(release >= at && after % period.as_nanos() == 0, "{at} and {release}");
    }
}
