//! Starts a command such that it executes nothing before its first release.
//!
//! ```text
//!   parent: clone(CLONE_VM | CLONE_VFORK)      child: PR_SET_PDEATHSIG, own process group,
//!    │ (asleep until exec or exit)              │     streams, default signals, joins its cgroup,
//!    │                                          │     PTRACE_TRACEME
//!    │ <──────────────────────────────────────  │ exec: the parent gets its errors here
//!    │ (stopped before its first instruction)
//!    │ records it in the journal, sets its CPU and level, parks it
//!    └ PTRACE_DETACH ───────────────────────>   parked; runs at release()
//! ```
//!
//! vfork's way, not fork's: a fork would make the pages of the running dispatcher copy-on-write,
//! and each of its next writes a page fault. The child reports its error through
//! the shared memory.
//!
//! The child dies with the *thread* that started it (PR_SET_PDEATHSIG): call [`spawn`] from one
//! that lives as long as the task is to. A program with set-user-id rights, started by an ordinary
//! user, does not get them, for it is traced at exec. Do not wait for "any child" in another thread
//! meanwhile.

use crate::command_spec::{CommandSpec, Hold, Stream};
use crate::exec::{self, wait_blocking, wait_for_exec, Plan, Step};
use crate::inject;
use crate::journal::{Entry, Journal};
use crate::park::Park;
use crate::privilege;
use crate::proc::Identity;
use crate::spawn_failure::Failure;
use punctual_diagnostic::Diagnostic;
use punctual_sys::memory::with_huge_pages;
use punctual_sys::{pidfd, process, sched};
use rustix::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::ffi::{c_char, CString, OsStr, OsString};
use std::io;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;

/// A command that was started. Dropping this leaves the command running and in the journal.
#[derive(Debug)]
pub struct Spawned {
    id: Identity,
    pidfd: OwnedFd,
    held: bool,
    hold: Hold,
    status: Option<ExitStatus>,
    journal: Journal,
}

/// Starts a command in `park`, which was made by [`Park::for_command`]. Not real-time safe.
///
/// # Errors
/// The program is not there or cannot be executed (exit code 2); the machine does not permit its
/// cgroup, level or CPU (4). Nothing is left running then.
pub fn spawn(journal: &Journal, spec: CommandSpec, park: &Park) -> Result<Spawned, Diagnostic> {
    let name = spec.argv.first().map(|n| n.to_string_lossy().into_owned()).unwrap_or_default();
    let child = match start(journal, &spec, park, true) {
        // No tracing here (Yama's ptrace_scope 3, seccomp): it may then execute some microseconds
        // before it is parked.
        Err(Failure { step: Step::Trace, .. }) => start(journal, &spec, park, false),
        other => other,
    };
    let (id, pidfd, held) = child.map_err(|f| f.explain(&name, &spec))?;
    let spawned =
        Spawned { id, pidfd, held, hold: spec.hold, status: None, journal: journal.clone() };
    match spawned.install(&spec, park) {
        Ok(()) => Ok(spawned),
        Err(e) => {
            // SIGKILL ends a traced process too.
            let _ = pidfd::send(&spawned.pidfd, libc::SIGKILL);
            wait_blocking(id.pid);
            let _ = spawned.journal.write(&Entry::ChildGone { id });
            Err(e)
        }
    }
}

fn cstring(text: &OsStr) -> Result<CString, Failure> {
    CString::new(text.as_bytes()).map_err(|_| Failure { step: Step::Exec, errno: libc::EINVAL })
}

fn pointers(list: &[CString]) -> Vec<*const c_char> {
    list.iter().map(|c| c.as_ptr()).chain([std::ptr::null()]).collect()
}

