//! The processes of a set's tasks: started or found, watched, ended.

use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use std::sync::atomic::Ordering;
use std::sync::Arc;
use std::time::{Duration, Instant};

use punctual_process::{descendants, Output};
use punctual_taskset::{Body, TaskSet};
use punctual_trace::TaskEnd;
use punctual_workload::{Spinner, Work};

use crate::adopted;
use crate::command::{self, Started, MARK};
use crate::members::{pidfd, reap, signal};
use crate::start_barrier::StartBarrier;
use crate::synthetic;
use punctual_diagnostic::Diagnostic;

/// Looks at the processes that a killed command has left; each finds who was started meanwhile.
const ROUNDS: usize = 20;

/// One task's first process.
struct Process {
    pid: i32,
    pidfd: Arc<OwnedFd>,
    kind: Kind,
    /// How it ended.
    ended: Option<TaskEnd>,
}

enum Kind {
    Synthetic,
    Command(Started),
    Adopted,
}

/// All of them, in the order of the set. Dropping it ends those that were started.
pub(crate) struct Tasks {
    barrier: StartBarrier,
    mark: String,
    all: Vec<Process>,
}

impl Tasks {
    /// Starts and finds them; what is started stands at the barrier. `stdin`: whether commands get our standard input.
    ///
    /// # Errors
    /// A command that is not there, a process that cannot be adopted; the system's. Nothing is left behind.
    pub fn start(set: &TaskSet, stdin: bool, output: Output) -> Result<Tasks, Diagnostic> {
        let mut tasks = Tasks { barrier: StartBarrier::new()?, mark: mark(), all: Vec::with_capacity(set.tasks.len()) };
        let mut spinner = None;
        for spec in &set.tasks {
            let place = |e: Diagnostic| e.of_task(&spec.name);
            let (pid, kind) = match (&spec.body, Work::of(&spec.body)) {
                (Body::Command(argv), _) => {
                    let started = command::start(&tasks.barrier, argv, stdin, output, &tasks.mark).map_err(place)?;
                    (started.pid, Kind::Command(started))
                }
                (Body::Pid(pid), _) => {
                    let pidfd = Arc::new(adopted::check(*pid, spec.cpu).map_err(place)?);
                    tasks.all.push(Process { pid: *pid, pidfd, kind: Kind::Adopted, ended: None });
                    continue;
                }
                (_, Some(work)) => {
                    let spinner = spinner.get_or_insert_with(Spinner::calibrate);
                    (synthetic::start(&tasks.barrier, work, spinner).map_err(place)?, Kind::Synthetic)
                }
                (_, None) => continue,
            };
            let held = pidfd(pid).map_err(|e| {
                // SAFETY: a child of ours that was not waited for.
                unsafe { libc::kill(pid, libc::SIGKILL) };
                Diagnostic::machine(format!("process {pid} cannot be watched: {e}"), "raise RLIMIT_NOFILE")
            });
            tasks.all.push(Process { pid, pidfd: Arc::new(held.map_err(place)?), kind, ended: None });
        }
        Ok(tasks)
    }

    /// The first process of a task, by its place in the set.
    pub fn pid(&self, index: usize) -> i32 {
        self.all[index].pid
    }

    /// What holds on to it.
    pub fn pidfd(&self, index: usize) -> Arc<OwnedFd> {
        self.all[index].pidfd.clone()
    }

    /// Everybody is a member: they go on, on their budgets.
    pub fn open(&self) {
        self.barrier.release();
    }

    /// Sees who has ended.
    ///
    /// # Errors
    /// A program that could not be executed.
    pub fn look(&mut self) -> Result<(), Diagnostic> {
        for process in self.all.iter_mut().filter(|p| p.ended.is_none()) {
            let Some(how) = process.how_ended() else { continue };
            process.ended = Some(how);
            if let Kind::Command(started) = &mut process.kind {
                if let Some(failure) = started.failure() {
                    return Err(failure);
                }
            }
        }
        Ok(())
    }

    /// How a task's first process ended, if it has. What it started may go on.
    pub fn ended(&self, index: usize) -> Option<TaskEnd> {
        self.all[index].ended.clone()
    }

