//! The thread that keeps a run: it owns the host, looks after it some forty times a second, and
//! does what the program asks of it.
//!
//! One thread from start to end, because commands die with the *thread* that started them, and it
//! is not for the program to know that. An ordinary one: whatever the program's own threads are.

use std::any::Any;
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::sync::mpsc::{channel, Receiver, RecvTimeoutError, Sender};
use std::sync::{Arc, OnceLock};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use punctual_host_user as host;
use punctual_host_user::{HostOptions, Told};
use punctual_process::CommandSpec;
use punctual_report::{Collector, Host as HostKind, Results, Run, TaskKind};
use punctual_sys::sched;
use punctual_taskset::TaskSpec;

use crate::declare::{check_among, check_fit, task_set};
use crate::draft::{Declared, TaskBody, What};
use crate::report::{self, Observer, Report};
use crate::{Error, Outcome, Policy, Task, Time};

const HOUSEKEEPING: Duration = Duration::from_millis(25);
/// From handing over to the first release: every task is taken in by then.
const LEAD: Duration = Duration::from_millis(20);

/// What a run is told at its start.
pub(crate) struct Settings {
    pub cpus: Vec<u32>,
    pub policy: Policy,
    pub overload: bool,
    pub owner: String,
    pub task_limit: u32,
    pub records: u32,
    pub observer: Option<Observer>,
}

/// What of it the program's side goes on to need.
#[derive(Debug)]
pub(crate) struct Standing {
    pub cpus: Vec<u32>,
    pub policy: Policy,
}

/// What the program asks of the keeper. An answer that nobody waits for is dropped.
pub(crate) enum Request {
    Add(Box<Declared>, Sender<Result<(), Error>>),
    WhenDone(Sender<()>),
    Results(Sender<Results>),
    Alive(Sender<Vec<String>>),
    Stop(Sender<Outcome>),
}

/// Starts the keeper, and by it the run; returns when all tasks are handed over.
#[allow(clippy::type_complexity)]
pub(crate) fn start(
    settings: Settings,
    tasks: Vec<Declared>,
) -> Result<((Sender<Request>, JoinHandle<()>), Standing), Error> {
    let standing = Standing { cpus: settings.cpus.clone(), policy: settings.policy };
    let (requests, asked) = channel();
    let (ready, is_ready) = channel();
    let thread = std::thread::Builder::new().name("punctual".into()).spawn(move || {
        become_ordinary();
        match Keeper::start(settings, tasks) {
            Ok(keeper) => {
                drop(ready.send(Ok(())));
                keeper.keep(&asked);
            }
            Err(e) => drop(ready.send(Err(e))),
        }
    });
    let thread = thread.map_err(|e| Error::machine(format!("no thread can be made: {e}"), "raise RLIMIT_NPROC"))?;
    match is_ready.recv() {
        Ok(Ok(())) => Ok(((requests, thread), standing)),
        Ok(Err(e)) => {
            drop(thread.join());
            Err(e)
        }
        Err(_) => Err(Error::machine("the thread that keeps the run panicked at its start", "report it")),
    }
}

/// Threads inherit their creator's class; what looks after tasks must not compete with them.
fn become_ordinary() {
    // A thread of its own may always do so.
    let _ = sched::set_other(0);
}

struct Keeper {
    settings: Settings,
    host: host::Host,
    /// By index, which is never used again.
    tasks: Vec<Kept>,
    run: Run,
    when_done: Vec<Sender<()>>,
    /// Notes of the host that were told.
    notes_told: usize,
}

/// One task that is or was in the run.
struct Kept {
    name: Arc<str>,
    spec: TaskSpec,
    collector: Collector,
    /// How its thread ended; set by itself, at its end.
    end: Option<Arc<OnceLock<String>>>,
    alive: bool,
}

impl Keeper {
    fn start(settings: Settings, tasks: Vec<Declared>) -> Result<Keeper, Error> {
        let host = host::Host::start(&HostOptions {
            set: task_set(&settings, Vec::new()),
            room: settings.task_limit,
            owner: settings.owner.clone(),
            records: settings.records,
        })?;
        let run =
            Run { overload: settings.overload, ..Run::new(HostKind::User, settings.policy.name(), &settings.cpus) };
        let mut keeper = Keeper { settings, host, tasks: Vec::new(), run, when_done: Vec::new(), notes_told: 0 };
        for task in tasks {
            keeper.take_in(task)?;
        }
        let origin = Time::now() + LEAD;
        keeper.run.started = origin.as_nanos();
        keeper.host.begin(origin.as_nanos())?;
        Ok(keeper)
    }

    fn keep(mut self, asked: &Receiver<Request>) {
        let mut next = Instant::now();
        loop {
            match asked.recv_timeout(next.saturating_duration_since(Instant::now())) {
                Ok(Request::Stop(answer)) => {
                    drop(answer.send(self.stop()));
                    return;
                }
                Ok(request) => self.answer(request),
                Err(RecvTimeoutError::Timeout) => {
                    self.look();
                    next = Instant::now() + HOUSEKEEPING;
                }
                Err(RecvTimeoutError::Disconnected) => {
                    self.stop();
                    return;
                }
            }
        }
    }

    fn answer(&mut self, request: Request) {
        match request {
            Request::Add(task, answer) => drop(answer.send(self.add(*task))),
            Request::WhenDone(answer) => self.when_done.push(answer),
            Request::Results(answer) => {
                self.look();
                drop(answer.send(self.results(Time::now())));
            }
            Request::Alive(answer) => {
                self.look();
                let alive = self.tasks.iter().filter(|t| t.alive).map(|t| t.name.to_string()).collect();
                drop(answer.send(alive));
            }
            Request::Stop(_) => {}
        }
        self.tell_done();
    }

