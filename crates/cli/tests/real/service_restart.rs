//! `systemctl restart`: between two processes of the service, systemd keeps the connections. The
//! test has systemd's part: it passes the socket, and what the service leaves to it.

use std::collections::BTreeMap;
use std::io::Write;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixDatagram, UnixListener, UnixStream};
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::sync::mpsc::{channel, Receiver};
use std::time::Duration;

use punctual_service::message::MessageReader;
use punctual_service::ServiceClient;
use punctual_sys::fd_passing;
use punctual_test_support::LIVENESS;

use crate::machine::{permitted_cpu, wait_for_cpu};
use crate::process::{cgroup_of, eventually, kill};
use crate::punctual::{new_mark, Running, Scratch, PUNCTUAL};
use crate::service::SERVICE_NEEDS;
use crate::service_threads::{request, Program};
use crate::victim::Victim;

/// The name of systemd's descriptor of the socket.
const SOCKET: &str = "punctuald.socket";

/// What the service reports to systemd.
struct Systemd {
    scratch: Scratch,
    listener: UnixListener,
    socket: String,
    notify: String,
    messages: Receiver<(String, Vec<OwnedFd>)>,
}

impl Systemd {
    fn new(cpu: u32) -> Systemd {
        let scratch = Scratch::new();
        scratch.file("service.toml", &format!("cpus = [{cpu}]\n"));
        let place = format!("/tmp/punctual-test-{}", new_mark());
        let (socket, notify) = (format!("{place}.socket"), format!("{place}.notify"));
        let listener = UnixListener::bind(&socket).expect("a socket");
        let open = std::fs::Permissions::from_mode(0o666);
        std::fs::set_permissions(&socket, open).expect("its own");
        let reports = UnixDatagram::bind(&notify).expect("a socket");
        let (sender, messages) = channel();
        // Ends with the test's process.
        std::thread::spawn(move || loop {
            let mut text = [0; 4096];
            let Ok((n, fds)) = fd_passing::receive_message(&reports, &mut text) else { return };
            let text = String::from_utf8_lossy(&text[..n]).into_owned();
            if text.contains("BARRIER=1") {
                // The service waits until this descriptor is closed: all before it was received.
                drop(fds);
            } else if sender.send((text, fds)).is_err() {
                return;
            }
        });
        Systemd { scratch, listener, socket, notify, messages }
    }

    /// Starts the service with its socket, and what one before has left.
    fn start(&self, kept: &BTreeMap<String, OwnedFd>) -> Running {
        let mark = new_mark();
        let config = self.scratch.path("service.toml");
        let mut fds = vec![self.listener.as_raw_fd()];
        fds.extend(kept.values().map(AsRawFd::as_raw_fd));
        let names: Vec<&str> =
            [SOCKET].into_iter().chain(kept.keys().map(String::as_str)).collect();
        let mut command = Command::new("sh");
        let script = "LISTEN_PID=$$; export LISTEN_PID; exec \"$@\"";
        command.args(["-c", script, "sh"]).arg(&*PUNCTUAL);
        command.args(["serve", "--config", &config, "--host", "user"]);
        command.env("LISTEN_FDS", fds.len().to_string()).env("LISTEN_FDNAMES", names.join(":"));
        command.env("NOTIFY_SOCKET", &self.notify).env("FDSTORE", "2048");
        command.env("PUNCTUAL_TEST_MARK", &mark).env("DBUS_SYSTEM_BUS_ADDRESS", "unix:path=/none");
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        // SAFETY: between fork and exec, system calls alone. First above all others, so that none
        // is overwritten before it was placed.
        unsafe {
            command.pre_exec(move || {
                for (place, fd) in (100..).zip(&fds) {
                    libc::dup2(*fd, place);
                }
                for n in 0..fds.len() as i32 {
                    libc::dup2(100 + n, 3 + n);
                    libc::close(100 + n);
                }
                Ok(())
            });
        }
        let running = Running::of(command, mark);
        self.await_message("READY=1");
        running
    }

    fn await_message(&self, wanted: &str) -> BTreeMap<String, OwnedFd> {
        let mut kept = BTreeMap::new();
        loop {
            let (text, fds) = self.messages.recv_timeout(LIVENESS).expect("a message");
            let name = text.lines().find_map(|line| line.strip_prefix("FDNAME="));
            if let (Some(name), true) = (name, text.contains("FDSTORE=1")) {
                kept.extend(fds.into_iter().map(|fd| (name.to_owned(), fd)));
            }
            if text.contains(wanted) {
                return kept;
            }
        }
    }

    /// Stops the service; what it leaves.
    fn stop(&self, service: Running) -> BTreeMap<String, OwnedFd> {
        kill(service.pid(), libc::SIGTERM);
        let kept = self.await_message("FDNAME=punctual-state");
        service.end().assert_code(0).assert_nothing_left(&[]);
        kept
    }
}

