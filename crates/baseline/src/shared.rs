//! What the threads of a run share: atomics only, all made before the first thread starts.

use punctual_sys::clock::{monotonic_ns, sleep_until};
use punctual_trace::NEVER;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU32, AtomicU64, Ordering::*};

/// Where a thread can fail before the run begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SetupStep {
    /// Binding a task to its CPU.
    TaskAffinity,
    /// Giving a task its policy.
    TaskPolicy,
    /// Binding an observer or watchdog to its CPU.
    ObserverAffinity,
    /// Giving an observer or watchdog SCHED_FIFO 99.
    ObserverPolicy,
}

const SETUP_STEPS: [SetupStep; 4] = [
    SetupStep::TaskAffinity,
    SetupStep::TaskPolicy,
    SetupStep::ObserverAffinity,
    SetupStep::ObserverPolicy,
];

/// The run as a whole.
#[derive(Debug)]
pub struct Control {
    /// First instant of the run, ns; 0 until all threads are ready.
    pub start: AtomicU64,
    /// When the watchdogs end it, ns. Set before anything starts, so that set-up is bounded too.
    pub end: AtomicU64,
    /// All threads stop.
    pub stop: AtomicBool,
    /// Threads that are set up.
    pub ready: AtomicU32,
    /// Observers that are done.
    pub observed: AtomicU32,
    /// Records that found the ring full, and periods that ended before the observer got the CPU.
    pub lost: AtomicU64,
    /// First failure: errno, step, task or CPU; errno 0 is none. Written once.
    failure: [AtomicU32; 3],
    failed: AtomicBool,
}

impl Control {
    /// A run that has to begin before `limit`.
    pub fn new(limit: u64) -> Control {
        Control {
            start: AtomicU64::new(0),
            end: AtomicU64::new(limit),
            stop: AtomicBool::new(false),
            ready: AtomicU32::new(0),
            observed: AtomicU32::new(0),
            lost: AtomicU64::new(0),
            failure: [const { AtomicU32::new(0) }; 3],
            failed: AtomicBool::new(false),
        }
    }

    /// Records the first failure and stops all threads.
    pub fn fail(&self, step: SetupStep, of: u32, errno: i32) {
        if !self.failed.swap(true, AcqRel) {
            self.failure[1].store(step as u32, Relaxed);
            self.failure[2].store(of, Relaxed);
            self.failure[0].store(errno as u32, Release);
        }
        self.stop.store(true, Release);
    }

    /// The first failure: step, task or CPU, errno.
    pub fn failure(&self) -> Option<(SetupStep, u32, i32)> {
        let errno = self.failure[0].load(Acquire) as i32;
        let step = SETUP_STEPS[self.failure[1].load(Relaxed) as usize & 3];
        (errno != 0).then(|| (step, self.failure[2].load(Relaxed), errno))
    }

    /// Reports that the caller is set up and waits for the beginning; `None` if there will be none.
    pub fn wait_for_start(&self) -> Option<u64> {
        self.ready.fetch_add(1, AcqRel);
        loop {
            if self.stop.load(Acquire) {
                return None;
            }
            match self.start.load(Acquire) {
                0 => sleep_until(monotonic_ns() + 500_000),
                start => return Some(start),
            }
        }
    }
}

/// How many jobs a task may be behind before their stamps are overwritten.
pub const STAMPS: usize = 64;

/// One task, as its threads and the observer see it.
#[derive(Debug)]
pub struct TaskState {
    /// Its thread, or process and group of a command; 0 while there is none.
    pub id: AtomicI32,
    /// It has ended by itself.
    pub gone: AtomicBool,
    stamps: Vec<Stamp>,
}

/// When one job began and was done. Written by the task, read by the observer.
#[derive(Debug)]
struct Stamp {
    number: AtomicU64,
    started: AtomicU64,
    completed: AtomicU64,
}

impl TaskState {
    /// Not running yet.
    pub fn new() -> TaskState {
        let stamp = || Stamp {
            number: AtomicU64::new(NEVER),
            started: AtomicU64::new(NEVER),
            completed: AtomicU64::new(NEVER),
        };
        TaskState {
            id: AtomicI32::new(0),
            gone: AtomicBool::new(false),
            stamps: (0..STAMPS).map(|_| stamp()).collect(),
        }
    }

    /// The job with this number begins.
    pub fn begin(&self, number: u64, now: u64) {
        let stamp = &self.stamps[number as usize % STAMPS];
        // It is not read under its old number any more: the observer waits for fewer jobs than
        // there are stamps.
        stamp.number.store(NEVER, Release);
        stamp.completed.store(NEVER, Release);
        stamp.started.store(now, Release);
        stamp.number.store(number, Release);
    }

    /// The job with this number is done.
    pub fn done(&self, number: u64, now: u64) {
        self.stamps[number as usize % STAMPS].completed.store(now, Release);
    }

    /// When that job began and was done, as far as it has.
    pub fn stamps(&self, number: u64) -> (u64, u64) {
        let stamp = &self.stamps[number as usize % STAMPS];
        if stamp.number.load(Acquire) != number {
            return (NEVER, NEVER);
        }
        (stamp.started.load(Acquire), stamp.completed.load(Acquire))
    }
}
