//! One domain's thread in user space, on the domain's CPU: it sends the commands and reads the
//! rings.
//!
//! ```text
//!   spawn ──> members join ──> Begin: reservations ──┐
//!     ┌──────────────────────────────────────────────┘
//!     └> events to the allocators; records and release events to the run; tasks come and go
//!          (`domain/changes.rs`) ──> Stop
//! ```
//!
//! With reservations only, the kernel needs no allocator: the thread polls for the results, as an
//! ordinary task. A policy that is asked at each job waits for the doorbell and answers with
//! commands; then the thread is the domain's allocator, before all jobs, with a budget of its own
//! (`bpf/domain.h`), and another one reads the records.

use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, TryRecvError};
use std::sync::Arc;
use std::time::Instant;

use libbpf_rs::{MapHandle, RingBuffer, RingBufferBuilder};
use punctual_dispatcher::{Event, Limits, TaskId};
use punctual_policies::{Allocators, ReleaseEvent};
use punctual_program_jobs::JobOrder;
use punctual_sys::clock::monotonic_ns;
use punctual_sys::sched::thread_id;
use punctual_taskset::TaskChange;

use crate::abi::ALLOCATOR;
use crate::added_jobs::DomainEnds;
use crate::diagnostics::{not_done_here, wrong_cpu};
use crate::gsi::KernelGsi;
use crate::joining::{Joining, Members};
use crate::lending::Lend;
use crate::members;
use crate::page_waits::PageWaits;
use crate::policy_swap::{self, DomainSwap, Swapped};
use crate::programs::Programs;
use crate::reader::{Reader, RecordBatch, POLL_PERIOD};
use crate::request_doorbell::RequestDoorbell;
use crate::ring::Rings;
use punctual_diagnostic::Diagnostic;

mod changes;
mod jobs;
mod report;

pub(crate) use changes::NewTask;
use jobs::ProgramJobs;
use report::Report;

/// What a domain's thread is made with.
pub(crate) struct Config {
    pub domain: u32,
    pub cpu: u32,
    pub programs: Arc<Programs>,
    pub allocators: Allocators,
    pub limits: Limits,
    /// For a domain whose policies are asked at each job: what rings for events, and the ends of
    /// what the program requests.
    pub allocator: Option<(MapHandle, DomainEnds)>,
    pub joining: Vec<Joining>,
    /// Tasks of the set, of all domains: the places of others follow theirs.
    pub of_the_set: usize,
}

/// A request to a domain's thread.
pub(crate) enum Command {
    /// All members have joined: offsets count from here, ns.
    Begin(u64),
    /// One more task.
    Add(Box<NewTask>),
    /// The task of this index ends, whose threads become best-effort ones.
    Retire(usize),
    /// All threads of the task of this index are gone.
    Gone(usize),
    /// The task of this index has other parameters from its next release on.
    Change(usize, TaskChange),
    /// The task of this index is suspended, or resumed (`false`).
    Suspend(usize, bool),
    /// Other policies for groups.
    Swap(Box<DomainSwap>),
    /// The order of a group to whose tasks the program adds jobs.
    OrderJobs(u32, JobOrder),
    /// One task lends its jobs to another one, or to none any more.
    Lend(Lend),
    /// One more poll, and the end.
    Stop,
}

/// What names a release in the records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Key {
    /// The number that the dispatcher's reservation gave it.
    Reserved(u64),
    /// The cookie of its first job.
    Made(u64),
}

/// A release event, and the name of its release in the records.
pub(crate) struct KeyedEvent {
    pub event: ReleaseEvent,
    pub key: Key,
    /// The index of its task; [`NO_INDEX`](crate::joining::NO_INDEX) where it is of none. The
    /// event's own is the allocators' place for it.
    pub index: usize,
}

/// A report of a domain's thread to the run.
pub(crate) enum DomainEvent {
    /// The next task that the dispatcher adds is the one of this index.
    Joins(usize),
    /// It has this number in the dispatcher; `None`: it was not added.
    Joined(usize, Option<TaskId>),
    /// All tasks of the set are in the dispatcher.
    AllJoined,
    /// The first releases are set.
    Begun,
    /// Release events of the allocators.
    Events(EventBatch),
    /// What was recorded.
    Records(RecordBatch),
    /// It could not continue.
    Failed(Diagnostic),
    /// The last word of one of its threads.
    Stopped,
}

/// Release events. All their records were in the ring at `at`, CLOCK_MONOTONIC ns.
pub(crate) struct EventBatch {
    pub at: u64,
    pub events: Vec<KeyedEvent>,
    /// The indices of tasks of which no more will come.
    pub left: Vec<usize>,
    /// Events of the dispatcher that were handled.
    pub handled: u64,
}

/// Runs until [`Command::Stop`], or until the sender is gone.
pub(crate) fn run(
    config: Config,
    commands: &Receiver<Command>,
    events: &Sender<(u32, DomainEvent)>,
) {
    let domain = config.domain;
    let last = match live(config, commands, events) {
        Ok(()) => DomainEvent::Stopped,
        Err(e) => DomainEvent::Failed(e),
    };
    // A receiver that is gone has ended the run.
    drop(events.send((domain, last)));
}

