//! A task set whose decisions punctuald executes: this process starts commands and threads,
//! reserves for them, and fetches what became of the reservations.
//!
//! ```text
//!   ServiceHost::start ─> add_programs, add_thread ─> begin     all reserved, or none
//!                         (held)          │
//!                                      Reserve
//!   poll: TakeEvents         add_entered: further threads         finish: connection closed
//! ```
//!
//! It needs no privileges. When this process is killed, its guardian ends the commands, and the
//! service releases what the connection held.

mod accept;
mod own_threads;
mod programs;
mod renewal;
mod request;
mod suspension;
mod thread;

pub use accept::{accepts, accepts_options, takes};
pub use programs::ReservedProgram;
pub use suspension::ServiceSuspension;
pub use thread::{is_service_thread, ServiceEntry, ServiceThread};

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use punctual_diagnostic::Diagnostic;
use punctual_process::Commands;
use punctual_service::{ReservationChange, ServiceClient, TaskEvent};
use punctual_sys::clock::monotonic_ns;
use punctual_taskset::{TaskChange, TaskSet, TaskSpec};
use punctual_trace::{Period, RunEvent, TaskEnd};

use crate::own_threads::OwnThread;
use crate::renewal::Renewal;
use crate::suspension::CurrentReservation;
use crate::thread::{lock, LastRelease, SharedClient};

/// A set of reservations. Dropped, it releases them and ends its commands.
pub struct ServiceHost {
    /// Without its tasks.
    set: TaskSet,
    client: SharedClient,
    /// Made with the first command.
    commands: Option<Commands>,
    /// By reservation.
    tasks: BTreeMap<u64, ReservedTask>,
    threads: Vec<OwnThread>,
    dropped: u64,
}

/// A task with a reservation.
struct ReservedTask {
    index: u32,
    name: String,
    body: TaskBody,
    reservation: Arc<CurrentReservation>,
    /// The number of the service's period 0 of this reservation.
    first: u64,
    /// The last release of the reservation before, until a period of this one was reported:
    /// `first` is computed from it.
    before: Option<LastRelease>,
    /// Of the last period that was reported.
    last: Option<LastRelease>,
    /// The reservation has ended, so.
    ended: Option<TaskEnd>,
    /// Why it was refused, until that is reported.
    cause: Option<String>,
}

impl ReservedTask {
    fn new(index: u32, spec: &TaskSpec, body: TaskBody, id: u64) -> ReservedTask {
        let (name, reservation) = (spec.name.clone(), CurrentReservation::new(id));
        let (first, before, last, ended, cause) = (0, None, None, None, None);
        ReservedTask { index, name, body, reservation, first, before, last, ended, cause }
    }

    /// The number of a period that the service has numbered.
    fn number(&mut self, period: &Period) -> u64 {
        if let (Some(last), TaskBody::Own(_, renewal)) = (self.before.take(), &self.body) {
            let number = last.number_at(period.release, renewal.period_ns());
            self.first = number.saturating_sub(period.number);
        }
        self.first + period.number
    }
}

enum TaskBody {
    /// Its place among the commands.
    Command(usize),
    /// A process, or a thread of one, that ran before.
    Adopted,
    /// A thread of this program, and how it is reserved for again.
    Own(Arc<ServiceEntry>, Box<Renewal>),
}

/// How a run by the service ended.
pub struct ServiceOutcome {
    /// When, CLOCK_MONOTONIC, ns.
    pub ended: u64,
    /// Periods that were not fetched in time.
    pub dropped: u64,
    /// What could not be ended.
    pub problems: Vec<String>,
}

impl ServiceHost {
    /// Connects to the service, for tasks of this set.
    ///
    /// # Errors
    /// No service listens; what of the set the service does not do.
    pub fn start(set: &TaskSet) -> Result<ServiceHost, Diagnostic> {
        accepts(set)?;
        let client = ServiceClient::require(&punctual_service::socket())?;
        Ok(ServiceHost {
            set: TaskSet { tasks: Vec::new(), ..set.clone() },
            client: Arc::new(Mutex::new(Some(client))),
            commands: None,
            tasks: BTreeMap::new(),
            threads: Vec::new(),
            dropped: 0,
        })
    }

    /// All that was added begins to execute.
    pub fn begin(&mut self) {
        self.commands.iter().for_each(Commands::release);
        for begin in self.threads.iter_mut().filter_map(|own| own.begin.take()) {
            // It waits for this.
            let _ = begin.send(());
        }
    }

    /// Calls `f` with the connection.
    ///
    /// # Errors
    /// It is closed; those of `f`.
    fn with_client<T>(
        &self,
        f: impl FnOnce(&mut ServiceClient) -> Result<T, Diagnostic>,
    ) -> Result<T, Diagnostic> {
        f(lock(&self.client).as_mut().ok_or_else(closed)?)
    }

    /// Fetches what became known.
    ///
    /// # Errors
    /// The service has ended, and with it all reservations. The ends of threads of this program
    /// were reported.
    pub fn poll(&mut self, sink: &mut dyn FnMut(RunEvent)) -> Result<(), Diagnostic> {
        loop {
            let reply = match self.with_client(ServiceClient::take_events) {
                Ok(reply) => reply,
                Err(e) => {
                    self.end_threads(sink);
                    return Err(e);
                }
            };
            self.dropped += reply.dropped;
            for event in reply.events {
                self.follow(event, sink);
            }
            if !reply.more {
                break;
            }
        }
        let replaced = self.commands.as_mut().and_then(Commands::replace_dead_guardian);
        replaced.into_iter().for_each(|what| sink(RunEvent::Warning(what)));
        self.renew();
        self.report_ends(sink);
        Ok(())
    }

