//! A set that runs: events, figures so far, further tasks, the end.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::Arc;
use std::time::Duration;

use punctual_baseline::Baseline;
use punctual_diagnostic::Diagnostic;
use punctual_host_user::NoIdle;
use punctual_program_jobs::{Attribute, GroupJobs, JobEvents, TaskJobs};
use punctual_taskset::{DomainId, TaskChange, TaskSet, TaskSpec};
use punctual_trace::{RunEvent, TraceSink};
use punctual_workload::BackgroundLoad;

use crate::baseline::{BaselineDriver, Unsupported};
use crate::driver::{Driver, Execution, HostFigures};
use crate::kernel::KernelDriver;
use crate::policy_change::changes;
use crate::results::TaskKind;
use crate::results::{Collector, HostCosts, LoadResult, PolicyChange, Results, Run};
use crate::service::ServiceDriver;
use crate::sim::SimDriver;
use crate::suspension::TaskSuspension;
use crate::traces::Traces;
use crate::user::UserDriver;
use crate::{AdmittedSet, HostKind, RunOptions, ThreadEntry};

/// Longest time of one [`RunningSet::poll`].
const POLL: Duration = Duration::from_millis(25);
/// A background load that has lost its parent ends by itself after this, ns.
const LOAD_LIFE: u64 = 3_600_000_000_000;

/// What a run reports; tasks by their names.
pub type NamedEvent = RunEvent<Arc<str>>;

/// The result of a start.
pub enum StartOutcome {
    /// The first release is some 20 ms ahead.
    Running(Box<RunningSet>),
    /// The kernel's policies, or this machine, cannot run the set under them; nothing ran. The
    /// results have no figures.
    NotPossible(Unsupported, Box<Results>),
}

/// How a run went.
#[derive(Debug)]
pub struct RunOutcome {
    /// The figures of every task, in the order in which they came.
    pub results: Results,
    /// What could not be restored or ended; empty when all was. `punctual clean` restores the
    /// former.
    pub problems: Vec<String>,
    /// The host was ended while it ran: why. The results have what was recorded until then.
    pub failure: Option<Diagnostic>,
}

/// A set that runs. Dropped, it ends the run and restores everything.
///
/// The thread that started it must keep it: commands die with that thread. An ordinary thread,
/// which calls [`poll`](RunningSet::poll) again and again.
pub struct RunningSet {
    driver: Box<dyn Driver>,
    host: HostKind,
    traces: Traces,
    tasks: Tasks,
    /// When the run ends, by the host's clock, ns.
    end: Option<u64>,
    stop: Arc<AtomicBool>,
    /// The host has ended the run.
    over: bool,
    /// Of the caller; the host has its own.
    notes: Vec<String>,
    costs: Option<HostCosts>,
    load: Option<BackgroundLoad>,
    _no_idle: Option<NoIdle>,
}

/// The tasks that are or were in the run, and their figures.
struct Tasks {
    collector: Collector,
    by_place: BTreeMap<usize, Task>,
    next_place: usize,
    forget_ended: bool,
}

struct Task {
    name: Arc<str>,
    alive: bool,
    trace: Option<TraceSink>,
}

impl Task {
    fn new(spec: &TaskSpec, traces: &Traces) -> Task {
        Task { name: spec.name.as_str().into(), alive: true, trace: traces.of(spec.domain) }
    }
}