fn live(
    config: Config,
    commands: &Receiver<Command>,
    events: &Sender<(u32, DomainEvent)>,
) -> Result<(), Diagnostic> {
    let Config { domain, cpu, programs, allocators, limits, allocator, joining, of_the_set } =
        config;
    members::pin(cpu)?;
    let mut gsi = KernelGsi::new(&programs, domain, monotonic_ns());
    let (doorbell, ends) = allocator.unzip();
    let bell = doorbell.as_ref().map(|bell| listen(bell, &mut gsi)).transpose()?;
    let (requests, mut jobs, mut of_tasks) = match ends {
        None => (None, ProgramJobs::default(), Vec::new()),
        Some(DomainEnds { doorbell, groups, events, tasks }) => {
            (Some(doorbell), ProgramJobs { groups, events, ..ProgramJobs::default() }, tasks)
        }
    };
    let bells = bell.as_ref().zip(requests.as_deref());
    let say = |what| events.send((domain, what)).is_ok();
    let mut members = Members::new(of_the_set);
    for one in joining {
        let index = one.index;
        let Some(task) = members.join(&mut gsi, &one, &say)? else {
            return Err(not_done_here(format!("CPU {cpu}: no room for a task")));
        };
        members.insert(task, one);
        if let Some(at) = of_tasks.iter().position(|(of, _)| *of == index) {
            jobs.add(index, task, of_tasks.swap_remove(at).1);
        }
    }
    if !say(DomainEvent::AllJoined) {
        return Ok(());
    }
    let Ok(Command::Begin(origin)) = commands.recv() else { return Ok(()) };
    let rings = Rings::new(&programs, domain, limits);
    // The records of an allocator's domain are read by another thread.
    let mut reader = bell.is_none().then(|| Reader::new(&programs, domain, limits));
    let place = (&*programs, domain, cpu);
    let mut at = Domain {
        place,
        allocators,
        allocates: bell.is_some(),
        gsi,
        rings,
        members,
        adding: Vec::new(),
        pages: PageWaits::default(),
        jobs,
        events: Vec::new(),
        left: Vec::new(),
        handled: 0,
        say: &say,
    };
    at.begin(origin)?;
    if !say(DomainEvent::Begun) {
        return Ok(());
    }
    at.poll()?;
    let mut next = Instant::now() + POLL_PERIOD;
    // The doorbell is silent about events of this thread's own commands.
    let mut more = at.drain_events()?;
    loop {
        let stop = at.wait(bells, commands, next, more)?;
        at.add_waiting()?;
        if requests.as_deref().is_some_and(RequestDoorbell::take) {
            at.process_jobs()?;
        }
        more = at.drain_events()?;
        if !stop && Instant::now() < next {
            // Jobs wait until an allocator sleeps again: its reports come later.
            continue;
        }
        next = Instant::now() + POLL_PERIOD;
        at.poll()?;
        more = at.drain_events()?;
        let has_events = !at.events.is_empty() || !at.left.is_empty();
        if has_events && !say(DomainEvent::Events(at.take_events())) {
            return Ok(());
        }
        if let Some(reader) = &mut reader {
            if !say(DomainEvent::Records(reader.gather()?)) {
                return Ok(());
            }
        }
        if stop {
            return Ok(());
        }
    }
}

/// The thread becomes the domain's allocator, and wakes from here on when there are events.
fn listen<'a>(
    doorbell: &'a MapHandle,
    gsi: &mut KernelGsi<'_>,
) -> Result<RingBuffer<'a>, Diagnostic> {
    let failed = |what: &str| {
        Diagnostic::machine(format!("no allocator thread: {what}"), "see punctual doctor")
    };
    let me = thread_id();
    let refusal = gsi.join(TaskId::NONE, me, ALLOCATOR);
    gsi.check()?;
    if refusal != 0 {
        return Err(failed(&members::why(me, refusal)));
    }
    let mut builder = RingBufferBuilder::new();
    // What it says is only that there is something.
    builder.add(doorbell, |_| 0).map_err(|e| failed(&e.to_string()))?;
    builder.build().map_err(|e| failed(&e.to_string()))
}

/// A domain that has begun.
struct Domain<'a> {
    /// Its number, and its CPU.
    place: (&'a Programs, u32, u32),
    allocators: Allocators,
    /// This thread is the domain's allocator.
    allocates: bool,
    gsi: KernelGsi<'a>,
    rings: Rings<'a>,
    members: Members,
    /// Tasks that wait for a number.
    adding: Vec<NewTask>,
    pages: PageWaits,
    jobs: ProgramJobs,
    events: Vec<KeyedEvent>,
    left: Vec<usize>,
    handled: u64,
    say: &'a dyn Fn(DomainEvent) -> bool,
}