    /// What was started is to end, before the scheduler goes. Synthetic tasks at their next look, for their sched_yield
    /// would return at once then; commands now, for some make it hard for a scheduler to go (6.18: one that changes its
    /// own class all the time).
    pub fn end(&self) {
        self.barrier.over().store(true, Ordering::Release);
        for process in self.all.iter().filter(|p| matches!(p.kind, Kind::Command(_)) && p.ended.is_none()) {
            signal(&process.pidfd, libc::SIGKILL);
            // SAFETY: passes no memory. Its first process was not waited for, so the group's number is its own.
            unsafe { libc::kill(-process.pid, libc::SIGKILL) };
        }
    }
}

/// What the environment of our commands says, and of no other run's.
fn mark() -> String {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let start = stat.rsplit_once(')').and_then(|(_, rest)| rest.split_ascii_whitespace().nth(19)).unwrap_or("0");
    format!("{}.{start}", std::process::id())
}

impl Process {
    fn how_ended(&self) -> Option<TaskEnd> {
        if let Kind::Adopted = self.kind {
            let mut poll = libc::pollfd { fd: self.pidfd.as_raw_fd(), events: libc::POLLIN, revents: 0 };
            // SAFETY: one structure, valid for the call, which does not wait.
            return (unsafe { libc::poll(&mut poll, 1, 0) } == 1).then_some(TaskEnd::Gone);
        }
        let mut status = 0;
        // SAFETY: a child of ours that was not waited for; writes one number.
        let gone = unsafe { libc::waitpid(self.pid, &mut status, libc::WNOHANG) } == self.pid;
        gone.then(|| ExitStatus::from_raw(status).into())
    }
}

impl Drop for Tasks {
    fn drop(&mut self) {
        self.end();
        // A child that still waits at the barrier would never see that the run is over.
        self.barrier.release();
        let limit = Instant::now() + Duration::from_secs(1);
        let synthetic = |p: &Process| matches!(p.kind, Kind::Synthetic) && p.ended.is_none();
        while self.all.iter().any(synthetic) && Instant::now() < limit {
            drop(self.look());
            std::thread::sleep(Duration::from_millis(2));
        }
        let commands = || self.all.iter().filter(|p| matches!(p.kind, Kind::Command(_)));
        let started: Vec<i32> = commands().filter(|p| p.ended.is_none()).map(|p| p.pid).collect();
        for process in self.all.iter().filter(|p| !matches!(p.kind, Kind::Adopted) && p.ended.is_none()) {
            signal(&process.pidfd, libc::SIGKILL);
        }
        if commands().next().is_some() {
            end_families(&started, &self.mark);
        }
        for process in self.all.iter().filter(|p| !matches!(p.kind, Kind::Adopted) && p.ended.is_none()) {
            reap(process.pid);
        }
    }
}

