//! punctuald and its clients: users share a CPU within their limits, and a client or a service that
//! ends, however, leaves nothing behind.

use std::os::unix::process::CommandExt;
use std::process::Command;
use std::time::Duration;

use punctual_service::{ReservationChange, ServiceClient, TaskRequest};
use serde_json::Value;

use crate::machine::{permitted_cpu, wait_for_cpu, Need};
use crate::privileges::{open_folder, Elsewhere, UNPRIVILEGED};
use crate::process::{attributes, cgroup_of, eventually, kill, marked, state_of};
use crate::punctual::{adversarial, new_mark, patiently, run_on, Ended, Running, Scratch};
use crate::victim::Victim;

/// What all of this needs.
pub const SERVICE_NEEDS: [Need; 3] = [Need::Root, Need::RealTime, Need::Freezer];

/// A second ordinary user.
pub const OTHER_USER: u32 = 65_533;

/// A running service, and a copy of the command for users who are not root.
pub struct Service {
    pub running: Running,
    pub socket: String,
    pub scratch: Scratch,
    elsewhere: Elsewhere,
    pub bus: String,
}

impl Service {
    /// One whose reservations are on `cpu`. Users of the group 65534 may have 30 % of it.
    pub fn start(cpu: u32) -> Service {
        Service::on_bus(cpu, "", "unix:path=/none")
    }

    /// The same with more configuration, on this system bus.
    pub fn on_bus(cpu: u32, more: &str, bus: &str) -> Service {
        let allow = "[[allow]]\ngroup = \"65534\"\nshare = \"30%\"\n";
        Service::configured(cpu, &format!("{allow}cpus = [{cpu}]\n{more}"), &[], bus)
    }

    /// One with this configuration beside its CPU, and with these roles: names and files.
    pub fn configured(cpu: u32, config: &str, roles: &[(&str, &str)], bus: &str) -> Service {
        let scratch = Scratch::new();
        open_folder(scratch.folder());
        let config = scratch.file("service.toml", &format!("cpus = [{cpu}]\n{config}"));
        std::fs::create_dir(scratch.path("roles")).expect("a folder");
        for (name, text) in roles {
            scratch.file(&format!("roles/{name}.toml"), text);
        }
        let socket = format!("/tmp/punctual-test-{}.socket", new_mark());
        let host = &host();
        let args = ["serve", "--socket", &socket, "--config", &config, "--host", host];
        let roles = scratch.path("roles");
        let running = Running::from(|c| {
            c.args(args).env("DBUS_SYSTEM_BUS_ADDRESS", bus).env("PUNCTUAL_ROLES", roles)
        });
        let (elsewhere, bus) = (Elsewhere::new(), bus.to_owned());
        let mut service = Service { running, socket, scratch, elsewhere, bus };
        service.await_ready();
        wait_for_cpu(cpu);
        service
    }

    pub fn await_ready(&mut self) {
        let socket = self.socket.clone();
        self.running
            .wait_for("its socket", |_| std::os::unix::net::UnixStream::connect(&socket).is_ok());
    }

    /// Another one in the place of one that was killed.
    pub fn start_again(&mut self) {
        self.running = serve(&self.socket, &self.scratch.path("service.toml"));
        self.await_ready();
    }

    /// A connection as root.
    pub fn client(&self) -> ServiceClient {
        ServiceClient::require(self.socket.as_ref()).expect("it serves")
    }

    /// Reserves, while another Punctual on this machine has the CPU again and again.
    pub fn reserve(&self, client: &mut ServiceClient, tasks: &[TaskRequest]) -> Vec<u64> {
        let mut reserved = Err(String::new());
        eventually("the CPU is free", || {
            reserved = client.reserve(tasks).map_err(|e| e.to_string());
            !matches!(&reserved, Err(e) if e.contains("already has a dispatcher"))
        });
        reserved.expect("it fits").iter().map(|info| info.id).collect()
    }

    /// `punctual` as a user in the group that may reserve 30 %, with the service as its host.
    pub fn as_user(&self, uid: u32, args: &[&str]) -> Running {
        self.as_user_with_roles(uid, args, &self.scratch.path("roles"))
    }

