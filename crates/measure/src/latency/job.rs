//! The job: it sleeps and says how late it woke.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Acquire, Ordering::Release};
use std::sync::Arc;

use punctual_diagnostic::Diagnostic;
use punctual_session::results::DispatcherStats;
use punctual_sys::clock::monotonic_ns;
use rtrb::{Consumer, Producer, RingBuffer};

use super::{JobClass, BUDGET, PERIOD, SLEEP};
use crate::periodic::{sleep_fully, CycleBody, JobsEnd, PeriodicJob, PeriodicJobs};

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

impl JobWindow {
    /// Runs the job and gives each sample to `sink`, in order.
    pub fn run(&self, sink: &mut dyn FnMut(Sample)) -> Result<WindowEnd, Diagnostic> {
        let (ring, mut samples) = RingBuffer::new(RING);
        let lost = Arc::new(AtomicU64::new(0));
        let mut job = Job { ring, lost: lost.clone(), left: self.periods, schedstat: None };
        let open = move || -> CycleBody {
            job.open();
            Box::new(move |release| job.measure(release))
        };
        let jobs = PeriodicJobs {
            cpu: self.cpu,
            class: self.class,
            period: PERIOD,
            budget: BUDGET,
            overload: false,
            longest: self.longest,
            stop: self.stop.clone(),
        };
        let job = PeriodicJob { offset: 0, open: Box::new(open) };
        let JobsEnd { dispatcher, notes } =
            jobs.run(vec![job], &mut || drain(&mut samples, sink))?;
        drain(&mut samples, sink);
        Ok(WindowEnd { lost: lost.load(Acquire), dispatcher, notes })
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
