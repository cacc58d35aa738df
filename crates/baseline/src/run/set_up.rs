//! The set-up of a run: watchdogs, observers, tasks and commands, none of which executes before the
//! first release.

use std::sync::atomic::Ordering::*;
use std::sync::Arc;
use std::thread::Builder;

use punctual_diagnostic::Diagnostic;
use punctual_sys::clock::{monotonic_ns, sleep_until};
use punctual_sys::memory::{Extent, MemoryLock};
use punctual_sys::process::RtTimeLimit;
use punctual_sys::thread_name::BASELINE;
use punctual_taskset::{Body, DomainId, TaskSet};
use punctual_workload::{Spinner, Work};
use rtrb::RingBuffer;

use super::{Baseline, BaselineHost, BaselineStart, Options, Shared, SECOND};
use crate::command::{Failed, TaskCommands};
use crate::judge::{Nature, Terms};
use crate::observer::{Observer, Watch};
use crate::plan::{self, guarded, nature, observing, room, suspends};
use crate::refusal::{explain, not_started, slow, Unsupported};
use crate::shared::{Control, SetupStep, TaskState};
use crate::sys::number;
use crate::watchdog::Watchdog;
use crate::worker::Worker;

/// Longest set-up, s.
const SET_UP: u64 = 5;
/// Stack of each thread: they call nothing deep.
const STACK: usize = 128 * 1024;

/// What a set-up is made with.
pub(super) struct SetUp<'a> {
    pub(super) set: &'a TaskSet,
    pub(super) baseline: Baseline,
    pub(super) unpinned: bool,
    pub(super) natures: Vec<Option<Nature>>,
}

/// Why a run does not begin.
pub(super) enum NotStarted {
    /// A thread failed, the caller stopped it, or the time was up: see [`Control::failure`].
    Thread,
    Error(Diagnostic),
}

impl From<Diagnostic> for NotStarted {
    fn from(error: Diagnostic) -> NotStarted {
        NotStarted::Error(error)
    }
}

impl BaselineHost {
    pub(super) fn new(set: &TaskSet, options: &Options, unpinned: bool) -> BaselineHost {
        let shared = Shared {
            control: Control::new(monotonic_ns() + SET_UP * SECOND),
            tasks: set.tasks.iter().map(|_| TaskState::new()).collect(),
            commands: set
                .tasks
                .iter()
                .map(|task| nature(&task.body) == Some(Nature::Command))
                .collect(),
            stop: options.stop.clone(),
        };
        BaselineHost {
            shared: Arc::new(shared),
            threads: Vec::new(),
            rings: Vec::new(),
            commands: None,
            pinned: !unpinned,
            started: 0,
            ended: 0,
            notes: Vec::new(),
            _memory: None,
            _limit: RtTimeLimit::set(options.duration.saturating_add((SET_UP + 5) * SECOND)),
        }
    }

    /// Watchdogs and observers first: no task may get its policy before there is a thread above it.
    pub(super) fn set_up(&mut self, set_up: &SetUp<'_>) -> Result<(), NotStarted> {
        let set = set_up.set;
        let domains = plan::domains(set);
        let all = set.only_cpus()?;
        let cpus: Vec<u32> = domains.iter().map(|domain| all[domain.0 as usize]).collect();
        for cpu in guarded(&cpus) {
            self.spawn("watchdog", move |shared| {
                let Shared { control, tasks, commands, stop } = shared;
                Watchdog { cpu, tasks, commands, asked: stop, control }.live();
            })?;
        }
        for (domain, cpu) in domains.into_iter().zip(cpus) {
            self.observe(set_up, domain, cpu)?;
        }
        self.wait_ready()?;
        let spinner = Spinner::calibrate();
        let policies = plan::policies(set_up.set, set_up.baseline);
        for (i, task) in set_up.set.tasks.iter().enumerate() {
            let Some(work) = Work::of(&task.body) else { continue };
            let cpu = self.pinned.then_some(all[task.domain.0 as usize]);
            let policy = policies[i];
            let (offset, period) = (task.offset, task.period);
            self.spawn("task", move |shared| {
                let (state, control) = (&shared.tasks[i], &shared.control);
                Worker {
                    task: i as u32,
                    cpu,
                    policy,
                    offset,
                    period,
                    work,
                    spinner,
                    state,
                    control,
                }
                .live();
            })?;
        }
        self.wait_ready()?;
        match MemoryLock::take(Extent::Present) {
            Ok(lock) => self._memory = Some(lock),
            Err(e) => {
                let why = std::io::Error::from_raw_os_error(number(&e));
                let note = format!("memory could not be locked ({why}); page faults may show");
                self.notes.push(note);
            }
        }
        for (i, task) in set_up.set.tasks.iter().enumerate() {
            let Body::Command(words) = &task.body else { continue };
            let commands = match &mut self.commands {
                Some(commands) => commands,
                none => none.insert(TaskCommands::new()?),
            };
            let cpu = self.pinned.then_some(all[task.domain.0 as usize]);
            match commands.start((i, &task.name), words, cpu, policies[i]) {
                Ok(()) => {}
                Err(Failed::Refused(errno)) => {
                    self.shared.control.fail(SetupStep::TaskPolicy, i as u32, errno);
                    return Err(NotStarted::Thread);
                }
                Err(Failed::Error(error)) => return Err(NotStarted::Error(error)),
            }
        }
        Ok(())
    }

