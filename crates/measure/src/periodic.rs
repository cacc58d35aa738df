//! Periodic jobs on one CPU: tasks of the user host, or threads that release themselves.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::Arc;
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

use punctual_diagnostic::Diagnostic;
use punctual_session::results::DispatcherStats;
use punctual_session::{Execution, HostKind, RunOptions, Session, TaskThread};
use punctual_sys::clock::{monotonic_ns, sleep_until};
use punctual_sys::memory::{Extent, MemoryLock};
use punctual_sys::sched;
use punctual_taskset::TaskSet;

use crate::latency::JobClass;
use crate::running::run;

/// One cycle of a job, released at this instant (CLOCK_MONOTONIC, ns); false: it was the last.
pub type CycleBody = Box<dyn FnMut(u64) -> bool>;

/// A job: how it makes its cycle, in its own thread and before its first release.
pub struct PeriodicJob {
    /// Its first release, ns after the start.
    pub offset: u64,
    /// Makes the cycle. Nothing in a cycle may allocate or block.
    pub open: Box<dyn FnOnce() -> CycleBody + Send>,
}

/// Jobs of one period.
pub struct PeriodicJobs {
    pub cpu: u32,
    pub class: JobClass,
    /// Time between releases of each job, ns.
    pub period: u64,
    /// Execution time per period of each, ns; of the user host alone.
    pub budget: u64,
    /// The user host takes them although it promises nothing then.
    pub overload: bool,
    /// It ends after so long at the latest, ns.
    pub longest: u64,
    pub stop: Arc<AtomicBool>,
}

/// What came of the run beside what the cycles recorded.
#[derive(Debug, Default)]
pub struct JobsEnd {
    pub dispatcher: Option<DispatcherStats>,
    pub notes: Vec<String>,
}

/// Priority of SCHED_FIFO jobs: below what the kernel itself may need.
pub const FIFO_PRIORITY: i32 = 98;
const STACK: usize = 128 << 10;
/// Time between two calls of the observer.
const POLL: Duration = Duration::from_millis(25);
/// From the start to the first release of threads that release themselves, ns.
const LEAD: u64 = 20_000_000;

impl PeriodicJobs {
    /// Runs the jobs to their ends. `observe` is called again and again from this thread, which
    /// must be an ordinary one.
    ///
    /// # Errors
    /// The jobs cannot run: a CPU that is not there or in use, missing privileges.
    pub fn run(
        &self,
        jobs: Vec<PeriodicJob>,
        observe: &mut dyn FnMut(),
    ) -> Result<JobsEnd, Diagnostic> {
        match self.class {
            JobClass::User => self.as_tasks(jobs, observe),
            JobClass::Fifo | JobClass::Other => self.as_threads(jobs, observe),
        }
    }

    fn set(&self, jobs: &[PeriodicJob]) -> Result<TaskSet, Diagnostic> {
        let PeriodicJobs { cpu, period, budget, .. } = self;
        let mut text = format!("cpu = {cpu}\npolicy = \"edf\"\n");
        for (place, PeriodicJob { offset, .. }) in jobs.iter().enumerate() {
            text += &format!(
                "[[task]]\nname = \"job{place}\"\nperiod = \"{period}ns\"\n\
                budget = \"{budget}ns\"\n\
                 offset = \"{offset}ns\"\noverrun = \"skip\"\nwork = {{ spin = \"{budget}ns\" }}\n"
            );
        }
        TaskSet::parse(&text, "measure")
    }

    /// Tasks of the user host.
    fn as_tasks(
        &self,
        jobs: Vec<PeriodicJob>,
        observe: &mut dyn FnMut(),
    ) -> Result<JobsEnd, Diagnostic> {
        let set = self.set(&jobs)?;
        let threads = jobs.into_iter().map(|PeriodicJob { open, .. }| {
            let body = move |task: TaskThread<'_>| {
                let mut cycle = open();
                while let Some(released) = task.wait_period() {
                    if !cycle(released.release) {
                        break;
                    }
                }
            };
            Execution::Thread { stack: STACK, body: Box::new(body) }
        });
        let options = RunOptions { stop: self.stop.clone(), ..RunOptions::default() };
        let admitted = Session::new(set, HostKind::User)?.admit(self.overload)?;
        let end = monotonic_ns().saturating_add(self.longest);
        let mut poll = |_| {
            observe();
            monotonic_ns() < end
        };
        let ran = run(admitted, options, threads.collect(), &mut |_| {}, &mut poll)?;
        Ok(JobsEnd { dispatcher: ran.results.dispatcher, notes: ran.notes })
    }

    /// Threads that release themselves.
    fn as_threads(
        &self,
        jobs: Vec<PeriodicJob>,
        observe: &mut dyn FnMut(),
    ) -> Result<JobsEnd, Diagnostic> {
        let fifo = self.class == JobClass::Fifo;
        let over = Arc::new(AtomicBool::new(false));
        let locked = fifo.then(|| MemoryLock::take(Extent::Present));
        let start = monotonic_ns() + LEAD;
        let mut threads = Vec::new();
        let mut refused = None;
        for job in jobs {
            match self.thread(job, start, fifo, over.clone()) {
                Ok(thread) => threads.push(thread),
                Err(e) => {
                    over.store(true, Relaxed);
                    refused = Some(e);
                }
            }
        }
        let end = monotonic_ns().saturating_add(self.longest);
        while threads.iter().any(|thread| !thread.is_finished()) {
            std::thread::sleep(POLL);
            observe();
            if self.stop.load(Relaxed) || monotonic_ns() >= end {
                over.store(true, Relaxed);
            }
        }
        let lived: Vec<_> = threads.into_iter().map(JoinHandle::join).collect();
        let unlocked = locked.and_then(Result::err);
        if let Some(e) = refused {
            return Err(Diagnostic::refused("no thread can be made", e, "raise RLIMIT_NPROC"));
        }
        for life in lived {
            match life {
                Ok(Ok(())) => {}
                Ok(Err(e)) => {
                    let under = if fifo { " under SCHED_FIFO" } else { "" };
                    return Err(Diagnostic::refused(
                        format!("the job cannot run on CPU {}{under}", self.cpu),
                        e,
                        "run as root, on a CPU that punctual doctor lists",
                    ));
                }
                Err(_) => return Err(Diagnostic::machine("a job's thread panicked", "report it")),
            }
        }
        let notes =
            unlocked.map(|e| format!("memory could not be locked ({e}); page faults may show"));
        Ok(JobsEnd { notes: notes.into_iter().collect(), dispatcher: None })
    }

    fn thread(
        &self,
        job: PeriodicJob,
        start: u64,
        fifo: bool,
        over: Arc<AtomicBool>,
    ) -> std::io::Result<JoinHandle<std::io::Result<()>>> {
        let (cpu, period) = (self.cpu, self.period);
        let life = move || {
            sched::pin(0, cpu)?;
            let mut cycle = (job.open)();
            if fifo {
                sched::set_fifo(0, FIFO_PRIORITY)?;
            }
            let first = start + job.offset;
            let mut release = first;
            while !over.load(Relaxed) {
                sleep_fully(release);
                if !cycle(release) {
                    break;
                }
                // As an overrun of a task that skips: releases gone by are left out.
                release = first + (monotonic_ns().saturating_sub(first) / period + 1) * period;
            }
            sched::set_other(0)
        };
        Builder::new().name("job".into()).stack_size(STACK).spawn(life)
    }
}

/// Sleeps until an instant although signals come: the user host parks threads by one.
pub fn sleep_fully(instant: u64) {
    while monotonic_ns() < instant {
        sleep_until(instant);
    }
}
