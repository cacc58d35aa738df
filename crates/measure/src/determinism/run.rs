//! A run: its threads, and the thread that observes them.

use std::io;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::*};
use std::sync::OnceLock;
use std::thread::Builder;

use punctual_diagnostic::Diagnostic;
use punctual_process::check_privileges;
use punctual_sys::clock::{monotonic_ns, sleep_until};
use punctual_sys::memory::{Extent, MemoryLock};
use punctual_sys::process::RtTimeLimit;

use super::executive::{MeasuredThread, ReleasedTask, RunTimes, Shared};
use super::figures::{CpuUse, DeterminismRun, TaskFigures};
use super::kinds::{RealTimePolicy, ReleaseKind, EXECUTIVE_PRIORITY, TASKS};
use super::primitives::Condition;
use super::statistics::ThreadUse;
use super::work;

/// A run that is asked for.
#[derive(Debug, Clone, Copy)]
pub struct DeterminismConfig {
    /// The CPU on which all tasks run.
    pub cpu: u32,
    /// Heart beats a second: 1 to 1,000,000.
    pub rate: u32,
    /// Units of work of each task cycle.
    pub work: u32,
    /// How long to measure, ns.
    pub duration: u64,
}

/// From the threads' start to the first beat, and from there to what is measured, ns: by then each
/// task has run, and its memory is in the caches as it will be.
const LEAD_NS: u64 = 10_000_000;
const WARM_UP_NS: u64 = 100_000_000;
/// Between two looks of the observer, ns.
const LOOK_NS: u64 = 250_000_000;
/// Between two looks at whether the run is over, ns.
const NAP_NS: u64 = 50_000_000;
/// A run that uses more of the CPU than this, ppm, is ended: near 95 % the kernel's throttling is
/// what would be measured.
const TOO_MUCH_PPM: u64 = 900_000;
/// A thread that executes for so long without waiting is broken, ns: the kernel ends the process.
const UNBROKEN_NS: u64 = 2_000_000_000;
/// Locked and brought in.
const STACK: usize = 256 << 10;

/// Measures, and shows `observe` the figures some times a second. Ends after the duration, or when
/// `stop` is set; what was measured is returned then, too. The memory of the process is locked
/// meanwhile.
///
/// # Errors
/// Not admitted: the heart beat is too fast. Machine: privileges, memory or threads are missing.
/// With figures: the tasks used so much of the CPU that the run was ended.
pub fn measure(
    config: DeterminismConfig,
    stop: &AtomicBool,
    observe: &mut dyn FnMut(&DeterminismRun),
) -> Result<(DeterminismRun, Option<Diagnostic>), Diagnostic> {
    let cost = work::cost(config.work);
    let units = work::admit(config.rate, config.work, cost)?;
    check_privileges(&[config.cpu])?;
    let failed = |e: io::Error| {
        Diagnostic::refused(
            "the measuring threads cannot be made ready",
            e,
            "see punctual doctor for what is missing",
        )
    };
    let _memory = MemoryLock::take(Extent::All).map_err(failed)?;
    let _limit = RtTimeLimit::set(UNBROKEN_NS);
    let tasks: Vec<ReleasedTask> =
        TASKS.iter().map(ReleasedTask::new).collect::<io::Result<_>>().map_err(failed)?;
    let shared = Shared {
        cpu: config.cpu,
        beat: 1_000_000_000 / u64::from(config.rate.max(1)),
        work: units,
        tasks: &tasks,
        executive: MeasuredThread::default(),
        broadcast: Condition::new().map_err(failed)?,
        ready: AtomicU32::new(0),
        times: OnceLock::new(),
        decided: AtomicU32::new(0),
        stop,
        ended: AtomicBool::new(false),
    };
    let mut observer = Observer::new(config, cost, &shared);
    let ended = std::thread::scope(|scope| {
        let shared = &shared;
        let thread = |n: usize| Builder::new().name(task_name(n)).stack_size(STACK);
        let mut threads = vec![thread(0).spawn_scoped(scope, || shared.execute())];
        threads.extend(
            (1..)
                .zip(shared.tasks)
                .map(|(n, task)| thread(n).spawn_scoped(scope, || shared.perform(task))),
        );
        let spawned = threads.iter().filter(|thread| thread.is_ok()).count();
        while (shared.ready.load(Acquire) as usize) < spawned {
            sleep_until(monotonic_ns() + 1_000_000);
        }
        if spawned == threads.len() && !shared.ended.load(Acquire) {
            let start = monotonic_ns() + LEAD_NS;
            let begin = start + WARM_UP_NS;
            let _ = shared.times.set(RunTimes {
                start,
                begin,
                end: begin.saturating_add(config.duration),
            });
        }
        shared.decide();
        let ended = shared.times.get().and_then(|times| observer.watch(*times, observe));
        let results = threads.into_iter().map(|thread| thread?.join().unwrap_or(Ok(())));
        results.collect::<io::Result<Vec<()>>>().map(|_| ended)
    });
    Ok((observer.figures(), ended.map_err(failed)?))
}

/// `exec`, `task1`, ...: of the threads, too.
fn task_name(n: usize) -> String {
    match n {
        0 => "exec".to_owned(),
        n => format!("task{n}"),
    }
}

/// What the threads used until some time.
#[derive(Clone, Copy, Default)]
struct Look {
    at: u64,
    used: ThreadUse,
}

struct Observer<'a> {
    config: DeterminismConfig,
    cost: u64,
    shared: &'a Shared<'a>,
    /// When measuring began.
    begun: Option<Look>,
    latest: Look,
    cpu: CpuUse,
}