pub(crate) fn start(
    admitted: AdmittedSet,
    mut options: RunOptions,
    executions: Vec<Execution>,
) -> Result<StartOutcome, Diagnostic> {
    let AdmittedSet { set, host, capacity, overload, .. } = admitted;
    let set = Arc::new(set);
    let label = options.label.take();
    let run = Run { overload, label, ..Run::new(host, &set.policy.name, &set.cpus()) };
    let mut collector = Collector::for_set(run, &set);
    for (index, execution) in executions.iter().enumerate() {
        if matches!(execution, Execution::Thread { .. }) {
            collector.set_kind(index as u32, TaskKind::Thread);
        }
    }
    if host == HostKind::Sim {
        collector = collector.from_the_first();
    }
    let forget_ended = options.forget_ended;
    let no_idle = options.no_idle.then(|| NoIdle::start(&set.cpus())).transpose()?;
    let load = options.load.then(|| background_load(set.domains[0].cpus[0])).transpose()?;
    let stop = options.stop.clone();
    let notes = std::mem::take(&mut options.notes);
    let traces = Traces::new(options.traces.take(), host, &set);
    let driver: Box<dyn Driver> = match host {
        HostKind::User => Box::new(UserDriver::start(&set, options, executions, &traces)?),
        HostKind::Kernel => Box::new(KernelDriver::start(&set, options, &executions, &traces)?),
        HostKind::Service => Box::new(ServiceDriver::start(&set, &options, executions, &traces)?),
        HostKind::Sim => {
            Box::new(SimDriver::start(set.clone(), capacity.costs, options, &executions, &traces)?)
        }
        HostKind::Fifo | HostKind::Deadline | HostKind::Other => {
            match BaselineDriver::start(&set, baseline(host), &options, &executions)? {
                Ok(driver) => Box::new(driver),
                Err(refusal) => {
                    let results = collector.not_possible(&refusal.reason, &refusal.help);
                    return Ok(StartOutcome::NotPossible(refusal, Box::new(results)));
                }
            }
        }
    };
    let by_place: BTreeMap<usize, Task> =
        set.tasks.iter().map(|task| Task::new(task, &traces)).enumerate().collect();
    let next_place = by_place.len();
    Ok(StartOutcome::Running(Box::new(RunningSet {
        tasks: Tasks { collector, by_place, next_place, forget_ended },
        end: set.duration.map(|duration| driver.origin().saturating_add(duration)),
        driver,
        host,
        traces,
        stop,
        over: false,
        notes,
        costs: HostCosts::of(&capacity.costs),
        load,
        _no_idle: no_idle,
    })))
}

fn baseline(host: HostKind) -> Baseline {
    match host {
        HostKind::Fifo => Baseline::Fifo,
        HostKind::Deadline => Baseline::Deadline,
        _ => Baseline::Other,
    }
}

fn background_load(cpu: u32) -> Result<BackgroundLoad, Diagnostic> {
    BackgroundLoad::start(cpu, LOAD_LIFE).map_err(|e| {
        Diagnostic::machine(
            format!("the background load cannot be started on CPU {cpu}: {e}"),
            "run without it",
        )
    })
}

impl RunningSet {
    /// Waits up to 25 ms and reports what became known. False when the run is over: its duration
    /// has passed, all tasks have ended, the caller's `stop` is set, or the host was ended.
    ///
    /// # Errors
    /// The run cannot continue; dropping this restores everything.
    pub fn poll(&mut self, observe: &mut dyn FnMut(NamedEvent)) -> Result<bool, Diagnostic> {
        self.poll_for(POLL, observe)
    }

    /// As [`poll`](RunningSet::poll), but waits up to `wait`.
    ///
    /// # Errors
    /// As [`poll`](RunningSet::poll).
    pub fn poll_for(
        &mut self,
        wait: Duration,
        observe: &mut dyn FnMut(NamedEvent),
    ) -> Result<bool, Diagnostic> {
        if self.stop.load(Relaxed) {
            return Ok(false);
        }
        let left = self.end.map_or(u64::MAX, |end| end.saturating_sub(self.driver.now()));
        let wait = wait.min(Duration::from_nanos(left));
        let RunningSet { driver, tasks, .. } = self;
        let origin = driver.origin();
        let over = driver.poll(wait, &mut |event| tasks.handle(event, origin, observe))?;
        self.traces.flush();
        self.over |= over;
        Ok(!self.has_ended() && self.alive().next().is_some())
    }

    /// Adds a task to a set that runs. Its first release is at `first` (CLOCK_MONOTONIC, ns) or, if
    /// that has passed, whole periods later; without it some 20 ms from now. Admission is the
    /// caller's. Its place follows those of all earlier tasks.
    ///
    /// # Errors
    /// No room, no such CPU, a command or process that is not there; a host that takes no further
    /// tasks.
    pub fn add(
        &mut self,
        spec: &TaskSpec,
        execution: Execution,
        first: Option<u64>,
    ) -> Result<usize, Diagnostic> {
        let place = self.tasks.next_place;
        let is_thread = matches!(execution, Execution::Thread { .. } | Execution::Entered(_));
        self.driver.add(place as u32, spec, execution, first)?;
        self.tasks.collector.add(spec, is_thread.then_some(TaskKind::Thread));
        self.tasks.by_place.insert(place, Task::new(spec, &self.traces));
        self.tasks.next_place += 1;
        Ok(place)
    }

    /// Requests the end of the task at this place: a thread finds that its run is over, at its next
    /// release at the latest; a command is killed; adopted processes are restored.
    ///
    /// # Errors
    /// A host that ends tasks with the run only.
    pub fn stop_task(&mut self, place: usize) -> Result<(), Diagnostic> {
        self.driver.stop_task(place as u32)
    }