impl Domain<'_> {
    fn begin(&mut self, origin: u64) -> Result<(), Diagnostic> {
        let Domain { allocators, gsi, members, .. } = self;
        let mut asked = allocators.begin(gsi, origin);
        for (task, index) in members.iter() {
            asked = asked.and_then(|()| allocators.add(gsi, index, task));
        }
        gsi.check()?;
        asked.map_err(|e| not_done_here(format!("the dispatcher refused the set: {e}")))
    }

    /// Handles the events that are there, and those that the allocators' answers lead to. Whether
    /// there are more.
    fn drain_events(&mut self) -> Result<bool, Diagnostic> {
        // An answer may lead to an event each time; others have something to say too.
        const MOST: usize = 1 << 14;
        for _ in 0..MOST {
            let Some(event) = self.rings.event() else { return Ok(false) };
            self.handle(&event)?;
            if self.rings.is_filling() {
                self.poll()?;
            }
        }
        Ok(true)
    }

    /// Gives back the room of the events that were taken.
    fn poll(&mut self) -> Result<(), Diagnostic> {
        self.rings.poll().map_err(wrong_cpu)
    }

    fn handle(&mut self, cause: &Event) -> Result<(), Diagnostic> {
        self.handled += 1;
        self.gsi.at(monotonic_ns());
        let Domain { allocators, gsi, members, pages, jobs, events, .. } = self;
        let channel = gsi.channel();
        let before = channel.last_job();
        // The kernel has already handled the releases of the dispatcher's own reservations.
        let reserved = |task: &TaskId| allocators.reservation_of(*task).is_some();
        let reserved = match cause {
            Event::Overrun { .. } => true,
            Event::JobEnded { task, .. } => reserved(task),
            _ => false,
        };
        let mut report = Report { channel: channel.clone(), members, pages, jobs, events };
        allocators.handle(gsi, cause, &mut |event| {
            let key = match *cause {
                // After a swap to a policy that makes its jobs, the job of this release is its.
                Event::Released { number, .. } if channel.last_job() == before => {
                    Key::Reserved(number)
                }
                _ => Key::Made(channel.last_job()),
            };
            report.event(event, key, reserved);
        });
        gsi.check()
    }

    /// All events so far precede the swap.
    fn swap(&mut self, swap: DomainSwap) -> Result<(), Diagnostic> {
        self.poll()?;
        self.drain_events()?;
        let DomainSwap { mut policies, answer } = swap;
        let Domain { place, allocators, gsi, .. } = self;
        let (at, refused) = match self.allocates {
            true => policy_swap::now(gsi, allocators, &mut policies),
            false => policy_swap::by_an_allocator(*place, allocators, &mut policies),
        }?;
        // A receiver that is gone has waited long enough.
        drop(answer.send(Swapped { domain: place.1, at, refused }));
        Ok(())
    }

    /// The release events since the last call.
    fn take_events(&mut self) -> EventBatch {
        let (events, left) = (std::mem::take(&mut self.events), std::mem::take(&mut self.left));
        let handled = std::mem::take(&mut self.handled);
        EventBatch { at: monotonic_ns(), events, left, handled }
    }

    /// Until the doorbell, the next poll, or a command, or not at all if there are `more` events;
    /// whether the command was the one to stop.
    fn wait(
        &mut self,
        bells: Option<(&RingBuffer<'_>, &RequestDoorbell)>,
        commands: &Receiver<Command>,
        next: Instant,
        more: bool,
    ) -> Result<bool, Diagnostic> {
        let mut command = match bells {
            Some(_) if more => commands.try_recv().map_err(|e| e == TryRecvError::Disconnected),
            Some((bell, requests)) => {
                requests.wait(bell, next.saturating_duration_since(Instant::now()));
                commands.try_recv().map_err(|e| e == TryRecvError::Disconnected)
            }
            None => commands
                .recv_timeout(next.saturating_duration_since(Instant::now()))
                .map_err(|e| e == RecvTimeoutError::Disconnected),
        };
        loop {
            match command {
                Ok(Command::Add(task)) => self.adding.push(*task),
                Ok(Command::Retire(index)) => self.remove(index, true)?,
                Ok(Command::Gone(index)) => self.remove(index, false)?,
                Ok(Command::Change(index, change)) => self.change(index, &change),
                Ok(Command::Suspend(index, on)) => self.suspend(index, on)?,
                Ok(Command::Lend(lend)) => lend.execute(&self.gsi.channel(), &self.members),
                Ok(Command::OrderJobs(group, order)) => {
                    // The host has checked the group and the order.
                    let Domain { allocators, gsi, .. } = self;
                    let _ = allocators.set_order(gsi, group, order.attributes());
                }
                Ok(Command::Swap(swap)) => self.swap(*swap)?,
                Ok(Command::Begin(_)) => {}
                Ok(Command::Stop) | Err(true) => return Ok(true),
                Err(false) => break,
            }
            self.gsi.check()?;
            command = commands.try_recv().map_err(|e| e == TryRecvError::Disconnected);
        }
        Ok(false)
    }
}
