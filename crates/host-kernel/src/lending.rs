//! Lending by request (docs/model.md, "Lending"). Tasks that wait for locks lend without one
//! (`bpf/lock.h`).

use std::sync::mpsc::{channel, RecvTimeoutError, Sender};

use punctual_diagnostic::Diagnostic;
use punctual_dispatcher::{Refusal, TaskId};

use crate::domain::Command;
use crate::gsi::CommandChannel;
use crate::host::{KernelHost, PATIENCE};

/// A request on its way to a domain's thread, and where the answer goes.
pub(crate) struct Lend {
    task: TaskId,
    to: Option<TaskId>,
    answer: Sender<Result<(), Refusal>>,
}

impl Lend {
    pub fn execute(self, channel: &CommandChannel<'_>) {
        // A receiver that is gone has waited long enough.
        let _ = self.answer.send(channel.lend(self.task, self.to));
    }
}

impl KernelHost {
    /// Has the jobs of the task at this place of the set execute the task at place `to` and be
    /// charged for it, until another call or the end of one of them; `None`: no longer. The
    /// domain's thread does so, which is an ordinary one where no policy is asked at each job.
    ///
    /// # Errors
    /// The tasks are of different CPUs, one of them has ended, or `to` lends to the task already;
    /// the domain's thread does not answer.
    pub fn lend(&mut self, task: usize, to: Option<usize>) -> Result<(), Diagnostic> {
        let name = |place: usize| format!("task \"{}\"", self.set.tasks[place].name);
        let gone = |place| {
            Diagnostic::usage(format!("{} has ended", name(place)), "name a task that runs")
        };
        let number = |place| self.state.number(place).ok_or_else(|| gone(place));
        let domain = self.set.tasks[task].domain;
        if let Some(other) = to.filter(|&to| self.set.tasks[to].domain != domain) {
            let cause = format!("{} and {} are on different CPUs", name(task), name(other));
            return Err(Diagnostic::usage(cause, "put tasks that lend to each other on one CPU"));
        }
        let (answer, answers) = channel();
        let lend = Lend { task: number(task)?, to: to.map(number).transpose()?, answer };
        // A thread that is gone has reported why.
        drop(self.domains[domain.0 as usize].commands.send(Command::Lend(lend)));
        match answers.recv_timeout(PATIENCE) {
            Ok(Err(Refusal::Tree)) => Err(Diagnostic::usage(
                format!("{} would lend to itself, through other tasks", name(task)),
                "end what the other one lends first",
            )),
            Ok(Err(_)) => Err(gone(task)),
            Ok(Ok(())) | Err(RecvTimeoutError::Disconnected) => Ok(()),
            Err(RecvTimeoutError::Timeout) => Err(Diagnostic::machine(
                "a request to lend takes longer than 20 s",
                "it is executed once its CPU has time for ordinary threads",
            )),
        }
    }
}
