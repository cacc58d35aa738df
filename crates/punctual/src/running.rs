//! A set that runs, as the program that started it sees it.

use std::fmt;
use std::sync::mpsc::{channel, Sender};
use std::thread::JoinHandle;
use std::time::Duration;

use punctual_report::Results;

use crate::draft::{Declared, Place};
use crate::error::run_has_ended;
use crate::keeper::{Request, Standing};
use crate::{Error, Outcome, Policy, TaskDraft};

/// A set of tasks that runs. Dropping it ends the run, as [`stop`](Running::stop) does.
///
/// It may be shared between threads. Its methods wait for an ordinary thread, up to some 25 ms: they are for the rest
/// of the program, not for a task's loop.
#[must_use = "dropping it ends the run"]
pub struct Running {
    requests: Sender<Request>,
    standing: Standing,
    keeper: Option<JoinHandle<()>>,
}

impl Running {
    pub(crate) fn new((requests, keeper): (Sender<Request>, JoinHandle<()>), standing: Standing) -> Running {
        Running { requests, standing, keeper: Some(keeper) }
    }

    /// Begins a further task. The call that ends the draft says whether it was admitted; its first release is then
    /// some 20 ms from that call (and [`start`](TaskDraft::start) later). Budgets of tasks that have ended count no
    /// more; names stay taken while their task lives.
    pub fn task(&self, name: impl Into<String>) -> TaskDraft<&Running> {
        TaskDraft::new(self, name.into())
    }

    /// Waits until all tasks have ended. Tasks may be added meanwhile.
    pub fn wait(&self) {
        let (done, is_done) = channel();
        if self.requests.send(Request::WhenDone(done)).is_ok() {
            let _ = is_done.recv();
        }
    }

    /// Waits until all tasks have ended, `timeout` at most; whether they have.
    #[must_use]
    pub fn wait_timeout(&self, timeout: Duration) -> bool {
        let (done, is_done) = channel();
        self.requests.send(Request::WhenDone(done)).is_err()
            || is_done.recv_timeout(timeout) != Err(std::sync::mpsc::RecvTimeoutError::Timeout)
    }

    /// The figures so far. Each task's first period is not counted (page faults, cold caches), nor is the one it is in.
    ///
    /// # Errors
    /// The run has ended by a fault of ours.
    pub fn results(&self) -> Result<Results, Error> {
        self.ask(Request::Results)
    }

    /// The names of the tasks that have not ended, in the order in which they came.
    ///
    /// # Errors
    /// The run has ended by a fault of ours.
    pub fn alive(&self) -> Result<Vec<String>, Error> {
        self.ask(Request::Alive)
    }

    /// Ends the run and gives everything back: commands are killed, adopted processes get back what they came with,
    /// threads go on in the ordinary class, find that [`wait_period`](crate::Task::wait_period) returns `None`, and
    /// are waited for, one second at most.
    ///
    /// # Errors
    /// The run has ended already by a fault of ours.
    pub fn stop(mut self) -> Result<Outcome, Error> {
        let outcome = self.ask(Request::Stop);
        self.join();
        outcome
    }

    fn ask<T>(&self, request: impl FnOnce(Sender<T>) -> Request) -> Result<T, Error> {
        let (answer, is_answered) = channel();
        self.requests.send(request(answer)).map_err(|_| run_has_ended())?;
        is_answered.recv().map_err(|_| run_has_ended())
    }

    fn join(&mut self) {
        if let Some(keeper) = self.keeper.take() {
            // A panic there has been printed, and its host was dropped, which gives everything back.
            drop(keeper.join());
        }
    }
}

impl Place for &Running {
    /// # Errors
    /// As [`Punctual::admit`](crate::Punctual::admit) and [`Admitted::start`](crate::Admitted::start) have them; the
    /// others go on undisturbed.
    type Output = Result<(), Error>;

    fn policy(&self) -> Policy {
        self.standing.policy
    }

    fn cpus(&self) -> &[u32] {
        &self.standing.cpus
    }

    fn put(self, task: Result<Declared, Error>) -> Result<(), Error> {
        let task = Box::new(task?);
        self.ask(|answer| Request::Add(task, answer))?
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if self.keeper.is_some() {
            let (answer, _) = channel();
            drop(self.requests.send(Request::Stop(answer)));
            self.join();
        }
    }
}

impl fmt::Debug for Running {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Running").field("standing", &self.standing).finish_non_exhaustive()
    }
}
