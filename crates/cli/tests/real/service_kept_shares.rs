//! Reservations that end while their budgets are used up, in mid-period: neither their users nor
//! others have these shares once more in the same period.

use punctual_service::{PeriodReport, ReservationChange, ServiceClient, TaskRequest};
use punctual_sys::clock::monotonic_ns;
use punctual_taskset::next_release;
use punctual_test_support::judge_timing;

use crate::machine::permitted_cpu;
use crate::process::{eventually, kill};
use crate::service::{as_user, Service, OTHER_USER, SERVICE_NEEDS};
use crate::service_threads::Program;

const MS: u64 = 1_000_000;
const PERIOD: u64 = 1_000 * MS;
/// All that a user may have.
const BUDGET: u64 = 300 * MS;

fn request(program: &Program, budget: u64, period: u64) -> TaskRequest {
    TaskRequest::new("program", program.pid(), period, budget)
}

/// The next period of a reservation that is reported.
fn period_of(client: &mut ServiceClient, id: u64) -> PeriodReport {
    let mut found = None;
    eventually("a period is reported", || {
        let events = client.take_events().expect("it serves").events;
        found = events.into_iter().filter(|event| event.id == id).find_map(|event| event.period);
        found.is_some()
    });
    found.expect("it was reported")
}

/// A client of an ordinary user.
fn client_of_user(service: &Service) -> ServiceClient {
    let socket = service.socket.clone();
    as_user(move || ServiceClient::require(socket.as_ref()).expect("it serves"))
}

/// When a reservation of `program` that lives and has had releases is due again, after now.
fn next_due(client: &mut ServiceClient, id: u64) -> u64 {
    let released = period_of(client, id).release_ns;
    next_release(released, PERIOD, monotonic_ns())
}

#[test]
fn a_user_that_reserves_again_has_its_budget_once_in_a_period() {
    let Some(cpu) = permitted_cpu(&SERVICE_NEEDS) else { return };
    let service = Service::start(cpu.0);
    let mut client = client_of_user(&service);
    let program = Program::start("spin");
    let whole = [request(&program, BUDGET, PERIOD)];
    let mut id = service.reserve(&mut client, &whole)[0];
    // One that was released, one whose client has gone, and one whose program has ended.
    let due = next_due(&mut client, id);
    client.release(id).expect("it is there");
    id = service.reserve(&mut client, &whole)[0];
    let first = period_of(&mut client, id).release_ns;
    assert!(first >= due, "{first} comes before {due}");
    let due = next_due(&mut client, id);
    drop(client);
    let mut client = client_of_user(&service);
    eventually("its lease has ended", || {
        client.status().expect("it serves").reservations.is_empty()
    });
    id = service.reserve(&mut client, &whole)[0];
    let first = period_of(&mut client, id).release_ns;
    assert!(first >= due, "{first} comes before {due}");
    let due = next_due(&mut client, id);
    let other = Program::start("spin");
    kill(program.pid(), libc::SIGKILL);
    eventually("its reservation has ended", || {
        client.status().expect("it serves").reservations.is_empty()
    });
    id = service.reserve(&mut client, &[request(&other, BUDGET, PERIOD)])[0];
    let first = period_of(&mut client, id).release_ns;
    assert!(first >= due, "{first} comes before {due}");
    drop(client);
    service.end(cpu.0);
}

