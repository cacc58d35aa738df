//! The programs of a run, as the housekeeper looks after them.

use std::sync::atomic::Ordering::Relaxed;
use std::sync::Arc;

use punctual_diagnostic::Diagnostic;
use punctual_process::{Adopted, Spawned};
use punctual_trace::TaskEnd;

use crate::member::Program;

/// The processes of one task.
pub struct Child {
    /// The task's index in its set.
    pub index: u32,
    program: Arc<Program>,
    how: How,
}

enum How {
    Started(Spawned),
    Adopted(Vec<Adopted>),
}

impl Child {
    pub fn started(index: u32, program: Arc<Program>, spawned: Spawned) -> Child {
        Child { index, program, how: How::Started(spawned) }
    }

    pub fn adopted(index: u32, program: Arc<Program>, adopted: Vec<Adopted>) -> Child {
        Child { index, program, how: How::Adopted(adopted) }
    }

    /// Kills all processes of a command.
    ///
    /// # Errors
    /// An adopted process; the kernel's refusal.
    pub fn kill(&self) -> Result<(), Diagnostic> {
        let leader = self.program.leader;
        match self.how {
            How::Adopted(_) => Err(Diagnostic::usage(
                format!("process {leader} was adopted and cannot be ended"),
                "stop the run, which restores it",
            )),
            How::Started(_) => self.program.park.kill().map_err(|e| {
                Diagnostic::machine(
                    format!("the processes of command {leader} cannot be killed: {e}"),
                    "stop the run",
                )
            }),
        }
    }

    /// Whether all of it is frozen or stopped.
    pub fn stands_still(&self) -> bool {
        self.program.park.is_parked().unwrap_or(true)
    }

    /// Takes new processes and threads in, and gives them the level of the others; returns the
    /// number of new threads.
    pub fn find_threads(&self) -> usize {
        drop(self.program.park.rescan());
        self.program.threads.rescan(&self.program.park.threads()).unwrap_or(0)
    }

    /// Takes new processes and threads in; how it ended, when it has: its first process, and all
    /// that came of it.
    pub fn look(&mut self) -> Option<TaskEnd> {
        self.find_threads();
        let procs = self.program.park.procs();
        self.program.alone.store(procs == [self.program.leader], Relaxed);
        let ended = match &mut self.how {
            How::Started(s) => s.try_wait().ok().flatten().map(TaskEnd::from),
            How::Adopted(a) => a.iter().all(Adopted::has_ended).then_some(TaskEnd::Gone),
        };
        // Its orphaned children keep its budget.
        ended.filter(|_| procs.is_empty())
    }
}
