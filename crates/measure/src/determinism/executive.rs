//! The executive's thread and those of its tasks. In their cycles they allocate nothing, take no
//! lock but those of the primitives, and see within one cycle that the run is over.

use std::io;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU32, AtomicU64, Ordering::*};
use std::sync::OnceLock;

use punctual_sys::clock::{monotonic_ns, thread_cpu_ns};
use punctual_sys::{futex, sched};

use super::kinds::{RealTimePolicy, ReleaseKind, TaskPlan, EXECUTIVE_PRIORITY};
use super::primitives::{
    block_signals, nanosleep, usleep, Condition, PosixSemaphore, Primitive, Timer,
};
use super::statistics::{Cycle, TaskStatistics, ThreadUse};
use super::work::Data;

/// A thread that measures, as others see it.
#[derive(Default)]
pub struct MeasuredThread {
    /// Its number; 0 before it runs.
    pub tid: AtomicI32,
    pub statistics: TaskStatistics,
    /// What it used in all, once it has ended.
    pub used: OnceLock<ThreadUse>,
}

impl MeasuredThread {
    /// By the thread itself, at its end.
    fn finish(&self) {
        let _ = self
            .used
            .set(ThreadUse { executed_ns: thread_cpu_ns(), page_faults: own_page_faults() });
    }
}

/// Page faults of this thread so far.
fn own_page_faults() -> u64 {
    // SAFETY: all zeros are a valid rusage, which the call fills.
    let used = unsafe {
        let mut used: libc::rusage = std::mem::zeroed();
        libc::getrusage(libc::RUSAGE_THREAD, &mut used);
        used
    };
    (used.ru_minflt + used.ru_majflt) as u64
}

/// A task and its release.
pub struct ReleasedTask {
    pub plan: &'static TaskPlan,
    pub measured: MeasuredThread,
    /// `None`: it has a clock of its own, or shares the broadcast condition variable.
    primitive: Option<Primitive>,
    /// Releases so far, those that found the task busy included.
    released: AtomicU64,
    /// When the latest one was made.
    released_at: AtomicU64,
}

impl ReleasedTask {
    pub fn new(plan: &'static TaskPlan) -> io::Result<ReleasedTask> {
        let primitive = match plan.kind {
            ReleaseKind::Dth => Some(Primitive::Futex(0.into())),
            ReleaseKind::Sth => Some(Primitive::Condition(Condition::new()?)),
            ReleaseKind::Sem => Some(Primitive::Semaphore(PosixSemaphore::new()?)),
            ReleaseKind::Sig => Some(Primitive::Signal(0.into())),
            _ => None,
        };
        let (measured, released, released_at) = Default::default();
        Ok(ReleasedTask { plan, measured, primitive, released, released_at })
    }
}

/// When a run begins, is measured, and ends: CLOCK_MONOTONIC ns.
#[derive(Debug, Clone, Copy)]
pub struct RunTimes {
    /// The first beat.
    pub start: u64,
    /// What is due before is not measured.
    pub begin: u64,
    /// What is due at this time or after it is not executed.
    pub end: u64,
}

/// What all threads of a run share.
pub struct Shared<'a> {
    pub cpu: u32,
    /// Time between two beats, ns.
    pub beat: u64,
    /// Units of work of each cycle.
    pub work: u32,
    pub tasks: &'a [ReleasedTask],
    pub executive: MeasuredThread,
    /// Of the tasks that are released by broadcast.
    pub broadcast: Condition,
    /// Threads that wait for the start.
    pub ready: AtomicU32,
    /// Not set where a thread could not be made ready.
    pub times: OnceLock<RunTimes>,
    /// 0 until the start, or until it is known that there will be none.
    pub decided: AtomicU32,
    /// The user ends the run.
    pub stop: &'a AtomicBool,
    /// The run has ended, or a thread could not be made ready.
    pub ended: AtomicBool,
}