    /// A task for a set that runs already.
    fn add(&mut self, task: Declared) -> Result<(), Error> {
        self.look();
        let alive = || self.tasks.iter().filter(|t| t.alive).map(|t| &t.spec);
        check_among(&task.spec, alive(), &self.settings)?;
        check_fit(&self.settings, alive().chain([&task.spec]).cloned().collect())?;
        self.take_in(task)?;
        self.host.begin((Time::now() + LEAD).as_nanos())?;
        Ok(())
    }

    fn take_in(&mut self, task: Declared) -> Result<(), Error> {
        let Declared { spec, what } = task;
        let index = self.tasks.len() as u32;
        let name: Arc<str> = spec.name.as_str().into();
        let mut end = None;
        let kind = match what {
            What::Thread { stack, body } => {
                let slot = Arc::new(OnceLock::new());
                end = Some(slot.clone());
                let slot = End(slot);
                let name = name.clone();
                self.host.add_thread(index, &spec, stack, move |task| run_body(body, &name, task, &slot))?;
                TaskKind::Thread
            }
            What::Command(argv) => {
                self.host.add_command(index, &spec, CommandSpec::new(argv, spec.cpu))?;
                TaskKind::Command
            }
            What::Pid(pid) => {
                self.host.adopt(index, &spec, pid)?;
                TaskKind::Pid
            }
        };
        let collector = report::collector(&self.run, &spec, kind);
        self.tasks.push(Kept { name, spec, collector, end, alive: true });
        Ok(())
    }

    /// Looks after the host, and passes on what it tells.
    fn look(&mut self) {
        let Keeper { host, tasks, settings, .. } = self;
        let observer = &mut settings.observer;
        host.housekeep(&mut |told| hear(told, tasks, observer));
        for note in host.notes().iter().skip(self.notes_told) {
            tell(observer, Report::Warning(note.clone()));
        }
        self.notes_told = host.notes().len();
        self.tell_done();
    }

    fn tell_done(&mut self) {
        if self.tasks.iter().all(|t| !t.alive) {
            for waiting in self.when_done.drain(..) {
                let _ = waiting.send(());
            }
        }
    }

    fn results(&self, now: Time) -> Results {
        let mut results = report::merge(&self.run, self.tasks.iter().map(|t| &t.collector), now.as_nanos());
        results.dispatcher = report::dispatcher(&self.host.readings());
        results.notes.extend(self.host.notes().iter().cloned());
        results
    }

    fn stop(self) -> Outcome {
        let Keeper { mut settings, host, mut tasks, run, when_done, .. } = self;
        let ended = Time::now().as_nanos();
        let notes = host.notes().to_vec();
        let finished = host.finish(&mut |told| hear(told, &mut tasks, &mut settings.observer));
        for task in &mut tasks {
            task.collector.finish(ended);
        }
        let mut results = report::merge(&run, tasks.iter().map(|t| &t.collector), ended);
        results.dispatcher = report::dispatcher(&finished.readings);
        results.notes.extend(notes);
        let mut problems = finished.problems;
        for task in tasks.iter().filter(|t| t.end.as_ref().is_some_and(|end| end.get().is_none())) {
            problems.push(format!(
                "task {:?} has not returned a second after the end; its thread goes on in the ordinary class",
                task.name
            ));
        }
        drop(when_done);
        Outcome { results, problems }
    }
}

/// One thing that the host told: into the figures, and on to the program.
fn hear(told: Told, tasks: &mut [Kept], observer: &mut Option<Observer>) {
    match told {
        Told::Period(period) => {
            let Some(task) = tasks.get_mut(period.task as usize) else { return };
            // Its collector has this one task.
            task.collector.record(&punctual_trace::Period { task: 0, ..period });
            let task = task.name.clone();
            tell(observer, Report::Period { task, period });
        }
        Told::Unreported { task, count } => {
            let Some(task) = tasks.get_mut(task as usize) else { return };
            task.collector.record_unreported(0, count);
            let task = task.name.clone();
            tell(observer, Report::Unreported { task, count });
        }
        Told::Ended(index, how) => {
            let Some(task) = tasks.get_mut(index as usize) else { return };
            task.alive = false;
            let how = task.end.as_ref().and_then(|end| end.get().cloned()).unwrap_or(how);
            let task = task.name.clone();
            tell(observer, Report::Ended { task, how });
        }
        Told::Warning(text) => tell(observer, Report::Warning(text)),
    }
}

fn tell(observer: &mut Option<Observer>, report: Report) {
    if let Some(observer) = observer {
        observer.tell(report);
    }
}

/// Where a thread says how it ended.
struct End(Arc<OnceLock<String>>);

impl Drop for End {
    /// The run was over before its first release, if nothing else was said.
    fn drop(&mut self) {
        let _ = self.0.set("was never released".to_owned());
    }
}

/// The whole of a task's thread: a panic ends it, not the program.
fn run_body(body: TaskBody, name: &str, task: &mut host::Task, end: &End) {
    let ended = catch_unwind(AssertUnwindSafe(|| body(&mut Task::new(name, task))));
    let how = match ended {
        Ok(()) => "returned".to_owned(),
        Err(panic) => format!("panicked: {}", message(&*panic)),
    };
    let _ = end.0.set(how);
}

fn message(panic: &(dyn Any + Send)) -> &str {
    panic
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| panic.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("(without a message)")
}
