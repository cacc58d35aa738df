//! Reservations by roles: values are the service's, and the configuration decides who has which.

use punctual_diagnostic::Kind;
use punctual_service::{ReservationChange, ServiceClient, TaskRequest};

use crate::machine::permitted_cpu;
use crate::privileges::UNPRIVILEGED;
use crate::process::{eventually, kill};
use crate::punctual::patiently;
use crate::service::{as_user, Service, SERVICE_NEEDS};
use crate::victim::Victim;

const CONFIG: &str = "[[allow]]\ngroup = \"65534\"\nshare = \"10%\"\n\
                      roles = [\"control\", \"heavy\", \"by-priority\"]\n";
/// Below the least budget that a user may choose itself.
const CONTROL: &str =
    "period = \"20ms\"\nbudget = \"500us\"\ndeadline = \"10ms\"\noverrun = \"skip\"\n";
const HEAVY: &str = "period = \"100ms\"\nbudget = \"9ms\"\n";
const ROLES: [(&str, &str); 4] = [
    ("control", CONTROL),
    ("heavy", HEAVY),
    ("other", HEAVY),
    ("by-priority", "period = \"20ms\"\nbudget = \"1ms\"\npolicy = \"dm\"\n"),
];

/// The words of a run of a spinning command.
fn spin<'a>(options: &[&'a str]) -> Vec<&'a str> {
    let run = ["run", "--host", "service", "-q", "--duration", "60s"];
    [&run[..], options, &["--", "sh", "-c", "while :; do :; done"]].concat()
}

#[test]
fn a_user_with_roles_has_their_values_and_no_others() {
    let Some(cpu) = permitted_cpu(&SERVICE_NEEDS) else { return };
    let service = Service::configured(cpu.0, CONFIG, &ROLES, "unix:path=/none");
    let reserved = || service.client().status().expect("it serves").reservations;
    let mut first = service.as_user(UNPRIVILEGED, &spin(&["--role", "control"]));
    first.wait_for("its reservation", |_| reserved().len() == 1);
    let of = |r: &punctual_service::ReservationInfo| {
        (r.uid, r.role.clone(), r.period_ns, r.budget_ns, r.deadline_ns)
    };
    let control = Some("control".to_owned());
    let want = (UNPRIVILEGED, control, 20_000_000, 500_000, 10_000_000);
    assert_eq!(reserved().iter().map(of).collect::<Vec<_>>(), [want]);
    let status = service.as_user(UNPRIVILEGED, &["serve", "--status"]).end();
    status.assert_code(0);
    assert!(status.out.contains("sh (control)"), "{}", status.out);

    let refused = |options: &[&str], words: &[&str]| {
        service.as_user(UNPRIVILEGED, &spin(options)).end().assert_code(125).assert_says(words);
    };
    let own = ["may reserve by roles alone", "use one of control, heavy"];
    refused(&["--period", "20ms", "--budget", "1ms"], &own);
    // With a value of its own, a role is none any more.
    refused(&["--role", "control", "--budget", "1ms"], &own);
    refused(
        &["--role", "other"],
        &["may not have the role \"other\"", "use one of control, heavy"],
    );
    refused(&["--role", "contrl"], &["there is no role", "did you mean \"control\"?"]);
    // 2.5 % and 9 %: roles count against the share.
    refused(&["--role", "heavy"], &["may reserve 10 % of CPU", "has 2.5 % and requests 9 % more"]);

    // The service reads a role's file for each reservation; a program that reads another one is
    // refused, and nothing is reserved.
    kill(first.pid(), libc::SIGINT);
    first.reap();
    eventually("nothing is reserved", || reserved().is_empty());
    let roles = service.write("roles/control.toml", &CONTROL.replace("500us", "600us"));
    let ended = patiently(|| {
        service
            .as_user(UNPRIVILEGED, &["run", "--host", "service", "--role", "control", "--", "true"])
            .end()
    });
    ended.assert_code(0);
    let other = service.write("control.toml", CONTROL);
    let folder = other.trim_end_matches("/control.toml");
    let ended = patiently(|| {
        service.as_user_with_roles(UNPRIVILEGED, &spin(&["--role", "control"]), folder).end()
    });
    ended.assert_code(125).assert_says(&[
        "is 600 us in every 20 ms, deadline 10 ms for the service, and 500 us in every 20 ms",
        "unset PUNCTUAL_ROLES",
    ]);
    service.write("roles/control.toml", "period = \"20ms\"\nbudget = \"soon\"\n");
    let by_role = |role: &str| {
        let (socket, role) = (service.socket.clone(), role.to_owned());
        as_user(move || {
            let mut client = ServiceClient::require(socket.as_ref()).expect("it serves");
            client.reserve(&[TaskRequest::by_role("x", 1, role)]).expect_err("it is refused")
        })
    };
    let wrong = by_role("control");
    assert!(wrong.cause.contains(&roles), "{wrong}");
    assert_eq!(wrong.kind, Kind::Machine, "{wrong}");
    assert!(by_role("by-priority").cause.contains("has the policy dm"));
    assert!(by_role("none").cause.contains("there is no role \"none\""));
    assert!(by_role("../heavy").cause.contains("is not the name of a role"));
    eventually("nothing is reserved", || reserved().is_empty());
    service.end(cpu.0);
}

