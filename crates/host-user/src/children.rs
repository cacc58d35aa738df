//! The programs of a run, as the housekeeper looks after them.

use std::mem;
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
    /// An adopted one that is restored as soon as its engine no longer has it.
    leaves: bool,
}

enum How {
    Started(Spawned),
    Adopted(Vec<Adopted>),
}

impl Child {
    pub fn started(index: u32, program: Arc<Program>, spawned: Spawned) -> Child {
        Child { index, program, how: How::Started(spawned), leaves: false }
    }

    pub fn adopted(index: u32, program: Arc<Program>, adopted: Vec<Adopted>) -> Child {
        Child { index, program, how: How::Adopted(adopted), leaves: false }
    }

    /// Requests the end of the task: kills all processes of a command; true if adopted processes
    /// are to be restored ([`Child::give_back`]) once their engine no longer has them.
    ///
    /// # Errors
    /// The kernel's refusal to kill.
    pub fn stop(&mut self) -> Result<bool, Diagnostic> {
        match self.how {
            How::Adopted(_) => Ok(!mem::replace(&mut self.leaves, true)),
            How::Started(_) => self.program.park.kill().map(|()| false).map_err(|e| {
                let leader = self.program.leader;
                Diagnostic::machine(
                    format!("the processes of command {leader} cannot be killed: {e}"),
                    "stop the run",
                )
            }),
        }
    }

    /// Whether it is restored as soon as its engine no longer has it.
    pub fn leaves(&self) -> bool {
        self.leaves
    }

    /// Restores adopted processes, in the ordinary class and running; what could not be restored,
    /// which the end of the run tries again. No engine may have it any more.
    pub fn give_back(self) -> Vec<String> {
        let Child { program, how, .. } = self;
        let How::Adopted(adopted) = how else { return Vec::new() };
        let mut problems = Vec::new();
        for process in adopted {
            problems.extend(process.give_back(&program.park).problems);
        }
        if problems.is_empty() {
            problems.extend(program.park.remove().err().map(|e| e.cause));
        }
        problems
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
