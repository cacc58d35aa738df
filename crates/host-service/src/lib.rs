//! A task set whose decisions punctuald executes: this process starts the commands, reserves for
//! them, and fetches what became of the reservations.
//!
//! ```text
//!   ServiceHost::start: commands held at their exec ─> Reserve ─> commands released
//!   poll: TakeEvents                                  finish: commands ended, connection closed
//! ```
//!
//! It needs no privileges. When this process is killed, its guardian ends the commands, and the
//! service releases what the connection held.

mod accept;

pub use accept::accepts;

use std::collections::BTreeMap;

use punctual_diagnostic::Diagnostic;
use punctual_process::{CommandSpec, Commands};
use punctual_service::{ReservationInfo, ServiceClient, TaskEvent, TaskRequest};
use punctual_sys::clock::monotonic_ns;
use punctual_taskset::{fmt_ns, Body, TaskSet, TaskSpec};
use punctual_trace::{RunEvent, TaskEnd};

/// A set of reservations.
pub struct ServiceHost {
    client: ServiceClient,
    commands: Commands,
    /// By reservation.
    tasks: BTreeMap<u64, ReservedTask>,
    started: u64,
    dropped: u64,
}

/// A task with a reservation.
struct ReservedTask {
    index: u32,
    /// Its place among the commands; `None`: a process that ran before.
    command: Option<usize>,
    /// The reservation has ended, so.
    ended: Option<TaskEnd>,
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
    /// Reserves for all tasks of the set, or for none. `command` makes the specification of a
    /// command of its arguments.
    ///
    /// # Errors
    /// No service listens; it refuses a task; a command is not there.
    pub fn start(
        set: &TaskSet,
        command: impl Fn(&[String]) -> CommandSpec,
    ) -> Result<ServiceHost, Diagnostic> {
        accepts(set)?;
        let mut client = ServiceClient::require(&punctual_service::socket())?;
        let mut commands = Commands::new(&[])?;
        commands.let_adopt()?;
        let mut places = Vec::new();
        let mut requests = Vec::new();
        for task in &set.tasks {
            let pid = match &task.body {
                Body::Command(argv) => {
                    places.push(Some(commands.iter().count()));
                    commands.start(command(argv), &task.name)?.id().pid
                }
                Body::Pid(pid) => {
                    places.push(None);
                    *pid
                }
                Body::Spin(_) | Body::Steps(_) => return Err(accept::synthetic(task)),
            };
            requests.push(request(set, task, pid));
        }
        let reserved = client.reserve(&requests)?;
        set.tasks.iter().zip(&reserved).try_for_each(|(task, info)| check_role(task, info))?;
        commands.release();
        let task = |(index, command)| ReservedTask { index, command, ended: None };
        let tasks = reserved.iter().map(|info| info.id).zip((0..).zip(places).map(task)).collect();
        Ok(ServiceHost { client, commands, tasks, started: monotonic_ns(), dropped: 0 })
    }

    /// When the reservations were made, CLOCK_MONOTONIC, ns.
    pub fn started(&self) -> u64 {
        self.started
    }

    /// Fetches what became known.
    ///
    /// # Errors
    /// The service has ended, and with it all reservations.
    pub fn poll(&mut self, sink: &mut dyn FnMut(RunEvent)) -> Result<(), Diagnostic> {
        loop {
            let reply = self.client.take_events()?;
            self.dropped += reply.dropped;
            for event in reply.events {
                self.follow(event, sink);
            }
            if !reply.more {
                break;
            }
        }
        self.commands.replace_dead_guardian().into_iter().for_each(|what| {
            sink(RunEvent::Warning(what));
        });
        self.report_ends(sink);
        Ok(())
    }