    fn follow(&mut self, event: TaskEvent, sink: &mut dyn FnMut(RunEvent)) {
        let Some(task) = self.tasks.get_mut(&event.id) else { return };
        if let Some(report) = event.period {
            let period = report.period(task.index);
            let number = task.number(&period);
            task.last = Some(LastRelease { number, time: period.release });
            sink(Period { number, ..period }.into());
        }
        if let Some(count) = event.unreported {
            sink(RunEvent::Unreported { task: task.index, count });
        }
        task.cause = event.cause.or(task.cause.take());
        task.ended = event.ended.map(|how| match how.as_str() {
            "released" => TaskEnd::Stopped,
            "refused" => TaskEnd::Refused,
            _ => TaskEnd::Gone,
        });
        if let (TaskBody::Own(entry, _), Some(TaskEnd::Stopped | TaskEnd::Gone)) =
            (&task.body, &task.ended)
        {
            entry.set_over();
        }
    }

    /// Reports tasks whose reservations have ended: a command with its exit status, a thread of
    /// this program once it has returned.
    fn report_ends(&mut self, sink: &mut dyn FnMut(RunEvent)) {
        let ServiceHost { commands, tasks, .. } = self;
        tasks.retain(|_, task| {
            let Some(ended) = task.ended.clone() else { return true };
            let how = match &task.body {
                TaskBody::Command(place) => {
                    match commands.as_mut().map(|commands| commands.try_wait(*place)) {
                        // Its processes are gone, and it will be waited for.
                        Some(Ok(None)) if ended == TaskEnd::Gone => return true,
                        Some(Ok(Some(status))) => status.into(),
                        _ => ended,
                    }
                }
                // One that was refused may be reserved for again.
                TaskBody::Own(entry, _) if ended != TaskEnd::Refused || !entry.is_over() => {
                    match entry.how() {
                        Some(how) => how,
                        None => return true,
                    }
                }
                TaskBody::Own(..) | TaskBody::Adopted => ended,
            };
            if let Some(cause) = task.cause.take() {
                sink(RunEvent::Warning(format!(
                    "task {:?}: its reservation has ended: {cause}",
                    task.name
                )));
            }
            sink(RunEvent::Ended { task: task.index, how });
            false
        });
    }

    /// Gives a task other parameters from its next release on.
    ///
    /// # Errors
    /// Refused by the service; another priority, which the service's policy does not have.
    pub fn change(&mut self, index: u32, change: &TaskChange) -> Result<(), Diagnostic> {
        let TaskChange { period, budget, deadline, priority } = *change;
        if priority.is_some() {
            let help = "leave the priority out, or use another host";
            return Err(Diagnostic::usage(
                "the service schedules by edf, without priorities",
                help,
            ));
        }
        let Some(id) = self.reservation(index) else { return Ok(()) };
        let values =
            ReservationChange { period_ns: period, budget_ns: budget, deadline_ns: deadline };
        self.with_client(|client| client.change(id, &values))?;
        if let Some(TaskBody::Own(_, renewal)) = self.tasks.get_mut(&id).map(|task| &mut task.body)
        {
            renewal.change(change);
        }
        Ok(())
    }

    /// What suspends and resumes a task.
    ///
    /// # Errors
    /// It has ended.
    pub fn suspension(&self, index: u32) -> Result<ServiceSuspension, Diagnostic> {
        let ended = || Diagnostic::usage("the task has ended", "suspend another one");
        let task = self.tasks.values().find(|task| task.index == index).ok_or_else(ended)?;
        let (client, reservation) = (self.client.clone(), task.reservation.clone());
        Ok(ServiceSuspension { client, reservation })
    }

    /// Requests the end of a task: a command is killed, a process restored; a thread of this
    /// program finds that its run is over, and continues as it was before.
    ///
    /// # Errors
    /// The service has ended.
    pub fn stop_task(&mut self, index: u32) -> Result<(), Diagnostic> {
        let Some(id) = self.reservation(index) else { return Ok(()) };
        let Some(task) = self.tasks.get(&id) else { return Ok(()) };
        match &task.body {
            command @ TaskBody::Command(_) => self.kill([command].into_iter()),
            // A thread may have released it meanwhile, or wait for another one.
            TaskBody::Own(entry, _) if entry.how().is_some() || task.ended.is_some() => {
                entry.set_over();
            }
            TaskBody::Own(entry, _) => {
                self.with_client(|client| client.release(id))?;
                entry.set_over();
            }
            TaskBody::Adopted => self.with_client(|client| client.release(id))?,
        }
        Ok(())
    }

    fn reservation(&self, index: u32) -> Option<u64> {
        self.tasks.iter().find(|(_, task)| task.index == index).map(|(id, _)| *id)
    }

    /// Ends the commands, and releases all reservations. Threads of this program continue as they
    /// were before, and are waited for, a second at most.
    pub fn finish(mut self, sink: &mut dyn FnMut(RunEvent)) -> ServiceOutcome {
        let ended = monotonic_ns();
        // A service that has ended has released everything.
        let _ = self.poll(sink);
        self.end_threads(sink);
        let mut problems = self.commands.take().map(Commands::end).unwrap_or_default();
        for own in self.threads.drain(..).filter(|own| own.entry.how().is_none()) {
            problems.push(format!(
                "task {:?} has not returned a second after the end; its thread continues as it was \
                 before",
                own.task
            ));
        }
        ServiceOutcome { ended, dropped: self.dropped, problems }
    }
}

/// The refusal of a connection that is closed.
fn closed() -> Diagnostic {
    Diagnostic::machine("punctuald has ended, and this set with it", "start another set")
}

impl Drop for ServiceHost {
    fn drop(&mut self) {
        self.end_threads(&mut |_| {});
    }
}
