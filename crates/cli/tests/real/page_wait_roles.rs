//! Roles of this test binary (see adversarial.rs) of a program whose thread reserves for itself and
//! waits for its releases. Each ends the program with what it found wrong, or with 0.

use std::ffi::CStr;
use std::path::Path;
use std::time::Instant;

use punctual_service::{PageRelease, PeriodReport, ReservedThread, ServiceClient, TaskRequest};
use punctual_sys::sched::{policy, thread_id};
use punctual_test_support::judge_timing;
use punctual_trace::JobEnd;

use super::LIFE;

/// The name of the second thread from its reservation on.
pub const RESERVED: &CStr = c"reserved";

/// Plays `role` in a second thread, with a reservation of 2 ms in 10 ms by the service at `socket`.
pub fn wait(role: &str, socket: &str) {
    let (role, socket) = (role.to_owned(), socket.to_owned());
    let second = std::thread::spawn(move || {
        let (overrun, body): (&str, fn(&ReservedThread, ServiceClient)) = match role.as_str() {
            "completes" => ("carry", completes),
            "carry" | "background" | "signal" => (&role, catches_up),
            "skip" => ("skip", skips),
            "ends" => ("carry", waits_until_the_end),
            "releases" => ("carry", is_released),
            "disconnects" => ("carry", is_disconnected),
            _ => std::process::exit(99),
        };
        // SAFETY: ignores a signal that would end the program.
        unsafe { libc::signal(libc::SIGXCPU, libc::SIG_IGN) };
        let (thread, client) = reserve(Path::new(&socket), overrun);
        // SAFETY: the kernel copies the text.
        unsafe { libc::prctl(libc::PR_SET_NAME, RESERVED.as_ptr()) };
        body(&thread, client);
    });
    if second.join().is_err() {
        std::process::exit(101);
    }
}

fn reserve(socket: &Path, overrun: &str) -> (ReservedThread, ServiceClient) {
    let mut client = ServiceClient::require(socket).expect("it serves");
    let request = TaskRequest {
        tid: Some(thread_id()),
        overrun: Some(overrun.to_owned()),
        ..TaskRequest::new("waits", std::process::id() as i32, 10_000_000, 2_000_000)
    };
    let mut thread = None;
    at_last("the CPU is free", || match client.reserve_thread(&request) {
        Ok(reserved) => {
            thread = Some(reserved);
            true
        }
        Err(e) if e.cause.contains("already has a dispatcher") => false,
        Err(e) => panic!("{e}"),
    });
    (thread.expect("it has reserved"), client)
}

/// Waits without sleeping until it holds.
fn at_last(what: &str, mut holds: impl FnMut() -> bool) {
    let end = Instant::now() + LIFE / 2;
    while !holds() {
        assert!(Instant::now() < end, "never: {what}");
    }
}

/// The periods of the only reservation, until the release of this number is among them.
fn periods_until(client: &mut ServiceClient, number: u64) -> Vec<PeriodReport> {
    let mut periods: Vec<PeriodReport> = Vec::new();
    at_last("its periods are reported", || {
        let events = client.take_events().expect("it serves").events;
        periods.extend(events.into_iter().filter_map(|event| event.period));
        periods.last().is_some_and(|period| period.number >= number)
    });
    periods
}

