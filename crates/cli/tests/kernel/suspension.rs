//! Programs and threads that the service suspends inside the kernel.

use std::time::Duration;

use punctual_service::ServiceClient;

use crate::machine::{executed, scheduler_becomes, until, Machine};
use crate::punctual::{companion, executing_companion, Running};
use crate::service::{assert_share, is_an_ordinary_one, request, Service};

/// Longer than the kernel bears a thread that is runnable and does not execute.
const BEYOND_THE_WATCHDOG: Duration = Duration::from_secs(35);

fn cgroup_of(program: &Running) -> String {
    let all = std::fs::read_to_string(format!("/proc/{}/cgroup", program.id())).expect("it lives");
    all.lines().find_map(|line| line.strip_prefix("0::")).expect("a cgroup v2").to_owned()
}

fn is_frozen(program: &Running) -> bool {
    let events = format!("/sys/fs/cgroup{}/cgroup.events", cgroup_of(program));
    std::fs::read_to_string(events).is_ok_and(|events| events.contains("frozen 1"))
}

fn reserve(client: &mut ServiceClient, program: &Running) -> u64 {
    client.reserve(&[request(program, None)]).expect("it fits")[0].id
}

fn suspend(client: &mut ServiceClient, id: u64, program: &Running) {
    client.suspend(id).expect("it is a process");
    until("it is frozen", || is_frozen(program));
}

#[test]
fn a_suspended_program_is_frozen_and_continues_in_its_own_cgroup() {
    let Some(_machine) = Machine::with_sched_ext() else { return };
    let program = executing_companion("spin-threads 2");
    let home = cgroup_of(&program);
    let service = Service::start();
    let mut client = service.client();
    let id = reserve(&mut client, &program);
    suspend(&mut client, id, &program);
    let before = executed(program.id());
    std::thread::sleep(BEYOND_THE_WATCHDOG);
    assert_eq!(executed(program.id()), before);
    client.resume(id).expect("it is suspended");
    assert_eq!(cgroup_of(&program), home);
    assert_share(|| executed(program.id()), 20.0);
    let twice = client.resume(id).expect_err("it executes");
    assert!(twice.cause.contains("not suspended"), "{twice}");

    // Where it is released meanwhile, too.
    suspend(&mut client, id, &program);
    client.release(id).expect("its own");
    scheduler_becomes("disabled");
    assert_eq!(cgroup_of(&program), home);
    is_an_ordinary_one(&program);
    let before = executed(program.id());
    until("it executes", || executed(program.id()) > before);
}

#[test]
fn beside_a_suspended_program_others_have_their_budgets() {
    let Some(_machine) = Machine::with_sched_ext() else { return };
    let programs = ["spin", "spin"].map(executing_companion);
    let _beside = executing_companion("spin");
    let service = Service::start();
    let mut client = service.client();
    let ids = [0, 1].map(|n| reserve(&mut client, &programs[n]));
    for _ in 0..3 {
        suspend(&mut client, ids[0], &programs[0]);
        assert_share(|| executed(programs[1].id()), 20.0);
        client.resume(ids[0]).expect("it is suspended");
        assert_share(|| executed(programs[0].id()), 20.0);
    }
}

#[test]
fn a_suspended_program_continues_when_its_service_is_killed() {
    let Some(_machine) = Machine::with_sched_ext() else { return };
    let program = executing_companion("spin");
    let home = cgroup_of(&program);
    let service = Service::start();
    let mut client = service.client();
    let id = reserve(&mut client, &program);
    suspend(&mut client, id, &program);
    service.kill();
    scheduler_becomes("disabled");
    until("it is where it was", || cgroup_of(&program) == home);
    is_an_ordinary_one(&program);
    let before = executed(program.id());
    until("it executes", || executed(program.id()) > before);
}

#[test]
fn a_thread_that_is_suspended_for_longer_than_the_watchdog_bears_goes_on_when_it_is_resumed() {
    let Some(_machine) = Machine::with_sched_ext() else { return };
    let service = Service::start();
    let socket = service.socket.display();
    let program = companion(&format!("library suspends-for-long {socket} 0"));
    let ended = program.output().status;
    assert!(ended.success(), "{ended}");
}
