//! Clients that lie, flood, hang or stop in the middle: the service answers the others meanwhile,
//! and holds nothing of theirs afterwards.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command};
use std::time::Duration;

use punctual_service::{TaskRequest, MESSAGE_LIMIT};
use serde_json::{json, Value};

use crate::machine::{permitted_cpu, Random};
use crate::privileges::UNPRIVILEGED;
use crate::process::eventually;
use crate::service::{as_user, Service, SERVICE_NEEDS};
use crate::victim::Victim;

fn connect(service: &Service) -> UnixStream {
    let stream = UnixStream::connect(&service.socket).expect("it serves");
    stream.set_read_timeout(Some(Duration::from_secs(60))).expect("a socket");
    stream
}

/// Sends bytes; whether the service has closed the connection is its matter.
fn send(stream: &mut UnixStream, bytes: &[u8]) {
    let _ = stream.write_all(bytes);
}

/// One message.
fn message(value: &Value) -> Vec<u8> {
    let mut bytes = value.to_string().into_bytes();
    bytes.push(0);
    bytes
}

fn receive(stream: &mut UnixStream) -> Option<Value> {
    let mut bytes = Vec::new();
    let mut byte = [0];
    while stream.read(&mut byte).ok()? == 1 {
        match byte[0] {
            0 => return serde_json::from_slice(&bytes).ok(),
            b => bytes.push(b),
        }
    }
    None
}

fn call(stream: &mut UnixStream, method: &str, parameters: Value) -> Option<Value> {
    send(stream, &message(&json!({ "method": method, "parameters": parameters })));
    receive(stream)
}

/// Open descriptors of the service.
fn descriptors(service: &Service) -> usize {
    std::fs::read_dir(format!("/proc/{}/fd", service.running.pid())).expect("it runs").count()
}

fn request(pid: i32) -> TaskRequest {
    TaskRequest::new("good", pid, 20_000_000, 1_000_000)
}

