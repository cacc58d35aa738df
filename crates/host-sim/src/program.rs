//! What an unmodified program does, as it was recorded: in the simulator it stands for the program
//! of a task, which otherwise wants all that it can get.

use std::sync::Arc;

use punctual_dispatcher::INFINITE;
use punctual_workload::{Act, Demand};

/// A part of what a program does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProgramStep {
    /// Waits until this time, ns: a clock's. It is over at once if the time is past.
    Until(u64),
    /// Waits so long, ns, from the end of the step before: for a device, or another program.
    Pause(u64),
    /// Executes so long, ns.
    Execute(u64),
}

/// The steps of one program, in order; after the last one it waits for ever.
#[derive(Debug, Clone)]
pub struct RecordedProgram {
    /// Its place in the task set.
    pub task: usize,
    /// What it does.
    pub steps: Arc<[ProgramStep]>,
    /// Added to each [`ProgramStep::Until`], ns.
    pub shift: u64,
}

/// A program that is simulated.
pub(crate) struct Playback {
    program: RecordedProgram,
    next: usize,
}

impl Playback {
    pub(crate) fn new(program: RecordedProgram) -> Playback {
        Playback { program, next: 0 }
    }

    /// What it does at `now`, ns.
    pub(crate) fn act(&mut self, now: u64) -> Act {
        let step = self.program.steps.get(self.next);
        self.next += usize::from(step.is_some());
        match step {
            Some(&ProgramStep::Until(time)) => {
                Act::Sleep(time.saturating_add(self.program.shift).saturating_sub(now))
            }
            Some(&ProgramStep::Pause(ns)) => Act::Sleep(ns),
            Some(&ProgramStep::Execute(ns)) => Act::Execute(Demand::For(ns)),
            None => Act::Sleep(INFINITE),
        }
    }
}
