//! Scheduling groups of the service: reservations by roles share a budget under a policy of their
//! own, in the configuration's share of a CPU.

use punctual_diagnostic::{Diagnostic, Kind};
use punctual_service::{ServiceClient, StatusReply, TaskRequest};
use punctual_test_support::judge_timing;

use crate::machine::permitted_cpu;
use crate::privileges::UNPRIVILEGED;
use crate::process::{eventually, kill};
use crate::service::{as_user, Service, SERVICE_NEEDS};
use crate::service_replacement::events_until;
use crate::service_threads::{periods_of, Program};

const ALLOW: &str = "[[allow]]\ngroup = \"65534\"\nshare = \"90%\"\n";
const ROLES: [(&str, &str); 7] = [
    ("sound", "period = \"20ms\"\nbudget = \"3ms\"\ngroup = \"media\"\n"),
    // Its policy is for a run of its own.
    ("video", "period = \"40ms\"\nbudget = \"4ms\"\ngroup = \"media\"\npolicy = \"dm\"\n"),
    ("heavy", "period = \"40ms\"\nbudget = \"10ms\"\ngroup = \"media\"\n"),
    ("alone", "period = \"20ms\"\nbudget = \"6ms\"\n"),
    ("late", "period = \"20ms\"\nbudget = \"1ms\"\ngroup = \"late\"\n"),
    ("lost", "period = \"20ms\"\nbudget = \"1ms\"\ngroup = \"lost\"\n"),
    ("elsewhere", "period = \"20ms\"\nbudget = \"1ms\"\ncpu = 8191\ngroup = \"media\"\n"),
];

fn group(name: &str, cpu: u32, budget: &str) -> String {
    format!(
        "[[scheduling_group]]\nname = \"{name}\"\ncpu = {cpu}\nperiod = \"5ms\"\n\
         budget = \"{budget}\"\npolicy = \"rm\"\n"
    )
}

/// With 40 % of the CPU for the group "media".
fn service_with_a_group(cpu: u32) -> Service {
    let config = format!("{ALLOW}{}", group("media", cpu, "2ms"));
    Service::configured(cpu, &config, &ROLES, "unix:path=/none")
}

fn client_of_user(service: &Service) -> ServiceClient {
    let socket = service.socket.clone();
    as_user(move || ServiceClient::require(socket.as_ref()).expect("it serves"))
}

fn refused(client: &mut ServiceClient, program: &Program, role: &str) -> Diagnostic {
    let request = TaskRequest::by_role(role, program.pid(), role);
    client.reserve(&[request]).expect_err("it is refused")
}

fn status(client: &mut ServiceClient) -> StatusReply {
    client.status().expect("it serves")
}

#[test]
fn roles_of_a_group_share_its_budget_and_leave_the_rest_of_the_cpu_to_others() {
    let Some(cpu) = permitted_cpu(&SERVICE_NEEDS) else { return };
    let service = service_with_a_group(cpu.0);
    let programs = [(); 4].map(|()| Program::start("spin"));
    let mut client = client_of_user(&service);
    // A group is promised to its reservations before there are any.
    let promised = |status: &StatusReply| {
        (status.cpus[0].reserved_ppm, status.cpus[0].own_ppm, status.groups[0].reserved_ppm)
    };
    assert_eq!(promised(&status(&mut client)), (400_000, 0, 0));
    // A command, by the role's name alone.
    let words = ["run", "--host", "service", "-q", "--role", "video", "--duration", "60s", "--"];
    let mut run = service.as_user(UNPRIVILEGED, &[&words[..], &["sleep", "60"]].concat());
    run.wait_for("its reservation", |_| {
        let reserved = service.client().status().expect("it serves").reservations;
        reserved.iter().any(|r| r.group.as_deref() == Some("media"))
    });
    kill(run.pid(), libc::SIGINT);
    run.reap();
    eventually("it is released", || promised(&status(&mut client)).1 == 0);
    let reserve = |client: &mut ServiceClient, n: usize, role: &str| {
        let request = TaskRequest::by_role(role, programs[n].pid(), role);
        service.reserve(client, &[request])[0]
    };
    let sound = reserve(&mut client, 0, "sound");
    let video = reserve(&mut client, 1, "video");
    let refusal = refused(&mut client, &programs[2], "heavy");
    assert_eq!(refusal.kind, Kind::NotAdmitted, "{refusal}");
    assert!(refusal.to_string().contains("group \"media\""), "{refusal}");
    let alone = reserve(&mut client, 3, "alone");

    let now = status(&mut client);
    assert_eq!(promised(&now), (700_000, 550_000, 250_000));
    let of = |id: u64| now.reservations.iter().find(|r| r.id == id).and_then(|r| r.group.clone());
    let media = Some("media".to_owned());
    assert_eq!([sound, video, alone].map(of), [media.clone(), media, None]);
    let shown = service.as_user(UNPRIVILEGED, &["serve", "--status"]).end();
    shown.assert_code(0);
    for line in ["25 %       40 %        2 ms        5 ms  rm      media", "(video, media)"] {
        assert!(shown.out.contains(line), "no {line:?} in:\n{}", shown.out);
    }
    let shown = service.as_user(UNPRIVILEGED, &["serve", "--status", "--json"]).end();
    let result = shown.assert_code(0).json()["result"].clone();
    assert_eq!(result["groups"][0]["name"], "media");
    assert_eq!(result["reservations"][0]["group"], "media");

    for id in [sound, video, alone] {
        let periods = periods_of(&mut client, id, 20);
        let [received, assigned] = periods.iter().fold([0, 0], |[received, assigned], period| {
            [received + period.received_ns, assigned + period.assigned_ns]
        });
        assert!(received > 0, "reservation {id} receives nothing");
        judge_timing(|| {
            let missed = periods.iter().filter(|period| period.miss).count();
            let part = received * 1000 / assigned;
            assert!(missed == 0 && (990..=1010).contains(&part), "{id}: {part}, {periods:?}");
        });
    }
    drop(client);
    service.end(cpu.0);
}

