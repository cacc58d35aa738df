//! One task of a run, for the rest of the program.

use std::fmt;
use std::sync::mpsc::Sender;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use punctual_program_jobs::TaskJobs;
use punctual_session::results::TaskResult;
use punctual_session::{SuspensionError, TaskSuspension};
use punctual_trace::TaskEnd;

use crate::error::{run_has_ended, task_has_ended};
use crate::requests::{ask, Request};
use crate::{Error, Parameters};

/// The way to the supervisor of a set; empty until the set is started.
#[derive(Clone, Default)]
pub struct Link(Arc<OnceLock<Sender<Request>>>);

impl Link {
    /// The set was started.
    pub(crate) fn connect(&self, requests: Sender<Request>) {
        let _ = self.0.set(requests);
    }
}

/// One task: what it returned, its figures, its end. `T` is what its thread returns; for programs
/// [`TaskEnd`].
///
/// Dropping it changes nothing. Its methods wait for an ordinary thread, as those of
/// [`Running`](crate::Running).
pub struct TaskHandle<T> {
    name: String,
    slot: Arc<Slot<T>>,
    remote: Remote,
}

/// A task as it is named in requests.
#[derive(Clone)]
pub(crate) struct Remote {
    /// Its place in the run; empty until it is registered.
    place: Arc<OnceLock<usize>>,
    link: Link,
}

impl Remote {
    /// Requests the end of the task.
    pub fn stop(&self) -> Result<(), Error> {
        let place = self.place()?;
        self.ask(|answer| Request::StopTask(place, answer))?
    }

    fn place(&self) -> Result<usize, Error> {
        self.place.get().copied().ok_or_else(not_started)
    }

    fn ask<A>(&self, request: impl FnOnce(Sender<A>) -> Request) -> Result<A, Error> {
        ask(self.link.0.get().ok_or_else(not_started)?, request)
    }
}

impl<T> TaskHandle<T> {
    pub(crate) fn new(name: &str, slot: Arc<Slot<T>>, link: Link) -> TaskHandle<T> {
        let remote = Remote { place: slot.place.clone(), link };
        TaskHandle { name: name.to_owned(), slot, remote }
    }

    /// The task, for requests alone.
    pub(crate) fn remote(&self) -> Remote {
        self.remote.clone()
    }

    /// Whether the task is a part of the run by now; else requests are refused. Real-time safe.
    #[must_use]
    pub fn is_added(&self) -> bool {
        self.remote.place.get().is_some()
    }

    /// The task's name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The task has ended, or its run has.
    #[must_use]
    pub fn is_finished(&self) -> bool {
        self.slot.lock().end.is_some()
    }

    /// Waits until the task has ended, and returns what its thread returned; of a program, how it
    /// ended.
    ///
    /// # Errors
    /// How it ended without a value: it panicked, or was never released. At once if its set was
    /// never started.
    pub fn join(self) -> Result<T, TaskEnd> {
        let end = self.wait();
        self.slot.lock().value.take().ok_or(end)
    }

