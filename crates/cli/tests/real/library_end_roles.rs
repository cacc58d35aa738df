//! Roles of library_roles.rs of a program whose tasks end with the service, or with another process
//! in its place.

use std::sync::mpsc::{channel, Receiver};
use std::time::{Duration, Instant};

use ::punctual::{Error, Period, RunEvent, Running, TaskEnd, TaskHandle, Time};
use punctual_test_support::{comes_true, execute_briefly};

use super::{
    await_event, by_service, is_ordinary, observed, patiently, start, wait_until_over, warning,
    LIFE, MS,
};

/// Of both tasks.
const PERIOD: Duration = Duration::from_millis(10);

/// Two tasks until they are over: one that waits, and one that looks whether it is over.
struct TwoThreads {
    running: Running,
    events: Receiver<RunEvent>,
    handles: [TaskHandle<()>; 2],
    /// Of each at its end: it is an ordinary thread.
    returned: Receiver<bool>,
}

/// What a program of this number makes once its two tasks have begun.
pub fn ready_file(pid: u32) -> String {
    format!("/tmp/punctual-test-ready-{pid}")
}

impl TwoThreads {
    fn start(cpu: u32) -> TwoThreads {
        let mut declared = None;
        let running = start(|| {
            let (mut set, events) = observed(by_service(cpu));
            let (returns, returned) = channel();
            let of_other = returns.clone();
            let (begins, begun) = channel();
            let other_begins = begins.clone();
            let waits = set.add("waits").period(PERIOD).budget(MS).spawn(move |task| {
                let _ = begins.send(());
                wait_until_over(task);
                let _ = returns.send(is_ordinary());
            });
            let looks = set.add("looks").period(PERIOD).budget(MS).spawn(move |task| {
                let _ = other_begins.send(());
                let end = Instant::now() + LIFE / 2;
                while !task.is_over() {
                    assert!(Instant::now() < end, "it is over");
                    execute_briefly();
                }
                let _ = of_other.send(is_ordinary());
            });
            declared = Some((events, [waits, looks], returned, begun));
            set
        });
        let (events, handles, returned, begun) = declared.expect("it was declared");
        for _ in &handles {
            begun.recv_timeout(LIFE / 2).expect("it begins");
        }
        std::fs::write(ready_file(std::process::id()), "").expect("it is written");
        TwoThreads { running, events, handles, returned }
    }

    /// Waits until both have returned, as ordinary threads.
    fn await_return(&self) {
        for _ in &self.handles {
            assert_eq!(self.returned.recv_timeout(LIFE / 2), Ok(true));
        }
    }
}

pub fn ends(cpu: u32) {
    let two = TwoThreads::start(cpu);
    two.await_return();
    for handle in &two.handles {
        // It is waited for, a second at most.
        assert!(matches!(handle.wait(), TaskEnd::Returned | TaskEnd::Stopped));
    }
    await_event(&two.events, |event| warning(event, "punctuald has ended"));
    let draft = two.running.task("further").period(10 * MS).budget(MS);
    assert!(draft.spawn(|_| {}).expect_err("it has ended").cause.contains("punctuald has ended"));
    two.running.wait();
    let error: Error = two.running.stop().expect_err("it has ended");
    assert!(error.cause.contains("punctuald has ended"), "{error}");
}

/// Threads have reservations again, with the numbers of their releases, their values and their
/// suspensions.
pub fn replaced(cpu: u32) {
    let two = TwoThreads::start(cpu);
    let [waits, looks] = &two.handles;
    waits.set_budget(MS * 3 / 2).expect("it fits");
    waits.suspend().expect("it executes");
    // The test has seen that both begin: this is another thing to see.
    let ready = ready_file(std::process::id());
    assert!(comes_true(|| !std::path::Path::new(&ready).exists()));
    std::fs::write(&ready, "").expect("it is written");
    assert!(comes_true(|| !std::path::Path::new(&ready).exists()));
    // By the other process of the service.
    assert!(comes_true(|| std::path::Path::new(&ready).exists()));
    let since = Time::now().as_nanos();
    let mut last: Option<Period> = None;
    let end = Instant::now() + LIFE / 2;
    while last.as_ref().is_none_or(|last| last.release < since) {
        assert!(Instant::now() < end, "it has a reservation again");
        let event = two.events.recv_timeout(LIFE / 2).expect("it runs");
        let RunEvent::Period { task, period } = event else { continue };
        if &*task != "waits" {
            continue;
        }
        // Its releases keep their times and numbers.
        if let Some(last) = last {
            let passed = (period.number - last.number) * PERIOD.as_nanos() as u64;
            assert_eq!(period.release - last.release, passed, "{period:?} after {last:?}");
        }
        last = Some(period);
    }
    let assigned = last.map(|last| Duration::from_nanos(last.assigned));
    assert_eq!(assigned, Some(MS * 3 / 2));
    waits.resume().expect("it is suspended still");
    assert_eq!(waits.resume().expect_err("no more").errno, Some(libc::EALREADY));
    assert!(!looks.is_finished() && !waits.is_finished());
    // The connection has another process at its other end.
    let again = patiently(|| {
        let again = two.running.task("again").period(20 * MS).budget(MS);
        again.spawn(|task| task.wait_period().is_some())
    });
    assert_eq!(again.join(), Ok(true));
    two.handles.iter().for_each(|handle| handle.stop().expect("it runs"));
    two.await_return();
    assert!(two.running.stop().expect("it runs").problems.is_empty());
}
