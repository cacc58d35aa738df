//! The programs and threads of programs of a run, as the housekeeper looks after them.

use std::mem;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::Arc;

use punctual_diagnostic::Diagnostic;
use punctual_process::{Adopted, AdoptedThread, Spawned};
use punctual_trace::TaskEnd;

use crate::member::Program;

/// The processes of one task, or the thread of another program that it is.
pub struct Child {
    /// The task's index in its set.
    pub index: u32,
    how: How,
    /// An adopted one that is restored as soon as its engine no longer has it.
    leaves: bool,
}

enum How {
    Started(Arc<Program>, Spawned),
    Adopted(Arc<Program>, Vec<Adopted>),
    Thread(Arc<AdoptedThread>),
}

impl Child {
    pub fn started(index: u32, program: Arc<Program>, spawned: Spawned) -> Child {
        Child { index, how: How::Started(program, spawned), leaves: false }
    }

    pub fn adopted(index: u32, program: Arc<Program>, adopted: Vec<Adopted>) -> Child {
        Child { index, how: How::Adopted(program, adopted), leaves: false }
    }

    pub fn thread(index: u32, thread: Arc<AdoptedThread>) -> Child {
        Child { index, how: How::Thread(thread), leaves: false }
    }

    /// Its processes; `None`: it is a thread alone.
    pub fn program(&self) -> Option<&Arc<Program>> {
        match &self.how {
            How::Started(program, _) | How::Adopted(program, _) => Some(program),
            How::Thread(_) => None,
        }
    }

    /// Requests the end of the task: kills all processes of a command; true if what was adopted is
    /// to be restored ([`Child::give_back`]) once their engine no longer has them.
    ///
    /// # Errors
    /// The kernel's refusal to kill.
    pub fn stop(&mut self) -> Result<bool, Diagnostic> {
        match &self.how {
            How::Adopted(program, _) if !self.leaves => {
                program.park.prepare_restoration();
                self.leaves = true;
                Ok(true)
            }
            How::Adopted(..) | How::Thread(_) => Ok(!mem::replace(&mut self.leaves, true)),
            How::Started(program, _) => program.park.kill().map(|()| false).map_err(|e| {
                let leader = program.leader;
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

    /// Restores what was adopted, in its own class and running; what could not be restored, which
    /// the end of the run tries again. No engine may have it any more.
    pub fn give_back(self) -> Vec<String> {
        let (program, adopted) = match self.how {
            How::Adopted(program, adopted) => (program, adopted),
            How::Thread(thread) => return thread.give_back(),
            How::Started(..) => return Vec::new(),
        };
        let mut problems = Adopted::give_back(&adopted, &program.park).problems;
        if problems.is_empty() {
            problems.extend(program.park.remove().err().map(|e| e.cause));
        }
        problems
    }

    /// Whether all of it is frozen or stopped; of a thread, whether it is parked as far as it can
    /// be.
    pub fn stands_still(&self) -> bool {
        self.program().is_none_or(|program| program.park.is_parked().unwrap_or(true))
    }

    /// Takes new processes and threads in, and gives them the level of the others; returns the
    /// number of new threads.
    pub fn find_threads(&self) -> usize {
        let Some(program) = self.program() else { return 0 };
        drop(program.park.rescan());
        program.threads.rescan(&program.park.threads()).unwrap_or(0)
    }

    /// Takes new processes and threads in; how it ended, when it has: its first process, and all
    /// that came of it.
    pub fn look(&mut self) -> Option<TaskEnd> {
        self.find_threads();
        let (program, ended) = match &mut self.how {
            How::Started(program, s) => (program, s.try_wait().ok().flatten().map(TaskEnd::from)),
            How::Adopted(program, a) => {
                (program, a.iter().all(Adopted::has_ended).then_some(TaskEnd::Gone))
            }
            How::Thread(thread) => {
                thread.keep_on_cpu();
                return thread.has_ended().then_some(TaskEnd::Gone);
            }
        };
        let procs = program.park.procs();
        program.alone.store(procs == [program.leader], Relaxed);
        // Its orphaned children keep its budget.
        ended.filter(|_| procs.is_empty())
    }
}
