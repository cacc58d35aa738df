//! The supervisor: the thread that keeps a run. It polls the session some forty times a second, and
//! answers the program's requests.
//!
//! One thread from start to end, because commands die with the *thread* that started them, which
//! the program need not know. An ordinary one, whatever class the program's own threads have.

use std::collections::BTreeMap;
use std::sync::mpsc::{channel, Receiver, RecvTimeoutError, Sender};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use punctual_program_jobs::{Attribute, GroupJobs, JobEvents, TaskJobs};
use punctual_session as session;
use punctual_session::results::Results;
use punctual_session::{HostKind, StartOutcome, ThreadEntry};
use punctual_sys::sched::Attributes;
use punctual_taskset::{DomainId, TaskChange, TaskSet, TaskSpec};
use punctual_trace::{RunEvent, TaskEnd};

use crate::declare::{check_among, session_of_running};
use crate::draft::Declared;
use crate::error::{run_has_ended, task_has_ended};
use crate::handle::Completion;
use crate::observer::Observer;
use crate::settings::Settings;
use crate::{Error, RunOutcome};

const HOUSEKEEPING: Duration = Duration::from_millis(25);

/// A request of the program. An answer whose receiver is gone is dropped.
pub(crate) enum Request {
    Add(Box<Declared>, Sender<Result<(), Error>>),
    /// The task at this place is to end.
    StopTask(usize, Sender<Result<(), Error>>),
    /// The task at this place gets other parameters.
    Change(usize, TaskChange, Sender<Result<(), Error>>),
    /// The task at this place is suspended once more, or one suspension taken back (`false`).
    Suspend(usize, bool, Sender<Result<(), Error>>),
    /// A thread of the program is to become a task on this CPU.
    PrepareEntry(DomainId, Sender<Result<ThreadEntry, Error>>),
    /// What adds jobs to the task at this place.
    TaskJobs(usize, Sender<Result<TaskJobs, Error>>),
    /// The ends of those jobs.
    JobEvents(Sender<Result<JobEvents, Error>>),
    /// What adds jobs of the program's groups.
    GroupJobs(Option<usize>, Sender<Result<GroupJobs, Error>>),
    /// The order of a group of such tasks.
    OrderJobs(Option<usize>, Vec<Attribute>, Sender<Result<(), Error>>),
    WhenDone(Sender<()>),
    Results(Sender<Results>),
    Alive(Sender<Vec<String>>),
    Stop(Sender<Result<RunOutcome, Error>>),
}

/// The program's end of the supervisor.
pub(crate) struct Handle {
    requests: Sender<Request>,
    thread: Option<JoinHandle<()>>,
}

impl Handle {
    /// Starts the thread, and by it the run; returns when all tasks are handed over.
    pub fn start(
        admitted: session::AdmittedSet,
        settings: Settings,
        tasks: Vec<Declared>,
        observer: Option<Observer>,
    ) -> Result<Handle, Error> {
        let (requests, received) = channel();
        let link = settings.link.clone();
        let (ready, is_ready) = channel();
        let thread = std::thread::Builder::new().name("punctual".into()).spawn(move || {
            // Threads inherit their creator's class; this one must not compete with tasks.
            let _ = Attributes::ordinary().give(0);
            match Supervisor::start(admitted, settings, tasks, observer) {
                Ok(supervisor) => {
                    drop(ready.send(Ok(())));
                    supervisor.run(&received);
                }
                Err(e) => drop(ready.send(Err(e))),
            }
        });
        let thread = thread.map_err(|e| {
            Error::machine(format!("no thread can be made: {e}"), "raise RLIMIT_NPROC")
        })?;
        let mut handle = Handle { requests, thread: Some(thread) };
        match is_ready.recv() {
            Ok(Ok(())) => {
                link.connect(handle.requests.clone());
                Ok(handle)
            }
            Ok(Err(e)) => {
                handle.join();
                Err(e)
            }
            Err(_) => {
                Err(Error::machine("the supervisor's thread panicked at its start", "report it"))
            }
        }
    }

    /// Sends a request and waits for its answer.
    pub fn ask<T>(&self, request: impl FnOnce(Sender<T>) -> Request) -> Result<T, Error> {
        ask(&self.requests, request)
    }

    /// A receiver that becomes ready when all tasks have ended; `None` if the run has ended.
    pub fn when_done(&self) -> Option<Receiver<()>> {
        let (done, is_done) = channel();
        self.requests.send(Request::WhenDone(done)).ok().map(|()| is_done)
    }

    fn join(&mut self) {
        if let Some(thread) = self.thread.take() {
            // A panic there has been printed, and its session was dropped, which restores
            // everything.
            drop(thread.join());
        }
    }
}

