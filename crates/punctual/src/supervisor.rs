//! The supervisor: the thread that keeps a run. It polls the session some forty times a second, and
//! answers the program's requests.
//!
//! One thread from start to end, because commands die with the *thread* that started them, which
//! the program need not know. An ordinary one, whatever class the program's own threads have.

use std::sync::mpsc::{channel, Receiver, RecvTimeoutError, Sender};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use punctual_session as session;
use punctual_session::{HostKind, StartOutcome};
use punctual_sys::sched::Attributes;
use punctual_taskset::{fmt_ns, TaskChange, TaskSet, TaskSpec};
use punctual_trace::{RunEvent, TaskEnd};

use crate::declare::{check_among, session_of_running};
use crate::draft::Declared;
use crate::error::task_has_ended;
use crate::live_tasks::{delayed, LiveTasks};
use crate::observer::Observer;
use crate::requests::{ask, Request};
use crate::settings::Settings;
use crate::{Error, RunOutcome};

const HOUSEKEEPING: Duration = Duration::from_millis(25);
/// How long after its request a task has its first release, at least, ns: the hosts' own.
const LEAD: u64 = 20_000_000;

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
    tasks: LiveTasks,
    observer: Option<Observer>,
    when_done: Vec<Sender<()>>,
    /// Notes of the host that were reported.
    notes_reported: usize,
    /// The host has ended the run, or its duration has passed.
    over: bool,
    failure: Option<Error>,
}

