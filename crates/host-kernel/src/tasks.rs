//! The processes of a set's tasks: started or found, watched, ended.
//!
//! Synthetic tasks are our own processes and stand at the barrier. Commands are held at their exec,
//! with a guardian that ends them if we are killed. Of adopted processes nothing is changed while
//! they are not suspended, so there is nothing to restore then. The kernel's threads of RCU are
//! ordinary ones meanwhile.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::Ordering;
use std::sync::Arc;
use std::time::{Duration, Instant};

use punctual_process::{
    rcu_threads, threads_of, CommandSpec, Commands, CpuLock, FrozenProcess, Output, Spawned, Stream,
};
use punctual_sys::pidfd;
use punctual_sys::process::{reap, try_wait};
use punctual_taskset::{Body, Overrun, TaskSet, TaskSpec};
use punctual_trace::TaskEnd;
use punctual_wait_page::SealedPage;
use punctual_workload::{Spinner, Work};

use crate::abi::BUSY;
use crate::adopted;
use crate::diagnostics::OTHERS;
use crate::joining::{Joining, Threads};
use crate::members;
use crate::start_barrier::StartBarrier;
use crate::synthetic;
use punctual_diagnostic::Diagnostic;

/// How long a killed synthetic task may take to end.
const PATIENCE: Duration = Duration::from_secs(2);

/// One task's first process, or its single thread.
struct Process {
    pid: i32,
    pidfd: Arc<OwnedFd>,
    kind: Kind,
    /// Of a thread that waits for its releases.
    page: Option<SealedPage>,
    /// How it ended.
    ended: Option<TaskEnd>,
}

#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Synthetic,
    /// By its place among the commands.
    Command(usize),
    Adopted,
    /// One thread of a process.
    Thread,
}

/// Of what a task that is added while the set runs consists.
#[derive(Debug)]
pub enum AddedProgram {
    /// A program with its arguments, which need not be UTF-8.
    Command(Vec<OsString>),
    /// A running process, with its threads and children.
    Process(i32),
    /// One thread of a running process, alone.
    Thread {
        /// The process.
        pid: i32,
        /// The thread.
        tid: i32,
        /// By what it learns of its releases, if its sched_yield waits for the next one.
        page: Option<SealedPage>,
    },
    /// A thread of this process, by its number, alone. It has its budget in each period.
    OwnThread(i32),
}

/// All of them, by index. Dropping it ends those that were started.
pub(crate) struct Tasks {
    barrier: StartBarrier,
    /// With the first command or thread of RCU, so that a run without one has no guardian.
    commands: Option<Commands>,
    all: BTreeMap<usize, Process>,
}

impl Tasks {
    /// Starts and finds them; nothing of what is started executes before [`open`](Self::open).
    /// `stdin`: whether commands get our standard input; `locks`: the CPUs of the run, which stay
    /// taken until commands that a killed loader left have ended.
    ///
    /// # Errors
    /// A command that cannot be executed, a process that cannot be adopted; the system's. Nothing
    /// is left behind.
    pub fn start(
        set: &TaskSet,
        locks: &[CpuLock],
        stdin: bool,
        output: Output,
    ) -> Result<Tasks, Diagnostic> {
        let all = BTreeMap::new();
        let mut tasks = Tasks { barrier: StartBarrier::new()?, commands: None, all };
        let mut spinner = None;
        for (index, spec) in set.tasks.iter().enumerate() {
            let process = match (&spec.body, Work::of(&spec.body)) {
                (Body::Command(argv), _) => {
                    let command = CommandSpec::new(argv);
                    tasks.start_command(command, &spec.name, locks, output.streams(stdin))
                }
                (Body::Pid(pid), _) => set
                    .domain(spec.domain)
                    .only_cpu()
                    .and_then(|cpu| adopted::check(*pid, cpu))
                    .map(|pidfd| Process::new(*pid, pidfd, Kind::Adopted)),
                (_, Some(work)) => {
                    tasks.start_synthetic(work, spinner.get_or_insert_with(Spinner::calibrate))
                }
                (_, None) => continue,
            };
            tasks.all.insert(index, process.map_err(|e| e.of_task(&spec.name))?);
        }
        let of_rcu: Vec<_> = locks.iter().flat_map(|lock| rcu_threads(lock.cpu())).collect();
        if !of_rcu.is_empty() {
            tasks.commands(locks)?.make_ordinary(&of_rcu)?;
        }
        Ok(tasks)
    }

    fn commands(&mut self, locks: &[CpuLock]) -> Result<&mut Commands, Diagnostic> {
        Ok(match &mut self.commands {
            Some(commands) => commands,
            none => none.insert(Commands::new(locks)?),
        })
    }

