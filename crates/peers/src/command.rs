//! Commands under a peer: child processes, each in a group of its own, which is killed with the run.
//!
//! ```text
//! fork -> affinity, policy -> tells how that went -> waits at the gate -> exec -> (tells only if that failed)
//! ```
//!
//! Our own fork and not std's, which waits for the exec: under SCHED_FIFO a command that is already executing could
//! keep the next one from ever getting there. At the gate all sleep, and one gate lets all of them go.

use crate::refusal::no_command;
use crate::sys::{errno, has_ended, kill_group, pipe, set_affinity, set_policy, Policy};
use crate::watchdog::demote_group;
use punctual_diagnostic::Diagnostic;
use std::ffi::{c_char, CString};
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::AsRawFd;

/// What holds the commands of a run back. Dropped, it lets them go.
#[derive(Debug)]
pub struct Gate {
    inner: File,
    outer: File,
}

impl Gate {
    /// A closed gate.
    pub fn new() -> io::Result<Gate> {
        let (inner, outer) = pipe()?;
        Ok(Gate { inner, outer })
    }
}

/// A command, waiting or executing. Killed, with its process group, and reaped when dropped.
#[derive(Debug)]
pub struct Running {
    name: String,
    program: String,
    pid: i32,
    told: File,
}

/// How the start of a command went wrong.
#[derive(Debug)]
pub enum Failed {
    /// The policy or affinity was refused: errno.
    Refused(i32),
    /// Anything else.
    Error(Diagnostic),
}

impl Running {
    /// Makes a process for `words` on `cpu` (`None`: any) under `policy`, which waits at the gate. Its output goes
    /// nowhere: it was to be seen when the set ran under Punctual.
    pub fn start(
        name: &str,
        words: &[String],
        cpu: Option<u32>,
        policy: Policy,
        gate: &Gate,
    ) -> Result<Running, Failed> {
        let program = words.first().cloned().unwrap_or_default();
        let error = |source| Failed::Error(no_command(name, &program, source));
        let words: Vec<CString> = words
            .iter()
            .map(|word| CString::new(word.as_str()))
            .collect::<Result<_, _>>()
            .map_err(|e| error(e.into()))?;
        if words.is_empty() {
            return Err(error(io::ErrorKind::InvalidInput.into()));
        }
        let mut pointers: Vec<*const c_char> = words.iter().map(|word| word.as_ptr()).collect();
        pointers.push(std::ptr::null());
        let (told, tell) = pipe().map_err(error)?;
        let null = File::options().read(true).write(true).open("/dev/null").map_err(error)?;
        let set_up = SetUp {
            // SAFETY: getpid has no preconditions.
            parent: unsafe { libc::getpid() },
            cpu,
            policy,
            null: null.as_raw_fd(),
            gate: (gate.inner.as_raw_fd(), gate.outer.as_raw_fd()),
            tell: tell.as_raw_fd(),
            words: pointers.as_ptr(),
        };
        // SAFETY: the child makes only async-signal-safe calls on memory prepared above, and never returns.
        let pid = match unsafe { libc::fork() } {
            -1 => return Err(error(io::Error::last_os_error())),
            0 => set_up.live(),
            pid => pid,
        };
        drop(tell);
        let mut running = Running { name: name.to_owned(), program: program.clone(), pid, told };
        let mut first = [0; 4];
        running.told.read_exact(&mut first).map_err(error)?;
        match i32::from_ne_bytes(first) {
            0 => Ok(running),
            errno => Err(Failed::Refused(errno)),
        }
    }

    /// Its process id, which is its group's too.
    pub fn pid(&self) -> i32 {
        self.pid
    }

    /// Whether it has ended by itself. It is not reaped yet, so that its id stays its own.
    pub fn has_ended(&self) -> bool {
        has_ended(self.pid)
    }

    /// Of one that has ended: why it never began, if it did not. Does not wait: the other end closed with the process.
    pub fn why_not_begun(&mut self) -> Option<Diagnostic> {
        let mut last = [0; 4];
        self.told.read_exact(&mut last).ok()?;
        let source = io::Error::from_raw_os_error(i32::from_ne_bytes(last));
        Some(no_command(&self.name, &self.program, source))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        for _ in 0..PATIENCE_MS {
            demote_group(self.pid);
            kill_group(self.pid);
            // SAFETY: our own child, not reaped yet; no status is asked for.
            let ended = unsafe {
                libc::kill(self.pid, libc::SIGKILL);
                libc::waitpid(self.pid, std::ptr::null_mut(), libc::WNOHANG)
            };
            if ended > 0 || (ended < 0 && errno() != libc::EINTR) {
                return;
            }
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
    }
}

/// How long a killed command may take to be gone before it is left to whoever reaps us.
const PATIENCE_MS: u32 = 5_000;

/// All that the child needs, prepared by the parent: it may not allocate.
struct SetUp {
    parent: i32,
    cpu: Option<u32>,
    policy: Policy,
    null: i32,
    gate: (i32, i32),
    tell: i32,
    words: *const *const c_char,
}

impl SetUp {
    /// The child's life up to its exec. Every descriptor but the three standard ones closes at exec.
    fn live(self) -> ! {
        // SAFETY: system calls on descriptors and memory that the parent prepared and that fork copied.
        unsafe {
            libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
            if libc::getppid() != self.parent {
                libc::_exit(0);
            }
            libc::setpgid(0, 0);
            libc::close(self.gate.1);
            for standard in 0..3 {
                libc::dup2(self.null, standard);
            }
            for signal in [libc::SIGPIPE, libc::SIGINT, libc::SIGTERM, libc::SIGHUP] {
                libc::signal(signal, libc::SIG_DFL);
            }
            let mut none: libc::sigset_t = std::mem::zeroed();
            libc::sigemptyset(&mut none);
            libc::sigprocmask(libc::SIG_SETMASK, &none, std::ptr::null_mut());
        }
        match set_affinity(self.cpu).and_then(|()| set_policy(0, self.policy, true)) {
            Ok(()) => self.say(0),
            Err(errno) => self.say(errno),
        }
        let mut byte = 0u8;
        // SAFETY: one writable byte; the end of the pipe, when the gate is dropped, ends the wait.
        while unsafe { libc::read(self.gate.0, (&raw mut byte).cast(), 1) } == -1 && errno() == libc::EINTR {}
        // SAFETY: a null-terminated list of null-terminated strings, which the parent keeps until fork has copied it.
        unsafe { libc::execvp(*self.words, self.words) };
        self.say(errno());
        // SAFETY: ends the process, no preconditions.
        unsafe { libc::_exit(127) }
    }

    fn say(&self, errno: i32) {
        let bytes = errno.to_ne_bytes();
        // SAFETY: four readable bytes; the pipe has room, so that this does not wait.
        unsafe { libc::write(self.tell, bytes.as_ptr().cast(), bytes.len()) };
    }
}
