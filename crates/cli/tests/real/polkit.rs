//! polkit decides on users without an entry in the configuration: the real one, on a bus of the
//! test's own and with rules of its own.

use std::ffi::CString;
use std::io;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use punctual_service::{ReservationChange, ServiceClient, TaskRequest};
use punctual_test_support::LIVENESS;

use crate::bounded::{end_all, end_within};
use crate::machine::{permitted_cpu, Cpu, Need};
use crate::privileges::{open_folder, UNPRIVILEGED};
use crate::process::{eventually, kill};
use crate::punctual::Scratch;
use crate::service::{as_user, Service, SERVICE_NEEDS};
use crate::service_threads::Program;
use crate::system_bus::SystemBus;
use crate::victim::Victim;

const POLKITD: &str = "/usr/lib/polkit-1/polkitd";
const NAME: &str = "org.freedesktop.PolicyKit1";
/// The folders that polkitd reads; they have no option.
const FOLDERS: [(&str, &str); 2] =
    [("actions", "/usr/share/polkit-1/actions"), ("rules", "/etc/polkit-1/rules.d")];

/// Users of every Debian: polkit knows none that has no name.
const WITH_ENTRY: u32 = 2;
const DENIED: u32 = 1;
const CHALLENGED: u32 = 5;
const RULES: &str = r#"polkit.addRule(function(action, subject) {
	if (action.id != "io.punctual.reserve") return polkit.Result.NOT_HANDLED;
	if (subject.isInGroup("nogroup")) return polkit.Result.YES;
	if (subject.user == "games") return polkit.Result.AUTH_ADMIN;
	return polkit.Result.NOT_HANDLED;
});
"#;
const CONFIG: &str = "[[allow]]\nuser = \"2\"\nshare = \"20%\"\n[polkit]\nshare = \"10%\"\n";

fn cpu_for_polkit() -> Option<Cpu> {
    let [root, real_time, freezer] = SERVICE_NEEDS;
    let tools = ["dbus-daemon", "dbus-send"].map(Need::Tool);
    let polkitd = Need::Program(POLKITD, "polkitd");
    permitted_cpu(&[root, real_time, freezer, Need::Cpus(2), tools[0], tools[1], polkitd])
}

/// A running polkitd, with the action that `make install` installs; it ends with this.
struct PolkitDaemon {
    daemon: Child,
    _scratch: Scratch,
}

impl PolkitDaemon {
    fn start(bus: &SystemBus) -> PolkitDaemon {
        let scratch = Scratch::new();
        open_folder(scratch.folder());
        let mut mounts = Vec::new();
        for (own, of_machine) in FOLDERS {
            std::fs::create_dir(scratch.path(own)).expect("a folder");
            open_folder(scratch.path(own).as_ref());
            mounts.push([scratch.path(own), of_machine.into()].map(|p| CString::new(p).unwrap()));
        }
        let action = include_str!("../../../../polkit/io.punctual.policy");
        scratch.file("actions/io.punctual.policy", action);
        scratch.file("rules/50-punctual.rules", RULES);
        let mut daemon = Command::new(POLKITD);
        daemon.arg("--no-debug").env("DBUS_SYSTEM_BUS_ADDRESS", bus.address());
        daemon.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        // SAFETY: system calls alone, with strings that were made before.
        unsafe { daemon.pre_exec(move || mount_over(&mounts)) };
        let daemon = daemon.spawn().expect("it runs");
        let pid = daemon.id() as i32;
        eventually("polkitd has its name", || bus.owner_of(NAME) == Some(pid));
        PolkitDaemon { daemon, _scratch: scratch }
    }

    fn pid(&self) -> i32 {
        self.daemon.id() as i32
    }
}

impl Drop for PolkitDaemon {
    fn drop(&mut self) {
        end_all([self.pid()]);
        let _ = end_within(&mut self.daemon, LIVENESS);
    }
}

