//! The kernel host: a task set inside the kernel, from start to end.
//!
//! ```text
//!   start: tasks stand at the barrier ──> scheduler attached ──> each domain: tasks join
//!      ──> the barrier is released ──> first releases ──> poll, add, stop_task ...
//!      ──> finish: domains stop ──> scheduler detached ──> what was started is ended
//! ```

use std::collections::{BTreeMap, BTreeSet};
use std::sync::mpsc::{channel, Receiver, RecvTimeoutError, Sender};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use punctual_policies::stuck_policy;
use punctual_process::{CpuLock, Output};
use punctual_program_jobs::{takes_jobs, ProgramGroups};
use punctual_sys::clock::monotonic_ns;
use punctual_sys::memory::{Extent, MemoryLock};
use punctual_sys::thread_name;
use punctual_taskset::{DomainId, TaskSet};
use punctual_trace::{RunEvent, TaskEnd, TraceSink};

use crate::added_jobs::{HostJobs, OfDomain};
use crate::costs::capacity;
use crate::domain::{self, Command, Config, DomainEvent};
use crate::lateness::Lateness;
use crate::limits::{parts, Part, Room};
use crate::loaded::{load, LoadedScheduler};
use crate::probe::Timer;
use crate::reader::POLL_PERIOD;
use crate::run_state::RunState;
use crate::scheduler::Scheduler;
use crate::tasks::Tasks;
use crate::timer_process::TimerProcess;
use crate::{machine, reader};
use punctual_diagnostic::Diagnostic;

mod changes;
mod finish;
mod suspension;

pub use crate::tasks::AddedProgram;
use suspension::{end_suspension, Suspended};

/// From the request of the reservations to the first release, ns.
const LEAD: u64 = 20_000_000;
/// Longest silence of a domain's thread: it is an ordinary one, and its CPU may be busy.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

/// How to run a set.
pub struct Options {
    /// Shown to those who are refused because of this run: a command line, say.
    pub owner: String,
    /// Traces of domains.
    pub traces: Vec<(DomainId, TraceSink)>,
    /// Whether commands get our standard input (only sensible with a single one).
    pub stdin: bool,
    /// Where commands' output goes.
    pub output: Output,
    /// Tasks that each domain may have beside the set's, as far as the kernel has room for them.
    pub room: u32,
    /// Groups of each CPU that the program replenishes itself, where a group is under `jobs`.
    pub program_groups: ProgramGroups,
    /// Loaded ahead; `None`: the start loads one.
    pub loaded: Option<LoadedScheduler>,
}

/// How a run went.
pub struct Outcome {
    /// When it ended, CLOCK_MONOTONIC ns.
    pub ended: u64,
    /// Events of the dispatchers.
    pub events: u64,
    /// Release latency: from each release to its task running.
    pub lateness: Option<Lateness>,
    /// What a reader of the results should know.
    pub notes: Vec<String>,
    /// Why the scheduler was ended while it ran: by the kernel, or because a policy did not return.
    /// What was recorded until then is in the results and the traces.
    pub exit: Option<Diagnostic>,
}

/// A set that runs inside the kernel. Dropped, it ends everything and restores what it changed.
///
/// The thread that started it must keep it: commands die with that thread.
pub struct KernelHost {
    pub(crate) set: Arc<TaskSet>,
    /// In the order of the set's.
    pub(crate) domains: Vec<Domain>,
    readers: Vec<Reading>,
    events: Option<Receiver<(u32, DomainEvent)>>,
    pub(crate) state: RunState,
    pub(crate) room: Room,
    pub(crate) jobs: HostJobs,
    output: Output,
    /// Indices of tasks whose end was requested.
    stopped: BTreeSet<usize>,
    suspended: Suspended,
    /// The first release, CLOCK_MONOTONIC ns.
    origin: u64,
    failure: Option<Diagnostic>,
    scheduler: Scheduler,
    /// Ended after the scheduler was detached, which could not live without them.
    timers: Vec<TimerProcess>,
    pub(crate) tasks: Option<Tasks>,
    memory: Option<MemoryLock>,
    locks: Vec<CpuLock>,
}

/// A domain's thread, from here.
pub(crate) struct Domain {
    pub(crate) commands: Sender<Command>,
    thread: JoinHandle<()>,
    /// The thread is its allocator.
    pub(crate) asks_policies: bool,
    /// What the program requests of it then.
    pub(crate) jobs: Option<OfDomain>,
}

impl Domain {
    /// Sends a command. A thread that is gone has reported why.
    pub(crate) fn send(&self, command: Command) {
        drop(self.commands.send(command));
        self.jobs.iter().for_each(|jobs| jobs.doorbell.ring());
    }
}

/// The reader's thread of a domain whose own thread is its allocator, from here: it reads until
/// `running` is dropped.
struct Reading {
    running: Sender<()>,
    thread: JoinHandle<()>,
}