fn completes(thread: &ReservedThread, mut client: ServiceClient) {
    let first = thread.wait_period().expect("it serves");
    assert!(thread.remaining_budget() <= first.budget, "{first:?}");
    let mut returned = vec![first];
    for _ in 0..100 {
        returned.push(thread.wait_period().expect("it serves"));
    }
    let last = returned[100];
    thread.wait_period().expect("it serves");
    for pair in returned.windows(2) {
        let after = pair[1].number - pair[0].number;
        assert_eq!(pair[1].release - pair[0].release, 10_000_000 * after, "{pair:?}");
        assert_eq!(pair[1].deadline, pair[1].release + 10_000_000);
    }
    let periods = periods_until(&mut client, last.number);
    let completed = periods.iter().filter(|p| p.end == JobEnd::Completed).count();
    assert!(completed > 0, "{periods:#?}");
    for period in periods.iter().filter(|p| p.end == JobEnd::Completed) {
        let at = period.completed_ns.expect("it is");
        assert!((period.release_ns..=period.deadline_ns).contains(&at), "{period:?}");
    }
    println!("{completed} of {} jobs completed", periods.len());
    judge_timing(|| {
        let whole = returned.windows(2).all(|p| p[1].number == p[0].number + 1);
        assert!(whole, "{returned:#?}");
        let mine = first.number..=last.number;
        for period in periods.iter().filter(|p| mine.contains(&p.number)) {
            assert!(period.end == JobEnd::Completed && !period.miss, "{period:#?}");
            // It notes itself when it completed: microseconds after its release.
            assert!(period.completed_ns < Some(period.release_ns + 5_000_000), "{period:#?}");
        }
    });
}

/// Executes until two releases more than this one have come.
fn overrun(thread: &ReservedThread, release: PageRelease) {
    at_last("its releases come", || thread.current().number >= release.number + 2);
}

/// Each release is returned once, or reported as lost.
fn catches_up(thread: &ReservedThread, mut client: ServiceClient) {
    // Late waits count from the first call on that ends a job.
    thread.wait_period().expect("it serves");
    let from = thread.wait_period().expect("it serves");
    overrun(thread, from);
    let mut returned: Vec<PageRelease> = Vec::new();
    at_last("it has caught up", || {
        let release = thread.wait_period().expect("it serves");
        returned.push(release);
        let lost: u64 = returned.iter().map(|r| u64::from(r.lost)).sum();
        let seen = from.number + returned.len() as u64 + lost;
        assert!(seen <= release.number, "a wait too many: {from:?} {returned:?}");
        seen == release.number
    });
    assert!(returned.len() >= 2, "it overran two releases: {returned:?}");
    let last = returned[returned.len() - 1];
    thread.wait_period().expect("it serves");
    let periods = periods_until(&mut client, last.number);
    assert!(periods.iter().any(|p| p.end == JobEnd::Exhausted && p.overrun), "{periods:#?}");
}

fn skips(thread: &ReservedThread, _client: ServiceClient) {
    thread.wait_period().expect("it serves");
    at_last("an overrun without other disturbance", || {
        let from = thread.wait_period().expect("it serves");
        overrun(thread, from);
        let next = thread.wait_period().expect("it serves");
        let between = next.number - from.number;
        assert!((1..between).contains(&u64::from(next.lost)), "{from:?} {next:?}");
        u64::from(next.lost) + 1 == between
    });
}

fn waits_until_the_end(thread: &ReservedThread, _client: ServiceClient) {
    while thread.wait_period().is_some() {}
    assert!(thread.wait_period().is_none());
    at_last("it is an ordinary thread", || policy(thread_id()) == Some(libc::SCHED_OTHER));
}

/// Another thread of the program gives the reservation back while this one waits.
fn is_released(thread: &ReservedThread, mut client: ServiceClient) {
    let id = thread.info().id;
    thread.wait_period().expect("it serves");
    let release = std::thread::spawn(move || {
        client.release(id).expect("its own");
        client
    });
    while thread.wait_period().is_some() {}
    waits_until_the_end(thread, release.join().expect("it does not panic"));
}

fn is_disconnected(thread: &ReservedThread, client: ServiceClient) {
    thread.wait_period().expect("it serves");
    let disconnect = std::thread::spawn(move || drop(client));
    while thread.wait_period().is_some() {}
    disconnect.join().expect("it does not panic");
    at_last("it is an ordinary thread", || policy(thread_id()) == Some(libc::SCHED_OTHER));
}
