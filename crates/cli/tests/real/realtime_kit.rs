//! The service in the place of RealtimeKit: what clients on D-Bus get, what they are refused, and
//! that nothing is left of it.

use std::os::unix::process::CommandExt;
use std::process::{Child, Command};

use punctual_service::ReservationInfo;
use punctual_test_support::LIVENESS;

use crate::bounded::{end_all, end_within, Said};
use crate::machine::{has_dispatcher, permitted_cpu, Cpu, Need};
use crate::privileges::UNPRIVILEGED;
use crate::process::{attributes, eventually, kill, threads_of};
use crate::punctual::adversarial;
use crate::service::{Service, SERVICE_NEEDS};
use crate::system_bus::SystemBus;

/// Long enough for a test on another CPU to see both classes of a thread.
const SECTION: &str = "[realtime_kit]\nperiod = \"200ms\"\nbudget = \"50ms\"\n";
/// A user without a share, of every Linux: a bus refuses users who have no entry.
const WITHOUT_SHARE: u32 = 1;
/// SCHED_RESET_ON_FORK.
const RESET_ON_FORK: i32 = libc::SCHED_RESET_ON_FORK;

fn cpu_for_bus() -> Option<Cpu> {
    let [root, real_time, freezer] = SERVICE_NEEDS;
    let tools = [Need::Tool("dbus-daemon"), Need::Tool("dbus-send")];
    permitted_cpu(&[root, real_time, freezer, Need::Cpus(2), tools[0], tools[1]])
}

/// A service that has RealtimeKit's name on a bus.
fn start(cpu: &Cpu) -> (SystemBus, Service) {
    let bus = SystemBus::start();
    let service = Service::on_bus(cpu.0, SECTION, &bus.address());
    eventually("it has the name", || bus.owner() == Some(service.running.pid()));
    (bus, service)
}

/// A process with threads that execute without end.
struct Client(Child);

impl Client {
    fn start(uid: u32) -> Client {
        let words = adversarial("spin-threads 3");
        let child = Command::new(&words[0]).args(&words[1..]).uid(uid).gid(uid).spawn().unwrap();
        let client = Client(child);
        eventually("its threads are there", || threads_of(client.pid()).len() == 3);
        client
    }

    fn pid(&self) -> i32 {
        self.0.id() as i32
    }

    /// One that is not the first.
    fn thread(&self) -> i32 {
        threads_of(self.pid()).into_iter().find(|tid| *tid != self.pid()).expect("it has three")
    }

    /// The arguments of a method ...WithPID.
    fn args(&self, tid: i32, last: &str) -> Vec<String> {
        vec![format!("uint64:{}", self.pid()), format!("uint64:{tid}"), last.to_owned()]
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        end_all([self.pid()]);
        let _ = end_within(&mut self.0, LIVENESS);
    }
}

fn reservations(service: &Service) -> Vec<ReservationInfo> {
    service.client().status().expect("it serves").reservations
}

fn policy(tid: i32) -> i32 {
    attributes(tid).map_or(-1, |a| a.policy & !RESET_ON_FORK)
}

#[test]
fn a_thread_that_asks_gets_a_reservation_with_a_budget_until_it_ends() {
    let Some(cpu) = cpu_for_bus() else { return };
    let (bus, service) = start(&cpu);
    let client = Client::start(UNPRIVILEGED);
    let thread = client.thread();
    let others: Vec<i32> = threads_of(client.pid()).into_iter().filter(|t| *t != thread).collect();
    let before: Vec<_> = others.iter().map(|tid| attributes(*tid)).collect();
    let ask =
        || bus.call(UNPRIVILEGED, "MakeThreadRealtimeWithPID", &client.args(thread, "uint32:20"));
    ask_until_free(ask);
    let of = |r: &ReservationInfo| (r.uid, r.pid, r.cpu, r.period_ns, r.budget_ns);
    let reserved: Vec<_> = reservations(&service).iter().map(of).collect();
    assert_eq!(reserved, [(UNPRIVILEGED, client.pid(), cpu.0, 200_000_000, 50_000_000)]);
    // Real-time within its budget, and in the ordinary class beyond it, again and again.
    for _ in 0..3 {
        eventually("it has a real-time priority", || policy(thread) == libc::SCHED_FIFO);
        eventually("its budget is used up", || policy(thread) == libc::SCHED_OTHER);
    }
    let now: Vec<_> = others.iter().map(|tid| attributes(*tid)).collect();
    assert_eq!(now, before, "its other threads are as before");
    // Asked again, it keeps what it has. The call's own connection has ended since.
    ask().expect("it has a reservation");
    assert_eq!(reservations(&service).len(), 1);
    drop(client);
    eventually("nothing is reserved", || reservations(&service).is_empty());
    eventually("the CPU has no dispatcher", || !has_dispatcher(cpu.0));
    service.end(cpu.0);
}

