//! Threads that behave, and threads that do not.

mod common;

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU32, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use common::{class, execute, executed, mask, start, turn, MS};
use punctual::{ErrorKind, Punctual, RunEvent, Running, Task};
use punctual_test_support::{comes_true, execute_briefly, judge_timing, LIVENESS};

/// Executes until the run is over: the runaway.
fn spin(task: &Task<'_>) {
    let end = executed() + LIVENESS;
    while !task.is_over() && executed() < end {
        execute_briefly();
    }
}

/// Executes `time` in every period.
fn work(time: Duration) -> impl FnOnce(&Task<'_>) + Send {
    move |task| loop {
        execute(time);
        if task.wait_period().is_none() {
            return;
        }
    }
}

/// A sibling of 20 ms / 4 ms that executes 2 ms and waits.
fn with_sibling(set: Punctual) -> Punctual {
    set.task("sibling").period(20 * MS).budget(4 * MS).spawn(work(2 * MS))
}

/// Checks that the sibling was served despite the other tasks: nearly all of its periods were
/// completed in time.
fn assert_served(running: Running, at_least: u64) {
    let periods = || {
        running
            .results()
            .expect("it runs")
            .tasks
            .iter()
            .find(|t| t.name == "sibling")
            .map(|t| t.periods)
    };
    assert!(comes_true(|| periods() > Some(0)), "it is served");
    let outcome = running.stop().expect("it stops");
    assert!(outcome.problems.is_empty(), "{:?}", outcome.problems);
    let sibling = outcome.results.tasks.iter().find(|t| t.name == "sibling").expect("it was there");
    judge_timing(|| {
        assert!(sibling.periods >= at_least, "{} periods", sibling.periods);
        assert!(
            sibling.misses * 5 <= sibling.periods,
            "{} of {} missed",
            sibling.misses,
            sibling.periods
        );
    });
}

#[test]
fn one_that_never_waits_gets_its_budget_and_no_more() {
    let _turn = turn();
    let runaway = |set: Punctual| set.task("runaway").period(10 * MS).budget(3 * MS).spawn(spin);
    let Some(running) = start(|set| with_sibling(runaway(set))) else { return };
    std::thread::sleep(1200 * MS);
    let results = running.results().expect("it runs");
    let task = &results.tasks[0];
    judge_timing(|| {
        assert!(task.periods >= 50, "{} periods", task.periods);
        let median = task.budget_received.expect("it was always ready").median_ppm;
        assert!((950_000..=1_050_000).contains(&median), "median {median} ppm");
        let share = task.long_run_ppm.expect("it was always ready");
        assert!(share <= 1_050_000, "{share} ppm in the long run");
    });
    assert_served(running, 30);
}

#[test]
fn one_that_blocks_in_mid_job_reads_on_where_it_was() {
    let _turn = turn();
    let got = Arc::new(Mutex::new(Vec::new()));
    let (reader, mut writer) = UnixStream::pair().expect("two sockets");
    let running = start(|set| {
        let (got, mut reader) = (got.clone(), reader.try_clone().expect("a copy"));
        let set = set.task("reader").period(10 * MS).budget(2 * MS).spawn(move |task| loop {
            let mut byte = [0];
            // Not read_exact, which would hide an interruption.
            let n = reader.read(&mut byte);
            let end = !matches!(n, Ok(1)) || byte[0] == 9;
            got.lock().expect("no holder panics").push((n.map_err(|e| e.kind()), byte[0]));
            if end {
                return;
            }
            execute(MS / 2);
            let _ = task.current();
        });
        with_sibling(set)
    });
    let Some(running) = running else { return };
    for n in 0..10 {
        // It is parked and released several times in the middle of each read.
        std::thread::sleep(37 * MS);
        writer.write_all(&[n]).expect("the reader is open");
    }
    let ended = || running.alive().expect("it runs") == ["sibling"];
    assert!(comes_true(ended), "the reader has read everything");
    let want: Vec<_> = (0..10).map(|n| (Ok(1), n)).collect();
    assert_eq!(*got.lock().expect("no holder panics"), want);
    assert_served(running, 10);
}

#[test]
fn one_that_returns_early_is_over_and_its_budget_is_free() {
    let _turn = turn();
    let Some(running) =
        start(|set| with_sibling(set.task("brief").period(10 * MS).budget(6 * MS).spawn(|_| {})))
    else {
        return;
    };
    assert!(comes_true(|| running.alive().expect("it runs") == ["sibling"]));
    // Not while brief's 60 % were promised: 60 + 20 + 60.
    running
        .task("brief")
        .period(10 * MS)
        .budget(6 * MS)
        .spawn(work(MS))
        .expect("its name and budget are free");
    let e = running
        .task("more")
        .period(10 * MS)
        .budget(6 * MS)
        .spawn(work(MS))
        .expect_err("not another 60 %");
    assert_eq!(e.kind, ErrorKind::NotAdmitted, "{e}");
    let e = running
        .task("sibling")
        .period(10 * MS)
        .budget(MS / 2)
        .spawn(|_| {})
        .expect_err("that name lives");
    assert!(e.cause.contains("two tasks"), "{e}");
    std::thread::sleep(600 * MS);
    let results = running.results().expect("it runs");
    assert_eq!(
        results.tasks.iter().map(|t| t.name.as_str()).collect::<Vec<_>>(),
        ["brief", "sibling", "brief"]
    );
    judge_timing(|| {
        assert!(results.tasks[2].periods >= 20, "{} periods", results.tasks[2].periods)
    });
    assert_served(running, 15);
}

