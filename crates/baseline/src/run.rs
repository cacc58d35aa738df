//! One run: set up, released all at once, observed, ended, and nothing left behind.

use std::sync::atomic::{AtomicBool, Ordering::*};
use std::sync::Arc;
use std::thread::{Builder, JoinHandle};

use punctual_diagnostic::Diagnostic;
use punctual_sys::clock::{monotonic_ns, sleep_until};
use punctual_sys::memory::{Extent, MemoryLock};
use punctual_sys::process::RtTimeLimit;
use punctual_taskset::{Body, DomainId, TaskSet};
use punctual_trace::Period;
use punctual_workload::{Spinner, Work};
use rtrb::{Consumer, RingBuffer};

use crate::command::{Failed, TaskCommands};
use crate::judge::{Nature, Terms};
use crate::observer::{Observer, Watch};
use crate::plan::{self, guarded, nature, not_periodic, observing, remarks, room, suspends};
use crate::refusal::{explain, not_started, slow, Unsupported};
use crate::shared::{Control, SetupStep, TaskState};
use crate::sys::number;
use crate::watchdog::Watchdog;
use crate::worker::Worker;

/// The kernel policy that is to run the set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Baseline {
    /// SCHED_FIFO, priorities in the order of the set's policy (rate monotonic for `edf`).
    Fifo,
    /// SCHED_DEADLINE with each task's budget, deadline and period.
    Deadline,
    /// SCHED_OTHER.
    Other,
}

/// How to run it.
#[derive(Debug, Clone)]
pub struct Options {
    /// How long, ns.
    pub duration: u64,
    /// Ends it early once true, within some 20 ms.
    pub stop: Arc<AtomicBool>,
    /// SCHED_DEADLINE without pinning the tasks: they share all CPUs. Other baselines ignore it.
    pub unpinned: bool,
}

/// The result of a start.
#[derive(Debug)]
pub enum BaselineStart {
    /// The first release is some 5 ms ahead.
    Running(Box<BaselineHost>),
    /// The machine or the kernel's policies cannot run the set; nothing ran.
    NotPossible(Unsupported),
}

/// A run that took place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BaselineRun {
    /// The first release, ns on CLOCK_MONOTONIC.
    pub started: u64,
    /// The end, ns on CLOCK_MONOTONIC: for `Collector::finish`.
    pub ended: u64,
    /// Whether each task was bound to its CPU.
    pub pinned: bool,
    /// Whether it was stopped before its time.
    pub interrupted: bool,
    /// Periods without a record because the caller, or an observer, did not get the CPU for too
    /// long.
    pub lost: u64,
    /// What a reader should know.
    pub notes: Vec<String>,
}

/// Longest set-up, s.
const SET_UP: u64 = 5;
/// Stack of each thread: they call nothing deep.
const STACK: usize = 128 * 1024;
const SECOND: u64 = 1_000_000_000;
/// Time between two readings of the rings: the caller's thread sleeps in between, so that it
/// disturbs no task.
const POLL: u64 = 10_000_000;

/// What the threads of a run share.
#[derive(Debug)]
struct Shared {
    control: Control,
    tasks: Vec<TaskState>,
    /// Which tasks are commands.
    commands: Vec<bool>,
    /// The caller's.
    stop: Arc<AtomicBool>,
}

/// A running set. Dropped, it ends everything.
///
/// The thread that started it must keep it: commands die with that thread. It should be an ordinary
/// one.
#[derive(Debug)]
pub struct BaselineHost {
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
    rings: Vec<Consumer<Period>>,
    commands: Option<TaskCommands>,
    pinned: bool,
    started: u64,
    ended: u64,
    notes: Vec<String>,
    _memory: Option<MemoryLock>,
    /// Last, because it bounds the threads.
    _limit: RtTimeLimit,
}

/// Starts `set` under `baseline`. Adopted processes (`pid`) are left alone.
///
/// # Errors
/// A request that cannot be meant: a command that does not start, a CPU that is not there.
pub fn start(
    set: &TaskSet,
    baseline: Baseline,
    options: &Options,
) -> Result<BaselineStart, Diagnostic> {
    if let Some(refusal) = not_periodic(set) {
        return Ok(BaselineStart::NotPossible(refusal));
    }
    let unpinned = options.unpinned && baseline == Baseline::Deadline;
    let mut host = BaselineHost::new(set, options, unpinned);
    let set_up = SetUp {
        set,
        baseline,
        unpinned,
        natures: set.tasks.iter().map(|task| nature(&task.body)).collect(),
    };
    match host.set_up(&set_up) {
        Ok(()) => {}
        Err(NotStarted::Error(error)) => return Err(error),
        Err(NotStarted::Thread) => return set_up.refused(&host.shared.control),
    }
    host.notes.extend(remarks(set, baseline, unpinned, &set_up.natures));
    host.release(options.duration);
    Ok(BaselineStart::Running(Box::new(host)))
}