    /// The same, which reads the roles in a folder that need not be the service's.
    pub fn as_user_with_roles(&self, uid: u32, args: &[&str], roles: &str) -> Running {
        let mark = new_mark();
        let mut c = Command::new(&self.elsewhere.punctual);
        c.args(args).uid(uid).gid(65534).env("PUNCTUAL_ROLES", roles);
        self.arrange(&mut c, &mark);
        Running::of(c, mark)
    }

    /// Writes a file of the service's, such as `roles/NAME.toml`.
    pub fn write(&self, name: &str, text: &str) -> String {
        self.scratch.file(name, text)
    }

    /// `punctual` as root, with the service as its host.
    pub fn as_root(&self, args: &[&str]) -> Running {
        let mark = new_mark();
        let mut c = Command::new(&self.elsewhere.punctual);
        c.args(args);
        self.arrange(&mut c, &mark);
        Running::of(c, mark)
    }

    fn arrange(&self, c: &mut Command, mark: &str) {
        c.env("PUNCTUAL_SOCKET", &self.socket).env("PUNCTUAL_TEST_MARK", mark).current_dir("/");
        c.env_remove("XDG_RUNTIME_DIR").process_group(0);
        c.stdin(std::process::Stdio::null());
        c.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped());
    }

    /// Ends it, in good order.
    pub fn end(self, cpu: u32) {
        kill(self.running.pid(), libc::SIGTERM);
        let ended = self.running.end();
        ended.assert_code(0).assert_nothing_left(&[cpu]);
        assert!(!std::path::Path::new(&self.socket).exists(), "its socket is left");
    }
}

fn serve(socket: &str, config: &str) -> Running {
    Running::from(|c| c.args(["serve", "--socket", socket, "--config", config, "--host", &host()]))
}

/// What schedules the reservations: the tests are the same.
pub fn host() -> String {
    std::env::var("PUNCTUAL_SERVICE_HOST").unwrap_or("user".into())
}

/// The words of a run of a spinning command.
pub fn spin<'a>(period: &'a str, budget: &'a str) -> Vec<&'a str> {
    let run = ["run", "--host", "service", "-q", "--period", period, "--budget", budget];
    run.into_iter().chain(["--duration", "60s", "--", "sh", "-c", "while :; do :; done"]).collect()
}

/// Calls `f` in a thread of an ordinary user.
pub fn as_user<T: Send + 'static>(f: impl FnOnce() -> T + Send + 'static) -> T {
    let of_user = move || {
        let number = UNPRIVILEGED;
        // SAFETY: system calls without memory; unlike the library's they are for this thread alone.
        let set = unsafe {
            libc::syscall(libc::SYS_setresgid, number, number, number)
                | libc::syscall(libc::SYS_setresuid, number, number, number)
        };
        assert_eq!(set, 0);
        f()
    };
    std::thread::spawn(of_user).join().expect("it does not panic")
}

pub fn names(service: &Service) -> Vec<(u32, u64)> {
    let status = service.client().status().expect("it serves");
    status.reservations.iter().map(|r| (r.uid, r.budget_ns)).collect()
}