impl Shared<'_> {
    /// Starts the threads that are ready, or ends them where `times` is not set.
    pub fn decide(&self) {
        self.decided.store(1, Release);
        futex::wake(&self.decided);
    }

    fn is_over(&self) -> bool {
        self.stop.load(Acquire) || self.ended.load(Acquire)
    }

    /// Makes this thread real-time and, with `prepare`, ready; waits for the others, and returns
    /// when the run is. `None`: some thread could not be made ready.
    fn enter<T>(
        &self,
        measured: &MeasuredThread,
        policy: RealTimePolicy,
        priority: u32,
        prepare: impl FnOnce() -> io::Result<T>,
    ) -> io::Result<Option<(T, RunTimes)>> {
        let kernels = match policy {
            RealTimePolicy::Fifo => libc::SCHED_FIFO,
            RealTimePolicy::Rr => libc::SCHED_RR,
        };
        block_signals();
        measured.tid.store(sched::thread_id(), Release);
        let ready = sched::pin(0, self.cpu)
            .and_then(|()| sched::set(0, kernels | libc::SCHED_RESET_ON_FORK, priority as i32))
            .and_then(|()| prepare());
        if ready.is_err() {
            self.ended.store(true, Release);
        }
        self.ready.fetch_add(1, Release);
        while self.decided.load(Acquire) == 0 {
            futex::wait(&self.decided, 0, u64::MAX);
        }
        Ok(Some(ready?).zip(self.times.get().copied()))
    }

    /// The executive: releases its tasks at each beat until the end, and then all of them once
    /// more, so that none of them waits.
    ///
    /// # Errors
    /// It could not be made ready.
    pub fn execute(&self) -> io::Result<()> {
        let entered =
            self.enter(&self.executive, RealTimePolicy::Fifo, EXECUTIVE_PRIORITY, Timer::new);
        if let Ok(Some((timer, times))) = &entered {
            self.beats(timer, *times);
        }
        self.ended.store(true, Release);
        self.release(|_| 1);
        self.executive.finish();
        entered.map(drop)
    }

    fn beats(&self, timer: &Timer, times: RunTimes) {
        timer.start_periodic(times.start, self.beat);
        // The number of the next beat.
        let mut next = 0u64;
        loop {
            let lost = timer.wait();
            let started = monotonic_ns();
            let first = next;
            next += lost + 1;
            let due = times.start + (next - 1) * self.beat;
            if due >= times.end || self.is_over() {
                // It may have slept through the last ones.
                let is_measured = |beat: &u64| {
                    (times.begin..times.end).contains(&(times.start + beat * self.beat))
                };
                let missed = (first..next - 1).filter(is_measured).count();
                self.executive.statistics.late.fetch_add(missed as u64, Relaxed);
                return;
            }
            // Of a task: the beats from `first` on and before `next` that release it.
            self.release(|task| {
                let every = u64::from(task.plan.every);
                next.div_ceil(every) - first.div_ceil(every)
            });
            if due >= times.begin {
                let cycle = Cycle { due, started, finished: monotonic_ns(), lost };
                self.executive.statistics.record(cycle, self.beat);
            }
        }
    }

    /// Releases each task, with so many releases; not at all with 0.
    fn release(&self, releases: impl Fn(&ReleasedTask) -> u64) {
        for task in self.tasks {
            if let (Some(primitive), count @ 1..) = (&task.primitive, releases(task)) {
                task.released_at.store(monotonic_ns(), Relaxed);
                primitive.release(&task.released, task.released.load(Relaxed) + count);
            }
        }
        self.broadcast.change(|| {
            let now = monotonic_ns();
            for task in self.tasks.iter().filter(|task| task.plan.kind == ReleaseKind::Bth) {
                task.released_at.store(now, Relaxed);
                task.released.store(task.released.load(Relaxed) + releases(task), Release);
            }
        });
        self.broadcast.broadcast();
    }

    /// A task: its cycles until the end.
    ///
    /// # Errors
    /// It could not be made ready.
    pub fn perform(&self, task: &ReleasedTask) -> io::Result<()> {
        let prepare = || {
            if let Some(Primitive::Signal(tid)) = &task.primitive {
                tid.store(sched::thread_id(), Relaxed);
            }
            (task.plan.kind == ReleaseKind::Hrt).then(Timer::new).transpose()
        };
        let entered = self.enter(&task.measured, task.plan.policy, task.plan.priority, prepare)?;
        let Some((timer, times)) = entered else { return Ok(()) };
        let period = self.beat * u64::from(task.plan.every);
        let (mut data, mut seen) = (Data::new(), 0);
        loop {
            let (due, lost) = match &timer {
                Some(timer) => own_release(period, |ns| {
                    timer.start_once(ns);
                    timer.wait();
                }),
                None => match task.plan.kind {
                    ReleaseKind::Hrn => own_release(period, nanosleep),
                    ReleaseKind::Hru => own_release(period, usleep),
                    _ => self.next_release(task, &mut seen),
                },
            };
            let started = monotonic_ns();
            if due >= times.end || self.is_over() {
                task.measured.finish();
                return Ok(());
            }
            data.work(self.work);
            if due >= times.begin {
                task.measured
                    .statistics
                    .record(Cycle { due, started, finished: monotonic_ns(), lost }, period);
            }
        }
    }

    /// Waits for the executive's next release: when it was made, and how many were lost before it.
    fn next_release(&self, task: &ReleasedTask, seen: &mut u64) -> (u64, u64) {
        match &task.primitive {
            Some(primitive) => primitive.wait(&task.released, *seen),
            None => Primitive::wait_for_broadcast(&self.broadcast, &task.released, *seen),
        }
        let released = task.released.load(Acquire);
        let lost = released - *seen - 1;
        *seen = released;
        (task.released_at.load(Relaxed), lost)
    }
}

/// Waits for a release that the task gives itself, a period from now: when it was due.
fn own_release(period: u64, wait: impl FnOnce(u64)) -> (u64, u64) {
    let due = monotonic_ns() + period;
    wait(period);
    (due, 0)
}