/// What a set-up is made with.
struct SetUp<'a> {
    set: &'a TaskSet,
    baseline: Baseline,
    unpinned: bool,
    natures: Vec<Option<Nature>>,
}

/// Why a run does not begin.
enum NotStarted {
    /// A thread failed, the caller stopped it, or the time was up: see [`Control::failure`].
    Thread,
    Error(Diagnostic),
}

impl From<Diagnostic> for NotStarted {
    fn from(error: Diagnostic) -> NotStarted {
        NotStarted::Error(error)
    }
}

impl BaselineHost {
    fn new(set: &TaskSet, options: &Options, unpinned: bool) -> BaselineHost {
        let shared = Shared {
            control: Control::new(monotonic_ns() + SET_UP * SECOND),
            tasks: set.tasks.iter().map(|_| TaskState::new()).collect(),
            commands: set
                .tasks
                .iter()
                .map(|task| nature(&task.body) == Some(Nature::Command))
                .collect(),
            stop: options.stop.clone(),
        };
        BaselineHost {
            shared: Arc::new(shared),
            threads: Vec::new(),
            rings: Vec::new(),
            commands: None,
            pinned: !unpinned,
            started: 0,
            ended: 0,
            notes: Vec::new(),
            _memory: None,
            _limit: RtTimeLimit::set(options.duration.saturating_add((SET_UP + 5) * SECOND)),
        }
    }

    /// Watchdogs and observers first: no task may get its policy before there is a thread above it.
    fn set_up(&mut self, set_up: &SetUp<'_>) -> Result<(), NotStarted> {
        let set = set_up.set;
        let domains = plan::domains(set);
        let all = set.only_cpus()?;
        let cpus: Vec<u32> = domains.iter().map(|domain| all[domain.0 as usize]).collect();
        for cpu in guarded(&cpus) {
            self.spawn("watchdog", move |shared| {
                let Shared { control, tasks, commands, stop } = shared;
                Watchdog { cpu, tasks, commands, asked: stop, control }.live();
            })?;
        }
        for (domain, cpu) in domains.into_iter().zip(cpus) {
            self.observe(set_up, domain, cpu)?;
        }
        self.wait_ready()?;
        let spinner = Spinner::calibrate();
        let policies = plan::policies(set_up.set, set_up.baseline);
        for (i, task) in set_up.set.tasks.iter().enumerate() {
            let Some(work) = Work::of(&task.body) else { continue };
            let cpu = self.pinned.then_some(all[task.domain.0 as usize]);
            let policy = policies[i];
            let (offset, period) = (task.offset, task.period);
            self.spawn("task", move |shared| {
                let (state, control) = (&shared.tasks[i], &shared.control);
                Worker {
                    task: i as u32,
                    cpu,
                    policy,
                    offset,
                    period,
                    work,
                    spinner,
                    state,
                    control,
                }
                .live();
            })?;
        }
        self.wait_ready()?;
        match MemoryLock::take(Extent::Present) {
            Ok(lock) => self._memory = Some(lock),
            Err(e) => {
                let why = std::io::Error::from_raw_os_error(number(&e));
                let note = format!("memory could not be locked ({why}); page faults may show");
                self.notes.push(note);
            }
        }
        for (i, task) in set_up.set.tasks.iter().enumerate() {
            let Body::Command(words) = &task.body else { continue };
            let commands = match &mut self.commands {
                Some(commands) => commands,
                none => none.insert(TaskCommands::new()?),
            };
            let cpu = self.pinned.then_some(all[task.domain.0 as usize]);
            match commands.start((i, &task.name), words, cpu, policies[i]) {
                Ok(()) => {}
                Err(Failed::Refused(errno)) => {
                    self.shared.control.fail(SetupStep::TaskPolicy, i as u32, errno);
                    return Err(NotStarted::Thread);
                }
                Err(Failed::Error(error)) => return Err(NotStarted::Error(error)),
            }
        }
        Ok(())
    }

    /// Starts the observer of one domain, on its CPU.
    fn observe(
        &mut self,
        set_up: &SetUp<'_>,
        domain: DomainId,
        cpu: u32,
    ) -> Result<(), Diagnostic> {
        let SetUp { set, baseline, unpinned, ref natures } = *set_up;
        let tasks = set.tasks.iter().enumerate().filter(|(_, task)| task.domain == domain);
        let terms: Vec<(Terms, u64)> = tasks
            .filter_map(|(i, task)| {
                let (period, deadline, budget) = (task.period, task.deadline, task.budget);
                let (nature, suspends) = (natures[i]?, suspends(&task.body));
                Some((
                    Terms { task: i as u32, period, deadline, budget, nature, suspends },
                    task.offset,
                ))
            })
            .collect();
        let (ring, taker) = RingBuffer::new(room(set, domain));
        self.rings.push(taker);
        let pinned = (!unpinned).then_some(cpu);
        let policies = observing(set, baseline, unpinned);
        self.spawn("observer", move |shared| {
            let watch = |(terms, offset): (Terms, u64)| {
                let state = &shared.tasks[terms.task as usize];
                Watch::new(terms, offset, state)
            };
            let watches = terms.into_iter().map(watch).collect();
            Observer { cpu, pinned, policies, watches, ring, control: &shared.control }.live();
        })
    }

