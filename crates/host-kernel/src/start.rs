//! How long it takes from nothing to a machine that is scheduled, step by step.

use std::time::{Duration, Instant};

use punctual_taskset::{Body, Spin, TaskSet};

use crate::costs::capacity;
use crate::diagnostics::not_done_here;
use crate::limits::{parts, Room};
use crate::machine;
use crate::probe::Timer;
use crate::scheduler::Scheduler;
use punctual_diagnostic::Diagnostic;

/// The steps of a run's start, in their order, and the scheduler's end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Start {
    /// Asking the verifier which timer there is.
    pub probe: Duration,
    /// Reading the object.
    pub open: Duration,
    /// Maps, relocation by the kernel's types, verification, compilation.
    pub load: Duration,
    /// The dispatcher's memory, and the timer process where there is one.
    pub create: Duration,
    /// All tasks of the machine go to the scheduler.
    pub attach: Duration,
    /// They go back.
    pub detach: Duration,
}

impl Start {
    /// Takes them once, for a set of one task that is never started: for a moment the machine has
    /// the scheduler.
    ///
    /// # Errors
    /// As of [`KernelHost::start`](crate::KernelHost::start).
    pub fn try_it(cpu: u32) -> Result<Start, Diagnostic> {
        let set =
            TaskSet::single(10_000_000, 1_000_000, Body::Spin(Spin::Forever)).cpu(cpu).build();
        let set = set.map_err(|e| not_done_here(e.to_string()))?;
        let parts = parts(&set, capacity(&set).costs, Room::default())?;
        machine::check(&set.cpus())?;
        let mut last = Instant::now();
        let mut lap = || {
            let now = Instant::now();
            now - std::mem::replace(&mut last, now)
        };
        let timer = Timer::of_this_kernel()?;
        let probe = lap();
        let mut open = Duration::ZERO;
        let mut scheduler = Scheduler::load(|object| {
            open = lap();
            timer.prepare(object)
        })?;
        let load = lap();
        scheduler.create(0, cpu, parts[0].asks_policies, &parts[0].limits, timer.granularity())?;
        let thread =
            (timer == Timer::Process).then(|| scheduler.timer_process(0, cpu)).transpose()?;
        let create = lap();
        scheduler.attach()?;
        let attach = lap();
        scheduler.detach();
        let detach = lap();
        drop(thread);
        Ok(Start { probe, open, load, create, attach, detach })
    }
}
