//! The user host: engines on their CPUs, and the supervision of all processes that they change.
//!
//! ```text
//!   Host::start ──> add_thread, add_command, adopt ──> begin ──> housekeep … ──> finish
//! ```
//!
//! Until `begin` everything stands parked. Dropping a host at any point gives everything back.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use punctual_policies::{stuck_policy, ProgramGroups};
use punctual_process as process;
use punctual_process::{CgroupBase, CpuLock, Guardian, Journal};
use punctual_program_jobs::{JobDoorbell, JobEventRings, TaskJobs};
use punctual_sys::clock::CpuClock;
use punctual_sys::futex;
use punctual_sys::memory::{Extent, MemoryLock};
use punctual_taskset::{DomainId, TaskChange, TaskSet};
use punctual_trace::{RunEvent, TraceSink};
use punctual_workload::Spinner;

use crate::calibrate::Precision;
use crate::children::Child;
use crate::engine::Command;
use crate::member::Member;
use crate::park_signal;
use crate::start::{start_engine, EngineHandle};
use crate::stats::EngineReading;
use crate::suspension::Suspension;
use crate::task_control::TaskControl;
use crate::trace::RecordReceiver;
use punctual_diagnostic::Diagnostic;

/// Stack of a task's thread, bytes, where the caller does not say.
pub const STACK: usize = 64 << 10;

/// What a host needs to know at its start.
pub struct HostOptions {
    /// Its CPUs get an engine each, with its policy, groups and budget groups. Its tasks are then
    /// added by their indices, all others with larger ones.
    pub set: TaskSet,
    /// Tasks per engine at one time that are not the set's.
    pub room: u32,
    /// Groups that the program replenishes by its own jobs, of each engine.
    pub program_groups: ProgramGroups,
    /// Names this program, by its command line for instance, in the error of a second dispatcher
    /// that is refused.
    pub owner: String,
    /// Traces of domains.
    pub traces: Vec<(DomainId, TraceSink)>,
    /// Records of each trace that may wait for the housekeeper, 32 bytes each.
    pub records: u32,
    /// Adopted processes are not to leave their task by the cgroups that their user owns: they
    /// move below this process's cgroup, and not below their own.
    pub confine: bool,
}

/// A task that no engine has yet.
pub(crate) struct Pending {
    pub(crate) engine: usize,
    pub(crate) member: Box<Member>,
}

/// What the host keeps of a task.
pub(crate) struct TaskEntry {
    /// The engine that has it, or will.
    pub(crate) engine: usize,
    /// [`Member::unreported`].
    pub(crate) unreported: Arc<AtomicU64>,
    /// Of a thread of this process.
    pub(crate) control: Option<Arc<TaskControl>>,
    pub(crate) has_page: bool,
    pub(crate) suspension: Arc<Suspension>,
    /// The program adds its jobs.
    pub(crate) takes_jobs: bool,
    /// What does, until a part of the program has it.
    pub(crate) jobs: Option<TaskJobs>,
}

/// What a dispatcher thread cost so far.
#[derive(Debug, Clone, Copy)]
pub struct EngineCost {
    /// Its CPU.
    pub cpu: u32,
    /// Its events.
    pub reading: EngineReading,
    /// The precision that its start measured.
    pub precision: Precision,
    /// Its CPU time in all, that of its freezer thread included, ns.
    pub cpu_time: u64,
}

/// The result of a host at its end.
pub struct Finished {
    /// Per CPU: what the dispatcher thread cost.
    pub readings: Vec<EngineCost>,
    /// What could not be restored; empty if all was.
    pub problems: Vec<String>,
    /// As [`Host::failure`].
    pub failure: Option<Diagnostic>,
}

/// A running user host.
pub struct Host {
    pub(crate) set: TaskSet,
    pub(crate) confine: bool,
    begun: bool,
    /// Of the first begin, CLOCK_MONOTONIC ns.
    origin: u64,
    pub(crate) engines: Vec<EngineHandle>,
    pub(crate) pending: Vec<Pending>,
    pub(crate) children: Vec<Child>,
    /// When they are looked at next.
    pub(crate) next_look: Instant,
    /// By index: from its addition until its engine has sent the last notice of it.
    pub(crate) tasks: BTreeMap<u32, TaskEntry>,
    pub(crate) threads: Vec<JoinHandle<()>>,
    pub(crate) base: Option<CgroupBase>,
    pub(crate) notes: Vec<String>,
    /// Calibrated for the first synthetic task.
    pub(crate) spinner: Option<Spinner>,
    pub(crate) supervision: Option<Supervision>,
    /// Where the program may add jobs.
    pub(crate) job_events: Option<JobEventRings>,
    /// Ends with the host.
    _memory: Option<MemoryLock>,
}

