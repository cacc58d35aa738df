//! TaskCommands under a baseline: child processes, which end with the run.

use punctual_diagnostic::Diagnostic;
use punctual_process::{CommandSpec, Output};

use crate::sys::{set_policy, KernelPolicy};

/// The commands of a run, and the task of each.
#[derive(Debug)]
pub struct TaskCommands {
    tasks: Vec<usize>,
    all: punctual_process::Commands,
}

/// How the start of a command went wrong.
#[derive(Debug)]
pub enum Failed {
    /// The policy was refused: errno.
    Refused(i32),
    /// Anything else.
    Error(Diagnostic),
}

impl TaskCommands {
    /// None yet.
    ///
    /// # Errors
    /// No journal, no process.
    pub fn new() -> Result<TaskCommands, Diagnostic> {
        Ok(TaskCommands { tasks: Vec::new(), all: punctual_process::Commands::new(&[])? })
    }

    /// Starts a task's command on `cpu` (`None`: any) under `policy`, held at its exec.
    /// Its output is discarded: the run under Punctual has shown it.
    ///
    /// # Errors
    /// The policy is refused; there is no such program.
    pub fn start(
        &mut self,
        task: (usize, &str),
        words: &[String],
        cpu: Option<u32>,
        policy: KernelPolicy,
    ) -> Result<(), Failed> {
        let (task, name) = task;
        let spec =
            CommandSpec { cpu, streams: Output::Nowhere.streams(false), ..CommandSpec::new(words) };
        let spawned = self.all.start(spec, name).map_err(|e| Failed::Error(e.of_task(name)))?;
        self.tasks.push(task);
        set_policy(spawned.id().pid, policy, true).map_err(Failed::Refused)
    }

    /// Each task with the process id of its command.
    pub fn pids(&self) -> impl Iterator<Item = (usize, i32)> + '_ {
        self.tasks.iter().copied().zip(self.all.iter().map(|spawned| spawned.id().pid))
    }

    /// All begin to execute. By the thread that started them.
    pub fn release(&self) {
        self.all.release();
    }

    /// The tasks whose first process has ended. They are not reaped, so that their ids stay their
    /// own.
    pub fn ended(&self) -> impl Iterator<Item = usize> + '_ {
        let ended =
            self.tasks.iter().zip(self.all.iter()).filter(|(_, spawned)| spawned.has_ended());
        ended.map(|(&task, _)| task)
    }

    /// Starts another guardian if the guardian has died; what happened, in words for people.
    pub fn replace_dead_guardian(&mut self) -> Option<String> {
        self.all.replace_dead_guardian()
    }

    /// Ends all commands and what they started; returns what could not be ended.
    pub fn end(self) -> Vec<String> {
        self.all.end()
    }
}
