//! One run: set up, released all at once, watched, ended, and nothing left behind.

use crate::command::{Commands, Failed};
use crate::judge::{Nature, Terms};
use crate::observer::{Observer, Watch, ABOVE_ALL, AMONG_DEADLINES, AMONG_DEADLINES_FREE};
use crate::plan;
use crate::refusal::{explain, not_started, slow, Refusal};
use crate::shared::{Control, Step, TaskState};
use crate::sys::{affinity, number, Policy};
use crate::watchdog::Watchdog;
use crate::worker::Worker;
use punctual_diagnostic::Diagnostic;
use punctual_sys::clock::{monotonic_ns, sleep_until};
use punctual_sys::memory;
use punctual_sys::process::RtTimeLimit;
use punctual_taskset::{Arrival, Body, Spin, Step as Part, TaskSet};
use punctual_trace::Period;
use punctual_workload::{Hog, HogTime, Spinner, Work};
use rtrb::{Consumer, RingBuffer};
use std::sync::atomic::{AtomicBool, Ordering::*};
use std::thread::{Builder, Scope};

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
#[derive(Debug, Clone, Copy)]
pub struct Options<'a> {
    /// How long, ns.
    pub duration: u64,
    /// Ends it early once true, within some 20 ms.
    pub stop: &'a AtomicBool,
    /// A greedy ordinary process beside, on the first CPU of the set.
    pub hog: bool,
    /// SCHED_DEADLINE without pinning the tasks: they share all CPUs. No other baseline looks at it.
    pub unpinned: bool,
}

/// What came of it.
#[derive(Debug)]
pub enum BaselineOutcome {
    /// It ran.
    Ran(BaselineRun),
    /// It could not; nothing ran.
    NotPossible(Refusal),
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
    /// What the hog got, if there was one.
    pub hog: Option<HogTime>,
    /// Periods without a record because the caller, or an observer, did not get the CPU for too long.
    pub lost: u64,
    /// What a reader should know.
    pub notes: Vec<String>,
}

/// Longest set-up, s.
const SET_UP: u64 = 5;
/// Stack of each thread: they call nothing deep.
const STACK: usize = 128 * 1024;
const SECOND: u64 = 1_000_000_000;