    fn start_command(
        &mut self,
        spec: CommandSpec,
        name: &str,
        locks: &[CpuLock],
        streams: [Stream; 3],
    ) -> Result<Process, Diagnostic> {
        let commands = self.commands(locks)?;
        let place = commands.iter().count();
        let spec = CommandSpec { streams, ..spec };
        let spawned = commands.start(spec, name)?;
        let pidfd =
            spawned.pidfd().try_clone_to_owned().map_err(|e| unwatched(spawned.id().pid, &e))?;
        Ok(Process::new(spawned.id().pid, pidfd, Kind::Command(place)))
    }

    fn start_synthetic(&self, work: Work, spinner: &Spinner) -> Result<Process, Diagnostic> {
        let pid = synthetic::start(&self.barrier, work, spinner)?;
        let pidfd = pidfd::open(pid).map_err(|e| {
            // SAFETY: a child of ours that was not waited for.
            unsafe { libc::kill(pid, libc::SIGKILL) };
            unwatched(pid, &e)
        })?;
        Ok(Process::new(pid, pidfd, Kind::Synthetic))
    }

    /// One more task, on this CPU. What is started executes nothing before
    /// [`open`](Self::open).
    ///
    /// # Errors
    /// As of [`start`](Self::start); nothing is changed then.
    pub fn add(
        &mut self,
        index: usize,
        (spec, body): (&TaskSpec, AddedProgram),
        (cpu, locks): (u32, &[CpuLock]),
        output: Output,
    ) -> Result<(), Diagnostic> {
        let process = match body {
            AddedProgram::Command(argv) => {
                let command = CommandSpec::new(argv);
                self.start_command(command, &spec.name, locks, output.streams(false))?
            }
            AddedProgram::Process(pid) => {
                let pidfd = adopted::check(pid, cpu)?;
                // Joining is refused to the first thread only, where that is another task's.
                let is_alone = |thread: &i32| {
                    self.all.values().any(|p| p.kind == Kind::Thread && p.pid == *thread)
                };
                if let Some(thread) = threads_of(pid).into_iter().find(is_alone) {
                    return Err(members::refused(pid, thread, BUSY));
                }
                Process::new(pid, pidfd, Kind::Adopted)
            }
            AddedProgram::OwnThread(tid) => {
                let pidfd = adopted::check_own_thread(tid, cpu)?;
                Process::new(tid, pidfd, Kind::Thread)
            }
            AddedProgram::Thread { pid, tid, page } => {
                let pidfd = adopted::check_thread(pid, tid, cpu)?;
                Process { page, ..Process::new(tid, pidfd, Kind::Thread) }
            }
        };
        self.all.insert(index, process);
        Ok(())
    }

    /// Whose threads a task's members are. `takes_jobs`: the program adds its jobs; its
    /// `sched_yield` completes one, and is never late, as the program knows how each job ended.
    pub fn joining(&self, index: usize, spec: &TaskSpec, takes_jobs: bool) -> Option<Joining> {
        let process = self.all.get(&index)?;
        let waits = process.kind == Kind::Synthetic || process.page.is_some();
        Some(Joining {
            index,
            pid: process.pid,
            cooperates: waits || takes_jobs,
            threads: match process.kind {
                Kind::Adopted => Threads::All,
                Kind::Thread => Threads::Alone,
                Kind::Synthetic | Kind::Command(_) => Threads::First,
            },
            pidfd: process.pidfd.clone(),
            overrun: if takes_jobs { Overrun::Skip } else { spec.overrun },
            page: process.page.clone(),
        })
    }

    /// Freezes a task's process with its children.
    ///
    /// # Errors
    /// It is no process that was running before; as of [`Commands::freeze`].
    pub fn freeze(
        &mut self,
        index: usize,
        name: &str,
        locks: &[CpuLock],
    ) -> Result<FrozenProcess, Diagnostic> {
        let pid = self.adopted_pid(index)?;
        self.commands(locks)?.freeze(pid, name)
    }

    /// The process of a task that was running before.
    ///
    /// # Errors
    /// It is none.
    pub fn adopted_pid(&self, index: usize) -> Result<i32, Diagnostic> {
        let adopted = self.all.get(&index).filter(|process| process.kind == Kind::Adopted);
        adopted.map(|process| process.pid).ok_or_else(|| {
            let cause =
                "inside the kernel only a process that ran before, and a thread of a program \
                         of the service, is suspended";
            Diagnostic::usage(cause, OTHERS)
        })
    }

    /// Whether it is a thread that learns of its releases by a page.
    pub fn has_page(&self, index: usize) -> bool {
        self.all.get(&index).is_some_and(|process| process.page.is_some())
    }