#[test]
fn a_request_is_by_a_role_or_has_values_and_a_changed_budget_is_none_of_a_role() {
    let Some(cpu) = permitted_cpu(&SERVICE_NEEDS) else { return };
    let service = Service::configured(cpu.0, CONFIG, &ROLES, "unix:path=/none");
    let (victim, mut client) = (Victim::start(), service.client());
    let by_role = TaskRequest::by_role("victim", victim.pid(), "control");
    let values = TaskRequest::new("victim", victim.pid(), 20_000_000, 1_000_000);
    for (request, words) in [
        (TaskRequest { role: by_role.role.clone(), ..values.clone() }, "values beside those of"),
        (TaskRequest { overrun: Some("skip".into()), ..by_role.clone() }, "values beside those of"),
        (TaskRequest { role: None, ..by_role.clone() }, "the request has no period"),
        (TaskRequest { budget_ns: None, ..values }, "the request has no budget"),
    ] {
        let refusal = client.reserve(&[request]).expect_err(words);
        assert!(refusal.cause.contains(words), "{refusal}");
        assert_eq!(refusal.kind, Kind::Usage, "{refusal}");
    }
    victim.assert_as_before();
    // Root is confined to no role.
    let id = service.reserve(&mut client, &[by_role])[0];
    let role = |client: &mut ServiceClient| {
        let reservations = client.status().expect("it serves").reservations;
        reservations.into_iter().map(|r| (r.role, r.budget_ns)).collect::<Vec<_>>()
    };
    assert_eq!(role(&mut client), [(Some("control".to_owned()), 500_000)]);
    client.change(id, &ReservationChange::of_budget(700_000)).expect("it fits");
    assert_eq!(role(&mut client), [(None, 700_000)]);
    drop(client);
    eventually("it is as before", || victim.is_as_before());
    service.end(cpu.0);
}

#[test]
fn a_user_with_roles_cannot_change_the_budget_of_one() {
    let Some(cpu) = permitted_cpu(&SERVICE_NEEDS) else { return };
    let service = Service::configured(cpu.0, CONFIG, &ROLES, "unix:path=/none");
    let program = crate::service_threads::Program::start("spin");
    let socket = service.socket.clone();
    let mut client = as_user(move || ServiceClient::require(socket.as_ref()).expect("it serves"));
    let request = TaskRequest::by_role("program", program.pid(), "control");
    let id = service.reserve(&mut client, &[request])[0];
    let refusal = client
        .change(id, &ReservationChange::of_budget(1_000_000))
        .expect_err("it is a value of its own");
    assert!(refusal.cause.contains("may reserve by roles alone"), "{refusal}");
    let reserved = client.status().expect("it serves").reservations;
    assert_eq!(reserved[0].budget_ns, 500_000);
    drop(client);
    let none = || service.client().status().expect("it serves").reservations.is_empty();
    eventually("nothing is reserved", none);
    service.end(cpu.0);
}