#[test]
fn a_role_of_a_group_that_is_not_there_is_refused() {
    let Some(cpu) = permitted_cpu(&SERVICE_NEEDS) else { return };
    let service = service_with_a_group(cpu.0);
    let programs = [(); 2].map(|()| Program::start("spin"));
    let mut client = client_of_user(&service);
    let request = TaskRequest::by_role("sound", programs[0].pid(), "sound");
    let sound = service.reserve(&mut client, &[request])[0];
    let refusal = refused(&mut client, &programs[1], "lost");
    assert!(refusal.cause.contains("the group \"lost\", which the service lacks"), "{refusal}");
    let refusal = refused(&mut client, &programs[1], "elsewhere");
    let on = format!("the group \"media\", which is on CPU {}", cpu.0);
    assert!(refusal.cause.contains(&on), "{refusal}");

    // A group of a later configuration comes with the next dispatcher.
    let config = [group("media", cpu.0, "2ms"), group("late", cpu.0, "1ms")].concat();
    service.write("service.toml", &format!("cpus = [{}]\n{ALLOW}{config}", cpu.0));
    kill(service.running.pid(), libc::SIGHUP);
    eventually("the configuration is read", || {
        !refused(&mut client, &programs[1], "late").cause.contains("lacks")
    });
    let refusal = refused(&mut client, &programs[1], "late");
    assert!(refusal.cause.contains("was started before its group \"late\""), "{refusal}");
    assert_eq!(status(&mut client).groups.len(), 1);
    client.release(sound).expect("it is its own");
    let request = TaskRequest::by_role("late", programs[1].pid(), "late");
    service.reserve(&mut client, &[request]);
    assert_eq!(status(&mut client).groups.len(), 2);
    drop(client);
    service.end(cpu.0);
}

#[test]
fn a_service_that_takes_the_place_of_another_has_its_own_groups() {
    let Some(cpu) = permitted_cpu(&SERVICE_NEEDS) else { return };
    let mut service = service_with_a_group(cpu.0);
    let program = Program::start("spin");
    let mut client = client_of_user(&service);
    let request = TaskRequest::by_role("sound", program.pid(), "sound");
    let sound = service.reserve(&mut client, &[request])[0];
    let before = status(&mut client);
    service.replace();
    let after = status(&mut client);
    assert_eq!((&after.reservations, &after.groups), (&before.reservations, &before.groups));
    periods_of(&mut client, sound, 5);

    service.write("service.toml", &format!("cpus = [{}]\n{ALLOW}", cpu.0));
    service.replace();
    let events = events_until(&mut client, sound, |event| event.ended.is_some());
    let end = events.last().expect("an end");
    assert_eq!(end.ended.as_deref(), Some("refused"));
    let cause = end.cause.as_deref().unwrap_or_default();
    assert!(cause.contains("group \"media\""), "{cause}");
    drop(client);
    service.end(cpu.0);
}
