//! A whole set: one engine per CPU, run in step.

use punctual_dispatcher::Dispatcher;
use punctual_policies::{AllocatorOptions, Allocators, LocalDispatcher, PolicySwap};
use punctual_taskset::{Costs, DomainId, TaskChange, TaskSet};
use punctual_trace::{Interval, Period, PolicyStop, Record, TraceSink};

use crate::engine::{Count, Engine};
use crate::program::RecordedProgram;
use crate::record::Recorder;
use crate::task::Task;
use punctual_diagnostic::Diagnostic;

/// Later than this, ns (146 years), nothing is simulated.
pub(crate) const LATEST: u64 = 1 << 62;
/// Trace records that a dispatcher keeps when they are not read: few, so that they stay in the
/// cache.
const UNREAD: u32 = 256;
/// How often, in a run, all CPUs have come equally far.
const STEPS: u64 = 128;

/// Observes a simulation. The calls of each CPU are in order of time; of several CPUs, one may be
/// somewhat ahead.
pub trait Watcher {
    /// A release of a task, as it turned out; of one task in the order of their numbers. Those that
    /// the end of the run cut off come too: their deadline is after it.
    fn period(&mut self, period: &Period) {
        let _ = period;
    }

    /// A task executed.
    fn executed(&mut self, interval: &Interval) {
        let _ = interval;
    }

    /// A policy of the program was stopped.
    fn policy_stopped(&mut self, stop: &PolicyStop) {
        let _ = stop;
    }

    /// Asked now and then, at virtual time `now`, ns: false ends the run there.
    fn proceeds(&mut self, now: u64) -> bool {
        let _ = now;
        true
    }
}

/// How to simulate.
#[derive(Default)]
pub struct Options {
    /// What the host takes for itself; nothing by default. It executes before the tasks, on their
    /// CPU, and is charged to none of them: as on the user host, whose dispatcher has a clock of
    /// its own.
    pub costs: Costs,
    /// Traces of domains.
    pub traces: Vec<(DomainId, TraceSink)>,
    /// What programs do; a program without a recording wants all of every budget.
    pub programs: Vec<RecordedProgram>,
    /// How the allocators are made.
    pub allocators: AllocatorOptions,
}

/// The result of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SimulatedRun {
    /// The time that every CPU reached, ns.
    pub reached: u64,
    /// The watcher ended it.
    pub interrupted: bool,
    /// Of all CPUs.
    pub count: Count,
}

/// A task set, ready to be simulated from time 0 on.
pub struct Simulation {
    engines: Vec<Engine>,
    /// The time that all engines have reached, ns.
    reached: u64,
    /// With the policies as of the last swap.
    set: TaskSet,
    allocators: AllocatorOptions,
}

impl Simulation {
    /// Makes dispatchers and allocators.
    ///
    /// # Errors
    /// A policy does not support the set; several CPUs with one dispatcher.
    pub fn new(set: &TaskSet, mut options: Options) -> Result<Simulation, Diagnostic> {
        let mut traces = std::mem::take(&mut options.traces);
        let mut engines = Vec::with_capacity(set.domains.len());
        for domain in set.domain_ids() {
            let place = traces.iter().position(|(of, _)| *of == domain);
            let trace = place.map(|p| traces.swap_remove(p).1);
            engines.push(engine(set, domain, &options, trace)?);
        }
        let allocators = AllocatorOptions { costs: options.costs, ..options.allocators };
        Ok(Simulation { engines, reached: 0, set: set.clone(), allocators })
    }

    /// Runs until `end`, ns. The instant `end` itself is the last: what is over by then is
    /// reported.
    ///
    /// # Errors
    /// A policy without end; an end beyond 2^62 ns.
    pub fn run<W: Watcher>(
        mut self,
        end: u64,
        watcher: &mut W,
    ) -> Result<SimulatedRun, Diagnostic> {
        self.advance(end, watcher)?;
        self.finish(end, watcher)
    }