/// The part of the host that must not be forgotten.
pub(crate) struct Supervision {
    pub(crate) journal: Journal,
    pub(crate) guardian: Guardian,
    locks: Vec<CpuLock>,
}

impl Supervision {
    fn give_back(self) -> Vec<String> {
        let report = process::restore(&self.journal);
        self.guardian.dismiss();
        drop(self.locks);
        report.problems
    }
}

impl Host {
    /// Takes the CPUs, starts the guardian and the engines. Takes some 10 ms for each CPU.
    ///
    /// # Errors
    /// A CPU that is not there or is another dispatcher's, missing privileges, no memory; nothing
    /// is left behind then.
    pub fn start(options: &HostOptions) -> Result<Host, Diagnostic> {
        let cpus = options.set.only_cpus()?;
        process::check_privileges(&cpus)?;
        let locks = cpus.iter().map(|&cpu| CpuLock::take(cpu, &options.owner));
        let locks = locks.collect::<Result<Vec<_>, _>>()?;
        let journal = Journal::create()?;
        let guardian = Guardian::start(&journal, &locks)?;
        let enforcing: Vec<_> = guardian.enforcing().collect();
        let mut host = Host {
            set: options.set.clone(),
            confine: options.confine,
            begun: false,
            origin: 0,
            engines: Vec::new(),
            pending: Vec::new(),
            children: Vec::new(),
            next_look: Instant::now(),
            tasks: BTreeMap::new(),
            threads: Vec::new(),
            base: None,
            notes: Vec::new(),
            spinner: None,
            supervision: Some(Supervision { journal, guardian, locks }),
            job_events: None,
            _memory: None,
        };
        match MemoryLock::take(Extent::Touched) {
            Ok(lock) => host._memory = Some(lock),
            Err(e) => host
                .notes
                .push(format!("memory could not be locked ({e}): page faults may delay tasks")),
        }
        futex::fix_hash_size();
        park_signal::install().map_err(|e| {
            Diagnostic::machine(
                format!("the gate signal cannot be handled: {e}"),
                "report it with the output of punctual doctor",
            )
        })?;
        host.job_events = JobEventRings::of(&options.set)?;
        for (domain, enforcing) in options.set.domain_ids().zip(enforcing) {
            let events = host.job_events.as_mut().map(JobEventRings::sender);
            let engine = start_engine(domain, options, enforcing, events)?;
            host.engines.push(engine);
        }
        Ok(host)
    }

    /// What people should know about this run so far.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// Passes all added tasks to the engines; task offsets count from `origin` (CLOCK_MONOTONIC
    /// ns). Tasks may be added, and this called, again later.
    ///
    /// # Errors
    /// More tasks than an engine's limit.
    pub fn begin(&mut self, origin: u64) -> Result<(), Diagnostic> {
        if !self.begun {
            self.begun = true;
            self.origin = origin;
            self.engines.iter_mut().for_each(|engine| engine.commands.send(Command::Begin(origin)));
        }
        for (e, engine) in self.engines.iter().enumerate() {
            if !engine.commands.has_room(self.pending.iter().filter(|p| p.engine == e).count()) {
                return Err(Diagnostic::usage(
                    "more tasks than this host's limit",
                    "start it with a higher task limit",
                ));
            }
        }
        for Pending { engine, mut member } in self.pending.drain(..) {
            if let Some(spec) = &mut member.other {
                spec.offset = spec.offset.saturating_add(origin.saturating_sub(self.origin));
            }
            self.engines[engine].commands.send(Command::Add(member));
        }
        self.engines.iter().for_each(|engine| engine.doorbell.ring());
        Ok(())
    }

    /// Requests the end of a task: a thread finds that its run is over, at its next release at the
    /// latest; a command is killed; adopted processes are restored.
    ///
    /// # Errors
    /// The kernel's refusal to kill.
    pub fn stop_task(&mut self, index: u32) -> Result<(), Diagnostic> {
        let task = self.tasks.get(&index);
        if let Some(control) = task.and_then(|task| task.control.as_ref()) {
            control.over.store(true, Ordering::SeqCst);
        }
        if let Some(task) = task {
            // A thread finds that at its next release.
            task.suspension.end();
            if task.takes_jobs {
                // None may follow.
                self.engines[task.engine].doorbell.note_jobs();
            }
        }
        // Otherwise it has ended already.
        let Some(child) = self.children.iter_mut().find(|child| child.index == index) else {
            return Ok(());
        };
        if child.stop()? {
            self.end_of_processes(index);
        }
        Ok(())
    }

    /// Removes a task of processes from its engine, or from those that no engine has yet.
    pub(crate) fn end_of_processes(&mut self, index: u32) {
        let pending = self.pending.len();
        self.pending.retain(|p| p.member.periods.params().task != index);
        if self.pending.len() < pending {
            self.tasks.remove(&index);
        } else if let Some(task) = self.tasks.get(&index) {
            let engine = &mut self.engines[task.engine];
            engine.commands.send(Command::Gone(index));
            engine.doorbell.ring();
        }
    }

