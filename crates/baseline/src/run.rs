//! One run: set up, released all at once, observed, ended, and nothing left behind.

mod set_up;

use std::sync::atomic::{AtomicBool, Ordering::*};
use std::sync::Arc;
use std::thread::JoinHandle;

use punctual_diagnostic::Diagnostic;
use punctual_sys::clock::{monotonic_ns, sleep_until};
use punctual_sys::memory::MemoryLock;
use punctual_sys::process::RtTimeLimit;
use punctual_taskset::TaskSet;
use punctual_trace::Period;
use rtrb::Consumer;

use crate::command::TaskCommands;
use crate::plan::{nature, not_periodic, remarks};
use crate::refusal::Unsupported;
use crate::shared::{Control, TaskState};
use set_up::{NotStarted, SetUp};

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

impl BaselineHost {
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
