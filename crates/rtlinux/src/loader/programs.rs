//! The loader's thread: it loads programs, runs and reaps them.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::os::fd::AsFd;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use std::sync::mpsc::Receiver;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use punctual::fifo::{Access, Fifo, Reader};
use punctual::{Error, ErrorKind};
use punctual_classic::report_refusal;
use punctual_process::{CommandSpec, Commands, HeldCommand, Stream};
use punctual_sys::event_count::EventCount;
use punctual_sys::process::{capabilities, CapabilitySet};
use rustix::event::{poll, PollFd, PollFlags, Timespec};
use rustix::process::{getrlimit, prlimit, Pid, Resource, Rlimit};

use super::{states, unknown, ProgramState, Request, PATIENCE, PROGRAMS};
use crate::hard::{member_of_program, SETS};
use crate::loaded::{PriorityRequest, REQUEST, VARIABLE};
use crate::priority;

/// The variable that sets how much memory a program may have, in MiB; and its default.
const MEMORY: (&str, u64) = ("PUNCTUAL_RTLINUX_MEMORY", 256);
/// Its stack, and the default of its threads: all of that is locked.
const STACK: u64 = 1 << 20;
/// Files that it may have open.
const FILES: u64 = 256;

/// How often a guardian that died is replaced.
const HOUSEKEEPING: Timespec = Timespec { tv_sec: 1, tv_nsec: 0 };
/// What the loader's thread has.
pub(super) struct Programs {
    commands: Commands,
    by_pid: BTreeMap<i32, Program>,
    requests_of_programs: Reader,
    fifo_name: String,
    is_locking_refused: bool,
}

struct Program {
    file: OsString,
    command: HeldCommand,
    set: Option<Arc<punctual_classic::CpuSet>>,
    is_killed: bool,
}

impl Programs {
    pub(super) fn begin(fifo: Fifo, fifo_name: String) -> Result<Programs, Error> {
        let commands = Commands::new(&[])?;
        commands.let_adopt()?;
        let mut requests_of_programs = fifo.reader(Access::Exclusive)?;
        // From here on it is unready while it is empty.
        requests_of_programs.descriptor();
        let by_pid = BTreeMap::new();
        let is_locking_refused = false;
        Ok(Programs { commands, by_pid, requests_of_programs, fifo_name, is_locking_refused })
    }

    pub(super) fn serve(mut self, requests: &Receiver<Request>, count: &EventCount) {
        loop {
            self.wait_for_event(count);
            while count.take() {
                match requests.recv() {
                    Ok(Request::Load(file, answer)) => drop(answer.send(self.load(file))),
                    Ok(Request::Run(pid, answer)) => drop(answer.send(self.run(pid))),
                    Ok(Request::Kill(pid, answer)) => drop(answer.send(self.kill(pid))),
                    Ok(Request::End(answer)) => {
                        self.by_pid.values().for_each(|program| program.command.kill());
                        let end = Instant::now() + PATIENCE;
                        while !self.by_pid.is_empty() && Instant::now() < end {
                            self.reap();
                            thread::sleep(Duration::from_millis(1));
                        }
                        drop(self.commands.end());
                        let _ = answer.send(());
                        return;
                    }
                    Err(_) => return,
                }
            }
            self.reap();
            self.apply_priorities();
            if let Some(what) = self.commands.replace_dead_guardian() {
                eprintln!("librtlinux: {what}");
            }
        }
    }

    fn wait_for_event(&mut self, count: &EventCount) {
        let fifo = self.requests_of_programs.descriptor();
        let fds = [count.as_fd(), fifo].into_iter();
        let ends = self.by_pid.values().map(|program| program.command.pidfd());
        let of = |fd| PollFd::from_borrowed_fd(fd, PollFlags::IN);
        let mut fds: Vec<_> = fds.chain(ends).map(of).collect();
        let _ = poll(&mut fds, Some(&HOUSEKEEPING));
    }

    fn load(&mut self, file: OsString) -> Result<i32, Error> {
        if self.by_pid.len() >= PROGRAMS {
            let cause = format!("{PROGRAMS} programs are loaded");
            return Err(Error::usage(cause, "kill one of them first").with_errno(libc::EAGAIN));
        }
        let mut path = file.clone().into_vec();
        if !path.contains(&b'/') {
            // As the paper has it, the name of a file.
            path.splice(0..0, *b"./");
        }
        let mut spec = CommandSpec::new([OsString::from_vec(path)]);
        spec.streams = [Stream::Null, Stream::Inherit, Stream::Inherit];
        spec.env = vec![(VARIABLE.into(), self.fifo_name.clone().into())];
        let name = name_of(&file);
        let command = self.commands.start_apart(spec, &name)?;
        if let Err(error) = self.fix_resources(&command) {
            end(command);
            return Err(error);
        }
        let pid = command.pid();
        states().alive.insert(pid, ProgramState::Held);
        let program = Program { file, command, set: None, is_killed: false };
        self.by_pid.insert(pid, program);
        Ok(pid)
    }

