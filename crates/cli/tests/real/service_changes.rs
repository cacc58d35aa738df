//! Reservations of the service get other values while they are there.

use punctual_service::{ReservationChange, ServiceClient, TaskRequest};

use crate::machine::permitted_cpu;
use crate::process::eventually;
use crate::service::{Service, SERVICE_NEEDS};
use crate::victim::Victim;

#[test]
fn a_reservation_has_other_values_from_its_next_release_on() {
    let Some(cpu) = permitted_cpu(&SERVICE_NEEDS) else { return };
    let service = Service::start(cpu.0);
    let victim = Victim::start();
    let mut client = service.client();
    let request = TaskRequest::new("victim", victim.pid(), 20_000_000, 2_000_000);
    let id = service.reserve(&mut client, &[request])[0];
    let values = |client: &mut ServiceClient| {
        let r = &client.status().expect("it serves").reservations[0];
        [r.period_ns, r.budget_ns, r.deadline_ns].map(|ns| ns / 1_000_000)
    };
    // A deadline that is the period follows it.
    let change = ReservationChange { period_ns: Some(50_000_000), ..ReservationChange::default() };
    client.change(id, &change).expect("it fits");
    assert_eq!(values(&mut client), [50, 2, 50]);
    let mut periods = Vec::new();
    eventually("releases come with the period that it has now", || {
        let events = client.take_events().expect("it serves").events;
        periods.extend(events.into_iter().filter_map(|event| event.period));
        periods.windows(2).any(|pair| {
            let [first, next] = pair else { return false };
            next.number == first.number + 1 && next.release_ns - first.release_ns == 50_000_000
        })
    });
    let deadlines =
        periods.iter().map(|period| (period.deadline_ns - period.release_ns) / 1_000_000);
    assert!(deadlines.clone().all(|ms| ms == 20 || ms == 50));
    assert!(deadlines.is_sorted());
    let change = ReservationChange {
        deadline_ns: Some(30_000_000),
        ..ReservationChange::of_budget(3_000_000)
    };
    client.change(id, &change).expect("it fits");
    assert_eq!(values(&mut client), [50, 3, 30]);
    // What is refused changes nothing.
    for (period_ns, budget_ns, words) in [
        (Some(0), None, "period"),
        (Some(u64::MAX), None, "too long"),
        (Some(50_000), None, "period"),
        (None, Some(31_000_000), "out of range"),
        (Some(3_100_000), None, "deadline"),
    ] {
        let change = ReservationChange { period_ns, budget_ns, deadline_ns: None };
        let refusal = client.change(id, &change).expect_err("it is out of range");
        assert!(refusal.cause.contains(words), "{change:?}: {refusal}");
    }
    assert_eq!(values(&mut client), [50, 3, 30]);
    drop(client);
    service.end(cpu.0);
}

#[test]
fn the_status_says_how_often_a_reservation_is_suspended() {
    let Some(cpu) = permitted_cpu(&SERVICE_NEEDS) else { return };
    let service = Service::start(cpu.0);
    let (victim, mut client) = (Victim::start(), service.client());
    let request = TaskRequest::new("victim", victim.pid(), 20_000_000, 2_000_000);
    let id = service.reserve(&mut client, &[request])[0];
    let shown = |client: &mut ServiceClient| {
        let status = service.as_root(&["serve", "--status"]).end();
        let is_marked = status.assert_code(0).out.contains("victim, suspended");
        (client.status().expect("it serves").reservations[0].suspensions, is_marked)
    };
    assert_eq!(shown(&mut client), (0, false));
    for count in 1..=2 {
        client.suspend(id).expect("it is a process");
        assert_eq!(shown(&mut client), (count, true));
    }
    for count in [1, 0] {
        client.resume(id).expect("it is suspended");
        assert_eq!(shown(&mut client), (count, count > 0));
    }
    drop(client);
    service.end(cpu.0);
}