impl<'a> Observer<'a> {
    fn new(config: DeterminismConfig, cost: u64, shared: &'a Shared<'a>) -> Observer<'a> {
        Observer {
            config,
            cost,
            shared,
            begun: None,
            latest: Look::default(),
            cpu: CpuUse::default(),
        }
    }

    /// Looks at the threads until the end, which it makes where they use too much: why.
    fn watch(
        &mut self,
        times: RunTimes,
        observe: &mut dyn FnMut(&DeterminismRun),
    ) -> Option<Diagnostic> {
        self.sleep(times.begin);
        self.look();
        while self.latest.at < times.end && !self.is_over() {
            self.sleep(times.end.min(self.latest.at + LOOK_NS));
            self.look();
            if self.cpu.now_ppm > TOO_MUCH_PPM {
                self.shared.ended.store(true, Release);
                return Some(Diagnostic::machine(
                    format!(
                        "the tasks used {} % of the CPU, and the run was ended",
                        self.cpu.now_ppm / 10_000
                    ),
                    "choose a smaller --rate or --work",
                ));
            }
            observe(&self.figures());
        }
        None
    }

    fn is_over(&self) -> bool {
        self.shared.stop.load(Acquire) || self.shared.ended.load(Acquire)
    }

    /// Until an instant, or until shortly after the run is over: a signal that comes just before
    /// the sleep does not end it.
    fn sleep(&self, until: u64) {
        while monotonic_ns() < until && !self.is_over() {
            sleep_until(until.min(monotonic_ns() + NAP_NS));
        }
    }

    fn threads(&self) -> impl Iterator<Item = &'a MeasuredThread> {
        std::iter::once(&self.shared.executive)
            .chain(self.shared.tasks.iter().map(|task| &task.measured))
    }

    fn look(&mut self) {
        let used = |thread: &MeasuredThread| {
            let living = || ThreadUse::of(thread.tid.load(Acquire));
            // It may have ended since it was looked for.
            thread
                .used
                .get()
                .copied()
                .or_else(living)
                .or_else(|| thread.used.get().copied())
                .unwrap_or_default()
        };
        let look = Look { at: monotonic_ns(), used: self.threads().map(used).sum() };
        if self.begun.is_some() {
            // A short rest at the end is no measure.
            if look.at - self.latest.at >= LOOK_NS / 2 {
                self.cpu.now_ppm = share(self.latest, look);
                self.cpu.max_ppm = self.cpu.max_ppm.max(self.cpu.now_ppm);
            }
        } else {
            self.begun = Some(look);
        }
        self.latest = look;
    }

    fn figures(&self) -> DeterminismRun {
        let begun = self.begun.unwrap_or(self.latest);
        let shared = self.shared;
        let measured = |times: &RunTimes| self.latest.at.min(times.end).saturating_sub(times.begin);
        let executive = figures(
            task_name(0),
            ReleaseKind::Hrt,
            RealTimePolicy::Fifo,
            EXECUTIVE_PRIORITY,
            shared.beat,
            &shared.executive,
        );
        let tasks = (1..).zip(shared.tasks).map(|(n, task)| {
            let plan = task.plan;
            let period = shared.beat * u64::from(plan.every);
            figures(task_name(n), plan.kind, plan.policy, plan.priority, period, &task.measured)
        });
        DeterminismRun {
            rate_hz: self.config.rate,
            cpu: self.config.cpu,
            duration_ns: shared.times.get().map_or(0, measured),
            clock_mode: clock_mode().to_owned(),
            work: shared.work,
            work_asked: self.config.work,
            work_ns: self.cost * u64::from(shared.work) / u64::from(self.config.work.max(1)),
            cpu_use: CpuUse { average_ppm: share(begun, self.latest), ..self.cpu },
            page_faults: self.latest.used.page_faults.saturating_sub(begun.used.page_faults),
            tasks: std::iter::once(executive).chain(tasks).collect(),
        }
    }
}

/// What was used between two looks, of the time between them, ppm.
fn share(from: Look, to: Look) -> u64 {
    let used = u128::from(to.used.executed_ns.saturating_sub(from.used.executed_ns));
    u64::try_from(used * 1_000_000 / u128::from(to.at.saturating_sub(from.at).max(1)))
        .unwrap_or(u64::MAX)
}

/// As rt-exec's header has it: whether timers have the resolution of the clock, or of the tick.
fn clock_mode() -> &'static str {
    let mut resolution = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `resolution` is a writable timespec.
    unsafe { libc::clock_getres(libc::CLOCK_MONOTONIC, &mut resolution) };
    match (resolution.tv_sec, resolution.tv_nsec) {
        (0, 0..=1_000) => "Posix-hrt",
        _ => "NonHR-clk",
    }
}

fn figures(
    name: String,
    kind: ReleaseKind,
    policy: RealTimePolicy,
    priority: u32,
    period_ns: u64,
    measured: &MeasuredThread,
) -> TaskFigures {
    let of = &measured.statistics;
    let worst = of.worst.load(Relaxed);
    let best = of.best();
    TaskFigures {
        name,
        kind,
        primitive: kind.primitive().to_owned(),
        policy,
        priority,
        period_ns,
        cycles: of.cycles.load(Relaxed),
        late: of.late.load(Relaxed),
        spare_ns: of.spare.load(Relaxed),
        current_ns: of.current.load(Relaxed),
        best_ns: best,
        worst_ns: best.map(|_| worst),
        determinism_ns: best.map(|best| worst.saturating_sub(best)),
    }
}