    /// The program cannot have more than this, and all of it stays in memory.
    fn fix_resources(&mut self, command: &HeldCommand) -> Result<(), Error> {
        let memory = memory_limit()?;
        let may_lock_any = capabilities().contains(CapabilitySet::IPC_LOCK);
        let lockable = getrlimit(Resource::Memlock).current.unwrap_or(u64::MAX);
        let is_lockable = may_lock_any || lockable >= memory;
        let refused = |error: std::io::Error| {
            let help = "have its user be the one of this program";
            Error::refused("the resources of the program cannot be fixed", error, help)
        };
        let pid = Pid::from_raw(command.pid());
        let mut limits = vec![(Resource::As, memory), (Resource::Stack, STACK)];
        limits.push((Resource::Nofile, FILES));
        if is_lockable {
            limits.push((Resource::Memlock, memory));
        }
        for (resource, limit) in limits {
            // What is less already stays so.
            let most = getrlimit(resource).maximum.map_or(limit, |most| most.min(limit));
            let fixed = Rlimit { current: Some(most), maximum: Some(most) };
            prlimit(pid, resource, fixed).map_err(|errno| refused(errno.into()))?;
        }
        let locked = match is_lockable {
            true => command.lock_memory(),
            false => Err(std::io::Error::from_raw_os_error(libc::EPERM)),
        };
        if let Err(error) = locked {
            if !std::mem::replace(&mut self.is_locking_refused, true) {
                eprintln!(
                    "librtlinux: the memory of loaded programs is not locked: {error}; permit {} \
                     MiB of locked memory (ulimit -l), or CAP_IPC_LOCK",
                    memory >> 20
                );
            }
        }
        Ok(())
    }

    fn run(&mut self, pid: i32) -> Result<(), Error> {
        let program = self.by_pid.get_mut(&pid).ok_or_else(|| unknown(pid))?;
        if states().alive.get(&pid) != Some(&ProgramState::Held) {
            let cause = format!("program {pid} runs already");
            return Err(Error::usage(cause, "run a program once").with_errno(libc::EALREADY));
        }
        let least = priority::of_task(priority::LARGEST).unwrap_or(0);
        let adopt = || {
            let set = SETS.on(u64::MAX)?;
            set.adopt(member_of_program(pid), &name_of(&program.file), least, pid)?;
            Ok(set)
        };
        match adopt() {
            Ok(set) => program.set = Some(set),
            Err(error) => {
                report_refusal(SETS.names(), &error);
                // What the machine does not permit at all keeps no program from executing.
                if error.kind != ErrorKind::Machine {
                    return Err(error);
                }
            }
        }
        program.command.release().map_err(|error| {
            Error::refused(format!("program {pid} cannot be started"), error, "report it")
        })?;
        states().alive.insert(pid, ProgramState::Runs);
        Ok(())
    }

    fn kill(&mut self, pid: i32) -> Result<(), Error> {
        let program = self.by_pid.get_mut(&pid).ok_or_else(|| unknown(pid))?;
        program.is_killed = true;
        program.command.kill();
        Ok(())
    }

    /// Reaps what has ended, and reports what was not asked to.
    fn reap(&mut self) {
        self.by_pid.retain(|&pid, program| {
            let status = match program.command.try_wait() {
                Ok(None) => return true,
                Ok(Some(status)) => status,
                // Another part of the program has waited for it.
                Err(_) => ExitStatus::from_raw(0),
            };
            if let Some(set) = program.set.take() {
                set.remove(member_of_program(pid));
            }
            if !program.is_killed && !status.success() {
                let file = program.file.to_string_lossy();
                eprintln!("librtlinux: program {pid} ({file}) has ended: {status}");
            }
            states().end(pid, status);
            false
        });
    }

    /// Gives programs the priorities that they asked for. What is no request, or of no program, is
    /// ignored.
    fn apply_priorities(&mut self) {
        let mut request = [0; REQUEST];
        // Bounded: a program that asks all the time does not keep this thread.
        for _ in 0..PROGRAMS {
            let Ok(length) = self.requests_of_programs.get(&mut request) else { return };
            let PriorityRequest { pid, priority } = PriorityRequest::from_bytes(request);
            let is_known = length == REQUEST && self.by_pid.contains_key(&pid);
            if let Some(priority) = priority::of_task(priority).filter(|_| is_known) {
                SETS.change_priority(member_of_program(pid), priority);
            }
        }
    }
}

/// Kills a command that is of no use, and reaps it.
fn end(mut command: HeldCommand) {
    command.kill();
    let end = Instant::now() + PATIENCE;
    while matches!(command.try_wait(), Ok(None)) && Instant::now() < end {
        thread::sleep(Duration::from_millis(1));
    }
}

/// What a task is called whose program is this file.
fn name_of(file: &OsString) -> String {
    let file = std::path::Path::new(file).file_name().unwrap_or(file.as_os_str());
    let name: String = String::from_utf8_lossy(file.as_bytes()).chars().take(40).collect();
    match name.chars().all(|c| !c.is_control()) && !name.is_empty() {
        true => name,
        false => "program".to_owned(),
    }
}

fn memory_limit() -> Result<u64, Error> {
    let (name, default) = MEMORY;
    let mebibytes = match std::env::var(name) {
        Err(_) => default,
        Ok(text) => text.parse().ok().filter(|n| (16..=1 << 20).contains(n)).ok_or_else(|| {
            Error::usage(format!("{name}={text} is no amount of memory"), "use 16 to 1048576 (MiB)")
                .with_errno(libc::EINVAL)
        })?,
    };
    Ok(mebibytes << 20)
}