impl Supervisor {
    fn start(
        admitted: session::AdmittedSet,
        settings: Settings,
        declared: Vec<Declared>,
        observer: Option<Observer>,
    ) -> Result<Supervisor, Error> {
        let (mut tasks, mut executions) = (LiveTasks::default(), Vec::new());
        for (place, Declared { spec, execution, completion, .. }) in
            declared.into_iter().enumerate()
        {
            completion.set_place(place);
            tasks.insert(place, spec, completion, None);
            executions.push(execution);
        }
        let options = settings.options(admitted.set())?;
        let running = match admitted.start_with(options, executions)? {
            StartOutcome::Running(running) => running,
            StartOutcome::NotPossible(refusal, _) => {
                return Err(Error::machine(refusal.reason, refusal.help.join("; ")))
            }
        };
        for (place, task) in tasks.iter() {
            let suspension = suspension_of(&running, &settings.set, place, &task.spec);
            task.completion.set_suspension(suspension);
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
                let alive = self.tasks.specs().map(|spec| spec.name.clone()).collect();
                drop(answer.send(alive));
            }
            Request::Stop(_) => {}
        }
        self.report_done();
    }

    fn add(&mut self, task: Declared) -> Result<(), Error> {
        self.settings.accept_overrun_handlers([&task].into_iter())?;
        let Declared { spec, execution, completion, first_release, .. } = task;
        check_among(&spec, self.tasks.specs(), &self.settings)?;
        let admit = |mut tasks: Vec<TaskSpec>| {
            tasks.push(spec.clone());
            let session = session_of_running(&self.settings, tasks, self.running.host())?;
            session.admit(self.settings.overload)
        };
        admit(self.tasks.specs().cloned().collect())?;
        let soonest = self.running.now().saturating_add(LEAD);
        let first_fit = match self.promises_shares() {
            true => self.tasks.first_fit(spec.domain, soonest, |tasks| admit(tasks).is_ok()),
            false => soonest,
        };
        let first_release = match first_fit > soonest {
            true => Some(delayed(first_release, spec.period, first_fit)),
            false => first_release,
        };
        let place = self.running.add(&spec, execution, first_release)?;
        completion.set_place(place);
        let suspension = suspension_of(&self.running, &self.settings.set, place, &spec);
        completion.set_suspension(suspension);
        self.tasks.insert(place, spec, completion, first_release);
        Ok(())
    }

    /// What is admitted here is guaranteed here, by this clock: not in a simulation, nor by the
    /// kernel's own policies, nor by the service, which admits itself.
    fn promises_shares(&self) -> bool {
        matches!(self.running.host(), HostKind::User | HostKind::Kernel)
    }

    fn stop_task(&mut self, place: usize) -> Result<(), Error> {
        match self.tasks.contains(place) {
            true => self.running.stop_task(place),
            false => Err(task_has_ended()),
        }
    }

    fn change(&mut self, place: usize, change: &TaskChange) -> Result<(), Error> {
        let own = self.tasks.spec(place).ok_or_else(task_has_ended)?;
        let with_change = |placed: Vec<(usize, TaskSpec)>| {
            let Settings { set, overload, .. } = &self.settings;
            let index =
                placed.iter().position(|(of, _)| *of == place).ok_or_else(task_has_ended)?;
            let mut tasks: Vec<TaskSpec> = placed.into_iter().map(|(_, spec)| spec).collect();
            // Not what is kept of its own: the change is from its next release on.
            tasks[index] = own.clone();
            let (set, host) = (TaskSet { tasks, ..set.clone() }, self.running.host());
            let changed = session::with_change(&set, index, change, host, *overload)?;
            Ok(changed.tasks[index].clone())
        };
        let changed = with_change(self.tasks.placed())?;
        let now = self.running.now();
        let (domain, from) = (changed.domain, self.tasks.next_release_of(place, now));
        if self.promises_shares() {
            let mut kept = self.tasks.combinations(domain, from).into_iter();
            kept.try_for_each(|placed| with_change(placed).map(drop)).map_err(|_| {
                let until = self.tasks.kept_until(domain, from);
                kept_for(until.unwrap_or(from).saturating_sub(now))
            })?;
        }
        self.running.change(place, change)?;
        // The time is another one: a release that came meanwhile was of the former parameters.
        self.tasks.change(place, changed, self.running.now());
        Ok(())
    }

    fn suspend(&mut self, place: usize, on: bool) -> Result<(), Error> {
        match self.tasks.contains(place) {
            true => self.running.suspend(place, on),
            false => Err(task_has_ended()),
        }
    }

    /// Reports what became known.
    fn poll(&mut self) {
        if self.over {
            return;
        }
        let now = self.running.now();
        let Supervisor { running, observer, tasks, .. } = self;
        let polled =
            running.poll_for(Duration::ZERO, &mut |event| report(observer, tasks, event, now));
        let ended = self.running.has_ended();
        match polled {
            Ok(_) => self.over = ended,
            Err(e) => {
                let warning = RunEvent::Warning(e.cause.clone());
                report(&mut self.observer, &mut self.tasks, warning, now);
                (self.over, self.failure) = (true, Some(e));
            }
        }
        let notes = self.running.notes();
        for note in notes.iter().skip(self.notes_reported) {
            report(&mut self.observer, &mut self.tasks, RunEvent::Warning(note.clone()), now);
        }
        self.notes_reported = notes.len();
        let is_lost = self.running.is_over() && self.running.host() == HostKind::Kernel;
        if is_lost || self.failure.is_some() {
            self.end_tasks(now);
        }
        self.report_done();
    }

    /// The kernel has ended the scheduler, or the service has ended: what was the tasks' are
    /// ordinary threads now.
    fn end_tasks(&mut self, now: u64) {
        let Supervisor { observer, tasks, .. } = self;
        let names: Vec<_> = tasks.specs().map(|spec| spec.name.as_str().into()).collect();
        for task in names {
            report(observer, tasks, RunEvent::Ended { task, how: TaskEnd::Stopped }, now);
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
        let now = running.now();
        let outcome = running.finish(&mut |event| report(&mut observer, &mut tasks, event, now));
        tasks.take_all().for_each(|task| task.completion.finish(TaskEnd::Stopped));
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

/// The refusal of parameters that fit once shares have ended that are still in use; `ns`: when.
fn kept_for(ns: u64) -> Error {
    let cause =
        "tasks that have ended, or were changed, have their shares until their next releases";
    Error::not_admitted(cause, format!("try again in {}", fmt_ns(ns)))
}

/// Passes an event on to the program; the end of a task, by `now`, to its handle too.
fn report(
    observer: &mut Option<Observer>,
    tasks: &mut LiveTasks,
    event: session::NamedEvent,
    now: u64,
) {
    match &event {
        RunEvent::Period { task, period } => tasks.released(task, period.release),
        RunEvent::Ended { task, how } => {
            if let Some(ended) = tasks.end(task, now) {
                ended.completion.finish(how.clone());
            }
        }
        _ => {}
    }
    if let Some(observer) = observer {
        observer.report(event);
    }
}