    /// Gives the task at this place other parameters from its next release on, which comes when it
    /// was due. Admission is the caller's ([`with_change`](crate::with_change)).
    ///
    /// # Errors
    /// A host that does not change this while it runs.
    pub fn change(&mut self, place: usize, change: &TaskChange) -> Result<(), Diagnostic> {
        self.driver.change(place as u32, change)?;
        self.tasks.collector.change(place, change);
        Ok(())
    }

    /// What suspends and resumes the task at this place. That its policy leaves its jobs to the
    /// dispatcher is the caller's ([`has_reservation`](crate::has_reservation)).
    ///
    /// # Errors
    /// It has ended, or is a thread of another process without a page; on the kernel host all but a
    /// process that was running before; a simulation.
    pub fn suspension(&self, place: usize) -> Result<TaskSuspension, Diagnostic> {
        self.driver.suspension(place as u32)
    }

    /// Suspends the task at this place once more, or takes one suspension back (`false`), where its
    /// [`suspension`](RunningSet::suspension) is [`TaskSuspension::Run`]. That the task lives is
    /// the caller's.
    ///
    /// # Errors
    /// It cannot be moved into a cgroup of its own; it is not suspended (EALREADY).
    pub fn suspend(&mut self, place: usize, on: bool) -> Result<(), Diagnostic> {
        self.driver.suspend(place as u32, on)
    }

    /// What adds jobs to the task at this place, whose group is under the policy `jobs`; once.
    ///
    /// # Errors
    /// Another policy; a host other than the user and the kernel host; it was taken before, or the
    /// task has ended.
    pub fn task_jobs(&mut self, place: usize) -> Result<TaskJobs, Diagnostic> {
        self.driver.task_jobs(place as u32)
    }

    /// The ends of all jobs that the program adds; once.
    ///
    /// # Errors
    /// No group is under the policy `jobs`; a host other than the user and the kernel host; it was
    /// taken before.
    pub fn job_events(&mut self) -> Result<JobEvents, Diagnostic> {
        self.driver.job_events()
    }

    /// What adds jobs of the program's own groups, on the CPU of the group at this place (`None`:
    /// the top one), which is under the policy `jobs`; once for each CPU.
    ///
    /// # Errors
    /// Another policy, or host; no such groups; it was taken before.
    pub fn group_jobs(&mut self, group: Option<usize>) -> Result<GroupJobs, Diagnostic> {
        self.driver.group_jobs(group)
    }

    /// Orders the group at this place (`None`: the top one), which is under the policy `jobs`.
    ///
    /// # Errors
    /// Another policy, or host; not one to four attributes, each once.
    pub fn order_jobs(&mut self, group: Option<usize>, by: &[Attribute]) -> Result<(), Diagnostic> {
        self.driver.order_jobs(group, by)
    }

    /// Gives groups the policies that they have in `to`, which otherwise is `from`, the set as it
    /// runs: all groups of a CPU at one instant. Each task's releases are of the new policy from
    /// its next release on. Admission is the caller's ([`with_policies`](crate::with_policies)).
    ///
    /// # Errors
    /// A policy does not support its group on this host; nothing is changed then. A host that swaps
    /// no policies while it runs; a dispatcher that does not answer.
    pub fn swap_policies(
        &mut self,
        from: &TaskSet,
        to: &TaskSet,
    ) -> Result<Vec<PolicyChange>, Diagnostic> {
        let at = self.driver.swap_policies(to)?;
        let changes = changes(from, to, at.saturating_sub(self.driver.origin()));
        self.tasks.collector.change_policies(to, &changes);
        Ok(changes)
    }

    /// Has the jobs of the task at this place execute the task at place `to` and be charged for it,
    /// until another call or the end of one of them; `None`: no longer.
    ///
    /// # Errors
    /// The tasks are of different CPUs, one of them has ended, or `to` lends to the task already; a
    /// host other than the kernel host.
    pub fn lend(&mut self, place: usize, to: Option<usize>) -> Result<(), Diagnostic> {
        self.driver.lend(place as u32, to.map(|to| to as u32))
    }

    /// Prepares a thread of this program to become a task on this CPU ([`Execution::Entered`]).
    ///
    /// # Errors
    /// No such CPU here; another host than the user host and the service.
    pub fn prepare_entry(&self, domain: DomainId) -> Result<ThreadEntry, Diagnostic> {
        self.driver.prepare_entry(domain)
    }

    /// Calls `stopped`, in which this process is stopped, while no task depends on it: the user
    /// host parks all tasks, the kernel host's reservations continue. Releases continue afterwards.
    pub fn pause_while(&mut self, stopped: impl FnOnce()) {
        self.driver.pause();
        stopped();
        self.driver.resume();
    }