    /// Waits until the task has ended, and returns how. At once if its set was never started.
    pub fn wait(&self) -> TaskEnd {
        if self.remote.link.0.get().is_none() {
            return TaskEnd::NeverReleased;
        }
        let mut state = self.slot.lock();
        loop {
            if let Some(end) = &state.end {
                return end.clone();
            }
            state = self.slot.done.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Requests the end of the task: its [`wait_period`](crate::Task::wait_period) returns `None`,
    /// and [`is_over`](crate::Task::is_over) is true, at its next release at the latest; a command
    /// is killed; an adopted process is restored and continues without a budget. Does not wait.
    ///
    /// # Errors
    /// The run has ended; a host that ends tasks with the run only.
    pub fn stop(&self) -> Result<(), Error> {
        self.remote.stop()
    }

    /// What adds jobs to the task, whose group is under [`Policy::Jobs`](crate::Policy::Jobs). One
    /// part of the program has it: it can be taken once.
    ///
    /// # Errors
    /// It was taken before (EBUSY); another policy. The run or the task has ended.
    pub fn jobs(&self) -> Result<TaskJobs, Error> {
        let place = self.remote.place()?;
        self.remote.ask(|answer| Request::TaskJobs(place, answer))?
    }

    /// Changes the task's budget, from its next release on, if the set still fits then.
    ///
    /// # Errors
    /// The budget is out of range or does not fit ([`ErrorKind::NotAdmitted`](crate::ErrorKind)):
    /// nothing is changed then. The run or the task has ended.
    pub fn set_budget(&self, budget: Duration) -> Result<(), Error> {
        self.change(&Parameters::new().budget(budget))
    }

    /// Changes the task's period, budget, deadline and priority, from its next release on, which
    /// comes when it was due, if the set still fits then. Under fixed priorities jobs that are in
    /// flight at a change may miss their deadlines. What a task gives up, or
    /// had when it ended, is free from its next release on: until then a change of another one that
    /// needs it is refused, with the time to wait.
    ///
    /// # Errors
    /// A value is out of its range; the set does not fit
    /// ([`ErrorKind::NotAdmitted`](crate::ErrorKind)); a priority, by the service; more than the
    /// priority of a task in a group; a host that changes nothing; 64 changes wait for the
    /// dispatcher (EAGAIN). Nothing is changed then. The run or the task has ended.
    pub fn change(&self, parameters: &Parameters) -> Result<(), Error> {
        let place = self.remote.place()?;
        self.remote.ask(|answer| Request::Change(place, parameters.0, answer))?
    }

    /// Suspends the task until [`resume`](TaskHandle::resume) was called as often as this. A
    /// command or process is frozen at once; a thread of this program is suspended where it calls
    /// [`wait_period`](crate::Task::wait_period), because anywhere else it may hold a lock that
    /// others need; inside the kernel it has the ordinary class until then. Its releases come
    /// meanwhile, and end at once: its budget is not used, no deadline is missed, and the next
    /// return from `wait_period` reports them as lost. Does not wait until the task stands still.
    /// Neither allocates nor locks on the user host; waits for an answer of the service.
    ///
    /// # Errors
    /// The task has ended (ESRCH), or its run has (ECANCELED); a thread of another process without
    /// a page; a policy that makes each job by itself; on the kernel host of this program all but a
    /// process that ran before.
    pub fn suspend(&self) -> Result<(), Error> {
        self.suspension(true)
    }

    /// Takes back one [`suspend`](TaskHandle::suspend), or one
    /// [`Task::suspend`](crate::Task::suspend): after the last one the task executes from its next
    /// release on. Neither allocates nor locks on the user host.
    ///
    /// # Errors
    /// The task is not suspended (EALREADY); as of [`suspend`](TaskHandle::suspend).
    pub fn resume(&self) -> Result<(), Error> {
        self.suspension(false)
    }

    fn suspension(&self, on: bool) -> Result<(), Error> {
        let suspension = self.slot.suspension.get().ok_or_else(not_started)?;
        match suspension.as_ref().map_err(Error::clone)? {
            TaskSuspension::User(task) => {
                let changed = if on { task.suspend() } else { task.resume() };
                changed.map_err(|refusal| self.explain(refusal))
            }
            TaskSuspension::Service(task) => {
                let changed = if on { task.suspend() } else { task.resume() };
                changed.map_err(|refusal| self.ended_or(refusal))
            }
            TaskSuspension::Run => {
                let place = self.remote.place()?;
                self.remote.ask(|answer| Request::Suspend(place, on, answer))?
            }
        }
    }

    /// Why the user host did not suspend or resume it.
    fn explain(&self, refusal: SuspensionError) -> Error {
        match refusal {
            SuspensionError::NotSuspended => {
                let cause = format!("task {:?} is not suspended", self.name);
                Error::usage(cause, "resume it as often as it was suspended, and no more")
                    .with_errno(libc::EALREADY)
            }
            SuspensionError::Full => {
                let cause = format!("task {:?} is suspended 2^32 - 2 times", self.name);
                Error::usage(cause, "resume it first").with_errno(libc::EAGAIN)
            }
            SuspensionError::Ended => self.ended_or(task_has_ended()),
        }
    }

    /// That the run or the task has ended, if so; else the refusal.
    fn ended_or(&self, refusal: Error) -> Error {
        match self.remote.ask(Request::Alive) {
            Err(over) => over,
            Ok(_) if self.is_finished() => task_has_ended(),
            Ok(_) => refusal,
        }
    }

    /// The task's figures so far.
    ///
    /// # Errors
    /// The run has ended; its [`RunOutcome`](crate::RunOutcome) has the figures.
    pub fn results(&self) -> Result<TaskResult, Error> {
        let place = self.remote.place()?;
        let results = self.remote.ask(Request::Results)?;
        results.tasks.into_iter().nth(place).ok_or_else(run_has_ended)
    }
}

impl<T> fmt::Debug for TaskHandle<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TaskHandle")
            .field("name", &self.name)
            .field("is_finished", &self.is_finished())
            .finish_non_exhaustive()
    }
}