/// Sends a request to a supervisor and waits for its answer.
pub(crate) fn ask<T>(
    requests: &Sender<Request>,
    request: impl FnOnce(Sender<T>) -> Request,
) -> Result<T, Error> {
    let (answer, is_answered) = channel();
    requests.send(request(answer)).map_err(|_| run_has_ended())?;
    is_answered.recv().map_err(|_| run_has_ended())
}

impl Drop for Handle {
    fn drop(&mut self) {
        if self.thread.is_some() {
            drop(self.requests.send(Request::Stop(channel().0)));
            self.join();
        }
    }
}

struct Supervisor {
    settings: Settings,
    running: Box<session::RunningSet>,
    /// Tasks that have not ended, by their places.
    tasks: BTreeMap<usize, Kept>,
    observer: Option<Observer>,
    when_done: Vec<Sender<()>>,
    /// Notes of the host that were reported.
    notes_reported: usize,
    /// The host has ended the run, or its duration has passed.
    over: bool,
    failure: Option<Error>,
}

/// A task that has not ended.
struct Kept {
    spec: TaskSpec,
    completion: Arc<dyn Completion>,
}

impl Supervisor {
    fn start(
        admitted: session::AdmittedSet,
        settings: Settings,
        declared: Vec<Declared>,
        observer: Option<Observer>,
    ) -> Result<Supervisor, Error> {
        let (mut tasks, mut executions) = (BTreeMap::new(), Vec::new());
        for (place, Declared { spec, execution, completion, .. }) in
            declared.into_iter().enumerate()
        {
            completion.set_place(place);
            tasks.insert(place, Kept { spec, completion });
            executions.push(execution);
        }
        let options = settings.options(admitted.set())?;
        let running = match admitted.start_with(options, executions)? {
            StartOutcome::Running(running) => running,
            StartOutcome::NotPossible(refusal, _) => {
                return Err(Error::machine(refusal.reason, refusal.help.join("; ")))
            }
        };
        for (&place, Kept { spec, completion }) in &tasks {
            completion.set_suspension(suspension_of(&running, &settings.set, place, spec));
        }
        Ok(Supervisor {
            settings,
            running,
            tasks,
            observer,
            when_done: Vec::new(),
            notes_reported: 0,
            over: false,
            failure: None,
        })
    }

    fn run(mut self, requests: &Receiver<Request>) {
        let mut next = Instant::now();
        loop {
            match requests.recv_timeout(next.saturating_duration_since(Instant::now())) {
                Ok(Request::Stop(answer)) => {
                    drop(answer.send(self.stop()));
                    return;
                }
                Ok(request) => self.answer(request),
                Err(RecvTimeoutError::Timeout) => {
                    self.poll();
                    next = Instant::now() + HOUSEKEEPING;
                }
                Err(RecvTimeoutError::Disconnected) => {
                    drop(self.stop());
                    return;
                }
            }
        }
    }

    fn answer(&mut self, request: Request) {
        self.poll();
        match request {
            Request::Add(task, answer) => drop(answer.send(self.add(*task))),
            Request::StopTask(place, answer) => drop(answer.send(self.stop_task(place))),
            Request::Change(place, change, answer) => {
                drop(answer.send(self.change(place, &change)))
            }
            Request::Suspend(place, on, answer) => drop(answer.send(self.suspend(place, on))),
            Request::PrepareEntry(domain, answer) => {
                drop(answer.send(self.running.prepare_entry(domain)))
            }
            Request::TaskJobs(place, answer) => drop(answer.send(self.running.task_jobs(place))),
            Request::JobEvents(answer) => drop(answer.send(self.running.job_events())),
            Request::GroupJobs(group, answer) => drop(answer.send(self.running.group_jobs(group))),
            Request::OrderJobs(group, by, answer) => {
                drop(answer.send(self.running.order_jobs(group, &by)))
            }
            Request::WhenDone(answer) => self.when_done.push(answer),
            Request::Results(answer) => drop(answer.send(self.running.results())),
            Request::Alive(answer) => {
                let alive = self.tasks.values().map(|task| task.spec.name.clone()).collect();
                drop(answer.send(alive));
            }
            Request::Stop(_) => {}
        }
        self.report_done();
    }

    fn add(&mut self, task: Declared) -> Result<(), Error> {
        self.settings.accept_overrun_handlers([&task].into_iter())?;
        let Declared { spec, execution, completion, first_release, .. } = task;
        check_among(&spec, self.specs(), &self.settings)?;
        let together = self.specs().chain([&spec]).cloned().collect();
        session_of_running(&self.settings, together, self.running.host())?
            .admit(self.settings.overload)?;
        let place = self.running.add(&spec, execution, first_release)?;
        completion.set_place(place);
        let suspension = suspension_of(&self.running, &self.settings.set, place, &spec);
        completion.set_suspension(suspension);
        self.tasks.insert(place, Kept { spec, completion });
        Ok(())
    }