    /// Starts the observer of one domain, on its CPU.
    fn observe(
        &mut self,
        set_up: &SetUp<'_>,
        domain: DomainId,
        cpu: u32,
    ) -> Result<(), Diagnostic> {
        let SetUp { set, baseline, unpinned, ref natures } = *set_up;
        let tasks = set.tasks.iter().enumerate().filter(|(_, task)| task.domain == domain);
        let terms: Vec<(Terms, u64)> = tasks
            .filter_map(|(i, task)| {
                let (period, deadline, budget) = (task.period, task.deadline, task.budget);
                let (nature, suspends) = (natures[i]?, suspends(&task.body));
                Some((
                    Terms { task: i as u32, period, deadline, budget, nature, suspends },
                    task.offset,
                ))
            })
            .collect();
        let (ring, taker) = RingBuffer::new(room(set, domain));
        self.rings.push(taker);
        let pinned = (!unpinned).then_some(cpu);
        let policies = observing(set, baseline, unpinned);
        self.spawn("observer", move |shared| {
            let watch = |(terms, offset): (Terms, u64)| {
                let state = &shared.tasks[terms.task as usize];
                Watch::new(terms, offset, state)
            };
            let watches = terms.into_iter().map(watch).collect();
            Observer { cpu, pinned, policies, watches, ring, control: &shared.control }.live();
        })
    }

    fn spawn(
        &mut self,
        what: &'static str,
        life: impl FnOnce(&Shared) + Send + 'static,
    ) -> Result<(), Diagnostic> {
        let shared = self.shared.clone();
        let thread = Builder::new().name(format!("{BASELINE}-{what}")).stack_size(STACK);
        let started =
            thread.spawn(move || life(&shared)).map_err(|error| not_started(what, error))?;
        self.threads.push(started);
        Ok(())
    }

    /// Waits until all threads are ready, one failed, the caller stopped it, or the time was up.
    fn wait_ready(&self) -> Result<(), NotStarted> {
        let control = &self.shared.control;
        while (control.ready.load(Acquire) as usize) < self.threads.len()
            && !control.stop.load(Acquire)
        {
            sleep_until(monotonic_ns() + 500_000);
        }
        if control.stop.load(Acquire) {
            return Err(NotStarted::Thread);
        }
        Ok(())
    }
}

impl SetUp<'_> {
    /// Why it did not begin: a failure, the caller's stop, or too slow.
    pub(super) fn refused(&self, control: &Control) -> Result<BaselineStart, Diagnostic> {
        if let Some(failure) = control.failure() {
            return explain(self.set, self.baseline, self.unpinned, failure)
                .map(BaselineStart::NotPossible);
        }
        if monotonic_ns() >= control.end.load(Acquire) {
            return Err(slow(SET_UP));
        }
        Ok(BaselineStart::NotPossible(Unsupported {
            reason: "it was interrupted before it began".into(),
            help: Vec::new(),
            unpinned_may_work: false,
        }))
    }
}
