//! No wait without an end, and nothing left of a test that failed: what it started loses its
//! real-time priority, is killed, and `punctual clean` gives back the rest. One that is killed at a
//! real-time level may need others to run before it can die (docs/faults.md, "What spins inside the
//! kernel").

use std::io::Read;
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::sync::mpsc::{channel, Receiver};
use std::time::{Duration, Instant};

use punctual_sys::sched;
use punctual_test_support::LIVENESS;

use crate::process::{describe, groups_of, kill, marked, threads_of};
use crate::punctual::PUNCTUAL;

/// A child's end; `None` when it does not come in time.
pub fn end_within(child: &mut Child, patience: Duration) -> Option<ExitStatus> {
    let end = Instant::now() + patience;
    loop {
        if let Some(status) = child.try_wait().unwrap() {
            return Some(status);
        }
        if Instant::now() > end {
            return None;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// A child's end, which is to come.
pub fn wait(child: &mut Child) -> ExitStatus {
    let pid = child.id() as i32;
    end_within(child, LIVENESS).unwrap_or_else(|| panic!("it does not end: {}", describe(pid)))
}

/// What a child says, read by a thread of its own so that no pipe fills up. Remaining children of
/// the child may hold the pipe open for ever.
pub struct Said(Option<Receiver<Vec<u8>>>);

impl Said {
    pub fn by(stream: Option<impl Read + Send + 'static>) -> Said {
        Said(stream.map(|mut stream| {
            let (sender, received) = channel();
            std::thread::spawn(move || {
                let mut bytes = [0u8; 4096];
                while let Ok(n @ 1..) = stream.read(&mut bytes) {
                    if sender.send(bytes[..n].to_vec()).is_err() {
                        break;
                    }
                }
            });
            received
        }))
    }

    /// All of it, up to the end of the pipe; and whether that came.
    pub fn until_end(self, patience: Duration) -> (String, bool) {
        let (mut all, end) = (Vec::new(), Instant::now() + patience);
        let Some(received) = self.0 else { return (String::new(), true) };
        let over = loop {
            match received.recv_timeout(end.saturating_duration_since(Instant::now())) {
                Ok(mut some) => all.append(&mut some),
                Err(e) => break e == std::sync::mpsc::RecvTimeoutError::Disconnected,
            }
        };
        (String::from_utf8_lossy(&all).into_owned(), over)
    }

    /// Its first line.
    pub fn line(&self) -> String {
        self.until("\n")
    }

    /// What comes up to this text.
    pub fn until(&self, text: &str) -> String {
        let (mut all, end) = (String::new(), Instant::now() + LIVENESS);
        while let Some(received) = self.0.as_ref().filter(|_| !all.contains(text)) {
            match received.recv_timeout(end.saturating_duration_since(Instant::now())) {
                Ok(some) => all += &String::from_utf8_lossy(&some),
                Err(e) => panic!("it said \"{all}\" and no more: {e}"),
            }
        }
        all
    }
}

/// As `Command::output`.
pub fn output(command: &mut Command) -> Output {
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let (out, err) = (Said::by(child.stdout.take()), Said::by(child.stderr.take()));
    let Some(status) = end_within(&mut child, LIVENESS) else {
        end_all([child.id() as i32]);
        panic!(
            "{command:?} does not end: {} {}",
            out.until_end(Duration::ZERO).0,
            err.until_end(Duration::ZERO).0
        );
    };
    let text = |said: Said| said.until_end(LIVENESS).0.into_bytes();
    Output { status, stdout: text(out), stderr: text(err) }
}

/// Into the ordinary class, then killed.
pub fn end_all(pids: impl IntoIterator<Item = i32>) {
    for pid in pids {
        for tid in threads_of(pid) {
            // A thread that is gone is an error that changes nothing.
            let _ = sched::set_other(tid);
        }
        kill(pid, libc::SIGKILL);
    }
}

/// Ends all that came of a Punctual, and gives back what it had: after a test that failed, and for
/// what dies on the way.
pub fn tidy(pid: i32, mark: &str) {
    let left = || {
        let inside = groups_of(pid)
            .into_iter()
            .flat_map(|g| std::fs::read_dir(g).into_iter().flatten().flatten());
        let commands = inside.filter(|d| d.file_name().to_string_lossy().starts_with("run."));
        let lists =
            commands.filter_map(|d| std::fs::read_to_string(d.path().join("cgroup.procs")).ok());
        let listed: Vec<i32> = lists
            .flat_map(|l| l.lines().filter_map(|p| p.parse().ok()).collect::<Vec<_>>())
            .collect();
        listed.into_iter().chain(marked(mark)).collect::<Vec<i32>>()
    };
    let end = Instant::now() + Duration::from_secs(5);
    // First: a killed process is gone from the lists, and may not be dead.
    let known: Vec<i32> = left().into_iter().chain([pid]).collect();
    while !left().is_empty() && Instant::now() < end {
        end_all(left());
        end_all(known.iter().copied().filter(|p| crate::process::state_of(*p).is_some()));
        std::thread::sleep(Duration::from_millis(2));
    }
    let mut clean = Command::new(&*PUNCTUAL);
    clean.arg("clean").stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    if let Ok(mut child) = clean.spawn() {
        if end_within(&mut child, LIVENESS).is_none() {
            eprintln!("`punctual clean` did not end: {}", describe(child.id() as i32));
            end_all([child.id() as i32]);
        }
    }
    for pid in left() {
        eprintln!("left: {}", describe(pid));
    }
}