    fn follow(&mut self, event: TaskEvent, sink: &mut dyn FnMut(RunEvent)) {
        let Some(task) = self.tasks.get_mut(&event.id) else { return };
        if let Some(period) = event.period {
            sink(period.period(task.index).into());
        }
        if let Some(count) = event.unreported {
            sink(RunEvent::Unreported { task: task.index, count });
        }
        if let Some(cause) = event.cause {
            sink(RunEvent::Warning(format!(
                "task {}: its reservation has ended: {cause}",
                task.index
            )));
        }
        task.ended = event.ended.map(|how| match how.as_str() {
            "released" => TaskEnd::Stopped,
            "refused" => TaskEnd::Refused,
            _ => TaskEnd::Gone,
        });
    }

    /// Reports tasks whose reservations have ended; a command, with its exit status.
    fn report_ends(&mut self, sink: &mut dyn FnMut(RunEvent)) {
        let ServiceHost { commands, tasks, .. } = self;
        tasks.retain(|_, task| {
            let Some(ended) = task.ended.clone() else { return true };
            let how = match task.command.map(|place| commands.try_wait(place)) {
                // Its processes are gone, and it will be waited for.
                Some(Ok(None)) if ended == TaskEnd::Gone => return true,
                Some(Ok(Some(status))) => status.into(),
                _ => ended,
            };
            sink(RunEvent::Ended { task: task.index, how });
            false
        });
    }

    /// Gives a task another budget, ns, from its next release on.
    ///
    /// # Errors
    /// Refused by the service.
    pub fn change_budget(&mut self, index: u32, budget: u64) -> Result<(), Diagnostic> {
        match self.reservation(index) {
            Some(id) => self.client.change_budget(id, budget),
            None => Ok(()),
        }
    }

    /// Requests the end of a task: a command is killed, a process restored.
    ///
    /// # Errors
    /// The service has ended.
    pub fn stop_task(&mut self, index: u32) -> Result<(), Diagnostic> {
        let Some(id) = self.reservation(index) else { return Ok(()) };
        match self.tasks.get(&id).and_then(|task| task.command) {
            Some(place) => self.commands.iter().nth(place).into_iter().for_each(|c| c.kill_group()),
            None => self.client.release(id)?,
        }
        Ok(())
    }

    fn reservation(&self, index: u32) -> Option<u64> {
        self.tasks.iter().find(|(_, task)| task.index == index).map(|(id, _)| *id)
    }

    /// Ends the commands, and releases all reservations.
    pub fn finish(mut self, sink: &mut dyn FnMut(RunEvent)) -> ServiceOutcome {
        let ended = monotonic_ns();
        // A service that has ended has released everything.
        let _ = self.poll(sink);
        let ServiceHost { client, commands, dropped, .. } = self;
        let problems = commands.end();
        drop(client);
        ServiceOutcome { ended, dropped, problems }
    }
}

fn request(set: &TaskSet, task: &TaskSpec, pid: i32) -> TaskRequest {
    let name = task.name.clone();
    let values = match &task.role {
        Some(role) => TaskRequest::by_role(name, pid, role),
        None => TaskRequest {
            deadline_ns: Some(task.deadline),
            overrun: Some(task.overrun.to_string()),
            ..TaskRequest::new(name, pid, task.period, task.budget)
        },
    };
    let cpu = set.domain(task.domain).cpus.first().copied();
    TaskRequest { cpu, offset_ns: Some(task.offset), ..values }
}

/// What a role gave has to be what the set has, by which results are judged.
fn check_role(task: &TaskSpec, info: &ReservationInfo) -> Result<(), Diagnostic> {
    let (own, given) = (
        [task.budget, task.period, task.deadline],
        [info.budget_ns, info.period_ns, info.deadline_ns],
    );
    let (Some(role), true) = (&task.role, own != given) else { return Ok(()) };
    let words = |[budget, period, deadline]: [u64; 3]| {
        let [budget, period, deadline] = [budget, period, deadline].map(fmt_ns);
        format!("{budget} in every {period}, deadline {deadline}")
    };
    Err(Diagnostic::usage(
        format!(
            "the role {role:?} is {} for the service, and {} for this program: they read \
             different files",
            words(given),
            words(own)
        ),
        "unset PUNCTUAL_ROLES, or give --period and --budget in place of the role",
    ))
}
