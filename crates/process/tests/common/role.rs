//! This very test binary, started again in a role; no wait for it is without an end.

use super::{poll_in, state_dir};
use punctual_process::threads_of;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// What a started process says.
pub type Lines = BufReader<std::process::ChildStdout>;

/// A process of these tests; whatever becomes of the test, it is ended.
pub struct Role(Child);

impl Role {
    pub fn id(&self) -> u32 {
        self.0.id()
    }

    pub fn has_ended(&mut self) -> bool {
        self.0.try_wait().unwrap().is_some()
    }

    /// Waits for its end, which is to come.
    pub fn end(&mut self) {
        await_end(&mut self.0);
    }
}

impl Drop for Role {
    fn drop(&mut self) {
        if !self.has_ended() {
            demote(self.id() as i32);
            let _ = self.0.kill();
            self.end();
        }
    }
}

/// Waits for a child's end, half a minute at most.
pub fn await_end(child: &mut Child) {
    let end = Instant::now() + Duration::from_secs(30);
    while child.try_wait().unwrap().is_none() {
        if Instant::now() > end {
            demote(child.id() as i32);
            panic!("process {} does not end", child.id());
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Puts all threads of a process into the ordinary class.
pub fn demote(pid: i32) {
    for tid in threads_of(pid) {
        // SAFETY: reads one value that lives here; a thread that is gone is an error that changes
        // nothing.
        unsafe {
            libc::sched_setscheduler(
                tid,
                libc::SCHED_OTHER,
                &libc::sched_param { sched_priority: 0 },
            )
        };
    }
}

/// Starts this test binary again in a role (a test function that does nothing without it), with
/// words in the environment.
pub fn role(name: &str, env: &[(&str, &str)]) -> (Role, Lines) {
    let mut c = Command::new(std::env::current_exe().unwrap());
    c.args(["--exact", name, "--nocapture", "--test-threads=1"]);
    c.env("PUNCTUAL_TEST_ROLE", name)
        .env("PUNCTUAL_STATE_DIR", state_dir())
        .envs(env.iter().copied());
    c.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::inherit());
    let mut child = c.spawn().unwrap();
    let out = BufReader::new(child.stdout.take().unwrap());
    (Role(child), out)
}

/// Whether this process was started in that role.
pub fn is_role(name: &str) -> bool {
    std::env::var("PUNCTUAL_TEST_ROLE").is_ok_and(|r| r == name)
}

/// Reads up to a line that begins with `word`, and returns its rest. Half a minute for each line.
pub fn expect_line(out: &mut Lines, word: &str) -> String {
    let mut line = String::new();
    loop {
        assert!(
            !out.buffer().is_empty() || poll_in(out.get_ref(), 30_000),
            "the helper did not say {word}"
        );
        if out.read_line(&mut line).unwrap() == 0 {
            panic!("the helper ended without saying {word}");
        }
        // libtest writes "test NAME ... " without a newline in front.
        if let Some(i) = line.find(word) {
            return line[i + word.len()..].trim().to_owned();
        }
        line.clear();
    }
}

/// Reads to the end; half a minute for each piece.
pub fn drain(mut out: Lines) {
    while out.buffer().is_empty() && poll_in(out.get_ref(), 30_000) || !out.buffer().is_empty() {
        let n = out.fill_buf().map_or(0, <[u8]>::len);
        if n == 0 {
            return;
        }
        out.consume(n);
    }
    panic!("a process holds the helper's output open");
}