    fn specs(&self) -> impl Iterator<Item = &TaskSpec> {
        self.tasks.values().map(|task| &task.spec)
    }

    fn stop_task(&mut self, place: usize) -> Result<(), Error> {
        match self.tasks.contains_key(&place) {
            true => self.running.stop_task(place),
            false => Err(task_has_ended()),
        }
    }

    fn change(&mut self, place: usize, change: &TaskChange) -> Result<(), Error> {
        if !self.tasks.contains_key(&place) {
            return Err(task_has_ended());
        }
        let Settings { set, overload, .. } = &self.settings;
        let host = self.running.host();
        let alive = TaskSet { tasks: self.specs().cloned().collect(), ..set.clone() };
        let among_alive = self.tasks.range(..place).count();
        let changed = session::with_change(&alive, among_alive, change, host, *overload)?;
        self.running.change(place, change)?;
        let spec = changed.tasks[among_alive].clone();
        self.tasks.entry(place).and_modify(|task| task.spec = spec);
        Ok(())
    }

    fn suspend(&mut self, place: usize, on: bool) -> Result<(), Error> {
        match self.tasks.contains_key(&place) {
            true => self.running.suspend(place, on),
            false => Err(task_has_ended()),
        }
    }

    /// Reports what became known.
    fn poll(&mut self) {
        if self.over {
            return;
        }
        let Supervisor { running, observer, tasks, .. } = self;
        let polled = running.poll_for(Duration::ZERO, &mut |event| report(observer, tasks, event));
        let ended = self.running.has_ended();
        match polled {
            Ok(_) => self.over = ended,
            Err(e) => {
                report(&mut self.observer, &mut self.tasks, RunEvent::Warning(e.cause.clone()));
                (self.over, self.failure) = (true, Some(e));
            }
        }
        let notes = self.running.notes();
        for note in notes.iter().skip(self.notes_reported) {
            report(&mut self.observer, &mut self.tasks, RunEvent::Warning(note.clone()));
        }
        self.notes_reported = notes.len();
        let is_lost = self.running.is_over() && self.running.host() == HostKind::Kernel;
        if is_lost || self.failure.is_some() {
            self.end_tasks();
        }
        self.report_done();
    }

    /// The kernel has ended the scheduler, or the service has ended: what was the tasks' are
    /// ordinary threads now.
    fn end_tasks(&mut self) {
        let Supervisor { observer, tasks, .. } = self;
        let names: Vec<_> = tasks.values().map(|kept| kept.spec.name.as_str().into()).collect();
        for task in names {
            report(observer, tasks, RunEvent::Ended { task, how: TaskEnd::Stopped });
        }
    }

    fn report_done(&mut self) {
        if self.tasks.is_empty() || self.over {
            for waiting in self.when_done.drain(..) {
                let _ = waiting.send(());
            }
        }
    }

    fn stop(self) -> Result<RunOutcome, Error> {
        let Supervisor { running, mut observer, mut tasks, when_done, failure, .. } = self;
        let outcome = running.finish(&mut |event| report(&mut observer, &mut tasks, event));
        tasks.into_values().for_each(|task| task.completion.finish(TaskEnd::Stopped));
        drop(when_done);
        match failure.or_else(|| outcome.as_ref().ok()?.failure.clone()) {
            Some(failure) => Err(failure),
            None => outcome,
        }
    }
}

/// What suspends the task at this place, or why nothing does.
fn suspension_of(
    running: &session::RunningSet,
    set: &TaskSet,
    place: usize,
    spec: &TaskSpec,
) -> Result<session::TaskSuspension, Error> {
    session::has_reservation(set, spec)?;
    running.suspension(place)
}

/// Passes an event on to the program; the end of a task to its handle too.
fn report(
    observer: &mut Option<Observer>,
    tasks: &mut BTreeMap<usize, Kept>,
    event: session::NamedEvent,
) {
    if let RunEvent::Ended { task, how } = &event {
        // Names of tasks that have not ended are unique.
        let place =
            tasks.iter().find(|(_, kept)| kept.spec.name == **task).map(|(&place, _)| place);
        if let Some(kept) = place.and_then(|place| tasks.remove(&place)) {
            kept.completion.finish(how.clone());
        }
    }
    if let Some(observer) = observer {
        observer.report(event);
    }
}