fn start(
    journal: &Journal,
    spec: &CommandSpec,
    park: &Park,
    trace: bool,
) -> Result<(Identity, OwnedFd, bool), Failure> {
    let broken =
        |e: io::Error| Failure { step: Step::None, errno: e.raw_os_error().unwrap_or(libc::EIO) };
    let program = spec.argv.first().ok_or(Failure { step: Step::Exec, errno: libc::ENOENT })?;
    let programs = candidates(program, spec)?;
    let argv = spec.argv.iter().map(|a| cstring(a)).collect::<Result<Vec<_>, _>>()?;
    let env = environment(journal, spec)?;
    let directory = spec.directory.as_ref().map(|d| cstring(d.as_os_str())).transpose()?;
    let null =
        std::fs::OpenOptions::new().read(true).write(true).open("/dev/null").map_err(broken)?;
    let streams = [0, 1, 2].map(|n| match &spec.streams[n] {
        Stream::Inherit => n as i32,
        Stream::StandardError => libc::STDERR_FILENO,
        Stream::Null => null.as_raw_fd(),
        Stream::File(f) => f.as_raw_fd(),
    });
    let procs = match park {
        Park::Freezer(c) => {
            // Joining a frozen group would freeze the child before its exec, and us with it.
            c.resume().map_err(broken)?;
            c.procs_fd().as_raw_fd()
        }
        Park::Stop(_) => -1,
    };
    let (argv, envp) = (pointers(&argv), pointers(&env));
    let mut plan = Plan {
        programs: programs.iter().map(|p| p.as_ptr()).collect(),
        argv: argv.as_ptr(),
        envp: envp.as_ptr(),
        directory: directory.as_ref().map_or(std::ptr::null(), |d| d.as_ptr()),
        streams,
        procs,
        parent: rustix::process::getpid().as_raw_pid(),
        own_group: spec.own_group,
        trace,
        failed: Step::None,
        errno: 0,
    };
    let pid = with_huge_pages(|| exec::clone_and_exec(&mut plan)).map_err(broken)?;
    if plan.failed != Step::None {
        wait_blocking(pid);
        return Err(Failure { step: plan.failed, errno: plan.errno });
    }
    let held = trace && wait_for_exec(pid);
    let id = Identity::of(pid);
    match (id, pidfd::open(pid)) {
        (Some(id), Ok(fd)) => Ok((id, fd, held)),
        (_, fd) => {
            // SAFETY: kills our own child, which was not waited for, so the number is still its
            // own.
            unsafe { libc::kill(pid, libc::SIGKILL) };
            wait_blocking(pid);
            Err(Failure {
                step: Step::None,
                errno: fd.err().and_then(|e| e.raw_os_error()).unwrap_or(libc::ESRCH),
            })
        }
    }
}

/// The files that the name may mean, in PATH's order.
fn candidates(program: &OsStr, spec: &CommandSpec) -> Result<Vec<CString>, Failure> {
    if program.as_bytes().contains(&b'/') {
        return Ok(vec![cstring(program)?]);
    }
    let given = spec.env.iter().rev().find(|e| e.0 == "PATH").map(|e| e.1.clone());
    let path = given
        .or_else(|| std::env::var_os("PATH"))
        .unwrap_or_else(|| "/usr/local/bin:/usr/bin:/bin".into());
    std::env::split_paths(&path).map(|d| cstring(d.join(program).as_os_str())).collect()
}

/// That of this process, the command's additions, and the mark by which descendants are found where
/// there is no cgroup.
fn environment(journal: &Journal, spec: &CommandSpec) -> Result<Vec<CString>, Failure> {
    let mark = ("PUNCTUAL_RUN".into(), journal.mark().into());
    let added: Vec<&(OsString, OsString)> = spec.env.iter().chain([&mark]).collect();
    let ours = std::env::vars_os().filter(|v| !added.iter().any(|a| a.0 == v.0));
    let all = ours.chain(added.iter().map(|a| (a.0.clone(), a.1.clone())));
    all.map(|(name, value)| {
        let mut pair = name.into_vec();
        pair.push(b'=');
        pair.extend_from_slice(value.as_bytes());
        cstring(OsStr::from_bytes(&pair))
    })
    .collect()
}

impl Spawned {
    /// Recorded, with its CPU and level, and parked, before it leaves its exec.
    fn install(&self, spec: &CommandSpec, park: &Park) -> Result<(), Diagnostic> {
        let pid = self.id.pid;
        self.journal.write(&Entry::Child { id: self.id })?;
        if let Some(cpu) = spec.cpu {
            unless_ended(sched::pin(pid, cpu)).map_err(|e| {
                Diagnostic::refused(
                    format!("cannot pin a command to CPU {cpu}"),
                    e,
                    "choose a CPU that is online and in our cpuset",
                )
            })?;
        }
        unless_ended(sched::set_level(pid, spec.level, park.children()))
            .map_err(|e| privilege::real_time_refused(pid, &e))?;
        park.set_level(spec.level);
        let stuck =
            |e: io::Error| Diagnostic::refused("cannot park a command", e, "see `punctual doctor`");
        if spec.hold == Hold::Parked {
            park.park().map_err(stuck)?;
        }
        if let Park::Stop(s) = park {
            s.add(self.id)?;
        }
        let done = match (spec.hold, self.held) {
            (Hold::AtExec, true) | (Hold::Nowhere | Hold::Parked, false) => Ok(()),
            (Hold::AtExec, false) => self.signal(libc::SIGSTOP),
            (Hold::Nowhere | Hold::Parked, true) => self.detach(),
        };
        unless_ended(done).map_err(stuck)
    }