/// Puts folders in the place of others, for this process and its children alone.
fn mount_over(folders: &[[CString; 2]]) -> io::Result<()> {
    let mount = |from: &CString, to: &CString, flags| {
        let none = std::ptr::null();
        // SAFETY: the strings end with a zero; the file system and its options are not read.
        match unsafe { libc::mount(from.as_ptr(), to.as_ptr(), none, flags, none.cast()) } {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    };
    // SAFETY: no memory.
    if unsafe { libc::unshare(libc::CLONE_NEWNS) } != 0 {
        return Err(io::Error::last_os_error());
    }
    let root = CString::default();
    mount(&root, &CString::from(c"/"), libc::MS_REC | libc::MS_PRIVATE)?;
    folders.iter().try_for_each(|[from, to]| mount(from, to, libc::MS_BIND))
}

fn spin(period: &str) -> Vec<&str> {
    let run = ["run", "--host", "service", "-q", "--budget", "1ms", "--duration", "60s"];
    [&run[..], &["--period", period, "--", "sh", "-c", "while :; do :; done"]].concat()
}

/// A connection of a process of this user.
fn connect(service: &Service) -> ServiceClient {
    let socket = service.socket.clone();
    as_user(move || ServiceClient::require(socket.as_ref()).expect("it serves"))
}

#[test]
fn polkit_decides_on_users_without_an_entry_and_on_no_others() {
    let Some(cpu) = cpu_for_polkit() else { return };
    let bus = SystemBus::start();
    let polkit = PolkitDaemon::start(&bus);
    let service = Service::configured(cpu.0, CONFIG, &[], &bus.address());
    let users = || {
        let reservations = service.client().status().expect("it serves").reservations;
        reservations.iter().map(|r| r.uid).collect::<Vec<_>>()
    };
    let mut permitted = service.as_user(UNPRIVILEGED, &spin("20ms"));
    permitted.wait_for("its reservation", |_| users() == [UNPRIVILEGED]);
    let refused = |uid, period, words: &[&str]| {
        service.as_user(uid, &spin(period)).end().assert_code(125).assert_says(words);
    };
    let share = ["may reserve 10 % of CPU", "has 5 % and requests 10 % more"];
    refused(UNPRIVILEGED, "10ms", &share);
    let denied = "user 1 may reserve nothing: it has no entry, and polkit does not permit it";
    refused(DENIED, "20ms", &[denied, "io.punctual.reserve of polkit"]);
    refused(CHALLENGED, "20ms", &["polkit requires a password, and none is asked for"]);
    drop(polkit);
    refused(UNPRIVILEGED, "20ms", &["polkit cannot be asked: ", "ServiceUnknown"]);
    // Of these it is not asked.
    for uid in [WITH_ENTRY, 0] {
        let mut run = service.as_user(uid, &spin("20ms"));
        run.wait_for("its reservation", |_| users().contains(&uid));
        kill(run.pid(), libc::SIGINT);
        run.reap();
    }
    // What it permitted remains, and another one answers on the same bus.
    eventually("one reservation is left", || users() == [UNPRIVILEGED]);
    let _polkit = PolkitDaemon::start(&bus);
    let mut second = service.as_user(UNPRIVILEGED, &spin("20ms"));
    second.wait_for("its reservation", |_| users() == [UNPRIVILEGED; 2]);
    for run in [&mut permitted, &mut second] {
        kill(run.pid(), libc::SIGINT);
        run.reap();
    }
    eventually("nothing is reserved", || users().is_empty());
    service.end(cpu.0);
}

#[test]
fn a_client_that_waits_for_polkit_waits_alone() {
    let Some(cpu) = cpu_for_polkit() else { return };
    let bus = SystemBus::start();
    let polkit = PolkitDaemon::start(&bus);
    let service = Service::configured(cpu.0, CONFIG, &[], &bus.address());
    let (first, second, victim) = (Program::start("spin"), Program::start("spin"), Victim::start());
    let request = |name: &str, pid| TaskRequest::new(name, pid, 20_000_000, 1_000_000);
    // Held to the end: no other service gets the CPU.
    let mut other = service.client();
    let held = service.reserve(&mut other, &[request("victim", victim.pid())])[0];
    // The service is connected to the bus, and has asked.
    let mut waiting = connect(&service);
    let wanted = request("first", first.pid());
    let id = service.reserve(&mut waiting, std::slice::from_ref(&wanted))[0];
    waiting.release(id).expect("its own");

    kill(polkit.pid(), libc::SIGSTOP);
    let waiting = std::thread::spawn(move || {
        let reserved = waiting.reserve(&[wanted]);
        (waiting, reserved)
    });
    // Its call is there before the others', as a rule; the test holds if it is not.
    std::thread::sleep(Duration::from_millis(200));
    other.change(held, &ReservationChange::of_budget(2_000_000)).expect("it fits");
    let id = service.reserve(&mut other, &[request("second", second.pid())])[0];
    other.release(id).expect("its own");
    assert!(!waiting.is_finished(), "polkit is stopped");
    kill(polkit.pid(), libc::SIGCONT);
    let (client, reserved) = waiting.join().expect("it does not panic");
    assert_eq!(reserved.expect("polkit permits it").len(), 1);
    drop((client, other));
    let none = || service.client().status().expect("it serves").reservations.is_empty();
    eventually("nothing is reserved", none);
    service.end(cpu.0);
}

#[test]
fn polkit_decides_on_threads_that_ask_realtimekit_too() {
    let Some(cpu) = cpu_for_polkit() else { return };
    let bus = SystemBus::start();
    let _polkit = PolkitDaemon::start(&bus);
    let config = format!("{CONFIG}[realtime_kit]\n");
    let service = Service::configured(cpu.0, &config, &[], &bus.address());
    eventually("it has the name", || bus.owner() == Some(service.running.pid()));
    let ask = |uid, program: &Program| {
        let pid = format!("uint64:{}", program.pid());
        let args = [pid, "uint64:0".to_owned(), "uint32:5".to_owned()];
        bus.call(uid, "MakeThreadRealtimeWithPID", &args)
    };
    let program = Program::start("spin");
    let mut asked = Err(String::new());
    eventually("the CPU is free", || {
        asked = ask(UNPRIVILEGED, &program);
        !matches!(&asked, Err(e) if e.contains("already has a dispatcher"))
    });
    asked.expect("polkit permits it");
    let reservations = service.client().status().expect("it serves").reservations;
    assert_eq!((reservations.len(), reservations[0].uid), (1, UNPRIVILEGED));
    let refusal = ask(DENIED, &program).expect_err("polkit does not permit it");
    assert!(refusal.contains("AccessDenied") && refusal.contains("polkit does not permit it"));
    drop(program);
    eventually("nothing is reserved", || {
        service.client().status().expect("it serves").reservations.is_empty()
    });
    service.end(cpu.0);
}