    /// What executes the set.
    pub fn host(&self) -> HostKind {
        self.host
    }

    /// The host has ended the run.
    pub fn is_over(&self) -> bool {
        self.over
    }

    /// The host has ended the run, or its duration has passed.
    pub fn has_ended(&self) -> bool {
        self.over || self.end.is_some_and(|end| self.driver.now() >= end)
    }

    /// The notes so far: the caller's, then the host's.
    pub fn notes(&self) -> Vec<String> {
        let of_host = self.driver.figures().notes;
        self.notes.iter().cloned().chain(of_host).collect()
    }

    /// Places of the tasks that have not ended, in the order in which they came.
    pub fn alive(&self) -> impl Iterator<Item = usize> + '_ {
        self.tasks.by_place.iter().filter(|(_, task)| task.alive).map(|(&place, _)| place)
    }

    /// The first release, by the host's clock: CLOCK_MONOTONIC, or 0 in virtual time, ns.
    pub fn origin(&self) -> u64 {
        self.driver.origin()
    }

    /// The time by the host's clock, ns: in a simulation, how far it is.
    pub fn now(&self) -> u64 {
        self.driver.now()
    }

    /// The figures so far.
    pub fn results(&self) -> Results {
        let mut results = self.tasks.collector.snapshot();
        results.duration_ns = self.driver.now().saturating_sub(self.driver.origin());
        self.complete(&mut results, self.driver.figures());
        results
    }

    /// Ends the run and restores everything: commands are killed, adopted processes regain their
    /// attributes, threads continue in the ordinary class and are waited for, one second at most.
    ///
    /// # Errors
    /// What kept the host from ending as it should; a trace that cannot be written.
    pub fn finish(self, observe: &mut dyn FnMut(NamedEvent)) -> Result<RunOutcome, Diagnostic> {
        let RunningSet {
            driver,
            host,
            traces,
            mut tasks,
            end,
            stop,
            notes: of_caller,
            costs,
            load,
            _no_idle,
            ..
        } = self;
        let origin = driver.origin();
        let outcome = driver.finish(&mut |event| tasks.handle(event, origin, observe))?;
        let load = load.map(BackgroundLoad::stop);
        let interrupted = stop.load(Relaxed) && end.is_none_or(|end| outcome.ended < end);
        let ran = outcome.ended.saturating_sub(origin);
        let notes = traces.finish(host)?;
        let mut results = tasks.collector.results(ran, outcome.ended, interrupted, notes);
        results.add_unreported(outcome.unreported);
        results.notes.extend(of_caller);
        complete(&mut results, outcome.figures, costs);
        results.load = load.map(|h| LoadResult { share_ppm: h.share_ppm() });
        Ok(RunOutcome { results, problems: outcome.problems, failure: outcome.failure })
    }

    fn complete(&self, results: &mut Results, figures: HostFigures) {
        results.notes.extend(self.notes.iter().cloned());
        complete(results, figures, self.costs);
    }
}

fn complete(results: &mut Results, figures: HostFigures, costs: Option<HostCosts>) {
    results.dispatcher = figures.dispatcher;
    results.kernel_dispatcher = figures.kernel_dispatcher;
    results.costs = costs;
    results.notes.extend(figures.notes);
}

impl Tasks {
    /// One event of the host, whose run began at `origin`: into the figures, and to the caller.
    fn handle(&mut self, event: RunEvent, origin: u64, observe: &mut dyn FnMut(NamedEvent)) {
        let Tasks { collector, by_place, .. } = self;
        let mut ended = None;
        match &event {
            RunEvent::Period { task, period } => {
                let trace = by_place.get(&(*task as usize)).and_then(|task| task.trace.as_ref());
                trace.into_iter().for_each(|trace| trace.period(period));
                collector.record(period);
            }
            RunEvent::Unreported { task, count } => collector.record_unreported(*task, *count),
            RunEvent::Ended { task, .. } => ended = Some(*task as usize),
            RunEvent::PolicyStopped(stop) => collector.policy_stopped(stop, origin),
            RunEvent::Executed { .. } | RunEvent::Warning(_) => {}
        }
        let name = |task: u32| {
            by_place.get(&(task as usize)).map_or_else(|| "?".into(), |task| task.name.clone())
        };
        observe(event.with_task(name));
        ended.into_iter().for_each(|place| self.end(place));
    }

    fn end(&mut self, place: usize) {
        if self.forget_ended {
            self.by_place.remove(&place);
            self.collector.forget(place);
        } else if let Some(task) = self.by_place.get_mut(&place) {
            task.alive = false;
        }
    }
}