    fn spawn(
        &mut self,
        what: &'static str,
        life: impl FnOnce(&Shared) + Send + 'static,
    ) -> Result<(), Diagnostic> {
        let shared = self.shared.clone();
        let thread = Builder::new().name(format!("baseline-{what}")).stack_size(STACK);
        let started =
            thread.spawn(move || life(&shared)).map_err(|error| not_started(what, error))?;
        self.threads.push(started);
        Ok(())
    }

    /// Waits until all threads are ready, one failed, the caller stopped it, or the time was up.
    fn wait_ready(&self) -> Result<(), NotStarted> {
        let control = &self.shared.control;
        while (control.ready.load(Acquire) as usize) < self.threads.len()
            && !control.stop.load(Acquire)
        {
            sleep_until(monotonic_ns() + 500_000);
        }
        if control.stop.load(Acquire) {
            return Err(NotStarted::Thread);
        }
        Ok(())
    }

    /// The first release is at `started`; the watchdogs end the run `duration` ns later.
    fn release(&mut self, duration: u64) {
        let Shared { control, tasks, .. } = &*self.shared;
        self.started = monotonic_ns() + 5_000_000;
        self.ended = self.started.saturating_add(duration);
        control.end.store(self.ended, Release);
        control.start.store(self.started, Release);
        if let Some(commands) = &self.commands {
            // Watchdogs learn of them when nothing returns early any more: until then none
            // executes, and they are reaped where the run ends.
            commands.pids().for_each(|(task, pid)| tasks[task].id.store(pid, Release));
            commands.release();
        }
    }

    /// The first release, CLOCK_MONOTONIC ns.
    pub fn started(&self) -> u64 {
        self.started
    }

    /// Sleeps for 10 ms, and gives each whole period of each task to `sink`. Whether the run is
    /// over.
    pub fn poll(&mut self, sink: &mut dyn FnMut(Period)) -> bool {
        sleep_until(monotonic_ns() + POLL);
        let Shared { control, tasks, .. } = &*self.shared;
        // Read before the rings are emptied: what was pushed before it became true is taken below.
        let over = control.observed.load(Acquire) as usize >= self.rings.len();
        for ring in &mut self.rings {
            while let Ok(period) = ring.pop() {
                sink(period);
            }
        }
        if let Some(commands) = &mut self.commands {
            commands.ended().for_each(|task| tasks[task].gone.store(true, Release));
            self.notes.extend(commands.replace_dead_guardian());
        }
        over
    }

    /// The end: everything is stopped and restored. After [`poll`](BaselineHost::poll) returned
    /// true all periods have been reported; earlier, the rest is dropped.
    pub fn finish(mut self) -> BaselineRun {
        let stopped = monotonic_ns();
        let problems = self.end();
        self.notes.splice(0..0, problems);
        let Shared { control, stop, .. } = &*self.shared;
        BaselineRun {
            started: self.started,
            ended: self.ended.min(stopped),
            pinned: self.pinned,
            interrupted: stop.load(Acquire) && stopped < self.ended,
            lost: control.lost.load(Acquire),
            notes: std::mem::take(&mut self.notes),
        }
    }

    /// Stops all threads and commands; returns what could not be ended.
    fn end(&mut self) -> Vec<String> {
        let Shared { control, tasks, commands, .. } = &*self.shared;
        control.stop.store(true, Release);
        for (task, _) in tasks.iter().zip(commands).filter(|(_, &command)| command) {
            // First not reachable for the watchdogs: once reaped, its id may be another process's.
            task.id.store(0, Release);
        }
        let problems = self.commands.take().map(TaskCommands::end).unwrap_or_default();
        for thread in self.threads.drain(..) {
            // A panic in one of them was printed; the others end all the same.
            drop(thread.join());
        }
        problems
    }
}

impl Drop for BaselineHost {
    fn drop(&mut self) {
        // `punctual clean` and `punctual doctor` report what remains.
        drop(self.end());
    }
}

impl SetUp<'_> {
    /// Why it did not begin: a failure, the caller's stop, or too slow.
    fn refused(&self, control: &Control) -> Result<BaselineStart, Diagnostic> {
        if let Some(failure) = control.failure() {
            return explain(self.set, self.baseline, self.unpinned, failure)
                .map(BaselineStart::NotPossible);
        }
        if monotonic_ns() >= control.end.load(Acquire) {
            return Err(slow(SET_UP));
        }
        Ok(BaselineStart::NotPossible(Unsupported {
            reason: "it was interrupted before it began".into(),
            help: Vec::new(),
            unpinned_may_work: false,
        }))
    }
}
