//! Taking tasks in: threads of this process, commands, running processes. Each stands parked until
//! its first release.

use std::sync::atomic::AtomicU64;
use std::sync::mpsc::RecvTimeoutError;
use std::sync::Arc;

use punctual_dispatcher::TaskId;
use punctual_policies::{PeriodBuilder, PeriodParams};
use punctual_process as process;
use punctual_process::{CgroupBase, CommandSpec, Hold, Journal, Park};
use punctual_program_jobs::{takes_jobs, task_jobs};
use punctual_taskset::{DomainId, ServerSpec, TaskSet, TaskSpec};
use punctual_wait_page::{DispatcherPage, SealedPage};

use crate::children::Child;
use crate::doorbell::Doorbell;
use crate::holder::{self, HolderName};
use crate::host::{Host, Pending, TaskEntry};
use crate::inheritance::WaitSamples;
use crate::member::{Member, MemberKind, Program, RunMode};
use crate::start::{kept, PATIENCE};
use crate::suspension::Suspension;
use crate::task::{Entry, ThreadTask};
use crate::task_control::TaskControl;
use crate::time_slices::TimeSlice;
use crate::unresponsive::ParkWatch;
use crate::{park_signal, sched};
use punctual_diagnostic::Diagnostic;
use punctual_sys::sched::pin;

fn new_control(doorbell: &Arc<Doorbell>) -> Result<Arc<TaskControl>, Diagnostic> {
    let name = HolderName::claim(doorbell.id()).ok_or_else(|| {
        Diagnostic::machine(
            format!("{} threads of this process are tasks already", holder::THREADS),
            "run fewer tasks in one process",
        )
    })?;
    Ok(Arc::new(TaskControl::new(doorbell.clone(), name)))
}

/// Threads of one program that can be kept at its level.
const PROGRAM_THREADS: usize = 1024;

impl Host {
    fn engine_of(&self, domain: DomainId) -> Result<usize, Diagnostic> {
        self.engines.iter().position(|e| e.domain == domain).ok_or_else(|| {
            let cause = format!("this host does not have domain {}", domain.0);
            Diagnostic::usage(cause, "use one of the set's domains")
        })
    }

    fn journal(&self) -> Result<Journal, Diagnostic> {
        self.supervision
            .as_ref()
            .map(|c| c.journal.clone())
            .ok_or_else(|| Diagnostic::machine("this host has ended", "start another"))
    }

    /// Our cgroup; without cgroup v2, programs are parked by stop signals and a note says so.
    fn ensure_base(&mut self) -> Result<(), Diagnostic> {
        if self.base.is_some() || self.children.iter().any(|child| child.program().is_some()) {
            return Ok(());
        }
        match CgroupBase::create(&self.journal()?) {
            Ok(base) => self.base = Some(base),
            Err(e) => self.notes.push(format!(
                "programs are parked by SIGSTOP, which is less precise: {} ({})",
                e.cause, e.help
            )),
        }
        Ok(())
    }

    fn push(
        &mut self,
        index: u32,
        engine: usize,
        spec: &TaskSpec,
        kind: MemberKind,
        page: Option<&SealedPage>,
    ) {
        let unreported = Arc::new(AtomicU64::new(0));
        let control = match &kind {
            MemberKind::Thread(control) => Some(control.clone()),
            _ => None,
        };
        let suspension = match &control {
            Some(control) => control.suspension.clone(),
            None => Arc::new(Suspension::new(self.engines[engine].doorbell.clone())),
        };
        let takes_jobs = takes_jobs(&self.set, spec);
        let doorbell = &self.engines[engine].doorbell;
        let (jobs, requests) = takes_jobs.then(|| task_jobs(spec, doorbell.clone())).unzip();
        let member = Box::new(Member {
            task: TaskId(u32::MAX),
            other: (index as usize >= self.set.tasks.len()).then(|| spec.clone()),
            confined: spec.group.is_some() || spec.budget_group.is_some(),
            grain: grain(&self.set, spec),
            kind,
            page: page.map(DispatcherPage::of),
            lost: 0,
            waiting: true,
            suspended: false,
            suspension: suspension.clone(),
            jobs: requests,
            run_mode: RunMode::Parked,
            level: sched::LOWEST,
            reranked: false,
            slice: TimeSlice::default(),
            charged: 0,
            freezer_requested: false,
            moving: false,
            asleep: false,
            quiet: false,
            charges_idle: false,
            ran_at: 0,
            ran: 0,
            defers_charges: false,
            deferred: 0,
            periods: PeriodBuilder::new(PeriodParams::new(index, spec), false),
            unreported: unreported.clone(),
            saturated: false,
            raised_since: None,
            park_watch: ParkWatch::new(),
            wait_samples: WaitSamples::default(),
        });
        self.pending.push(Pending { engine, member });
        let has_page = page.is_some();
        let entry =
            TaskEntry { engine, unreported, control, has_page, suspension, takes_jobs, jobs };
        self.tasks.insert(index, entry);
    }