#[test]
fn the_interface_describes_itself() {
    let Some(cpu) = permitted_cpu(&SERVICE_NEEDS) else { return };
    let service = Service::start(cpu.0);
    let mut stream = connect(&service);
    let info = call(&mut stream, "org.varlink.service.GetInfo", json!({})).expect("an answer");
    assert_eq!(info["parameters"]["product"], "punctuald", "{info}");
    let of = json!({ "interface": "io.punctual.Service" });
    let described = call(&mut stream, "org.varlink.service.GetInterfaceDescription", of);
    let text = described.expect("an answer")["parameters"]["description"].to_string();
    for part in [
        "interface io.punctual.Service",
        "method Reserve(tasks: []TaskRequest)",
        "method TakeEvents()",
        "error NotAdmitted (",
        "type ReservationInfo (",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    drop(stream);
    service.end(cpu.0);
}

#[test]
fn a_good_client_is_served_beside_every_kind_of_bad_one() {
    let Some(cpu) = permitted_cpu(&SERVICE_NEEDS) else { return };
    let service = Service::start(cpu.0);
    let mut good = service.client();
    // A service that answers has started: it opens no descriptors any more but for clients.
    good.status().expect("it serves");
    let with_one_client = descriptors(&service);
    let victim = Victim::start();
    let mut bad: Vec<UnixStream> = Vec::new();
    let reserve = json!({ "tasks": [{ "name": "x", "pid": victim.pid() }] });
    let half = message(&json!({ "method": "io.punctual.Service.GetStatus" }));
    let attacks: Vec<Vec<u8>> = vec![
        // Half a message, and no more.
        half[..half.len() / 2].to_vec(),
        // No JSON; no call; no such method; no such interface; missing and wrong parameters.
        b"\xff\xfe not json\0".to_vec(),
        b"[]\0".to_vec(),
        b"\0\0\0\0".to_vec(),
        message(&json!({ "method": 7 })),
        message(&json!({ "method": "io.punctual.Service.Nothing" })),
        message(&json!({ "method": "com.example.Else", "parameters": {} })),
        message(&json!({ "method": "io.punctual.Service.Reserve", "parameters": reserve })),
        message(&json!({ "method": "io.punctual.Service.Release", "parameters": { "id": -1 } })),
        message(&json!({ "method": "io.punctual.Service.Change",
                         "parameters": { "id": 1, "budget_ns": 1e300 } })),
        // A message that never ends, and one that is nested without end.
        vec![b'x'; 2 * MESSAGE_LIMIT],
        [b"{\"method\":".to_vec(), vec![b'['; MESSAGE_LIMIT / 2], vec![0]].concat(),
    ];
    for attack in &attacks {
        let mut stream = connect(&service);
        send(&mut stream, attack);
        bad.push(stream);
        good.status().expect("a good client is served");
    }
    // A client that calls without end and reads no answer: it is stopped by its own full socket.
    let mut deaf = connect(&service);
    deaf.set_write_timeout(Some(Duration::from_millis(200))).expect("a socket");
    let calls = message(&json!({ "method": "io.punctual.Service.GetStatus" })).repeat(1000);
    let mut sent = 0;
    while sent < 100 && deaf.write_all(&calls).is_ok() {
        sent += 1;
    }
    good.status().expect("a good client is served");
    // Values out of their ranges are refused, each by its own error, and reserve nothing.
    let mut liar = connect(&service);
    let good_request = serde_json::to_value(request(victim.pid())).expect("plain data");
    for (key, value) in [
        ("name", json!("")),
        ("name", json!("x".repeat(41))),
        ("name", json!("two\nlines")),
        ("pid", json!(0)),
        ("pid", json!(-5)),
        ("cpu", json!(4_000_000)),
        ("period_ns", json!(0)),
        ("period_ns", json!(u64::MAX)),
        ("budget_ns", json!(0)),
        ("budget_ns", json!(u64::MAX)),
        ("deadline_ns", json!(1)),
        ("offset_ns", json!(u64::MAX)),
        ("first_release_ns", json!(u64::MAX)),
        ("overrun", json!("never")),
    ] {
        let mut request = good_request.clone();
        request[key] = value;
        let refused = call(&mut liar, "io.punctual.Service.Reserve", json!({ "tasks": [request] }));
        let refused = refused.unwrap_or_else(|| panic!("{key}: it is not answered"));
        let error = refused["error"].as_str().unwrap_or_default();
        assert!(error.starts_with("io.punctual.Service."), "{key}: {refused}");
        assert!(refused["parameters"]["help"].as_str().is_some_and(|h| !h.is_empty()), "{refused}");
    }
    let none = call(&mut liar, "io.punctual.Service.Reserve", json!({ "tasks": [] }));
    assert!(none.expect("an answer")["error"].is_string());
    victim.assert_as_before();
    // The good client's own reservation comes and goes beside all of them.
    let id = service.reserve(&mut good, &[request(victim.pid())])[0];
    good.release(id).expect("its own");
    victim.assert_as_before();
    drop((bad, deaf, liar, good));
    eventually("their descriptors are closed", || descriptors(&service) < with_one_client);
    service.end(cpu.0);
}

#[test]
fn a_user_has_a_limited_number_of_connections_and_root_gets_in_all_the_same() {
    let Some(cpu) = permitted_cpu(&SERVICE_NEEDS) else { return };
    let service = Service::start(cpu.0);
    // A thread of an ordinary user holds 100 connections, and says nothing on them.
    let socket = service.socket.clone();
    let held = as_user(move || {
        let held = (0..100).map(|_| UnixStream::connect(&socket).expect("it serves"));
        held.collect::<Vec<UnixStream>>()
    });
    held.iter().for_each(|stream| stream.set_nonblocking(true).expect("a socket"));
    let closed = || held.iter().filter(|s| matches!((&**s).read(&mut [0]), Ok(0))).count();
    eventually("all but 64 are closed", || closed() == 36);
    service.client().status().expect("root is served");
    drop(held);
    service.end(cpu.0);
}

#[test]
fn damaged_calls_are_answered_or_end_their_connection() {
    let Some(cpu) = permitted_cpu(&SERVICE_NEEDS) else { return };
    let service = Service::start(cpu.0);
    let mut good = service.client();
    let mut request = serde_json::to_value(request(4_194_303)).expect("plain data");
    request["cpu"] = json!(cpu.0);
    let whole: Vec<Vec<u8>> = [
        json!({ "method": "io.punctual.Service.Reserve", "parameters": { "tasks": [request] } }),
        json!({ "method": "io.punctual.Service.GetStatus" }),
        json!({ "method": "io.punctual.Service.Change",
                "parameters": { "id": 1, "budget_ns": 1_000_000 } }),
        json!({ "method": "io.punctual.Service.TakeEvents", "parameters": {} }),
        json!({ "method": "org.varlink.service.GetInterfaceDescription",
                "parameters": { "interface": "io.punctual.Service" } }),
    ]
    .iter()
    .map(message)
    .collect();
    let mut random = Random::seeded(14);
    let mut answered = 0;
    for round in 0..1500 {
        let mut bytes: Vec<u8> = (0..=random.below(2))
            .flat_map(|_| whole[random.below(whole.len() as u64) as usize].clone())
            .collect();
        for _ in 0..random.below(4) {
            let at = random.below(bytes.len() as u64) as usize;
            let any = random.below(256) as u8;
            match random.below(5) {
                0 => bytes[at] = any,
                1 => bytes.insert(at, any),
                2 => drop(bytes.remove(at)),
                3 => bytes[at] ^= 1 << random.below(8),
                _ => bytes.truncate(at.max(1)),
            }
            if bytes.is_empty() {
                bytes.push(0);
            }
        }
        let mut stream = connect(&service);
        send(&mut stream, &bytes);
        let _ = stream.shutdown(std::net::Shutdown::Write);
        while let Some(answer) = receive(&mut stream) {
            assert!(answer.is_object(), "{answer}");
            answered += 1;
        }
        if round % 100 == 0 {
            good.status().expect("a good client is served");
        }
    }
    assert!(answered > 500, "{answered} answers: the damage is too great to test anything");
    assert!(good.status().expect("it serves").reservations.is_empty());
    drop(good);
    service.end(cpu.0);
}

#[test]
fn a_user_has_a_limited_number_of_reservations() {
    let Some(cpu) = permitted_cpu(&SERVICE_NEEDS) else { return };
    let service = Service::start(cpu.0);
    let programs: Vec<IdleProgram> = (0..17).map(|_| IdleProgram::start()).collect();
    let socket = service.socket.clone();
    let small = |program: &IdleProgram| TaskRequest {
        period_ns: Some(100_000_000),
        ..request(program.0.id() as i32)
    };
    let requests: Vec<TaskRequest> = programs.iter().map(small).collect();
    let connect =
        move || punctual_service::ServiceClient::require(socket.as_ref()).expect("it serves");
    let mut client = as_user(connect.clone());
    let tiny = TaskRequest { budget_ns: Some(999_999), ..requests[0].clone() };
    let refusal = client.reserve(&[tiny]).expect_err("it costs too much");
    assert!(refusal.cause.contains("a budget of at least 1 ms"), "{refusal}");
    service.reserve(&mut client, &requests[..1]);
    client.reserve(&requests[1..16]).expect("they fit");
    let refusal = client.reserve(&requests[16..]).expect_err("one too many");
    assert!(refusal.cause.contains("has 16 reservations on CPU"), "{refusal}");
    // Another connection of the same user changes nothing.
    let refusal = as_user(connect).reserve(&requests[16..]).expect_err("one too many");
    assert!(refusal.cause.contains("has 16 reservations on CPU"), "{refusal}");
    drop(client);
    let none = || service.client().status().expect("it serves").reservations.is_empty();
    eventually("nothing is reserved", none);
    service.end(cpu.0);
}

/// A program of an ordinary user.
struct IdleProgram(Child);

impl IdleProgram {
    fn start() -> IdleProgram {
        let mut sleep = Command::new("sleep");
        IdleProgram(sleep.arg("600").uid(UNPRIVILEGED).gid(65534).spawn().expect("it runs"))
    }
}

impl Drop for IdleProgram {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
