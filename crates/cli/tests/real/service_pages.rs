//! Threads with a reservation that wait for their releases by a page, which they share with the
//! service. They are of an ordinary user.

use punctual_service::{PeriodReport, ReservationInfo, ServiceClient, TaskRequest};
use punctual_test_support::judge_timing;

use crate::adversarial::page_wait_roles::RESERVED;
use crate::machine::{permitted_cpu, wait_for_cpu};
use crate::process::{attributes, eventually, kill};
use crate::service::{host, Service, SERVICE_NEEDS};
use crate::service_threads::{request, Program};

/// A program whose thread reserves for itself and plays this role (page_wait_roles.rs).
fn start(role: &str, service: &Service) -> Program {
    Program::start(&format!("waits {role} {}", service.socket))
}

/// The reservation of a program, if it has one.
fn of(program: &Program, service: &Service) -> Option<ReservationInfo> {
    let status = service.client().status().expect("it serves");
    status.reservations.into_iter().find(|r| r.pid == program.pid())
}

/// The periods of the only reservation, until the release of this number is among them.
fn periods_until(client: &mut ServiceClient, number: u64) -> Vec<PeriodReport> {
    let mut periods: Vec<PeriodReport> = Vec::new();
    eventually("its periods are reported", || {
        let events = client.take_events().expect("it serves").events;
        periods.extend(events.into_iter().filter_map(|event| event.period));
        periods.last().is_some_and(|period| period.number >= number)
    });
    periods
}

/// Plays roles to their ends.
fn play(roles: &[&str]) {
    let Some(cpu) = permitted_cpu(&SERVICE_NEEDS) else { return };
    let service = Service::start(cpu.0);
    for role in roles {
        start(role, &service).assert_success();
    }
    service.end(cpu.0);
}

#[test]
fn a_wait_returns_with_the_next_release_and_completes_the_job() {
    play(&["completes"]);
}

#[test]
fn late_waits_return_at_once_until_the_thread_has_caught_up() {
    play(&["carry", "background", "signal"]);
}

#[test]
fn a_thread_that_skips_gets_the_number_of_releases_that_it_lost() {
    play(&["skip"]);
}

#[test]
fn a_wait_ends_when_the_reservation_or_the_connection_does() {
    play(&["releases", "disconnects"]);
}

#[test]
fn a_wait_ends_when_the_service_does() {
    let Some(cpu) = permitted_cpu(&SERVICE_NEEDS) else { return };
    let mut service = Service::start(cpu.0);
    for signal in [libc::SIGTERM, libc::SIGKILL] {
        let program = start("ends", &service);
        // It has the answer, too.
        eventually("it has reserved", || {
            let (pid, tid) = (program.pid(), program.second());
            let name = std::fs::read(format!("/proc/{pid}/task/{tid}/comm"));
            name.is_ok_and(|name| name.starts_with(RESERVED.to_bytes()))
        });
        kill(service.running.pid(), signal);
        program.assert_success();
        service.running.reap();
        service.start_again();
        wait_for_cpu(cpu.0);
    }
    service.end(cpu.0);
}

#[test]
fn a_page_is_for_one_reservation_of_a_single_thread() {
    let Some(cpu) = permitted_cpu(&SERVICE_NEEDS) else { return };
    let service = Service::start(cpu.0);
    let program = Program::start("attack spin");
    let (pid, second) = (program.pid(), program.second());
    let with_page = |tid| TaskRequest { page: Some(true), ..request(pid, tid, 1_000_000) };
    let mut client = service.client();
    let refused = client.reserve(&[with_page(Some(second))]).expect_err("it made no page");
    assert!(refused.cause.contains("has no page"), "{refused}");
    let refused = client.reserve_thread(&with_page(None)).expect_err("it is a process");
    assert!(refused.cause.contains("for a single thread"), "{refused}");
    // The page of the last refusal is there still, for one of two.
    let two = [with_page(Some(second)), with_page(Some(pid))];
    let mut refused = String::new();
    eventually("the CPU is free", || {
        refused = client.reserve(&two).expect_err("it has one page").cause;
        !refused.contains("already has a dispatcher")
    });
    assert!(refused.contains("has no page"), "{refused}");
    assert!(client.status().expect("it serves").reservations.is_empty());
    drop(client);
    service.end(cpu.0);
}

#[test]
fn budgets_hold_whatever_a_thread_does_with_its_page() {
    let Some(cpu) = permitted_cpu(&SERVICE_NEEDS) else { return };
    let service = Service::start(cpu.0);
    let attacks =
        ["asks", "yields", "executes", "garbage", "unmaps", "removes", "hammers", "passes"];
    for attack in attacks {
        let good = Program::start("attack spin");
        let mut client = service.client();
        let id =
            service.reserve(&mut client, &[request(good.pid(), Some(good.second()), 6_000_000)])[0];
        let bad = Program::start(&format!("page {attack} {}", service.socket));
        let of_bad = || of(&bad, &service);
        eventually("it has reserved", || of_bad().is_some());
        let tid = of_bad().and_then(|r| r.tid).expect("a thread's");
        let from = periods_until(&mut client, 0).last().map_or(0, |p| p.number);
        let periods = periods_until(&mut client, from + 100);
        let received: u64 = periods.iter().map(|p| p.received_ns).sum();
        let misses = periods.iter().filter(|p| p.miss).count();
        println!("{attack}: {received} ns in {} periods, {misses} missed", periods.len());
        judge_timing(|| {
            let assigned: u64 = periods.iter().map(|p| p.assigned_ns).sum();
            assert!(received.abs_diff(assigned) <= assigned / 100, "{attack}: {periods:#?}");
            assert_eq!(misses, 0, "{attack}");
        });
        // It executes without a job, and is parked: inside the kernel in its class.
        let policy = || attributes(tid).map(|a| a.policy & !libc::SCHED_RESET_ON_FORK);
        let is_parked = || policy() == Some(libc::SCHED_IDLE);
        eventually("it is parked", || host() == "kernel" || is_parked());
        assert!(of_bad().is_some(), "{attack}: it is served as before");
        client.release(id).expect("its own");
        drop(bad);
        eventually("nothing is reserved", || {
            service.client().status().expect("it serves").reservations.is_empty()
        });
    }
    service.end(cpu.0);
}