#[test]
fn a_user_with_roles_alone_has_threads_too_because_their_values_are_the_configurations() {
    let Some(cpu) = cpu_for_bus() else { return };
    let bus = SystemBus::start();
    let allow = "[[allow]]\ngroup = \"65534\"\nshare = \"30%\"\nroles = [\"one\"]\n";
    let roles = [("one", "period = \"10ms\"\nbudget = \"1ms\"\n")];
    let config = format!("{allow}{SECTION}");
    let service = Service::configured(cpu.0, &config, &roles, &bus.address());
    eventually("it has the name", || bus.owner() == Some(service.running.pid()));
    let client = Client::start(UNPRIVILEGED);
    let args = client.args(client.thread(), "uint32:5");
    ask_until_free(|| bus.call(UNPRIVILEGED, "MakeThreadRealtimeWithPID", &args));
    assert_eq!(reservations(&service)[0].budget_ns, 50_000_000);
    drop(client);
    eventually("nothing is reserved", || reservations(&service).is_empty());
    service.end(cpu.0);
}

#[test]
fn a_thread_keeps_its_reservation_when_another_process_takes_the_place_of_the_service() {
    let Some(cpu) = cpu_for_bus() else { return };
    let (bus, mut service) = start(&cpu);
    let client = Client::start(UNPRIVILEGED);
    let thread = client.thread();
    let ask =
        || bus.call(UNPRIVILEGED, "MakeThreadRealtimeWithPID", &client.args(thread, "uint32:20"));
    ask_until_free(ask);
    let before = reservations(&service);
    service.replace();
    assert_eq!(reservations(&service), before);
    eventually("it has a real-time priority", || policy(thread) == libc::SCHED_FIFO);
    eventually("its budget is used up", || policy(thread) == libc::SCHED_OTHER);
    eventually("it has the name", || bus.owner() == Some(service.running.pid()));
    ask().expect("it has a reservation");
    assert_eq!(reservations(&service), before, "it is known to the interface");
    drop(client);
    eventually("nothing is reserved", || reservations(&service).is_empty());
    service.end(cpu.0);
}

/// Asks again while another Punctual on this machine has the CPU.
fn ask_until_free(ask: impl Fn() -> Result<(), String>) {
    let mut asked = Err(String::new());
    eventually("the CPU is free", || {
        asked = ask();
        !matches!(&asked, Err(e) if e.contains("already has a dispatcher"))
    });
    asked.expect("it fits");
}

#[test]
fn reset_takes_everything_back() {
    let Some(cpu) = cpu_for_bus() else { return };
    let (bus, service) = start(&cpu);
    let client = Client::start(UNPRIVILEGED);
    let thread = client.thread();
    let call =
        |method: &str, tid, last: &str| bus.call(UNPRIVILEGED, method, &client.args(tid, last));
    ask_until_free(|| call("MakeThreadRealtimeWithPID", thread, "uint32:1"));
    // 0 is the first thread.
    call("MakeThreadHighPriorityWithPID", 0, "int32:-11").expect("it may");
    let of = |tid| attributes(tid).map(|a| (a.policy, a.nice));
    assert_eq!(of(client.pid()), Some((libc::SCHED_OTHER | RESET_ON_FORK, -11)));
    for method in ["ResetKnown", "ResetAll", "Exit"] {
        let refusal = bus.call(UNPRIVILEGED, method, &[]).expect_err("it is root's");
        assert!(refusal.contains("AccessDenied"), "{refusal}");
    }
    bus.call(0, "ResetKnown", &[]).expect("root may");
    assert!(reservations(&service).is_empty());
    for tid in [client.pid(), thread] {
        assert_eq!(of(tid).map(|(policy, nice)| (policy & !RESET_ON_FORK, nice)), Some((0, 0)));
    }
    // A nice level in the place of a reservation.
    ask_until_free(|| call("MakeThreadRealtimeWithPID", thread, "uint32:1"));
    call("MakeThreadHighPriorityWithPID", thread, "int32:-5").expect("it may");
    assert!(reservations(&service).is_empty());
    assert_eq!(of(thread), Some((libc::SCHED_OTHER | RESET_ON_FORK, -5)));
    bus.call(0, "Exit", &[]).expect("root may");
    eventually("the name is given back", || bus.owner().is_none());
    service.end(cpu.0);
}