    /// Runs until shortly before `end`, ns, or until the watcher wants no more: false then, and a
    /// later call continues. [`finish`](Simulation::finish) is the instant `end`.
    ///
    /// # Errors
    /// As [`run`](Simulation::run).
    pub fn advance<W: Watcher>(&mut self, end: u64, watcher: &mut W) -> Result<bool, Diagnostic> {
        if end > LATEST {
            return Err(Diagnostic::usage(
                "the end is more than 146 years ahead",
                "choose an earlier one",
            ));
        }
        let step = if self.engines.len() == 1 { end } else { (end / STEPS).max(1) };
        while self.reached < end {
            let target = self.reached.saturating_add(step).min(end);
            for engine in &mut self.engines {
                if !engine.run(target, watcher)? {
                    return Ok(false);
                }
            }
            self.reached = target;
            // A step may be too short for an engine to ask.
            if self.reached < end && !watcher.proceeds(self.reached) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Gives groups the policies that they have in `to`, at [`now`](Simulation::now): at `end` if
    /// [`advance`](Simulation::advance) came so far. Timers that expire at that time are handled
    /// before it.
    ///
    /// # Errors
    /// A new policy does not support its group; nothing is changed then.
    pub fn swap_policies<W: Watcher>(
        &mut self,
        to: &TaskSet,
        watcher: &mut W,
    ) -> Result<(), Diagnostic> {
        let prepare = |domain| PolicySwap::prepare(&self.set, to, domain, self.allocators);
        let swaps = to.domain_ids().map(prepare).collect::<Result<Vec<_>, _>>()?;
        let at = self.engines.iter().map(Engine::now).max().unwrap_or(0).max(self.reached);
        for (engine, mut swap) in self.engines.iter_mut().zip(swaps) {
            engine.run(at, watcher)?;
            engine.swap(at, &mut swap, watcher)?;
        }
        self.set = to.clone();
        Ok(())
    }

    /// Gives the task with this index in the set other parameters, from its next release on, at
    /// [`now`](Simulation::now), as [`swap_policies`](Simulation::swap_policies). Whether the set
    /// still fits is the caller's.
    ///
    /// # Errors
    /// Its policy makes each job by itself; there is no such task. Nothing is changed then.
    pub fn change<W: Watcher>(
        &mut self,
        task: usize,
        change: &TaskChange,
        watcher: &mut W,
    ) -> Result<(), Diagnostic> {
        let at = self.engines.iter().map(Engine::now).max().unwrap_or(0).max(self.reached);
        for engine in &mut self.engines {
            if engine.change(at, task, change, watcher)? {
                return Ok(());
            }
        }
        Err(Diagnostic::usage(format!("there is no task {task}"), "name one of the set"))
    }

    /// The time that every CPU reached, ns.
    pub fn now(&self) -> u64 {
        self.engines.iter().map(Engine::now).min().unwrap_or(0)
    }

    /// The end: at `end`, ns, if [`advance`](Simulation::advance) came so far, else where it
    /// stands.
    ///
    /// # Errors
    /// As [`run`](Simulation::run).
    pub fn finish<W: Watcher>(
        mut self,
        end: u64,
        watcher: &mut W,
    ) -> Result<SimulatedRun, Diagnostic> {
        let interrupted = self.reached < end;
        let reached = if interrupted { self.now() } else { end };
        let mut count = Count::default();
        for engine in &mut self.engines {
            engine.finish(if interrupted { engine.now() } else { end }, watcher)?;
            count.releases += engine.count.releases;
            count.instants += engine.count.instants;
            count.switches += engine.count.switches;
            count.overhead += engine.count.overhead;
        }
        Ok(SimulatedRun { reached, interrupted, count })
    }
}

/// The engine of one domain, at time 0.
fn engine(
    set: &TaskSet,
    domain: DomainId,
    options: &Options,
    trace: Option<TraceSink>,
) -> Result<Engine, Diagnostic> {
    let cpu = set.domain(domain).only_cpu()?;
    let with_costs = AllocatorOptions { costs: options.costs, ..options.allocators };
    let mut allocators = Allocators::with(set, domain, with_costs)?;
    let mut limits = allocators.limits();
    limits.records = match trace {
        Some(_) => limits.records_at_once(),
        None => UNREAD,
    };
    let refused = |what: &str, e| {
        let cause = format!("CPU {cpu}: the dispatcher refuses {what}: {e}");
        Diagnostic::usage(cause, "make the set smaller")
    };
    let mut dispatcher =
        Dispatcher::new(limits).map_err(|e| refused("the limits of the set", e))?;
    let mut tasks = Vec::new();
    let mut gsi = LocalDispatcher::new(&mut dispatcher, 0);
    allocators.begin(&mut gsi, 0).map_err(|e| refused("a server or an ordering", e))?;
    for (index, spec) in set.tasks.iter().enumerate().filter(|(_, spec)| spec.domain == domain) {
        let id = dispatcher.add_task(0).map_err(|e| refused("a task", e))?;
        // Numbers of an empty dispatcher are given out from 0.
        debug_assert_eq!(id.0 as usize, tasks.len());
        let mut gsi = LocalDispatcher::new(&mut dispatcher, 0);
        allocators
            .add(&mut gsi, index, id)
            .map_err(|e| refused(&format!("task \"{}\"", spec.name), e))?;
        let program = options.programs.iter().find(|program| program.task == index);
        tasks.push(Task::new(index as u32, spec, program.cloned()));
    }
    let recorder = trace.map(|sink| {
        sink.begin(dispatcher.limits());
        let places = (0..).zip(&tasks).map(|(n, task)| Record::task_place(n, task.index()));
        sink.records(&places.collect::<Vec<_>>());
        Recorder::new(sink)
    });
    Ok(Engine::new(cpu, dispatcher, allocators, tasks, options.costs, recorder))
}