/// Ends what commands have started, wherever it went: by descent, and by the mark in its environment.
fn end_families(roots: &[i32], mark: &str) {
    let pair = format!("{MARK}={mark}");
    let marked = |pid: &i32| {
        let environment = std::fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        environment.split(|&b| b == 0).any(|e| e == pair.as_bytes())
    };
    let us = std::process::id() as i32;
    for _ in 0..ROUNDS {
        let all = std::fs::read_dir("/proc").into_iter().flatten().flatten();
        let all = all.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
        let mut family: Vec<i32> = all.filter(marked).filter(|&pid| pid != us).collect();
        family.extend(descendants(roots));
        if family.is_empty() {
            return;
        }
        for pid in family {
            // Held on to before it is looked at again, so that its number names nobody else.
            let Ok(held) = pidfd(pid) else { continue };
            if marked(&pid) || descendants(roots).contains(&pid) {
                signal(&held, libc::SIGKILL);
            }
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use punctual_diagnostic::Kind;
    use punctual_taskset::TaskSet;

    fn set(body: Body) -> TaskSet {
        TaskSet::single(10_000_000, 1_000_000, body).build().expect("it is in order")
    }

    fn until_ended(tasks: &mut Tasks) -> TaskEnd {
        let limit = Instant::now() + Duration::from_secs(20);
        while tasks.ended(0).is_none() {
            assert!(Instant::now() < limit, "it does not end");
            tasks.look().expect("it was executed");
            std::thread::sleep(Duration::from_millis(2));
        }
        tasks.ended(0).expect("it has ended")
    }

    #[test]
    fn a_command_executes_nothing_before_its_release() {
        let name = std::env::temp_dir().join(format!("punctual-barrier-{}", std::process::id()));
        drop(std::fs::remove_file(&name));
        let argv = ["/bin/sh", "-c", "echo > \"$0\"; exit 3", name.to_str().expect("plain")].map(str::to_owned);
        let mut tasks = Tasks::start(&set(Body::Command(argv.to_vec())), false, Output::Nowhere).expect("a shell");
        std::thread::sleep(Duration::from_millis(50));
        tasks.look().expect("nothing");
        assert!(tasks.ended(0).is_none() && !name.exists());
        tasks.open();
        assert_eq!(until_ended(&mut tasks), TaskEnd::Exited(3));
        assert!(name.exists());
        drop(std::fs::remove_file(&name));
    }

    #[test]
    fn what_is_no_program_is_an_error_before_or_when_it_is_executed() {
        let missing = set(Body::Command(vec!["/no/such/program".to_owned()]));
        let e = Tasks::start(&missing, false, Output::Nowhere).err().expect("it is not there");
        assert!(e.cause.contains("there is no program /no/such/program") && e.exit_code() == 2, "{e}");
        assert_eq!((e.kind, e.errno), (Kind::Command, Some(libc::ENOENT)));
        let folder = set(Body::Command(vec!["/tmp".to_owned()]));
        let e = Tasks::start(&folder, false, Output::Nowhere).err().expect("it is no program");
        assert_eq!((e.kind, e.errno), (Kind::Command, Some(libc::EACCES)));
        let name = std::env::temp_dir().join(format!("punctual-broken-{}", std::process::id()));
        std::fs::write(&name, "#!/no/such/interpreter\n").expect("room");
        let allow = std::process::Command::new("chmod").arg("+x").arg(&name).status();
        assert!(allow.is_ok_and(|s| s.success()));
        let broken = set(Body::Command(vec![name.to_str().expect("plain").to_owned()]));
        let mut tasks = Tasks::start(&broken, false, Output::Nowhere).expect("a file that may be executed");
        tasks.open();
        let limit = Instant::now() + Duration::from_secs(20);
        let failure = loop {
            assert!(Instant::now() < limit, "its failure is not told");
            match tasks.look() {
                Ok(()) => std::thread::sleep(Duration::from_millis(2)),
                Err(e) => break e,
            }
        };
        assert!(failure.cause.contains("cannot start") && failure.exit_code() == 2, "{failure}");
        assert_eq!((failure.kind, failure.errno), (Kind::Command, Some(libc::ENOENT)));
        drop(std::fs::remove_file(&name));
    }

    #[test]
    fn the_end_of_a_run_ends_what_its_commands_have_started() {
        let name = std::env::temp_dir().join(format!("punctual-family-{}", std::process::id()));
        drop(std::fs::remove_file(&name));
        let script = "setsid sleep 1000 & echo $! > \"$0\"; wait";
        let argv = ["/bin/sh", "-c", script, name.to_str().expect("plain")].map(str::to_owned);
        let tasks = Tasks::start(&set(Body::Command(argv.to_vec())), false, Output::Nowhere).expect("a shell");
        tasks.open();
        let limit = Instant::now() + Duration::from_secs(20);
        let child: i32 = loop {
            assert!(Instant::now() < limit, "the shell starts nobody");
            match std::fs::read_to_string(&name).unwrap_or_default().trim().parse() {
                Ok(pid) => break pid,
                Err(_) => std::thread::sleep(Duration::from_millis(2)),
            }
        };
        drop(tasks);
        let alive = || {
            let stat = std::fs::read_to_string(format!("/proc/{child}/stat")).unwrap_or_default();
            !stat.is_empty() && !stat.contains(") Z ") && !stat.contains(") X ")
        };
        let limit = Instant::now() + Duration::from_secs(20);
        while alive() {
            assert!(Instant::now() < limit, "process {child} goes on");
            std::thread::sleep(Duration::from_millis(2));
        }
        drop(std::fs::remove_file(&name));
    }

    #[test]
    fn synthetic_tasks_end_with_the_run() {
        let spin = Body::Spin(punctual_taskset::Spin::Forever);
        let tasks = Tasks::start(&set(spin), false, Output::Nowhere).expect("a process");
        let pid = tasks.pid(0);
        tasks.open();
        drop(tasks);
        // SAFETY: signal 0 only asks.
        assert_ne!(unsafe { libc::kill(pid, 0) }, 0, "process {pid} is still there");
    }
}
