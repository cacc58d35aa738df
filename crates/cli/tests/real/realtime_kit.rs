//! The service in the place of RealtimeKit: what clients on D-Bus get, what they are refused, and
//! that nothing is left of it.

use std::os::unix::process::CommandExt;
use std::process::{Child, Command};

use punctual_service::ReservationInfo;
use punctual_test_support::LIVENESS;

use crate::bounded::{end_all, end_within, Said};
use crate::machine::{permitted_cpu, Cpu, Need};
use crate::privileges::UNPRIVILEGED;
use crate::process::{attributes, eventually, kill, threads_of};
use crate::punctual::adversarial;
use crate::service::{Service, SERVICE_NEEDS};
use crate::system_bus::SystemBus;

const SECTION: &str = "[realtime_kit]\nperiod = \"20ms\"\nbudget = \"2ms\"\n";
/// A user without a share, of every Linux: a bus refuses users who have no entry.
const WITHOUT_SHARE: u32 = 1;
/// SCHED_RESET_ON_FORK.
const RESET_ON_FORK: i32 = libc::SCHED_RESET_ON_FORK;

fn cpu_for_bus() -> Option<Cpu> {
    let [root, real_time, freezer] = SERVICE_NEEDS;
    let tools = [Need::Tool("dbus-daemon"), Need::Tool("dbus-send")];
    permitted_cpu(&[root, real_time, freezer, tools[0], tools[1]])
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

#[test]
fn a_thread_gets_a_nice_level_until_root_resets_it() {
    let Some(cpu) = cpu_for_bus() else { return };
    let (bus, service) = start(&cpu);
    let client = Client::start(UNPRIVILEGED);
    let of = |tid| attributes(tid).map(|a| (a.policy & !RESET_ON_FORK, a.nice));
    let thread = client.thread();
    let untouched = of(thread);
    let args = client.args(0, "int32:-11");
    bus.call(UNPRIVILEGED, "MakeThreadHighPriorityWithPID", &args).expect("it may");
    // 0 is the first thread.
    assert_eq!(of(client.pid()), Some((libc::SCHED_OTHER, -11)));
    assert_eq!(of(thread), untouched);
    for method in ["ResetKnown", "ResetAll", "Exit"] {
        let refusal = bus.call(UNPRIVILEGED, method, &[]).expect_err("it is root's");
        assert!(refusal.contains("AccessDenied"), "{refusal}");
    }
    bus.call(0, "ResetKnown", &[]).expect("root may");
    assert_eq!(of(client.pid()), Some((libc::SCHED_OTHER, 0)));
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
