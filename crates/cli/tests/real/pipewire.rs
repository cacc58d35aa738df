//! PipeWire, unmodified and unprivileged, asks the service in RealtimeKit's place, and plays beside
//! a CPU-bound process.

use std::os::unix::fs::chown;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};

use punctual_sys::sched::pin;
use punctual_test_support::LIVENESS;

use crate::bounded::{end_all, end_within};
use crate::machine::{permitted_cpu, Need};
use crate::privileges::{open_folder, UNPRIVILEGED};
use crate::process::{attributes, eventually, threads_of};
use crate::punctual::{adversarial, Scratch};
use crate::service::{Service, SERVICE_NEEDS};
use crate::system_bus::SystemBus;

const SINK: &str = r#"context.objects = [ {
	factory = adapter
	args = {
		factory.name = support.null-audio-sink
		node.name = null-sink
		media.class = Audio/Sink
		audio.position = "FL,FR"
	}
} ]
"#;

/// A session of an ordinary user, which ends with this.
struct Session<'a> {
    home: Scratch,
    bus: &'a SystemBus,
    programs: Vec<Child>,
}

impl Session<'_> {
    fn new(bus: &SystemBus) -> Session<'_> {
        let home = Scratch::new();
        open_folder(home.folder());
        let config = home.folder().join("pipewire/pipewire.conf.d");
        std::fs::create_dir_all(&config).unwrap();
        std::fs::write(config.join("sink.conf"), SINK).unwrap();
        chown(home.folder(), Some(UNPRIVILEGED), Some(UNPRIVILEGED)).unwrap();
        Session { home, bus, programs: Vec::new() }
    }

    /// Starts a program that may not raise its priority itself.
    fn start(&mut self, words: &[&str]) -> i32 {
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

    /// A file with silence, 48,000 frames a second.
    fn silence(&self, seconds: u32) -> String {
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

impl Drop for Session<'_> {
    fn drop(&mut self) {
        end_all(self.programs.iter().map(|program| program.id() as i32));
        for program in &mut self.programs {
            let _ = end_within(program, LIVENESS);
        }
    }
}

#[test]
fn pipewire_gets_reservations_and_plays_beside_a_cpu_bound_process() {
    let tools = ["dbus-daemon", "dbus-send", "prlimit", "pipewire", "wireplumber", "pw-cat"];
    let needs: Vec<Need> = SERVICE_NEEDS.into_iter().chain(tools.map(Need::Tool)).collect();
    let Some(cpu) = permitted_cpu(&needs) else { return };
    let bus = SystemBus::start();
    // A twentieth of the CPU for each of six threads: the user's share is 30 %.
    let service = Service::on_bus(cpu.0, "[realtime_kit]\nperiod = \"20ms\"\n", &bus.address());
    eventually("it has the name", || bus.owner() == Some(service.running.pid()));

    let mut session = Session::new(&bus);
    let load = adversarial("spin");
    let load = session.start(&load.iter().map(String::as_str).collect::<Vec<_>>());
    eventually("the load is on the CPU", || pin(load, cpu.0).is_ok());
    let server = session.start(&["pipewire"]);
    session.start(&["wireplumber"]);
    let long = session.silence(600);
    let player = session.start(&["pw-cat", "--playback", &long]);

    let reserved = |pid| {
        let status = service.client().status().expect("it serves");
        let of = status.reservations.into_iter().filter(|r| r.pid == pid);
        of.map(|r| (r.uid, r.cpu, r.period_ns, r.budget_ns)).collect::<Vec<_>>()
    };
    for pid in [server, player] {
        eventually("its data thread has a reservation", || !reserved(pid).is_empty());
        assert_eq!(reserved(pid), [(UNPRIVILEGED, cpu.0, 20_000_000, 1_000_000)]);
        let is_raised = |tid| {
            attributes(tid).is_some_and(|a| {
                tid != pid && a.policy & !libc::SCHED_RESET_ON_FORK == libc::SCHED_FIFO
            })
        };
        eventually("its data thread is real-time", || threads_of(pid).into_iter().any(is_raised));
    }
    let nice = |pid| attributes(pid).map(|a| a.nice);
    eventually("the server has its nice level", || nice(server) == Some(-11));

    // A second player, with a reservation of its own, plays to its end.
    let short = session.silence(1);
    session.start(&["pw-cat", "--playback", &short]);
    let played = session.programs.last_mut().and_then(|last| end_within(last, LIVENESS));
    assert!(played.is_some_and(|status| status.success()), "it does not play: {played:?}");

    drop(session);
    eventually("nothing is reserved", || {
        service.client().status().expect("it serves").reservations.is_empty()
    });
    service.end(cpu.0);
}