#[test]
fn users_share_a_cpu_within_their_limits_and_see_only_their_own() {
    let Some(cpu) = permitted_cpu(&SERVICE_NEEDS) else { return };
    let service = Service::start(cpu.0);
    let mut first = service.as_user(UNPRIVILEGED, &spin("20ms", "5ms"));
    first.wait_for("the first user's reservation", |_| names(&service).len() == 1);
    let mut second = service.as_user(OTHER_USER, &spin("10ms", "2ms"));
    second.wait_for("the second user's", |_| names(&service).len() == 2);
    let mut third = service.as_root(&spin("20ms", "2ms"));
    third.wait_for("root's", |_| names(&service).len() == 3);
    let seen: Vec<_> = names(&service);
    assert!(seen.contains(&(UNPRIVILEGED, 5_000_000)) && seen.contains(&(OTHER_USER, 2_000_000)));

    // 55 % are promised. A user may not exceed its 30 %, nor have what the others leave no time
    // for.
    let refused = |running: Running, code, words: &[&str]| {
        let ended = running.end();
        ended.assert_code(code).assert_says(words);
        assert!(!ended.err.contains("sh#"), "it names a task of another user: {}", ended.err);
    };
    refused(
        service.as_user(UNPRIVILEGED, &spin("100ms", "6ms")),
        125,
        &["may reserve 30 % of CPU", "has 25 % and requests 6 % more", "administrator"],
    );
    let mut fourth = service.as_root(&spin("20ms", "2ms"));
    fourth.wait_for("root's second", |_| names(&service).len() == 4);
    let mut at_once = spin("100ms", "8ms");
    at_once.splice(1..1, ["--deadline", "9ms"]);
    refused(
        service.as_user(OTHER_USER, &at_once),
        125,
        &["cannot promise this beside the 65 % that it has", "use another CPU"],
    );
    let status = service.as_user(UNPRIVILEGED, &["serve", "--status", "--json"]).end();
    let result: Value = status.assert_code(0).result();
    let own = result["reservations"].as_array().expect("a list");
    assert_eq!((own.len(), own[0]["uid"].as_u64()), (1, Some(u64::from(UNPRIVILEGED))), "{result}");
    assert_eq!(result["cpus"][0]["own_ppm"], 250_000, "{result}");
    assert_eq!(result["cpus"][0]["limit_ppm"], 300_000, "{result}");

    // A process of another user, and one that is not there.
    for (pid, words) in [("1", "is not user 65534's alone"), ("4194303", "there is no process")] {
        let args =
            ["run", "--host", "service", "--period", "10ms", "--budget", "1ms", "--pid", pid];
        let ended = service.as_user(UNPRIVILEGED, &args).end();
        assert!(matches!(ended.code, Some(2 | 4)), "{:?}: {}", ended.code, ended.err);
        ended.assert_says(&[words]);
    }

    // SIGKILL of a client releases what it held, and ends its command; Ctrl-C likewise.
    kill(first.pid(), libc::SIGKILL);
    first.reap();
    eventually("the killed client's command is gone", || marked(&first.mark).is_empty());
    eventually("its reservation is released", || names(&service).len() == 3);
    for client in [&mut second, &mut third, &mut fourth] {
        kill(client.pid(), libc::SIGINT);
        assert_eq!(client.reap().code(), Some(130));
        eventually("its command is gone", || marked(&client.mark).is_empty());
    }
    eventually("nothing is reserved", || names(&service).is_empty());
    service.end(cpu.0);
}