    /// Kills a command and its process group; nothing of what was not started here.
    pub fn kill(&self, index: usize) {
        if let Some(Process { kind: Kind::Command(place), .. }) = self.all.get(&index) {
            let command = self.commands.as_ref().and_then(|commands| commands.iter().nth(*place));
            command.into_iter().for_each(Spawned::kill_group);
        }
    }

    /// Whether its process was started here, and is waited for.
    pub fn starts(&self, index: usize) -> bool {
        let kind = self.all.get(&index).map(|process| process.kind);
        matches!(kind, Some(Kind::Synthetic | Kind::Command(_)))
    }

    /// Forgets a task that has ended, or was not to be.
    pub fn remove(&mut self, index: usize) {
        self.all.remove(&index);
    }

    /// All are members of their tasks: they execute from here on, on their budgets. By the thread
    /// that started them.
    pub fn open(&self) {
        self.barrier.release();
        self.commands.iter().for_each(Commands::release);
    }

    /// Finds those that have ended, and replaces a guardian that was killed; returns what a reader
    /// should know of that.
    pub fn look(&mut self) -> Option<String> {
        for process in self.all.values_mut().filter(|p| p.ended.is_none()) {
            process.ended = match process.kind {
                Kind::Synthetic => try_wait(process.pid).map(TaskEnd::from),
                Kind::Command(place) => self
                    .commands
                    .as_mut()
                    .and_then(|c| c.try_wait(place).ok().flatten())
                    .map(TaskEnd::from),
                Kind::Adopted | Kind::Thread => {
                    pidfd::has_ended(process.pidfd.as_fd()).then_some(TaskEnd::Gone)
                }
            };
        }
        self.commands.as_mut().and_then(Commands::replace_dead_guardian)
    }

    /// How a task's first process ended, if it has. What it started may continue.
    pub fn ended(&self, index: usize) -> Option<TaskEnd> {
        self.all.get(&index)?.ended.clone()
    }

    /// Whether its first process has a SIGKILL to take, as after any signal that ends a process.
    pub fn is_killed(&self, index: usize) -> bool {
        const SIGKILL: u64 = 1 << (libc::SIGKILL - 1);
        let Some(process) = self.all.get(&index).filter(|process| process.ended.is_none()) else {
            return false;
        };
        let status = std::fs::read_to_string(format!("/proc/{}/status", process.pid));
        let status = status.unwrap_or_default();
        let pending = status.lines().filter_map(|line| {
            line.strip_prefix("SigPnd:").or_else(|| line.strip_prefix("ShdPnd:"))
        });
        let signals = pending.filter_map(|set| u64::from_str_radix(set.trim(), 16).ok());
        signals.fold(0, |all, set| all | set) & SIGKILL != 0
    }

    /// Ends what was started, before the scheduler is detached. Synthetic tasks end at their next
    /// look, because their sched_yield would return at once then; commands now, because some make
    /// it hard for a scheduler to go (6.18: one that changes its own class all the time).
    pub fn end(&self) {
        self.barrier.over().store(true, Ordering::Release);
        self.commands.iter().for_each(Commands::kill);
    }

    fn synthetic_left(&self) -> impl Iterator<Item = &Process> {
        self.all.values().filter(|p| p.kind == Kind::Synthetic && p.ended.is_none())
    }
}

impl Process {
    fn new(pid: i32, pidfd: OwnedFd, kind: Kind) -> Process {
        Process { pid, pidfd: Arc::new(pidfd), kind, page: None, ended: None }
    }
}

fn unwatched(pid: i32, e: &std::io::Error) -> Diagnostic {
    Diagnostic::machine(format!("process {pid} cannot be watched: {e}"), "raise RLIMIT_NOFILE")
}

impl Tasks {
    /// Waits for the end of what was started; returns what could not be ended.
    pub fn finish(mut self) -> Vec<String> {
        self.end_all()
    }

    fn end_all(&mut self) -> Vec<String> {
        self.end();
        // A child that still waits at the barrier would never see that the run is over.
        self.barrier.release();
        let limit = Instant::now() + Duration::from_secs(1);
        while self.synthetic_left().next().is_some() && Instant::now() < limit {
            drop(self.look());
            std::thread::sleep(Duration::from_millis(2));
        }
        for process in self.synthetic_left() {
            let _ = pidfd::send(&*process.pidfd, libc::SIGKILL);
            reap(process.pid, PATIENCE);
        }
        self.commands.take().map(Commands::end).unwrap_or_default()
    }
}

impl Drop for Tasks {
    fn drop(&mut self) {
        // `punctual clean` and `punctual doctor` report what remains.
        let _ = self.end_all();
    }
}

#[cfg(test)]
mod tests;