    /// A thread of this process as task number `index`: `body` is called at the first release.
    ///
    /// # Errors
    /// No such domain here, or no thread can be made.
    pub fn add_thread(
        &mut self,
        index: u32,
        spec: &TaskSpec,
        stack: usize,
        body: impl FnOnce(&mut ThreadTask) + Send + 'static,
    ) -> Result<(), Diagnostic> {
        let engine = self.engine_of(spec.domain)?;
        let control = new_control(&self.engines[engine].doorbell)?;
        let cpu = self.engines[engine].cpu;
        let (ready, is_ready) = std::sync::mpsc::channel();
        let thread = {
            let control = control.clone();
            let name: String = spec.name.chars().take(15).collect();
            std::thread::Builder::new().name(name).stack_size(stack).spawn(move || {
                let membership = park_signal::enter(control);
                let placed = pin(0, cpu).and_then(|()| sched::set_level(0, sched::LOWEST));
                let ok = placed.is_ok();
                drop(ready.send(placed));
                if ok {
                    let mut task = ThreadTask::new(membership);
                    task.control().pass();
                    // A run that ended before it began executes nothing.
                    if !task.is_over() {
                        body(&mut task);
                    }
                }
            })
        };
        let thread = thread.map_err(|e| {
            Diagnostic::machine(
                format!("task \"{}\": no thread can be made: {e}", spec.name),
                "raise RLIMIT_NPROC, or run fewer tasks",
            )
        })?;
        self.threads.retain(|thread| !thread.is_finished());
        self.threads.push(thread);
        match is_ready.recv_timeout(PATIENCE) {
            Ok(Err(e)) => {
                return Err(Diagnostic::machine(
                    format!(
                        "task \"{}\": its thread cannot have a real-time level on CPU {cpu}: {e}",
                        spec.name
                    ),
                    "see punctual doctor",
                ))
            }
            Err(RecvTimeoutError::Timeout) => {
                // When it comes to run, it is to end.
                control.detach();
                control.open();
                return Err(kept(cpu, sched::LOWEST));
            }
            Ok(Ok(())) | Err(RecvTimeoutError::Disconnected) => {}
        }
        self.push(index, engine, spec, MemberKind::Thread(control), None);
        Ok(())
    }

    /// Prepares a thread that exists already to become a task of `domain`. It calls
    /// [`Entry::enter`]; then [`add_entered`](Host::add_entered) makes it one.
    ///
    /// # Errors
    /// No such domain here, or too many threads of this process are tasks.
    pub fn prepare_entry(&self, domain: DomainId) -> Result<Entry, Diagnostic> {
        let engine = &self.engines[self.engine_of(domain)?];
        Ok(Entry { control: new_control(&engine.doorbell)?, domain, cpu: engine.cpu })
    }

    /// The thread that has entered is task number `index`.
    ///
    /// # Errors
    /// No such domain here.
    pub fn add_entered(
        &mut self,
        index: u32,
        spec: &TaskSpec,
        entry: &Entry,
    ) -> Result<(), Diagnostic> {
        let engine = self.engine_of(entry.domain)?;
        self.push(index, engine, spec, MemberKind::Thread(entry.control.clone()), None);
        Ok(())
    }

    /// A command as task number `index`: started now, executing nothing before its first release.
    ///
    /// # Errors
    /// The program is not there, or the machine does not permit what it needs.
    pub fn add_command(
        &mut self,
        index: u32,
        spec: &TaskSpec,
        command: CommandSpec,
    ) -> Result<i32, Diagnostic> {
        let engine = self.engine_of(spec.domain)?;
        self.ensure_base()?;
        let journal = self.journal()?;
        let park = Park::for_command(&journal, self.base.as_ref(), &spec.name)?;
        let cpu = self.engines[engine].cpu;
        park.bind(cpu);
        let command = CommandSpec { level: sched::LOWEST, hold: Hold::Parked, ..command.on(cpu) };
        let spawned = process::spawn(&journal, command, &park)?;
        let pid = spawned.id().pid;
        let program = self.program(park, spec, cpu, pid)?;
        self.children.push(Child::started(index, program.clone(), spawned));
        self.push(index, engine, spec, MemberKind::Program(program), None);
        Ok(pid)
    }

    /// A running process, with its children, as task number `index`. It stands still from now
    /// until its first release.
    ///
    /// # Errors
    /// No such process, one that may not be parked, or no permission. What was changed by then is
    /// restored at the end of the run.
    pub fn adopt(&mut self, index: u32, spec: &TaskSpec, pid: i32) -> Result<(), Diagnostic> {
        let engine = self.engine_of(spec.domain)?;
        let cpu = self.engines[engine].cpu;
        self.ensure_base()?;
        let journal = self.journal()?;
        let park = match (self.confine, self.base.as_ref()) {
            (false, base) => Park::for_process(&journal, base, pid, &spec.name)?,
            (true, Some(base)) => Park::confining(base, &spec.name)?,
            (true, None) => {
                return Err(Diagnostic::machine(
                    "without cgroup v2 no process of another user can be kept to a budget",
                    "mount cgroup v2; see punctual doctor",
                ))
            }
        };
        park.bind(cpu);
        let (adopted, notes) = process::adopt_with_children(&journal, pid, &park)?;
        self.notes.extend(notes);
        // Before its threads have a real-time level, at which one that spins would keep this thread
        // from its CPU.
        park.park().map_err(|e| {
            Diagnostic::machine(
                format!("process {pid} cannot be parked: {e}"),
                "see punctual doctor",
            )
        })?;
        let program = self.program(park, spec, cpu, pid)?;
        self.children.push(Child::adopted(index, program.clone(), adopted));
        self.push(index, engine, spec, MemberKind::Program(program), None);
        Ok(())
    }