#[test]
fn the_results_of_a_client_are_those_of_a_run_of_its_own() {
    let Some(cpu) = permitted_cpu(&SERVICE_NEEDS) else { return };
    let service = Service::start(cpu.0);
    let args = ["run", "--host", "service", "--json", "--period", "10ms", "--budget", "2ms"];
    let run = |rest: &[&str]| -> Ended {
        patiently(|| service.as_user(UNPRIVILEGED, &[&args[..], rest].concat()).end())
    };
    let ended = run(&["--duration", "1s", "--", "sh", "-c", "while :; do :; done"]);
    let result = ended.assert_timed_out().result();
    assert_eq!(result["host"], "service");
    assert!(result["tasks"][0]["periods"].as_u64() > Some(10), "{result}");
    punctual_test_support::judge_timing(|| {
        assert_eq!(result["tasks"][0]["misses"], 0, "{result}");
    });
    // `auto` is the service, for root, too; and no other dispatcher gets its CPU.
    let auto = ["run", "--host", "auto", "--cpu", &cpu.0.to_string(), "--period", "10ms"];
    let auto = [&auto[..], &["--budget", "2ms", "--", "true"]].concat();
    let serves = format!("the service host: punctuald serves at {}", service.socket);
    let ended = patiently(|| service.as_user(UNPRIVILEGED, &auto).end());
    ended.assert_code(0).assert_says(&[&serves]);
    patiently(|| service.as_root(&auto).end()).assert_code(0).assert_says(&[&serves]);
    let alone: Vec<&str> = [&auto[..1], &["--policy", "rm"], &auto[1..]].concat();
    let ended = patiently(|| service.as_root(&alone).end());
    ended.assert_code(0).assert_says(&["the service schedules by edf, not by rm"]);
    let mut held = service.as_root(&spin("20ms", "5ms"));
    held.wait_for("a reservation", |_| names(&service).len() == 1);
    let own = run_on(cpu.0, "--period 10ms --budget 1ms --duration 1s -- true");
    let ended = Running::start(&own).end();
    ended.assert_code(125).assert_says(&["already has a dispatcher", "--host service"]);
    kill(held.pid(), libc::SIGINT);
    held.reap();
    run(&["--", "sh", "-c", "exit 7"]).assert_code(7);
    run(&["--", "/no/such/command"]).assert_code(127);
    for (option, words) in [
        ("--trace=/tmp/none", "writes no traces"),
        ("--overload", "admits no set that does not fit"),
        ("--policy=rm", "schedules by edf, not by rm"),
        ("--no-idle", "--no-idle is for the user host"),
    ] {
        let ended = run(&[option, "--", "true"]);
        let cause = ended.assert_code(125).json()["error"]["cause"].to_string();
        assert!(cause.contains(words), "{cause}");
    }
    eventually("nothing is reserved", || names(&service).is_empty());
    service.end(cpu.0);
}

#[test]
fn a_process_regains_what_it_had_when_it_is_released_or_its_client_or_the_service_ends() {
    let Some(cpu) = permitted_cpu(&SERVICE_NEEDS) else { return };
    let mut service = Service::start(cpu.0);
    let victim = Victim::start();
    let request = TaskRequest::new("victim", victim.pid(), 20_000_000, 2_000_000);
    let reserve = |service: &Service| {
        let mut client = service.client();
        let id = service.reserve(&mut client, std::slice::from_ref(&request))[0];
        let status = client.status().expect("it serves");
        assert_eq!(status.reservations[0].cpu, cpu.0, "the only CPU of the service");
        assert!(!victim.is_as_before());
        (client, id)
    };
    // Released, by its client alone.
    let (mut client, id) = reserve(&service);
    let refusal = service.client().release(id).expect_err("another connection's");
    assert!(refusal.cause.contains("has no reservation"), "{refusal}");
    client.change(id, &ReservationChange::of_budget(3_000_000)).expect("it fits");
    let refusal =
        client.change(id, &ReservationChange::of_budget(19_999_999)).expect_err("it does not fit");
    assert_eq!(refusal.kind, punctual_diagnostic::Kind::NotAdmitted, "{refusal}");
    client.release(id).expect("its own");
    victim.assert_as_before();
    let refusal = client.release(id).expect_err("it is released");
    assert!(refusal.cause.contains("has no reservation"), "{refusal}");
    // A request for two, of which the second does not fit, reserves none.
    let large = TaskRequest { budget_ns: Some(19_000_000), ..request.clone() };
    client.reserve(&[request.clone(), large]).expect_err("it does not fit");
    eventually("it is as before", || victim.is_as_before());
    // Its client disconnects.
    let (client, _) = reserve(&service);
    drop(client);
    eventually("it is as before", || victim.is_as_before());
    // The service ends.
    let (mut client, _) = reserve(&service);
    kill(service.running.pid(), libc::SIGTERM);
    service.running.reap();
    victim.assert_as_before();
    assert!(client.take_events().is_err());
    // The service is killed: its guardian restores, and another one takes its place.
    service.start_again();
    let _held = reserve(&service);
    kill(service.running.pid(), libc::SIGKILL);
    service.running.reap();
    eventually("it is as before", || victim.is_as_before());
    service.start_again();
    wait_for_cpu(cpu.0);
    let (client, _) = reserve(&service);
    drop(client);
    eventually("it is as before", || victim.is_as_before());
    service.end(cpu.0);
}

