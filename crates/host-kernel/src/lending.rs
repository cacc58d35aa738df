//! Lending by request (docs/model.md, "Lending"). Tasks that wait for locks lend without one
//! (`bpf/lock.h`).

use std::sync::mpsc::{channel, RecvTimeoutError, Sender};

use punctual_diagnostic::Diagnostic;
use punctual_dispatcher::Refusal;

use crate::domain::Command;
use crate::gsi::CommandChannel;
use crate::host::{KernelHost, PATIENCE};
use crate::joining::Members;

/// A request on its way to a domain's thread, and where the answer goes.
pub(crate) struct Lend {
    /// Indices.
    task: usize,
    to: Option<usize>,
    answer: Sender<Result<(), Refusal>>,
}

impl Lend {
    pub fn execute(self, channel: &CommandChannel<'_>, members: &Members) {
        let number = |index| members.number(index).ok_or(Refusal::Nothing);
        let lent = self.to.map(number).transpose().and_then(|to| {
            let task = number(self.task)?;
            channel.lend(task, to)
        });
        // A receiver that is gone has waited long enough.
        let _ = self.answer.send(lent);
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
        let name = |index| self.state.name_of(index);
        let gone = |index| {
            Diagnostic::usage(format!("{} has ended", name(index)), "name a task that runs")
        };
        let domain_of = |index| self.state.domain_of(index).ok_or_else(|| gone(index));
        let domain = domain_of(task)?;
        let other = to.map(|to| Ok((to, domain_of(to)?))).transpose()?;
        if let Some((other, _)) = other.filter(|(_, of_other)| *of_other != domain) {
            let cause = format!("{} and {} are on different CPUs", name(task), name(other));
            return Err(Diagnostic::usage(cause, "put tasks that lend to each other on one CPU"));
        }
        let (answer, answers) = channel();
        let lend = Lend { task, to, answer };
        // A thread that is gone has reported why.
        self.send(domain, Command::Lend(lend));
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