#[test]
fn what_realtimekit_refuses_and_what_exceeds_a_share_is_refused() {
    let Some(cpu) = cpu_for_bus() else { return };
    let (bus, service) = start(&cpu);
    assert!(bus.property("RTTimeUSecMax").contains("int64"));
    assert!(bus.property("MaxRealtimePriority").contains("int32 20"));
    assert!(bus.property("MinNiceLevel").contains("int32 -15"));
    let (client, other) = (Client::start(UNPRIVILEGED), Client::start(WITHOUT_SHARE));
    let (real_time, nice) = ("MakeThreadRealtimeWithPID", "MakeThreadHighPriorityWithPID");
    let denied = "org.freedesktop.DBus.Error.AccessDenied";
    let failed = "org.freedesktop.DBus.Error.Failed";
    let of_caller = client.args(client.thread(), "uint32:5")[1..].to_vec();
    for (uid, method, args, error, words) in [
        (UNPRIVILEGED, real_time, client.args(0, "uint32:21"), denied, "priority 21 is above 20"),
        (UNPRIVILEGED, real_time, client.args(0, "uint32:0"), failed, "no real-time priority"),
        (UNPRIVILEGED, nice, client.args(0, "int32:-16"), denied, "nice level -16 is below -15"),
        (UNPRIVILEGED, real_time, client.args(1, "uint32:5"), denied, "not user 65534's alone"),
        (UNPRIVILEGED, real_time, client.args(other.pid(), "uint32:5"), denied, "not user 65534's"),
        (UNPRIVILEGED, real_time, other.args(0, "uint32:5"), denied, "not user 65534's alone"),
        (WITHOUT_SHARE, real_time, other.args(0, "uint32:5"), denied, "may reserve nothing"),
        (WITHOUT_SHARE, nice, other.args(0, "int32:-5"), denied, "has no share of a CPU"),
        (0, real_time, client.args(other.pid(), "uint32:5"), failed, "has no thread"),
        // Without a process: that of the caller, here dbus-send.
        (0, "MakeThreadRealtime", of_caller, failed, "has no thread"),
    ] {
        let refusal = bus.call(uid, method, &args).expect_err(words);
        assert!(refusal.contains(error) && refusal.contains(words), "{refusal}: {words}");
    }
    eventually("calls are counted", || {
        let refused = bus.call(UNPRIVILEGED, nice, &client.args(0, "int32:-1"));
        refused.is_err_and(|e| e.contains(denied) && e.contains("more than 25 calls in 20 s"))
    });
    assert!(reservations(&service).is_empty());
    service.end(cpu.0);
}

#[test]
fn a_name_that_is_taken_is_reported_and_waited_for() {
    let Some(cpu) = cpu_for_bus() else { return };
    let (bus, first) = start(&cpu);
    let first_pid = first.running.pid();
    let mut second = Service::on_bus(cpu.0, SECTION, &bus.address());
    let said = Said::by(second.running.child.stderr.take());
    let said = said.until("systemctl mask --now rtkit-daemon");
    assert!(said.contains(&format!("belongs to process {first_pid} (punctual)")), "{said}");
    assert_eq!((bus.owner(), bus.owners()), (Some(first_pid), 2));
    first.end(cpu.0);
    eventually("the second has the name", || bus.owner() == Some(second.running.pid()));
    assert_eq!(bus.property("MinNiceLevel").matches("-15").count(), 1, "it serves");
    second.end(cpu.0);
}

#[test]
fn the_service_runs_without_a_bus_and_without_the_section() {
    let Some(cpu) = cpu_for_bus() else { return };
    let mut service = Service::on_bus(cpu.0, SECTION, "unix:path=/none");
    let said = Said::by(service.running.child.stderr.take());
    said.until("org.freedesktop.RealtimeKit1 is not served: ");
    assert!(reservations(&service).is_empty(), "it serves its own clients");
    service.end(cpu.0);
    let bus = SystemBus::start();
    let service = Service::on_bus(cpu.0, "", &bus.address());
    assert!(reservations(&service).is_empty());
    assert_eq!(bus.owners(), 0, "no section, no name");
    kill(service.running.pid(), libc::SIGTERM);
    let ended = service.running.end();
    ended.assert_code(0);
    assert!(!ended.err.contains("RealtimeKit"), "{}", ended.err);
}