#[test]
fn a_share_that_a_user_gives_up_is_no_other_reservations_before_the_next_release() {
    let Some(cpu) = permitted_cpu(&SERVICE_NEEDS) else { return };
    let service = Service::start(cpu.0);
    let mut client = client_of_user(&service);
    let programs = ["spin"; 3].map(Program::start);
    let large = request(&programs[0], BUDGET - 100 * MS, PERIOD);
    let large = service.reserve(&mut client, &[large])[0];
    let small = client.reserve(&[request(&programs[1], MS, 10 * MS)]).expect("it fits")[0].id;
    // What is free all the same is had at once.
    let mut due = next_due(&mut client, large);
    client.change(large, &ReservationChange::of_budget(BUDGET / 6)).expect("it is less");
    let third = [request(&programs[2], 15 * MS, 100 * MS)];
    let id = client.reserve(&third).expect("it may have that")[0].id;
    let first = period_of(&mut client, id).release_ns;
    assert!(first >= due, "{first} comes before {due}");
    client.release(id).expect("it is there");
    // By a change of another reservation neither; after it, it is.
    due = next_due(&mut client, large);
    client.release(large).expect("it is there");
    let grown = ReservationChange::of_budget(3 * MS);
    if let Err(refusal) = client.change(small, &grown) {
        assert!(refusal.cause.contains("until their next releases"), "{refusal}");
        assert!(refusal.help.contains("try again in"), "{refusal}");
    }
    eventually("it may have that", || client.change(small, &grown).is_ok());
    assert!(monotonic_ns() >= due - 10 * MS, "its next release is at {due}");
    drop(client);
    service.end(cpu.0);
}

#[test]
fn a_share_is_kept_once_however_often_it_is_changed_in_a_period() {
    let Some(cpu) = permitted_cpu(&SERVICE_NEEDS) else { return };
    let service = Service::start(cpu.0);
    let mut client = client_of_user(&service);
    let programs = ["spin"; 2].map(Program::start);
    let large = request(&programs[0], BUDGET / 2, PERIOD);
    let large = service.reserve(&mut client, &[large])[0];
    let small = client.reserve(&[request(&programs[1], 10 * MS, 100 * MS)]).expect("it fits")[0].id;
    for budget in [BUDGET / 3, BUDGET / 2, BUDGET / 3, BUDGET / 2, BUDGET / 3] {
        client.change(large, &ReservationChange::of_budget(budget)).expect("it may have that");
    }
    // With the 15 % that the other one has until its next release it may have 15 %.
    client.change(small, &ReservationChange::of_budget(15 * MS)).expect("it may have that");
    drop(client);
    service.end(cpu.0);
}

#[test]
fn another_user_waits_for_a_share_that_it_needs_and_for_no_other() {
    let Some(cpu) = permitted_cpu(&SERVICE_NEEDS) else { return };
    let service = Service::start(cpu.0);
    let (mut root, mut client) = (service.client(), client_of_user(&service));
    let victim = Program::start_as(OTHER_USER, "spin");
    let programs = ["spin"; 2].map(|role| Program::start_as(OTHER_USER, role));
    let bad = Program::start("spin");
    service.reserve(&mut root, &[request(&victim, 28 * MS, 100 * MS)]);
    let id = client.reserve(&[request(&bad, BUDGET, PERIOD)]).expect("it fits")[0].id;
    let due = next_due(&mut client, id);
    client.release(id).expect("it is there");
    let large = root.reserve(&[request(&programs[0], 40 * MS, 100 * MS)]).expect("it fits")[0].id;
    // For this one there is room all the same.
    let small = root.reserve(&[request(&programs[1], MS, 100 * MS)]).expect("it fits")[0].id;
    let reserved = monotonic_ns();
    let mut releases = Vec::new();
    let first_of = |releases: &[(u64, u64)], id| {
        releases.iter().find(|(of, _)| *of == id).map(|(_, release)| *release)
    };
    eventually("both have had a period", || {
        let events = root.take_events().expect("it serves").events;
        releases.extend(events.iter().filter_map(|e| Some((e.id, e.period.as_ref()?.release_ns))));
        [large, small].iter().all(|id| first_of(&releases, *id).is_some())
    });
    let [large, small] = [large, small].map(|id| first_of(&releases, id).expect("it was found"));
    println!("due {due}, reserved at {reserved}, released {large} and {small}");
    assert!(large >= due, "{large} comes before {due}");
    judge_timing(|| {
        // It has its first release some 20 ms after its request, which may take a while.
        assert!(small < due || reserved + 50 * MS > due, "{small} comes after {due}");
    });
    drop((root, client));
    service.end(cpu.0);
}
