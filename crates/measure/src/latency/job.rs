//! The job: it sleeps and says how late it woke.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::sync::atomic::{
    AtomicBool, AtomicU64, Ordering::Acquire, Ordering::Relaxed, Ordering::Release,
};
use std::sync::Arc;
use std::thread::Builder;
use std::time::Duration;

use punctual_diagnostic::Diagnostic;
use punctual_session::results::DispatcherStats;
use punctual_session::{Execution, HostKind, RunOptions, Session, StartOutcome};
use punctual_sys::clock::{monotonic_ns, sleep_until};
use punctual_sys::{memory, sched};
use punctual_taskset::{Body, Overrun, Spin, TaskSet};
use rtrb::{Consumer, Producer, RingBuffer};

use super::{JobClass, BUDGET, PERIOD, SLEEP};

/// What one period showed; ns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sample {
    /// From the release to the first instruction.
    pub release: u64,
    /// From the end of the sleep, as it was asked for, to the next instruction.
    pub latency: u64,
    /// Of that, the time for which it was runnable and did not run; `None`: not counted here.
    pub waited: Option<u64>,
}

/// One window of one row.
pub struct JobWindow {
    pub cpu: u32,
    pub class: JobClass,
    pub periods: u64,
    /// It ends after so long at the latest, ns.
    pub longest: u64,
    pub stop: Arc<AtomicBool>,
}

/// What came of a window beside its samples.
#[derive(Debug, Default)]
pub struct WindowEnd {
    pub lost: u64,
    pub dispatcher: Option<DispatcherStats>,
    pub notes: Vec<String>,
}

/// Samples that may wait: eight seconds of them.
const RING: usize = 1 << 14;
const STACK: usize = 128 << 10;
/// Priority of the SCHED_FIFO job: below what the kernel itself may need.
pub const FIFO_PRIORITY: i32 = 98;
/// Time between two readings of the ring.
const POLL: Duration = Duration::from_millis(25);
/// From the start to the first release of a thread that releases itself, ns.
const LEAD: u64 = 20_000_000;

impl JobWindow {
    /// Runs the job and gives each sample to `sink`, in order.
    pub fn run(&self, sink: &mut dyn FnMut(Sample)) -> Result<WindowEnd, Diagnostic> {
        let (ring, mut samples) = RingBuffer::new(RING);
        let lost = Arc::new(AtomicU64::new(0));
        let job = Job { ring, lost: lost.clone(), left: self.periods, schedstat: None };
        let end = match self.class {
            JobClass::User => self.as_task(job, &mut samples, sink),
            JobClass::Fifo | JobClass::Other => self.as_thread(job, &mut samples, sink),
        }?;
        drain(&mut samples, sink);
        Ok(WindowEnd { lost: lost.load(Acquire), ..end })
    }

    /// A task of the user host.
    fn as_task(
        &self,
        mut job: Job,
        samples: &mut Consumer<Sample>,
        sink: &mut dyn FnMut(Sample),
    ) -> Result<WindowEnd, Diagnostic> {
        let set = TaskSet::single(PERIOD, BUDGET, Body::Spin(Spin::For(BUDGET)))
            .name("latency")
            .cpu(self.cpu)
            .overrun(Overrun::Skip)
            .build()?;
        let body = move |task: &mut punctual_session::ThreadTask| {
            job.open();
            while let Some(released) = task.wait_period() {
                if !job.measure(released.release) {
                    break;
                }
            }
        };
        let options = RunOptions { stop: self.stop.clone(), ..RunOptions::default() };
        let thread = Execution::Thread { stack: STACK, body: Box::new(body) };
        let admitted = Session::new(set, HostKind::User)?.admit(false)?;
        let mut running = match admitted.start_with(options, vec![thread])? {
            StartOutcome::Running(running) => running,
            StartOutcome::NotPossible(refusal, _) => {
                return Err(Diagnostic::machine(refusal.reason, refusal.help.join("; ")));
            }
        };
        let end = monotonic_ns().saturating_add(self.longest);
        while running.poll(&mut |_| {})? && monotonic_ns() < end {
            drain(samples, sink);
        }
        let outcome = running.finish(&mut |_| {})?;
        if let Some(failure) = outcome.failure {
            return Err(failure);
        }
        let not_restored = |problem| format!("not restored: {problem} (punctual clean)");
        let notes =
            outcome.problems.into_iter().map(not_restored).chain(outcome.results.notes).collect();
        Ok(WindowEnd { dispatcher: outcome.results.dispatcher, notes, lost: 0 })
    }