    /// Ends its tracing, and with it the stop at its exec.
    fn detach(&self) -> io::Result<()> {
        // SAFETY: passes no memory. ESRCH if it is not our tracee, or not stopped.
        match unsafe { libc::ptrace(libc::PTRACE_DETACH, self.id.pid, 0, 0) } {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    }

    /// Its pid and start time.
    pub fn id(&self) -> Identity {
        self.id
    }

    /// Whether it was held before its first instruction; `false` where the machine forbids tracing.
    pub fn was_held(&self) -> bool {
        self.held
    }

    /// Locks its memory, all that it maps later included, before its first instruction. For the
    /// thread that started it and holds it at its exec ([`Hold::AtExec`]).
    ///
    /// # Errors
    /// EPERM, ENOMEM: beyond its RLIMIT_MEMLOCK; ENOSYS: not on this kind of processor; ESRCH: it
    /// was killed, or is not held.
    pub fn lock_memory(&self) -> io::Result<()> {
        if !self.held {
            return Err(io::Error::from_raw_os_error(libc::ESRCH));
        }
        let flags = libc::MCL_CURRENT | libc::MCL_FUTURE;
        inject::system_call(self.id.pid, libc::SYS_mlockall, [flags as u64, 0, 0]).map(drop)
    }

    /// Its first release. Real-time safe.
    ///
    /// # Errors
    /// The kernel's: the cgroup is gone, or the thread is not the one that started it
    /// ([`Hold::AtExec`]).
    pub fn release(&self, park: &Park) -> io::Result<()> {
        match (self.hold, self.held) {
            (Hold::AtExec, true) => unless_ended(self.detach()),
            (Hold::AtExec, false) => unless_ended(self.signal(libc::SIGCONT)),
            (Hold::Parked | Hold::Nowhere, _) => park.resume(),
        }
    }

    /// Its pidfd: readable (POLLIN) when it has ended.
    pub fn pidfd(&self) -> BorrowedFd<'_> {
        self.pidfd.as_fd()
    }

    /// Whether it has ended. It is not reaped, so that its number stays its own. Real-time safe.
    pub fn has_ended(&self) -> bool {
        pidfd::has_ended(&self.pidfd)
    }

    /// Its exit status, once it has ended; waits for nothing. Its descendants may continue: see
    /// [`Park::procs`]. Not real-time safe.
    ///
    /// # Errors
    /// ECHILD: another part of this program waited for it.
    pub fn try_wait(&mut self) -> io::Result<Option<ExitStatus>> {
        if self.status.is_none() {
            let mut status = 0;
            // SAFETY: writes one int.
            let r = unsafe { libc::waitpid(self.id.pid, &mut status, libc::WNOHANG) };
            if r < 0 {
                return Err(io::Error::last_os_error());
            }
            // A stop at its exec is reported to its tracer too.
            if r == self.id.pid && !libc::WIFSTOPPED(status) {
                self.status = Some(ExitStatus::from_raw(status));
                let _ = self.journal.write(&Entry::ChildGone { id: self.id });
            }
        }
        Ok(self.status)
    }

    /// Kills it and its process group, unless it was waited for: its number may be another group's
    /// then. Real-time safe.
    pub fn kill_group(&self) {
        if self.status.is_some() {
            return;
        }
        let _ = self.signal(libc::SIGKILL);
        // It was not waited for, so no other group has its number.
        process::kill_group(self.id.pid);
    }

    /// Sends it a signal; ESRCH when it has ended. Real-time safe.
    pub fn signal(&self, signal: i32) -> io::Result<()> {
        pidfd::send(&self.pidfd, signal)
    }
}

/// That a process has ended meanwhile is no error.
fn unless_ended(done: io::Result<()>) -> io::Result<()> {
    match done {
        Err(e) if e.raw_os_error() == Some(libc::ESRCH) => Ok(()),
        done => done,
    }
}
