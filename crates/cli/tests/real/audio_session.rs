//! A session of an ordinary user with an audio server, and what the service gives its programs.

use std::os::unix::fs::chown;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus, Stdio};

use punctual_sys::sched::pin;
use punctual_test_support::LIVENESS;

use crate::bounded::{end_all, end_within};
use crate::machine::{permitted_cpu, Cpu, Need};
use crate::privileges::{open_folder, UNPRIVILEGED};
use crate::process::{attributes, eventually, threads_of};
use crate::punctual::{adversarial, Scratch};
use crate::service::{Service, SERVICE_NEEDS};
use crate::system_bus::SystemBus;

/// A CPU, a system bus, and a service with this configuration that has the name of RealtimeKit on
/// it; `None` where these programs, or what else that needs, are not there.
pub fn service_on_bus(
    programs: &[&'static str],
    configuration: &str,
) -> Option<(Cpu, SystemBus, Service)> {
    let tools = ["dbus-daemon", "dbus-send", "prlimit"].iter().chain(programs);
    let needs: Vec<Need> = SERVICE_NEEDS.into_iter().chain(tools.map(|t| Need::Tool(t))).collect();
    let cpu = permitted_cpu(&needs)?;
    let bus = SystemBus::start();
    let service = Service::on_bus(cpu.0, configuration, &bus.address());
    eventually("it has the name", || bus.owner() == Some(service.running.pid()));
    Some((cpu, bus, service))
}

/// A session of an ordinary user, which ends with this.
pub struct AudioSession<'a> {
    home: Scratch,
    bus: &'a SystemBus,
    programs: Vec<Child>,
}

impl AudioSession<'_> {
    pub fn new(bus: &SystemBus) -> AudioSession<'_> {
        let home = Scratch::new();
        open_folder(home.folder());
        chown(home.folder(), Some(UNPRIVILEGED), Some(UNPRIVILEGED)).unwrap();
        AudioSession { home, bus, programs: Vec::new() }
    }

    /// Starts a program that may not raise its priority itself.
    pub fn start(&mut self, words: &[&str]) -> i32 {
        let mut c = Command::new("prlimit");
        c.args(["--rtprio=0", "--nice=0"]).args(words).current_dir("/");
        c.uid(UNPRIVILEGED).gid(UNPRIVILEGED).stdin(Stdio::null());
        c.stdout(Stdio::null()).stderr(Stdio::null());
        for folder in ["HOME", "XDG_RUNTIME_DIR", "XDG_CONFIG_HOME", "XDG_STATE_HOME"] {
            c.env(folder, self.home.folder());
        }
        for bus in ["DBUS_SYSTEM_BUS_ADDRESS", "DBUS_SESSION_BUS_ADDRESS"] {
            c.env(bus, self.bus.address());
        }
        self.programs.push(c.spawn().unwrap());
        self.programs.last().map_or(0, |program| program.id() as i32)
    }

    /// Writes a file below the home folder; nothing has been started yet.
    pub fn configure(&self, name: &str, text: &str) {
        let path = self.home.folder().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    /// The path of a file in the home folder.
    pub fn path(&self, name: &str) -> String {
        self.home.path(name)
    }

    /// Starts a CPU-bound process on this CPU.
    pub fn start_load(&mut self, cpu: u32) {
        let words = adversarial("spin");
        let load = self.start(&words.iter().map(String::as_str).collect::<Vec<_>>());
        eventually("the load is on the CPU", || pin(load, cpu).is_ok());
    }

    /// How the program that was started last ends by itself.
    pub fn end_of_last(&mut self) -> Option<ExitStatus> {
        self.programs.last_mut().and_then(|last| end_within(last, LIVENESS))
    }

    /// A file with silence, 48,000 frames a second.
    pub fn silence(&self, seconds: u32) -> String {
        let bytes = seconds * 48_000 * 2;
        let mut wave = b"RIFF".to_vec();
        wave.extend((bytes + 36).to_le_bytes());
        wave.extend(b"WAVEfmt \x10\0\0\0\x01\0\x01\0");
        wave.extend(48_000u32.to_le_bytes());
        wave.extend(96_000u32.to_le_bytes());
        wave.extend(b"\x02\0\x10\0data");
        wave.extend(bytes.to_le_bytes());
        wave.resize(wave.len() + bytes as usize, 0);
        self.home.file(&format!("{seconds}.wav"), &wave)
    }
}

impl Drop for AudioSession<'_> {
    fn drop(&mut self) {
        end_all(self.programs.iter().map(|program| program.id() as i32));
        for program in &mut self.programs {
            let _ = end_within(program, LIVENESS);
        }
    }
}

/// Waits until a thread of a server or player that is not its first has the reservation of the
/// section `[realtime_kit]`, 1 ms in 20 ms, and the priority that comes with it.
pub fn await_reservation(service: &Service, pid: i32, cpu: u32) {
    let reserved = || {
        let status = service.client().status().expect("it serves");
        let of = status.reservations.into_iter().filter(|r| r.pid == pid);
        of.map(|r| (r.uid, r.cpu, r.period_ns, r.budget_ns)).collect::<Vec<_>>()
    };
    eventually("its data thread has a reservation", || !reserved().is_empty());
    assert_eq!(reserved(), [(UNPRIVILEGED, cpu, 20_000_000, 1_000_000)]);
    let is_raised = |tid| {
        attributes(tid).is_some_and(|a| {
            tid != pid && a.policy & !libc::SCHED_RESET_ON_FORK == libc::SCHED_FIFO
        })
    };
    eventually("its data thread is real-time", || threads_of(pid).into_iter().any(is_raised));
}