fn not_started() -> Error {
    Error::usage("the set of this task was not started", "call Admitted::start first")
}

/// What a task and its handle share.
pub(crate) struct Slot<T> {
    place: Arc<OnceLock<usize>>,
    /// What suspends it, or why nothing does.
    suspension: OnceLock<Result<TaskSuspension, Error>>,
    state: Mutex<State<T>>,
    done: Condvar,
}

struct State<T> {
    value: Option<T>,
    end: Option<TaskEnd>,
}

impl<T> Slot<T> {
    pub fn new() -> Arc<Slot<T>> {
        let state = Mutex::new(State { value: None, end: None });
        let suspension = OnceLock::new();
        Arc::new(Slot { place: Arc::default(), suspension, state, done: Condvar::new() })
    }

    /// The thread's value, at its end.
    pub fn set_value(&self, value: T) {
        self.lock().value = Some(value);
    }

    fn lock(&self) -> MutexGuard<'_, State<T>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn finish(&self, end: TaskEnd, value: impl FnOnce(&TaskEnd) -> Option<T>) {
        let mut state = self.lock();
        if state.end.is_none() {
            if let Some(value) = value(&end) {
                state.value = Some(value);
            }
            state.end = Some(end);
            self.done.notify_all();
        }
    }
}

/// A slot as the supervisor needs it.
pub(crate) trait Completion: Send + Sync {
    /// The task is registered, at this place.
    fn set_place(&self, place: usize);

    /// What suspends the task, or why nothing does.
    fn set_suspension(&self, suspension: Result<TaskSuspension, Error>);

    /// The task has ended; the first call counts.
    fn finish(&self, end: TaskEnd);
}

impl<T: Send> Completion for Slot<T> {
    fn set_place(&self, place: usize) {
        let _ = self.place.set(place);
    }

    fn set_suspension(&self, suspension: Result<TaskSuspension, Error>) {
        let _ = self.suspension.set(suspension);
    }

    fn finish(&self, end: TaskEnd) {
        Slot::finish(self, end, |_| None);
    }
}

/// The slot of a program, whose value is its end.
pub(crate) struct OfProgram(pub Arc<Slot<TaskEnd>>);

impl Completion for OfProgram {
    fn set_place(&self, place: usize) {
        let _ = self.0.place.set(place);
    }

    fn set_suspension(&self, suspension: Result<TaskSuspension, Error>) {
        let _ = self.0.suspension.set(suspension);
    }

    fn finish(&self, end: TaskEnd) {
        Slot::finish(&self.0, end, |end| Some(end.clone()));
    }
}