/// Runs `set` under `baseline`, giving each whole period of each task to `sink` as it comes, on the caller's thread.
///
/// The caller should be an ordinary thread. Adopted processes (`pid`) are left alone.
///
/// # Errors
/// A request that cannot be meant: a command that does not start, a CPU that is not there.
pub fn run(
    set: &TaskSet,
    baseline: Baseline,
    options: &Options,
    sink: &mut dyn FnMut(Period),
) -> Result<BaselineOutcome, Diagnostic> {
    if let Some(refusal) = not_periodic(set) {
        return Ok(BaselineOutcome::NotPossible(refusal));
    }
    let spinner = Spinner::calibrate();
    let unpinned = options.unpinned && baseline == Baseline::Deadline;
    let cpus = plan::cpus(set);
    let policies = plan::policies(set, baseline);
    let natures: Vec<Option<Nature>> = set.tasks.iter().map(|task| nature(&task.body)).collect();
    let commands: Vec<bool> = natures.iter().map(|nature| *nature == Some(Nature::Command)).collect();
    let states: Vec<TaskState> = set.tasks.iter().map(|_| TaskState::new()).collect();
    let control = Control::new(monotonic_ns() + SET_UP * SECOND);
    let _limit = RtTimeLimit::set(options.duration.saturating_add((SET_UP + 5) * SECOND));

    let outcome = std::thread::scope(|scope| {
        // Whatever happens below, threads are stopped before the scope waits for them.
        let _stop = StopOnDrop(&control);
        let mut notes = Vec::new();
        let mut threads = 0;
        for cpu in guarded(&cpus) {
            let dog = Watchdog { cpu, tasks: &states, commands: &commands, asked: options.stop, control: &control };
            start(scope, "watchdog", move || dog.live())?;
            threads += 1;
        }
        let mut rings: Vec<Consumer<Period>> = Vec::new();
        for &cpu in &cpus {
            let of_cpu = |i: &usize| set.tasks[*i].cpu == cpu;
            let watches: Vec<Watch> = (0..set.tasks.len())
                .filter(of_cpu)
                .filter_map(|i| {
                    let task = &set.tasks[i];
                    let (period, deadline, budget) = (task.period, task.deadline, task.budget);
                    let (nature, suspends) = (natures[i]?, suspends(&task.body));
                    let terms = Terms { task: i as u32, period, deadline, budget, nature, suspends };
                    Some(Watch::new(terms, task.start, &states[i]))
                })
                .collect();
            let (ring, taker) = RingBuffer::new(room(set, cpu));
            rings.push(taker);
            let observer = Observer {
                cpu,
                pinned: (!unpinned).then_some(cpu),
                policies: observing(set, baseline, unpinned),
                watches,
                ring,
                control: &control,
            };
            start(scope, "observer", move || observer.live())?;
            threads += 1;
        }
        // Watchdogs and observers first: no task may get its policy before there is a thread above it.
        if !wait_ready(&control, threads) {
            return refused(set, baseline, unpinned, &control);
        }
        for (i, task) in set.tasks.iter().enumerate() {
            let Some(work) = Work::of(&task.body) else { continue };
            let worker = Worker {
                task: i as u32,
                cpu: (!unpinned).then_some(task.cpu),
                policy: policies[i],
                offset: task.start,
                period: task.period,
                work,
                spinner,
                state: &states[i],
                control: &control,
            };
            start(scope, "task", move || worker.live())?;
            threads += 1;
        }
        if !wait_ready(&control, threads) {
            return refused(set, baseline, unpinned, &control);
        }
        if let Err(errno) = memory::lock_present().map_err(|e| number(&e)) {
            notes.push(format!(
                "memory could not be locked ({}); page faults may show",
                std::io::Error::from_raw_os_error(errno)
            ));
        }
        let mut started_commands = None;
        for (i, task) in set.tasks.iter().enumerate() {
            let Body::Command(words) = &task.body else { continue };
            let started = match &mut started_commands {
                Some(started) => started,
                none => none.insert(Commands::new()?),
            };
            let cpu = (!unpinned).then_some(task.cpu);
            match started.start((i, &task.name), words, cpu, policies[i]) {
                Ok(()) => {}
                Err(Failed::Refused(errno)) => {
                    control.fail(Step::TaskPolicy, i as u32, errno);
                    return refused(set, baseline, unpinned, &control);
                }
                Err(Failed::Error(error)) => return Err(error),
            }
        }
        let hog = match (options.hog, cpus.first()) {
            (true, Some(&cpu)) => Some(
                Hog::start(cpu, options.duration.saturating_add(2 * SET_UP * SECOND))
                    .map_err(|error| not_started("the hog", error))?,
            ),
            _ => None,
        };

        let started = monotonic_ns() + 5_000_000;
        let ended = started.saturating_add(options.duration);
        control.end.store(ended, Release);
        control.start.store(started, Release);
        if let Some(commands) = &started_commands {
            // Watchdogs learn of them when nothing below returns early: until then none executes, and
            // they are reaped where this function ends.
            commands.pids().for_each(|(task, pid)| states[task].id.store(pid, Release));
            commands.release();
        }
        notes.extend(watch(&control, &mut rings, cpus.len(), started_commands.as_mut(), &states, sink));

        let stopped = monotonic_ns();
        control.stop.store(true, Release);
        for (task, _) in states.iter().zip(&commands).filter(|(_, &command)| command) {
            // First no longer known to the watchdogs: once reaped, its id may be another process's.
            task.id.store(0, Release);
        }
        notes.extend(started_commands.map(Commands::end).unwrap_or_default());
        notes.extend(remarks(set, baseline, unpinned, &natures));
        let lost = control.lost.load(Acquire);
        Ok(BaselineOutcome::Ran(BaselineRun {
            started,
            ended: ended.min(stopped),
            pinned: !unpinned,
            interrupted: options.stop.load(Acquire) && stopped < ended,
            hog: hog.map(Hog::stop),
            lost,
            notes,
        }))
    })?;
    Ok(outcome)
}

/// Takes records until the observers are done; returns what a reader should know. The caller's thread sleeps in
/// between, so that it disturbs no task.
fn watch(
    control: &Control,
    rings: &mut [Consumer<Period>],
    observers: usize,
    mut commands: Option<&mut Commands>,
    states: &[TaskState],
    sink: &mut dyn FnMut(Period),
) -> Vec<String> {
    let mut notes = Vec::new();
    loop {
        // Read before the rings are emptied: what was pushed before it became true is taken below.
        let over = control.observed.load(Acquire) as usize >= observers;
        for ring in rings.iter_mut() {
            while let Ok(period) = ring.pop() {
                sink(period);
            }
        }
        if over {
            return notes;
        }
        if let Some(commands) = &mut commands {
            commands.ended().for_each(|task| states[task].gone.store(true, Release));
            notes.extend(commands.replace_dead_guardian());
        }
        sleep_until(monotonic_ns() + 10_000_000);
    }
}

/// The kernel's policies know no other releases.
fn not_periodic(set: &TaskSet) -> Option<Refusal> {
    let task = set.tasks.iter().find(|t| t.arrival != Arrival::Periodic)?;
    Some(Refusal {
        reason: format!("task \"{}\" is not released periodically, and only such tasks are compared", task.name),
        help: vec!["leave its arrival away, or compare a set without it".to_owned()],
        unpinned_may_work: false,
    })
}

fn nature(body: &Body) -> Option<Nature> {
    match body {
        Body::Spin(Spin::Forever) => Some(Nature::Forever),
        Body::Steps(steps) if steps.contains(&Part::Spin(Spin::Forever)) => Some(Nature::Forever),
        Body::Spin(_) | Body::Steps(_) => Some(Nature::Ends),
        Body::Command(_) => Some(Nature::Command),
        Body::Pid(_) => None,
    }
}

