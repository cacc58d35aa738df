//! `punctual serve --replace`: another process of the service takes everything over, and clients
//! notice nothing but a pause; whichever of the two is killed, nothing stays behind.

use std::io::{Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::time::Duration;

use punctual_diagnostic::Diagnostic;
use punctual_service::message::{send, MessageReader};
use punctual_service::{PeriodReport, ReservationChange, ServiceClient, TaskEvent, TaskRequest};
use punctual_sys::clock::CpuClock;
use punctual_sys::fd_passing;
use serde_json::{json, Value};

use crate::kills::clean_if_no_guardian_yet;
use crate::machine::{permitted_cpu, rounds, wait_for_cpu, Random};
use crate::privileges::UNPRIVILEGED;
use crate::process::{cgroup_of, eventually, kill, marked};
use crate::punctual::{assert_nothing_left, new_mark, Ended, Running};
use crate::service::{as_user, names, spin, Service, SERVICE_NEEDS};
use crate::service_threads::{request, Program};
use crate::victim::Victim;

/// The version of the messages between the two processes.
const VERSION: u32 = 4;
const LIMIT: usize = 1 << 24;

impl Service {
    /// Another one takes the place of this one, which ends.
    pub fn replace(&mut self) -> Ended {
        let successor = self.successor("service.toml");
        let old = std::mem::replace(&mut self.running, successor).end();
        old.assert_code(0).assert_says(&["has taken the place of this service"]);
        assert_nothing_left(old.pid, &old.mark, &[]);
        self.await_ready();
        old
    }

    /// One that is to take the place of this one, with this file as its configuration.
    pub fn successor(&self, config: &str) -> Running {
        let config = self.scratch.path(config);
        let args = ["serve", "--replace", "--socket", &self.socket, "--config", &config];
        let roles = self.scratch.path("roles");
        Running::from(|c| {
            c.args(args).env("DBUS_SYSTEM_BUS_ADDRESS", &self.bus).env("PUNCTUAL_ROLES", roles)
        })
    }
}

/// The next events of a reservation, until one is as wanted.
pub fn events_until(
    client: &mut ServiceClient,
    id: u64,
    wanted: impl Fn(&TaskEvent) -> bool,
) -> Vec<TaskEvent> {
    let mut events = Vec::new();
    eventually("its events", || {
        let reply = client.take_events().expect("it serves");
        events.extend(reply.events.into_iter().filter(|event| event.id == id));
        events.iter().any(&wanted)
    });
    events
}

/// Periods with all of their budget executed, of a program that wants more.
fn is_exhausted(event: &TaskEvent) -> bool {
    event.period.as_ref().is_some_and(|p| p.received_ns > 0 && p.overrun)
}

fn number(event: &TaskEvent) -> Option<u64> {
    event.period.as_ref().map(|period| period.number)
}

#[test]
fn clients_of_each_kind_keep_their_connections_and_reservations() {
    let Some(cpu) = permitted_cpu(&SERVICE_NEEDS) else { return };
    let mut service = Service::start(cpu.0);
    let (victim, program, spinner) =
        (Victim::start(), Program::start("attack spin"), Program::start("spin"));
    // A process that sleeps, a single thread, and a process, of two connections.
    let mut first = service.client();
    let sleeps = service.reserve(&mut first, &[request(victim.pid(), None, 1_000_000)])[0];
    let mut second = service.client();
    let wanted = [
        request(program.pid(), Some(program.second()), 1_000_000),
        request(spinner.pid(), None, 1_000_000),
    ];
    let spinning = service.reserve(&mut second, &wanted);
    let mut run = service.as_user(UNPRIVILEGED, &spin("20ms", "3ms"));
    run.wait_for("its reservation", |_| names(&service).len() == 4);
    // A client in the middle of a call, and one that has called nothing yet.
    let mut half = UnixStream::connect(&service.socket).expect("it listens");
    let call = b"{\"method\":\"io.punctual.Service.GetStatus\"}\0";
    half.write_all(&call[..20]).expect("it reads");
    let mut idle = service.client();

    let before = second.status().expect("it serves").reservations;
    let mut last: Vec<Option<u64>> = vec![None; 2];
    // Twice: the one that took over passes all on.
    for _ in 0..2 {
        for (id, last) in spinning.iter().zip(&mut last) {
            let events = events_until(&mut second, *id, is_exhausted);
            *last = (*last).max(events.iter().filter_map(number).max());
        }
        let old = service.replace();
        let after = second.status().expect("it serves").reservations;
        assert_eq!(after, before, "old: {}", old.err);
        let group = format!("punctual-{}-", service.running.pid());
        for pid in [victim.pid(), spinner.pid()] {
            assert!(cgroup_of(pid).contains(&group), "{}", cgroup_of(pid));
        }
    }
    for (id, last) in spinning.iter().zip(&last) {
        let events = events_until(&mut second, *id, |e| is_exhausted(e) && number(e) > *last);
        assert!(events.iter().all(|event| event.ended.is_none()), "{events:?}");
        let numbers: Vec<_> = events.iter().filter_map(number).collect();
        assert!(numbers.is_sorted_by(|a, b| a < b), "{numbers:?}");
    }
    half.write_all(&call[20..]).expect("it reads");
    let answer = MessageReader::new(LIMIT).next(&mut half).expect("it answers").expect("it serves");
    let answer: Value = serde_json::from_slice(&answer).expect("an answer");
    assert_eq!(answer["parameters"]["reservations"].as_array().map(Vec::len), Some(4));
    assert_eq!(idle.status().expect("it serves").reservations, before);

    // Each lease holds what it held, and no other.
    let refusal = first.release(spinning[0]).expect_err("another connection's");
    assert!(refusal.cause.contains("has no reservation"), "{refusal}");
    first.change(sleeps, &ReservationChange::of_budget(1_500_000)).expect("it fits");
    first.release(sleeps).expect("its own");
    victim.assert_as_before();
    drop(second);
    eventually("the reservations of the connection are released", || names(&service).len() == 1);
    kill(run.pid(), libc::SIGINT);
    assert_eq!(run.reap().code(), Some(130), "it has noticed nothing");
    eventually("its command is gone", || marked(&run.mark).is_empty());
    service.end(cpu.0);
}

#[test]
fn programs_and_threads_have_their_budgets_again_on_either_host() {
    let Some(cpu) = permitted_cpu(&SERVICE_NEEDS) else { return };
    let mut service = Service::start(cpu.0);
    let (program, threads) = (Program::start("spin"), Program::start("attack spin"));
    let mut client = service.client();
    let wanted = [
        request(program.pid(), None, 1_000_000),
        request(threads.pid(), Some(threads.second()), 1_000_000),
    ];
    let ids = service.reserve(&mut client, &wanted);
    let before = client.status().expect("it serves");
    let mut last = [None; 2];
    for round in 0..2 {
        for (id, last) in ids.iter().zip(&mut last) {
            let later = |event: &TaskEvent| is_exhausted(event) && number(event) > *last;
            let events = events_until(&mut client, *id, later);
            assert!(events.iter().all(|event| event.ended.is_none()), "{events:?}");
            *last = events.iter().filter_map(number).max();
        }
        if round == 0 {
            service.replace();
            let after = client.status().expect("it serves");
            assert_eq!(
                (after.host, after.reservations),
                (before.host.clone(), before.reservations.clone())
            );
        }
    }
    drop(client);
    eventually("nothing is reserved", || names(&service).is_empty());
    service.end(cpu.0);
}

/// A process that is to take everything over, and ends when this is dropped.
struct Successor {
    stream: UnixStream,
    reader: MessageReader,
}

impl Successor {
    fn connect(service: &Service) -> Successor {
        let (stream, reader) = service.client().hand_over(VERSION, LIMIT).expect("it serves");
        Successor { stream, reader }
    }

    fn receive(&mut self) -> Value {
        let message = self.reader.next(&mut self.stream).expect("it answers").expect("it answers");
        serde_json::from_slice(&message).expect("JSON")
    }

    fn send(&mut self, message: Value) {
        send(&mut self.stream, &message).expect("it reads");
    }
}

#[test]
fn a_service_continues_with_everything_if_the_one_that_takes_over_ends() {
    let Some(cpu) = permitted_cpu(&SERVICE_NEEDS) else { return };
    let service = Service::start(cpu.0);
    let (victim, spinner) = (Victim::start(), Program::start("spin"));
    let mut client = service.client();
    let wanted = [request(victim.pid(), None, 1_000_000), request(spinner.pid(), None, 1_000_000)];
    let ids = service.reserve(&mut client, &wanted);
    let before = client.status().expect("it serves").reservations;
    // After the offer; with all descriptors; with one reservation released, or both.
    for released in [None, Some(0), Some(1), Some(2)] {
        let mut successor = Successor::connect(&service);
        let offer = successor.receive();
        assert_eq!(offer["reservations"].as_array().map(Vec::len), Some(2), "{offer}");
        if let Some(released) = released {
            successor.send(json!("ready"));
            let count = |key: &str| offer[key].as_array().map_or(0, Vec::len);
            let count = 1 + count("connections") + count("locks");
            let fds = fd_passing::receive(&successor.stream, count).expect("they are passed");
            assert_eq!(fds.len(), count);
            for id in &ids[..released] {
                successor.send(json!({ "release": { "ids": [id], "ends": false } }));
                assert!(successor.receive()["released"].is_object());
            }
            if released > 0 {
                victim.assert_as_before();
            }
        }
        drop(successor);
        assert_eq!(client.status().expect("it serves").reservations, before);
        assert!(!victim.is_as_before(), "it has its reservation again");
        let last = events_until(&mut client, ids[1], is_exhausted).iter().filter_map(number).max();
        let events = events_until(&mut client, ids[1], |e| is_exhausted(e) && number(e) > last);
        assert!(events.iter().all(|event| event.ended.is_none()), "{events:?}");
    }
    // One at a time.
    let mut successor = Successor::connect(&service);
    let _ = successor.receive();
    let mut other = UnixStream::connect(&service.socket).expect("it listens");
    send(&mut other, &json!({ "method": "io.punctual.Service.GetStatus" })).expect("it reads");
    other.set_nonblocking(true).expect("a socket");
    assert!(other.read(&mut [0; 1]).is_err(), "calls wait");
    drop(successor);
    drop(client);
    eventually("it is as before", || victim.is_as_before());
    service.end(cpu.0);
}

#[test]
fn a_program_that_is_suspended_stays_so() {
    let Some(cpu) = permitted_cpu(&SERVICE_NEEDS) else { return };
    let mut service = Service::start(cpu.0);
    let program = Program::start("spin");
    let mut client = service.client();
    let id = service.reserve(&mut client, &[request(program.pid(), None, 1_000_000)])[0];
    client.suspend(id).expect("its own");
    client.suspend(id).expect("its own");
    drop(service.replace());
    client.resume(id).expect("suspended twice");
    let executed = || CpuClock::of_process(program.pid()).read().expect("it lives");
    let (mut before, mut still) = (executed(), 0);
    eventually("it stands still", || {
        let now = executed();
        still = if now == before { still + 1 } else { 0 };
        before = now;
        still > 20
    });
    client.resume(id).expect("suspended once");
    eventually("it executes", || executed() > before);
    let refusal = client.resume(id).expect_err("it executes");
    assert_eq!(refusal.errno, Some(libc::EALREADY), "{refusal}");
    drop(client);
    service.end(cpu.0);
}

#[test]
fn a_service_of_another_version_and_a_user_who_is_not_root_are_refused() {
    let Some(cpu) = permitted_cpu(&SERVICE_NEEDS) else { return };
    let service = Service::start(cpu.0);
    let victim = Victim::start();
    let mut client = service.client();
    let id = service.reserve(&mut client, &[request(victim.pid(), None, 1_000_000)])[0];
    let refused = |refusal: Result<_, Diagnostic>| refusal.map(drop).expect_err("refused").cause;
    let cause = refused(service.client().hand_over(VERSION + 1, LIMIT));
    let versions = format!("hands over by version {VERSION}, not by version {}", VERSION + 1);
    assert!(cause.contains(&versions), "{cause}");
    let socket = service.socket.clone();
    let cause = as_user(move || {
        let client = ServiceClient::require(socket.as_ref()).expect("every user may connect");
        client.hand_over(VERSION, LIMIT).map(drop).expect_err("refused").cause
    });
    assert!(cause.contains("may not take the place"), "{cause}");
    client.change(id, &ReservationChange::of_budget(2_000_000)).expect("it continues");

    // A service that does not have the method.
    let place = format!("/tmp/punctual-test-{}.socket", new_mark());
    let listener = UnixListener::bind(&place).expect("a socket");
    let mut replacing =
        Running::from(|c| c.args(["serve", "--replace", "--socket", &place, "--host", "user"]));
    let (mut old, _) = listener.accept().expect("it connects");
    let call = MessageReader::new(LIMIT).next(&mut old).expect("a call").expect("a call");
    assert!(String::from_utf8_lossy(&call).contains("io.punctual.Service.HandOver"));
    let unknown = json!({
        "error": "org.varlink.service.MethodNotFound",
        "parameters": { "method": "io.punctual.Service.HandOver" },
    });
    send(&mut old, &unknown).expect("it reads");
    eventually("it gives up", || replacing.has_ended());
    let ended = replacing.end();
    ended.assert_code(4).assert_says(&["of another version", "continues"]);
    assert!(std::path::Path::new(&place).exists(), "the other one's socket stays");
    std::fs::remove_file(&place).expect("it is there");
    let none = Running::from(|c| c.args(["serve", "--replace", "--socket", &place])).end();
    none.assert_code(4).assert_says(&["no punctuald listens"]);
    drop(client);
    service.end(cpu.0);
}

#[test]
fn what_the_new_service_does_not_permit_ends_with_the_reason() {
    let Some(cpu) = permitted_cpu(&SERVICE_NEEDS) else { return };
    let mut service = Service::start(cpu.0);
    let victim = Victim::start();
    let mut client = service.client();
    let id = service.reserve(&mut client, &[request(victim.pid(), None, 1_000_000)])[0];
    service.scratch.file("wrong.toml", "cpu = 3\n");
    let wrong = service.successor("wrong.toml").end();
    wrong.assert_code(2).assert_says(&["unknown field `cpu`"]);
    assert_eq!(client.status().expect("it serves").reservations.len(), 1, "it continues");
    service.scratch.file("service.toml", "cpus = []\n");
    service.replace();
    let events = events_until(&mut client, id, |event| event.ended.is_some());
    let end = events.last().expect("an end");
    assert_eq!(end.ended.as_deref(), Some("refused"));
    assert!(end.cause.as_deref().is_some_and(|c| c.contains("no reservations are made on CPU")));
    victim.assert_as_before();
    service.end(cpu.0);
}

#[test]
fn nothing_stays_behind_whichever_is_killed_and_when() {
    let Some(cpu) = permitted_cpu(&SERVICE_NEEDS) else { return };
    let mut random = Random::seeded(77);
    for round in 0..rounds(5) {
        let mut service = Service::start(cpu.0);
        let victims = [Victim::start(), Victim::start()];
        let mut client = service.client();
        let wanted: Vec<TaskRequest> =
            victims.iter().map(|victim| request(victim.pid(), None, 1_000_000)).collect();
        service.reserve(&mut client, &wanted);
        let mut new = service.successor("service.toml");
        std::thread::sleep(Duration::from_millis(random.below(70)));
        let kills_new = random.below(2) == 0;
        let killed = if kills_new { &mut new } else { &mut service.running };
        let is_there = !killed.has_ended();
        kill(killed.pid(), libc::SIGKILL);
        killed.reap();
        let (pid, mark) = (killed.pid(), killed.mark.clone());
        // By the one that lives, if it has the connection.
        let serves = client.status();
        let who = if kills_new { "the new" } else { "the old" };
        println!(
            "round {round}: {who} one killed, if there: {is_there}; clients are served: {}",
            serves.is_ok()
        );
        drop(client);
        for victim in &victims {
            eventually("it is as before", || victim.is_as_before());
            victim.assert_runs();
        }
        if clean_if_no_guardian_yet(pid) {
            println!("it had no guardian yet");
        }
        assert_nothing_left(pid, &mark, &[]);
        // The other one ends in good order, whether it serves or could not take over.
        let mut other = if kills_new { service.running } else { new };
        if !other.has_ended() {
            kill(other.pid(), libc::SIGTERM);
        }
        other.end().assert_nothing_left(&[cpu.0]);
        let _ = std::fs::remove_file(&service.socket);
        wait_for_cpu(cpu.0);
    }
}

/// Two programs that spin; how many are lost is printed.
#[test]
fn releases_keep_their_times_and_those_that_no_process_had_are_counted() {
    const PERIODS: [u64; 2] = [10_000_000, 50_000_000];
    let Some(cpu) = permitted_cpu(&SERVICE_NEEDS) else { return };
    let mut service = Service::start(cpu.0);
    let programs = PERIODS.map(|_| Program::start("spin"));
    let mut client = service.client();
    let wanted =
        [0, 1].map(|n| TaskRequest::new("spins", programs[n].pid(), PERIODS[n], 1_000_000));
    let ids = service.reserve(&mut client, &wanted);
    let host = client.status().expect("it serves").host;
    let mut reported: [Vec<PeriodReport>; 2] = Default::default();
    for round in 0..3 {
        let last = reported[1].last().map(|period| period.number);
        let mut is_after = false;
        eventually("periods of both", || {
            for event in client.take_events().expect("it serves").events {
                let n = usize::from(event.id == ids[1]);
                is_after |= n == 1 && is_exhausted(&event) && number(&event) > last;
                reported[n].extend(event.period);
            }
            is_after
        });
        if round < 2 {
            service.replace();
        }
    }
    for (period_ns, reported) in PERIODS.into_iter().zip(&reported) {
        let mut most = 0;
        for pair in reported.windows(2) {
            let numbered = pair[1].number - pair[0].number;
            assert_eq!(pair[1].release_ns - pair[0].release_ns, numbered * period_ns);
            // The one in which it left is not reported.
            most = most.max(numbered.saturating_sub(2));
        }
        println!("{host} host, each {period_ns} ns: at most {most} releases lost");
    }
    drop(client);
    service.end(cpu.0);
}