    /// A thread that releases itself.
    fn as_thread(
        &self,
        mut job: Job,
        samples: &mut Consumer<Sample>,
        sink: &mut dyn FnMut(Sample),
    ) -> Result<WindowEnd, Diagnostic> {
        let fifo = self.class == JobClass::Fifo;
        let (cpu, over) = (self.cpu, Arc::new(AtomicBool::new(false)));
        let is_over = over.clone();
        let locked = fifo.then(memory::lock_present);
        let life = move || {
            sched::pin(0, cpu)?;
            job.open();
            if fifo {
                sched::set_fifo(0, FIFO_PRIORITY)?;
            }
            let first = monotonic_ns() + LEAD;
            let mut release = first;
            while !is_over.load(Relaxed) {
                sleep_fully(release);
                if !job.measure(release) {
                    break;
                }
                // As an overrun of a task that skips: releases gone by are left out.
                let number = (monotonic_ns() - first) / PERIOD + 1;
                release = first + number * PERIOD;
            }
            sched::set_other(0)
        };
        let thread = Builder::new().name("latency".into()).stack_size(STACK).spawn(life);
        let thread = thread
            .map_err(|e| Diagnostic::refused("no thread can be made", e, "raise RLIMIT_NPROC"))?;
        let end = monotonic_ns().saturating_add(self.longest);
        while !thread.is_finished() {
            std::thread::sleep(POLL);
            drain(samples, sink);
            if self.stop.load(Relaxed) || monotonic_ns() >= end {
                over.store(true, Release);
            }
        }
        let lived = thread.join();
        if locked.as_ref().is_some_and(Result::is_ok) {
            memory::unlock_all();
        }
        match lived {
            Ok(Ok(())) => {}
            Ok(Err(e)) => {
                let what = format!(
                    "the job cannot run on CPU {cpu}{}",
                    if fifo { " under SCHED_FIFO" } else { "" }
                );
                return Err(Diagnostic::refused(
                    what,
                    e,
                    "run as root, on a CPU that punctual doctor lists",
                ));
            }
            Err(_) => return Err(Diagnostic::machine("the job's thread panicked", "report it")),
        }
        let unlocked = locked.and_then(Result::err);
        let notes =
            unlocked.map(|e| format!("memory could not be locked ({e}); page faults may show"));
        Ok(WindowEnd { notes: notes.into_iter().collect(), ..WindowEnd::default() })
    }
}

fn drain(samples: &mut Consumer<Sample>, sink: &mut dyn FnMut(Sample)) {
    while let Ok(sample) = samples.pop() {
        sink(sample);
    }
}

/// The job itself. Nothing here allocates once it is open.
struct Job {
    ring: Producer<Sample>,
    lost: Arc<AtomicU64>,
    /// Periods to measure.
    left: u64,
    /// The calling thread's times: executed, runnable but not running, and how often it ran.
    schedstat: Option<File>,
}

impl Job {
    /// Opens what it reads, in its own thread.
    fn open(&mut self) {
        self.schedstat = File::open("/proc/thread-self/schedstat").ok();
    }

    /// One period, released at `release`. Whether there are more to measure.
    fn measure(&mut self, release: u64) -> bool {
        let started = monotonic_ns();
        let before = self.run_delay();
        let end = monotonic_ns() + SLEEP;
        sleep_fully(end);
        let latency = monotonic_ns() - end;
        let waited = before
            .zip(self.run_delay())
            .map(|(before, after)| after.saturating_sub(before).min(latency));
        let sample = Sample { release: started.saturating_sub(release), latency, waited };
        if self.ring.push(sample).is_err() {
            self.lost.fetch_add(1, Release);
        }
        self.left = self.left.saturating_sub(1);
        self.left > 0
    }

    /// For how long this thread was runnable and did not run, ns: exact while it runs.
    fn run_delay(&self) -> Option<u64> {
        let mut text = [0u8; 64];
        let read = self.schedstat.as_ref()?.read_at(&mut text, 0).ok()?;
        std::str::from_utf8(text.get(..read)?).ok()?.split_ascii_whitespace().nth(1)?.parse().ok()
    }
}

/// Sleeps until an instant although signals come: the user host parks threads by one.
fn sleep_fully(instant: u64) {
    while monotonic_ns() < instant {
        sleep_until(instant);
    }
}