/// Whether its jobs contain sleeps. When they take place is not known to the observer.
fn suspends(body: &Body) -> bool {
    matches!(body, Body::Steps(steps) if steps.iter().any(|step| matches!(step, Part::Sleep(_))))
}

/// The CPUs used and, if there is one, another: a watchdog that no task can be above on its own CPU either.
fn guarded(cpus: &[u32]) -> Vec<u32> {
    let mut guarded = cpus.to_vec();
    guarded.extend(affinity().into_iter().find(|cpu| !cpus.contains(cpu)));
    guarded
}

/// What an observer reserves must not be what the set then lacks.
fn observing(set: &TaskSet, baseline: Baseline, unpinned: bool) -> &'static [Policy] {
    match baseline {
        Baseline::Deadline if unpinned && plan::fits_beside_observer(set, 20, Some(affinity().len())) => {
            AMONG_DEADLINES_FREE
        }
        Baseline::Deadline if !unpinned && plan::fits_beside_observer(set, 5, None) => AMONG_DEADLINES,
        _ => ABOVE_ALL,
    }
}

/// Three seconds of records, within reason: so long may the caller be kept from its CPU.
fn room(set: &TaskSet, cpu: u32) -> usize {
    let records: u64 =
        set.tasks.iter().filter(|task| task.cpu == cpu).map(|task| 3 * SECOND / task.period.max(1) + 64).sum();
    records.clamp(1_024, 1 << 16) as usize
}

fn start<'scope>(
    scope: &'scope Scope<'scope, '_>,
    what: &'static str,
    life: impl FnOnce() + Send + 'scope,
) -> Result<(), Diagnostic> {
    let thread = Builder::new().name(format!("baseline-{what}")).stack_size(STACK);
    thread.spawn_scoped(scope, life).map(|_| ()).map_err(|error| not_started(what, error))
}

/// Whether that many threads became ready before one failed, the caller stopped it, or the time was up.
fn wait_ready(control: &Control, threads: u32) -> bool {
    while control.ready.load(Acquire) < threads {
        if control.stop.load(Acquire) {
            return false;
        }
        sleep_until(monotonic_ns() + 500_000);
    }
    !control.stop.load(Acquire)
}

/// Why it did not begin: a failure, the caller's stop, or too slow.
fn refused(
    set: &TaskSet,
    baseline: Baseline,
    unpinned: bool,
    control: &Control,
) -> Result<BaselineOutcome, Diagnostic> {
    if let Some(failure) = control.failure() {
        return explain(set, baseline, unpinned, failure).map(BaselineOutcome::NotPossible);
    }
    if monotonic_ns() >= control.end.load(Acquire) {
        return Err(slow(SET_UP));
    }
    Ok(BaselineOutcome::NotPossible(Refusal {
        reason: "it was interrupted before it began".into(),
        help: Vec::new(),
        unpinned_may_work: false,
    }))
}

fn remarks(set: &TaskSet, baseline: Baseline, unpinned: bool, natures: &[Option<Nature>]) -> Vec<String> {
    let mut notes = Vec::new();
    if unpinned {
        notes.push("its tasks are not pinned: they share all CPUs".to_owned());
    }
    if baseline == Baseline::Deadline && observing(set, baseline, unpinned) == ABOVE_ALL {
        notes.push(
            "the observer had no room of its own among these budgets and was often late: see the periods counted apart"
                .to_owned(),
        );
    }
    if natures.contains(&Some(Nature::Command)) {
        let forks = if baseline == Baseline::Deadline { "; threads that it creates are ordinary ones" } else { "" };
        notes.push(format!("of a command only the execution time of its first process is known{forks}"));
    }
    if !set.groups.is_empty() || !set.budget_groups.is_empty() {
        notes.push("its groups and budget groups are not known there: its tasks stand beside each other".to_owned());
    }
    for task in &set.tasks {
        if let Body::Pid(pid) = task.body {
            notes.push(format!("task \"{}\" (process {pid}) was left as it is", task.name));
        }
    }
    notes
}

struct StopOnDrop<'a>(&'a Control);

impl Drop for StopOnDrop<'_> {
    fn drop(&mut self) {
        self.0.stop.store(true, Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_sets_of_periodic_tasks_are_compared() {
        let set = |arrival| {
            let text = format!(
                "cpu = 0\npolicy = \"rm\"\n[[task]]\nname = \"t\"\nperiod = \"5ms\"\nbudget = \"1ms\"\n{arrival}work = {{ spin = \"1ms\" }}"
            );
            TaskSet::parse(&text, "test").expect("it is right")
        };
        assert_eq!(not_periodic(&set("")), None);
        let refusal = not_periodic(&set("arrival = { sporadic = \"9ms\" }\n")).expect("refused");
        assert!(refusal.reason.contains("\"t\"") && !refusal.unpinned_may_work, "{refusal:?}");
    }
}