impl KernelHost {
    /// Loads and attaches the scheduler, starts the tasks, and sets their first releases, which are
    /// 20 ms ahead.
    ///
    /// # Errors
    /// What the set or the machine does not permit. Nothing is left behind.
    pub fn start(set: &TaskSet, options: Options) -> Result<KernelHost, Diagnostic> {
        let set = Arc::new(set.clone());
        let Options { owner, traces: sinks, stdin, output, room, program_groups, loaded } = options;
        let room = Room { tasks: room, groups: program_groups };
        let parts = parts(&set, capacity(&set).costs, room)?;
        machine::check(&set.cpus())?;
        let locks = parts.iter().map(|part| CpuLock::take(part.cpu, &owner));
        let locks = locks.collect::<Result<Vec<_>, _>>()?;
        let traces = traces(&parts, sinks);
        let tasks = Tasks::start(&set, &locks, stdin, output)?;
        let loaded = loaded.and_then(|loaded| loaded.take());
        let (timer, mut scheduler) = loaded.map_or_else(load, Ok)?;
        let mut timers = Vec::new();
        for part in &parts {
            let domain = part.domain.0;
            scheduler.create(
                domain,
                part.cpu,
                part.asks_policies,
                &part.limits,
                timer.granularity(),
            )?;
            if timer == Timer::Process {
                timers.push(scheduler.timer_process(domain, part.cpu)?);
            }
        }
        scheduler.attach()?;
        let mut state = RunState::new(traces);
        set.tasks.iter().enumerate().for_each(|(index, spec)| state.add(index, spec));
        let mut host = KernelHost {
            domains: Vec::new(),
            readers: Vec::new(),
            events: None,
            state,
            room,
            jobs: HostJobs::of(&set)?,
            output,
            stopped: BTreeSet::new(),
            suspended: Suspended::new(),
            origin: 0,
            failure: None,
            scheduler,
            timers,
            tasks: Some(tasks),
            memory: None,
            locks,
            set,
        };
        match host.begin(parts) {
            Ok(()) => Ok(host),
            Err(e) => Err(host.exit_by_kernel(Some(&e)).unwrap_or(e)),
        }
    }

    /// The first release, CLOCK_MONOTONIC ns.
    pub fn origin(&self) -> u64 {
        self.origin
    }

    /// What a reader of the results should know so far.
    pub fn notes(&self) -> &[String] {
        self.state.notes()
    }

    /// Each domain's tasks join; then all are released at once.
    fn begin(&mut self, parts: Vec<Part>) -> Result<(), Diagnostic> {
        if parts.iter().any(|p| p.asks_policies) {
            self.lock_memory();
        }
        let (sender, events) = channel();
        self.events = Some(events);
        for part in parts {
            self.spawn(part, sender.clone())?;
        }
        drop(sender);
        self.await_all("its tasks cannot join")?;
        self.tasks.iter().for_each(Tasks::open);
        self.origin = monotonic_ns() + LEAD;
        for domain in &self.domains {
            domain.send(Command::Begin(self.origin));
        }
        self.await_all("its first releases cannot be set")
    }

    fn lock_memory(&mut self) {
        match MemoryLock::take(Extent::All) {
            Ok(lock) => self.memory = Some(lock),
            Err(why) => self.state.note(format!(
                "memory could not be locked ({why}): page faults may delay the policies"
            )),
        }
    }

    fn spawn(&mut self, part: Part, sender: Sender<(u32, DomainEvent)>) -> Result<(), Diagnostic> {
        let Part { domain: id, cpu, allocators, limits, asks_policies, .. } = part;
        let domain = id.0;
        let Some(tasks) = &self.tasks else { return Ok(()) };
        let set = self.set.clone();
        let of_the_domain = || set.tasks.iter().enumerate().filter(|(_, t)| t.domain == id);
        let joining = of_the_domain()
            .filter_map(|(index, spec)| tasks.joining(index, spec, takes_jobs(&set, spec)));
        let joining = joining.collect();
        let of_the_set = set.tasks.len();
        let (mut allocator, mut jobs) = (None, None);
        if asks_policies {
            let (of_domain, mut ends) = self.jobs.domain(self.room.groups)?;
            for (index, spec) in of_the_domain() {
                let requests = self.jobs.task((&set, index), spec, &of_domain.doorbell);
                ends.tasks.extend(requests.map(|requests| (index, requests)));
            }
            allocator = Some((self.scheduler.doorbell(domain)?, ends));
            jobs = Some(of_domain);
        }
        let no_thread =
            |e| Diagnostic::machine(format!("no thread for CPU {cpu}: {e}"), "raise RLIMIT_NPROC");
        let thread = |name: &str| std::thread::Builder::new().name(thread_name::of_cpu(name, cpu));
        if asks_policies {
            // Started here and not by the allocator, whose threads are allocators by birth.
            let config =
                reader::Config { domain, cpu, programs: self.scheduler.programs(), limits };
            let ((running, stop), sender) = (channel(), sender.clone());
            let thread = thread(thread_name::READER)
                .spawn(move || reader::run(config, &stop, &sender))
                .map_err(no_thread)?;
            self.readers.push(Reading { running, thread });
        }
        let programs = self.scheduler.programs();
        let config =
            Config { domain, cpu, programs, allocators, limits, allocator, joining, of_the_set };
        let (commands, requests) = channel();
        let thread = thread(thread_name::DOMAIN)
            .spawn(move || domain::run(config, &requests, &sender))
            .map_err(no_thread)?;
        self.domains.push(Domain { commands, thread, asks_policies, jobs });
        Ok(())
    }