#[test]
fn one_that_panics_ends_alone() {
    let _turn = turn();
    let ends = Arc::new(Mutex::new(Vec::new()));
    let running = start(|set| {
        let ends = ends.clone();
        let set = set.observe(move |report| {
            if let RunEvent::Ended { task, how } = report {
                ends.lock().expect("no holder panics").push(format!("{task}: {how}"));
            }
        });
        with_sibling(set.task("wreck").period(10 * MS).budget(3 * MS).spawn(|task| {
            let _ = task.wait_period();
            panic!("the servo is gone");
        }))
    });
    let Some(running) = running else { return };
    std::thread::sleep(800 * MS);
    // Its message, and with RUST_BACKTRACE a long one, is printed on its own budget.
    assert!(comes_true(|| !ends.lock().expect("no holder panics").is_empty()));
    assert_eq!(*ends.lock().expect("no holder panics"), ["wreck: panicked: the servo is gone"]);
    assert_served(running, 20);
}

#[test]
fn one_that_blocks_the_gate_signal_is_put_into_the_ordinary_class() {
    let _turn = turn();
    let (was_ordinary, was_fifo) = (Arc::new(AtomicU32::new(0)), Arc::new(AtomicU32::new(0)));
    let warned = Arc::new(AtomicU32::new(0));
    let running = start(|set| {
        let (was_ordinary, was_fifo, warned) =
            (was_ordinary.clone(), was_fifo.clone(), warned.clone());
        let set = set.observe(move |report| {
            if matches!(&report, RunEvent::Warning(text) if text.contains("blocks the gate signal"))
            {
                warned.fetch_add(1, SeqCst);
            }
        });
        let set = set.task("deaf").period(20 * MS).budget(5 * MS).spawn(move |task| {
            mask(libc::SIG_BLOCK, libc::SIGRTMAX() - 1);
            let end = executed() + LIVENESS;
            while !task.is_over() && executed() < end {
                execute(MS / 10);
                let seen = if class() == libc::SCHED_OTHER { &was_ordinary } else { &was_fifo };
                seen.fetch_add(1, SeqCst);
            }
        });
        with_sibling(set)
    });
    let Some(running) = running else { return };
    std::thread::sleep(1500 * MS);
    assert!(
        comes_true(|| warned.load(SeqCst) > 0 && was_ordinary.load(SeqCst) > 0),
        "it continues in the ordinary class"
    );
    assert_eq!(warned.load(SeqCst), 1, "reported once");
    // 5 of 20 ms for 1.5 s are 375 ms: 3,750 steps at its level; generously twice that.
    judge_timing(|| {
        assert!((500..7_500).contains(&was_fifo.load(SeqCst)), "{was_fifo:?} steps at its level")
    });
    assert_served(running, 40);
}

#[test]
fn what_a_task_creates_is_ordinary() {
    let _turn = turn();
    let seen = Arc::new(AtomicI32::new(-1));
    let running = start(|set| {
        let seen = seen.clone();
        set.task("parent").period(20 * MS).budget(5 * MS).spawn(move |_| {
            assert_eq!(class(), libc::SCHED_FIFO);
            let child = std::thread::spawn(class);
            seen.store(child.join().expect("it does not panic"), SeqCst);
        })
    });
    let Some(running) = running else { return };
    assert!(running.wait_timeout(LIVENESS), "it ends");
    assert_eq!(seen.load(SeqCst), libc::SCHED_OTHER);
    drop(running);
}

#[test]
fn an_observer_that_panics_costs_only_itself() {
    let _turn = turn();
    let called = Arc::new(AtomicU32::new(0));
    let over = Arc::new(AtomicBool::new(false));
    let running = start(|set| {
        let (called, over) = (called.clone(), over.clone());
        let set = set.observe(move |_| {
            called.fetch_add(1, SeqCst);
            panic!("a poor observer");
        });
        set.task("t").period(10 * MS).budget(2 * MS).spawn(move |task| {
            while task.wait_period().is_some() {}
            over.store(true, SeqCst);
        })
    });
    let Some(running) = running else { return };
    assert!(comes_true(|| running.results().expect("it runs").tasks[0].periods > 5));
    let outcome = running.stop().expect("it stops");
    assert!(outcome.problems.is_empty());
    assert_eq!((called.load(SeqCst), over.load(SeqCst)), (1, true));
}