    /// One thread of a running process as task number `index`. From now until its first release it
    /// executes only where the CPU has nothing else to do. Its process is not touched. It waits for
    /// its releases by `page`, if it has one.
    ///
    /// # Errors
    /// No such thread, one that may not be parked, or no permission.
    pub fn adopt_thread(
        &mut self,
        index: u32,
        spec: &TaskSpec,
        (pid, tid): (i32, i32),
        page: Option<&SealedPage>,
    ) -> Result<(), Diagnostic> {
        let engine = self.engine_of(spec.domain)?;
        let cpu = self.engines[engine].cpu;
        let thread = Arc::new(process::adopt_thread(&self.journal()?, pid, tid, cpu)?);
        self.children.push(Child::thread(index, thread.clone()));
        self.push(index, engine, spec, MemberKind::AdoptedThread(thread), page);
        Ok(())
    }

    fn program(
        &self,
        park: Park,
        spec: &TaskSpec,
        cpu: u32,
        leader: i32,
    ) -> Result<Arc<Program>, Diagnostic> {
        let threads = process::Threads::new(&park, PROGRAM_THREADS, cpu);
        drop(threads.set_level(sched::LOWEST));
        threads.rescan(&park.threads()).map_err(|e| {
            Diagnostic::machine(
                format!(
                    "task \"{}\": its threads cannot have a real-time level on CPU {cpu}: {e}",
                    spec.name
                ),
                "see punctual doctor",
            )
        })?;
        Ok(Arc::new(Program::new(park, threads, leader)))
    }
}

/// The least budget that limits a task: its own, a server's on the way up, or a budget group's.
fn grain(set: &TaskSet, spec: &TaskSpec) -> u64 {
    let server = |server: &ServerSpec| match server {
        ServerSpec::Periodic { budget, .. } => *budget,
        ServerSpec::Windows { windows, .. } => windows.iter().map(|w| w.length).min().unwrap_or(0),
    };
    let mut least = spec.budget;
    let mut nodes = vec![spec.budget_group];
    let mut above = spec.group;
    while let Some(group) = above.and_then(|g| set.groups.get(g)) {
        least = least.min(server(&group.server));
        nodes.push(group.budget_group);
        above = group.parent;
    }
    for mut node in nodes {
        while let Some(n) = node.and_then(|n| set.budget_groups.get(n)) {
            least = least.min(n.budget);
            node = n.parent;
        }
    }
    least
}

#[cfg(test)]
mod tests {
    use super::*;
    use punctual_taskset::{
        Body, BudgetGroupSpec, DomainSpec, GroupSpec, PolicySpec, ServerKind, Spin,
    };

    #[test]
    fn the_least_budget_on_the_way_up_both_trees_limits_a_task() {
        let policy = PolicySpec::named("edf");
        let group = |name: &str, parent, budget, budget_group| GroupSpec {
            name: name.to_owned(),
            parent,
            policy: policy.clone(),
            server: ServerSpec::Periodic {
                period: 100,
                budget,
                deadline: 100,
                offset: 0,
                kind: ServerKind::Deferrable,
            },
            priority: 0,
            budget_group,
            domain: DomainId(0),
            line: None,
        };
        let node = |name: &str, parent, budget| BudgetGroupSpec {
            name: name.to_owned(),
            parent,
            period: 100,
            budget,
            domain: DomainId(0),
            line: None,
        };
        let set = TaskSet {
            domains: vec![DomainSpec::of_cpu(0)],
            policy: policy.clone(),
            duration: None,
            tasks: Vec::new(),
            groups: vec![group("top", None, 50, Some(1)), group("below", Some(0), 40, None)],
            budget_groups: vec![node("all", None, 20), node("some", Some(0), 30)],
        };
        let task = |group, budget_group| TaskSpec {
            group,
            budget_group,
            ..TaskSpec::new("t", 100, 60, Body::Spin(Spin::Forever))
        };
        let of = |group, node| grain(&set, &task(group, node));
        assert_eq!(
            [of(None, None), of(None, Some(1)), of(None, Some(0)), of(Some(1), None)],
            [60, 20, 20, 20]
        );
        let mut free = set.clone();
        free.groups[0].budget_group = None;
        assert_eq!(grain(&free, &task(Some(1), None)), 40);
    }
}