    /// Until each domain has reported that it is as far.
    fn await_all(&mut self, what: &str) -> Result<(), Diagnostic> {
        let limit = Instant::now() + PATIENCE;
        let mut done = 0;
        while done < self.domains.len() {
            let Some(events) = &self.events else { return Ok(()) };
            match events.recv_timeout(POLL_PERIOD) {
                Ok((_, DomainEvent::AllJoined | DomainEvent::Begun)) => done += 1,
                Ok((_, DomainEvent::Stopped)) => return Err(silent(what)),
                // Others may be further, or read already.
                Ok((domain, more)) => self.handle(domain, more, &mut |_| {})?,
                Err(RecvTimeoutError::Timeout)
                    if Instant::now() < limit && self.scheduler.ended().is_none() => {}
                Err(_) => return Err(silent(what)),
            }
        }
        Ok(())
    }

    /// Waits for `wait`, and reports what became known. Whether the run is over: the scheduler was
    /// ended, a policy does not return, or something failed; [`finish`](KernelHost::finish) returns
    /// why.
    pub fn poll(&mut self, wait: Duration, sink: &mut dyn FnMut(RunEvent)) -> bool {
        if let Err(e) = self.receive(wait, sink) {
            self.failure = Some(e);
            self.end_jobs();
            return true;
        }
        if let Some(note) = self.tasks.as_mut().and_then(Tasks::look) {
            self.state.note(note);
        }
        self.release_killed();
        self.report_ended(sink);
        let over = self.scheduler.ended().is_some() || stuck_policy().is_some();
        if over {
            self.end_jobs();
        }
        over
    }

    /// Handles what the domains report within that time.
    fn receive(
        &mut self,
        wait: Duration,
        sink: &mut dyn FnMut(RunEvent),
    ) -> Result<(), Diagnostic> {
        let limit = Instant::now() + wait;
        loop {
            let left = limit.saturating_duration_since(Instant::now());
            let Some(events) = &self.events else { return Ok(()) };
            match events.recv_timeout(left) {
                Ok((domain, event)) => self.handle(domain, event, sink)?,
                Err(_) => return Ok(()),
            }
        }
    }

    fn handle(
        &mut self,
        domain: u32,
        event: DomainEvent,
        sink: &mut dyn FnMut(RunEvent),
    ) -> Result<(), Diagnostic> {
        match event {
            DomainEvent::Events(batch) => self.state.release_events(domain, batch),
            DomainEvent::Records(batch) => {
                for index in self.state.records(domain, &batch, sink) {
                    self.send(domain, Command::Gone(index));
                }
            }
            DomainEvent::Failed(e) => return Err(e),
            DomainEvent::Joins(index) => self.state.joins(domain, index),
            DomainEvent::Joined(index, task) => {
                self.state.joined(domain, index, task.map(|task| task.0));
            }
            DomainEvent::AllJoined | DomainEvent::Begun | DomainEvent::Stopped => {}
        }
        Ok(())
    }

    pub(crate) fn send(&self, domain: u32, command: Command) {
        self.domains[domain as usize].send(command);
    }

    /// A task with children that live on after its first process has ended when they are gone too.
    fn report_ended(&mut self, sink: &mut dyn FnMut(RunEvent)) {
        let Some(tasks) = &mut self.tasks else { return };
        for index in self.state.take_doubtful(|index| tasks.ended(index).is_some()) {
            if let Some(domain) = self.state.domain_of(index) {
                self.domains[domain as usize].send(Command::Retire(index));
            }
        }
        for index in self.state.left().collect::<Vec<_>>() {
            let stopped = self.stopped.contains(&index).then_some(TaskEnd::Stopped);
            let Some(how) = tasks.ended(index).or_else(|| stopped.filter(|_| !tasks.starts(index)))
            else {
                continue;
            };
            tasks.remove(index);
            end_suspension(&mut self.suspended, &mut self.state, index);
            self.state.remove(index);
            self.stopped.remove(&index);
            self.jobs.remove(index);
            sink(RunEvent::Ended { task: index as u32, how });
        }
    }
}

/// Begins the traces; by domain.
fn traces(parts: &[Part], sinks: Vec<(DomainId, TraceSink)>) -> BTreeMap<u32, TraceSink> {
    let with_domain = sinks.into_iter().filter_map(|(domain, sink)| {
        let part = parts.iter().find(|part| part.domain == domain)?;
        sink.begin(part.limits);
        Some((domain.0, sink))
    });
    with_domain.collect()
}

fn silent(what: &str) -> Diagnostic {
    Diagnostic::machine(
        format!("the kernel host: {what}"),
        "try when the machine is less busy; see punctual doctor",
    )
}