    /// Gives a task other parameters, from its next release on. Admission is the caller's, and
    /// that its policy is one of the dispatcher's reservations (`edf`, `rm`, `dm`, `fp`).
    ///
    /// # Errors
    /// EAGAIN: too many changes wait for the task's engine.
    pub fn change(&mut self, index: u32, change: &TaskChange) -> Result<(), Diagnostic> {
        let Some(task) = self.tasks.get(&index) else { return Ok(()) };
        let engine = &mut self.engines[task.engine];
        engine.commands.send_change(Command::Change(index, *change))?;
        engine.doorbell.ring();
        Ok(())
    }

    /// Suspends and resumes a task. That its policy is one of the dispatcher's reservations (`edf`,
    /// `rm`, `dm`, `fp`) is the caller's.
    ///
    /// # Errors
    /// The task has ended, or is a thread of another process that waits by no page.
    pub fn suspension(&self, index: u32) -> Result<Arc<Suspension>, Diagnostic> {
        let ended = || Diagnostic::usage("the task has ended", "suspend another one");
        let task = self.tasks.get(&index).ok_or_else(ended)?;
        let alone = |child: &Child| child.index == index && child.program().is_none();
        if !task.has_page && self.children.iter().any(alone) {
            return Err(Diagnostic::usage(
                "a thread of another process is suspended where it waits by a page, and this one \
                 has none",
                "adopt the process, or give the thread a page",
            ));
        }
        Ok(task.suspension.clone())
    }

    /// Whether the run cannot continue: a policy of the program does not return. To be followed by
    /// [`Host::finish`], which says it.
    pub fn has_failed(&self) -> bool {
        stuck_policy().is_some()
    }

    /// What each dispatcher thread cost so far.
    pub fn readings(&self) -> Vec<EngineCost> {
        let cost = |e: &EngineHandle| EngineCost {
            cpu: e.cpu,
            reading: e.stats.read(),
            precision: e.precision,
            cpu_time: [Some(e.tid), e.freezer.as_ref().map(|f| f.tid)]
                .into_iter()
                .flatten()
                .filter_map(|tid| CpuClock::of_thread(tid).read())
                .sum(),
        };
        self.engines.iter().map(cost).collect()
    }

    /// Ends the run: stops engines, ends commands, restores adopted programs, ends the waits of
    /// threads, and joins those that return within one second.
    pub fn finish(mut self, sink: &mut dyn FnMut(RunEvent)) -> Finished {
        let readings = self.readings();
        self.stop_engines();
        self.tasks.values().for_each(|task| task.suspension.end());
        self.job_events.iter().for_each(JobEventRings::end);
        self.forward_reports(sink);
        self.engines
            .iter_mut()
            .filter_map(|engine| engine.trace.as_mut())
            .for_each(RecordReceiver::finish);
        self.children.clear();
        self.base = None;
        let problems = self.supervision.take().map(Supervision::give_back).unwrap_or_default();
        self.join_threads();
        Finished { readings, problems, failure: stuck_policy().map(|stuck| stuck.diagnostic()) }
    }

    fn stop_engines(&mut self) {
        self.engines.iter().for_each(|engine| engine.doorbell.request_stop());
        for engine in &mut self.engines {
            let Some(thread) = engine.thread.take() else { continue };
            while !thread.is_finished() {
                if stuck_policy().is_some_and(|stuck| stuck.tid == engine.tid) {
                    break;
                }
                std::thread::sleep(Duration::from_millis(1));
            }
            if !thread.is_finished() {
                // Nor does its freezer thread end, which nothing asks for anything any more.
                continue;
            }
            drop(thread.join());
            // A write that waits could freeze a program after it was restored. No job keeps the
            // lock's holder from this CPU any more.
            if let Some(freezer) = engine.freezer.take() {
                drop(freezer.handle.join());
            }
        }
    }

    /// A task that never checks whether the run is over cannot be ended: it continues in the
    /// ordinary class until the process ends.
    fn join_threads(&mut self) {
        let until = Instant::now() + Duration::from_secs(1);
        for thread in self.threads.drain(..) {
            while !thread.is_finished() && Instant::now() < until {
                std::thread::sleep(Duration::from_millis(1));
            }
            if thread.is_finished() {
                drop(thread.join());
            }
        }
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        if self.supervision.is_some() {
            self.stop_engines();
            // Threads that were never handed over still stand in their gates.
            for p in &self.pending {
                p.member.dismiss();
            }
            self.job_events.iter().for_each(JobEventRings::end);
            self.children.clear();
            self.base = None;
            if let Some(c) = self.supervision.take() {
                drop(c.give_back());
            }
        }
    }
}