impl Drop for Systemd {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.socket);
        let _ = std::fs::remove_file(&self.notify);
    }
}

#[test]
fn clients_keep_their_connections_and_reservations_over_a_restart_by_systemd() {
    let Some(cpu) = permitted_cpu(&SERVICE_NEEDS) else { return };
    let systemd = Systemd::new(cpu.0);
    let service = systemd.start(&BTreeMap::new());
    wait_for_cpu(cpu.0);
    let (victim, program) = (Victim::start(), Program::start("attack spin"));
    let connect = || ServiceClient::require(systemd.socket.as_ref()).expect("it listens");
    let (mut client, mut leaves) = (connect(), connect());
    let wanted = [
        request(victim.pid(), None, 1_000_000),
        request(program.pid(), Some(program.second()), 1_000_000),
    ];
    let mut reserved = client.reserve(&wanted);
    eventually("the CPU is free", || {
        if reserved.is_err() {
            reserved = client.reserve(&wanted);
        }
        reserved.is_ok()
    });
    let ids: Vec<u64> = reserved.expect("it fits").iter().map(|info| info.id).collect();
    let other = Program::start("spin");
    leaves.reserve(&[request(other.pid(), None, 1_000_000)]).expect("it fits");
    let before = client.status().expect("it serves").reservations;
    assert_eq!(before.len(), 3);
    let mut half = UnixStream::connect(&systemd.socket).expect("it listens");
    let call = b"{\"method\":\"io.punctual.Service.GetStatus\"}\0";
    half.write_all(&call[..20]).expect("it reads");
    // The service has accepted it and read this once it serves a later connection.
    connect().status().expect("it serves");
    half.set_read_timeout(Some(Duration::from_secs(20))).expect("a socket");

    let mut kept = systemd.stop(service);
    victim.assert_as_before();
    drop(leaves);
    // systemd closes connections whose clients have gone.
    kept.retain(|name, fd| {
        let is_gone = || {
            let mut byte = [0];
            // SAFETY: `byte` has room for what is looked at.
            let n = unsafe {
                libc::recv(
                    fd.as_raw_fd(),
                    byte.as_mut_ptr().cast(),
                    1,
                    libc::MSG_PEEK | libc::MSG_DONTWAIT,
                )
            };
            n == 0
        };
        !(name.starts_with("punctual-client-") && is_gone())
    });
    let service = systemd.start(&kept);
    drop(kept);
    let after = client.status().expect("it serves").reservations;
    assert_eq!(after, before[..2], "its own, and not those of the client that has gone");
    let group = format!("punctual-{}-", service.pid());
    assert!(cgroup_of(victim.pid()).contains(&group), "{}", cgroup_of(victim.pid()));
    let mut last = None;
    eventually("further periods of the thread", || {
        let events = client.take_events().expect("it serves").events;
        for event in events.iter().filter(|event| event.id == ids[1]) {
            assert_eq!(event.ended, None);
            let number = event.period.as_ref().map(|period| period.number);
            assert!(number.is_none() || number > last, "{number:?} after {last:?}");
            last = last.max(number);
        }
        last > Some(20)
    });
    half.write_all(&call[20..]).expect("it reads");
    let answer = MessageReader::new(1 << 20).next(&mut half).expect("it answers");
    assert!(answer.is_some());
    client.release(ids[0]).expect("its own");
    victim.assert_as_before();

    // Stopped for good: systemd closes what the service leaves.
    drop(systemd.stop(service));
    assert!(client.status().is_err());
    eventually("its CPU is free", || !crate::machine::has_dispatcher(cpu.0));
}

#[test]
fn systemd_follows_a_process_that_takes_the_place_of_its_own() {
    let Some(cpu) = permitted_cpu(&SERVICE_NEEDS) else { return };
    let systemd = Systemd::new(cpu.0);
    let old = systemd.start(&BTreeMap::new());
    let mut client = ServiceClient::require(systemd.socket.as_ref()).expect("it listens");
    client.status().expect("it serves");
    let config = systemd.scratch.path("service.toml");
    let args = ["serve", "--replace", "--socket", &systemd.socket, "--config", &config];
    // It has nothing of systemd in its own environment.
    let new = Running::from(|c| c.args(args).env("DBUS_SYSTEM_BUS_ADDRESS", "unix:path=/none"));
    systemd.await_message(&format!("MAINPID={}", new.pid()));
    systemd.await_message("READY=1");
    old.end().assert_code(0).assert_nothing_left(&[]);
    client.status().expect("it serves");
    let kept = systemd.stop(new);
    assert!(kept.keys().any(|name| name.starts_with("punctual-client-")), "{kept:?}");
    let next = systemd.start(&kept);
    drop(kept);
    client.status().expect("it serves");
    drop(systemd.stop(next));
    assert!(std::path::Path::new(&systemd.socket).exists(), "the socket is systemd's");
}