#[test]
fn a_client_cannot_take_its_process_out_of_its_budget() {
    let Some(cpu) = permitted_cpu(&SERVICE_NEEDS) else { return };
    let service = Service::start(cpu.0);
    let words = adversarial("spin");
    let mut program = Command::new(&words[0]);
    let mut program = program.args(&words[1..]).uid(UNPRIVILEGED).gid(65534).spawn().unwrap();
    let pid = program.id() as i32;
    let home = cgroup_of(pid);
    let mut client = service.client();
    let request = TaskRequest::new("spin", pid, 20_000_000, 2_000_000);
    service.reserve(&mut client, &[TaskRequest { cpu: Some(cpu.0), ..request }]);
    // Below the service's cgroup, to which its user may not write, nor to those above it.
    let inside = cgroup_of(pid);
    assert!(inside.contains(&format!("punctual-{}-", service.running.pid())), "{inside}");
    let group = punctual_test_support::groups_of(service.running.pid());
    for directory in group.iter().flat_map(|g| g.ancestors()).take(8) {
        if directory.join("cgroup.procs").exists() {
            let write = |name: &str, text: String| {
                let file = directory.join(name);
                as_user(move || std::fs::write(file, text).map_err(|e| e.kind()))
            };
            let refused = Err(std::io::ErrorKind::PermissionDenied);
            assert_eq!(write("cgroup.procs", pid.to_string()), refused, "{directory:?}");
            assert_eq!(write("cgroup.freeze", "0".to_owned()), refused, "{directory:?}");
        }
    }
    let raised = as_user(move || punctual_sys::sched::set_fifo(pid, 90).map_err(|e| e.kind()));
    assert_eq!(raised, Err(std::io::ErrorKind::PermissionDenied), "it raises its priority");
    assert_eq!(cgroup_of(pid), inside);
    // It may move itself to another CPU, and is moved back.
    let other = crate::machine::online().into_iter().find(|c| *c != cpu.0);
    if let Some(other) = other {
        as_user(move || punctual_sys::sched::pin(pid, other)).expect("it is its own");
        eventually("it is on its CPU again", || {
            let mask = punctual_sys::sched::affinity(pid).expect("it lives");
            punctual_sys::sched::cpus(&mask).eq([cpu.0])
        });
    }
    drop(client);
    eventually("it is restored", || cgroup_of(pid) == home);
    assert_eq!(attributes(pid).map(|a| a.priority), Some(0));
    assert_ne!(state_of(pid), Some('T'));
    kill(pid, libc::SIGKILL);
    crate::bounded::wait(&mut program);
    service.end(cpu.0);
}

#[test]
fn a_second_service_is_refused_and_a_wrong_configuration_is_named() {
    let Some(cpu) = permitted_cpu(&SERVICE_NEEDS) else { return };
    let service = Service::start(cpu.0);
    let config = service.scratch.path("service.toml");
    serve(&service.socket, &config).end().assert_code(4).assert_says(&["another service listens"]);
    let document = service.scratch.file("document", "of the user\n");
    serve(&document, &config).end().assert_says(&["no socket can be made", "File exists"]);
    assert_eq!(std::fs::read_to_string(&document).unwrap(), "of the user\n");
    let wrong = service.scratch.file("wrong.toml", "cpu = 3\n");
    serve("/tmp/punctual-none.socket", &wrong)
        .end()
        .assert_code(2)
        .assert_says(&["unknown field `cpu`", "docs/service.md"]);
    // SIGHUP reads it again; a wrong one leaves all as it was.
    let limit = || service.client().status().expect("it serves").cpus.len();
    assert_eq!(limit(), 1);
    service.scratch.file("service.toml", "cpu = 3\n");
    kill(service.running.pid(), libc::SIGHUP);
    std::thread::sleep(Duration::from_millis(100));
    assert_eq!(limit(), 1);
    service.scratch.file("service.toml", "cpus = []\n");
    kill(service.running.pid(), libc::SIGHUP);
    eventually("the new configuration", || limit() == 0);
    service.end(cpu.0);
}
