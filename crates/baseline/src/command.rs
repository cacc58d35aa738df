//! Commands under a baseline: child processes, which end with the run.

use punctual_diagnostic::Diagnostic;
use punctual_process::{restore, spawn, CommandSpec, Guardian, Hold, Journal, Park, Spawned, Stream};

use crate::sys::{set_policy, Policy};

/// The commands of a run. Dropped, it ends them with all that they started; if this program is killed,
/// the guardian does.
#[derive(Debug)]
pub struct Commands {
    journal: Journal,
    guardian: Option<Guardian>,
    all: Vec<Command>,
}

#[derive(Debug)]
struct Command {
    task: usize,
    spawned: Spawned,
    park: Park,
}

/// How the start of a command went wrong.
#[derive(Debug)]
pub enum Failed {
    /// The policy was refused: errno.
    Refused(i32),
    /// Anything else.
    Error(Diagnostic),
}

impl Commands {
    /// None yet.
    ///
    /// # Errors
    /// No journal, no process.
    pub fn new() -> Result<Commands, Diagnostic> {
        let journal = Journal::create()?;
        let guardian = Some(Guardian::start(&journal, &[])?);
        Ok(Commands { journal, guardian, all: Vec::new() })
    }

    /// Starts a task's command on `cpu` (`None`: any) under `policy`, held at its exec.
    /// Its output goes nowhere: it was to be seen when the set ran under Punctual.
    ///
    /// # Errors
    /// The policy is refused; there is no such program.
    pub fn start(
        &mut self,
        task: (usize, &str),
        words: &[String],
        cpu: Option<u32>,
        policy: Policy,
    ) -> Result<(), Failed> {
        let (task, name) = task;
        let park = Park::for_command(&self.journal, None, name).map_err(Failed::Error)?;
        let spec = CommandSpec {
            cpu,
            hold: Hold::AtExec,
            streams: [Stream::Null, Stream::Null, Stream::Null],
            ..CommandSpec::new(words, 0)
        };
        let spawned = spawn(&self.journal, spec, &park).map_err(|e| Failed::Error(e.of_task(name)))?;
        let pid = spawned.id().pid;
        self.all.push(Command { task, spawned, park });
        set_policy(pid, policy, true).map_err(Failed::Refused)
    }

    /// Each task with the process id of its command.
    pub fn pids(&self) -> impl Iterator<Item = (usize, i32)> + '_ {
        self.all.iter().map(|command| (command.task, command.spawned.id().pid))
    }

    /// All begin to execute. By the thread that started them.
    pub fn release(&self) {
        for command in &self.all {
            // One that is gone already is found by `ended`.
            let _ = command.spawned.release(&command.park);
        }
    }

    /// The tasks whose first process has ended. They are not reaped, so that their ids stay their own.
    pub fn ended(&self) -> impl Iterator<Item = usize> + '_ {
        self.all.iter().filter(|command| command.spawned.has_ended()).map(|command| command.task)
    }
}

impl Commands {
    /// Ends all commands and what they started; returns what could not be ended.
    pub fn end(mut self) -> Vec<String> {
        self.restore()
    }

    fn restore(&mut self) -> Vec<String> {
        let Some(guardian) = self.guardian.take() else { return Vec::new() };
        let report = restore(&self.journal);
        guardian.dismiss();
        report.problems
    }
}

impl Drop for Commands {
    fn drop(&mut self) {
        // `punctual clean` and `punctual doctor` report what remains.
        let _ = self.restore();
    }
}
