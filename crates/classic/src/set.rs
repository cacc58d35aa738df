//! The tasks of this program on one CPU.

use std::path::PathBuf;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use punctual::{
    Attached, Error, Host, Overrun, Parameters, Policy, Punctual, Running, SchedulingGroup,
    TaskDraft, TaskEnd, TaskHandle,
};
use punctual_sys::sched;

use crate::settings::GROUP_PERIOD;
use crate::{InterfaceNames, PiMutex};

/// Between the call and the first release of a task, ns, at least (docs/library.md).
const LEAD: u64 = 20_000_000;

/// How long a change of a priority waits for the task that is being made, at most.
const PATIENCE: Duration = Duration::from_secs(60);
const LOOK_AGAIN: Duration = Duration::from_millis(1);

/// What an interface calls a member of its sets: unlike all others of the process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MemberId(pub u64);

/// What a task is to have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TaskShare {
    /// This budget in each period, ns; the first release is at `start` (ns from now).
    Budget {
        /// Time between releases.
        period: u64,
        /// Execution time in each.
        budget: u64,
        /// The first release, from now on.
        start: u64,
    },
    /// A part of the group's, at this priority: larger first.
    Group {
        /// Among the tasks of the group.
        priority: i64,
    },
}

/// Who schedules a set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Scheduler {
    /// A dispatcher of this program.
    Own,
    Service,
}

/// The tasks of this program on one CPU.
pub struct CpuSet {
    names: InterfaceNames,
    cpu: u32,
    scheduler: Scheduler,
    running: Running,
    members: PiMutex<Vec<SetMember>>,
    /// Locked while a task's priority is changed, so that the latest change stays.
    changes: PiMutex<()>,
}

struct SetMember {
    id: MemberId,
    share: TaskShare,
    handle: Option<Arc<MemberHandle>>,
}

enum MemberHandle {
    Thread(TaskHandle<()>),
    Process(TaskHandle<TaskEnd>),
}

impl MemberHandle {
    fn is_added(&self) -> bool {
        match self {
            Self::Thread(handle) => handle.is_added(),
            Self::Process(handle) => handle.is_added(),
        }
    }

    fn change(&self, parameters: &Parameters) -> Result<(), Error> {
        match self {
            Self::Thread(handle) => handle.change(parameters),
            Self::Process(handle) => handle.change(parameters),
        }
    }
}

impl CpuSet {
    pub(crate) fn start(
        names: InterfaceNames,
        cpu: u32,
        trace: Option<PathBuf>,
    ) -> Result<CpuSet, Error> {
        let by_service = || Punctual::on_cpu(cpu).host(Host::Service).admit()?.start();
        let own = || {
            let group = SchedulingGroup::new(names.group, GROUP_PERIOD, names.group_budget()?);
            // Admission is asked before each task (`admit`): the group's tasks have a whole period
            // each, which no test admits.
            let set = Punctual::on_cpu(cpu).host(Host::User).overload();
            let set = set.group(group.policy(Policy::FixedPriority));
            let set = trace.into_iter().fold(set, Punctual::trace);
            set.task_limit(names.tasks).admit()?.start()
        };
        let variable = names.variable("HOST");
        let host = names.setting("HOST").map(|host| host.to_string_lossy().into_owned());
        let (scheduler, running) = match host.as_deref() {
            Some("user") => (Scheduler::Own, own()?),
            Some("service") => (Scheduler::Service, by_service()?),
            Some("none") => {
                let help = "use user, service, or leave it out";
                return Err(Error::machine(format!("{variable}=none"), help));
            }
            Some(other) => {
                let cause = format!("there is no host {variable}={other}");
                return Err(Error::usage(cause, "use user, service or none"));
            }
            None => match by_service() {
                Ok(running) => (Scheduler::Service, running),
                Err(_) => (Scheduler::Own, own()?),
            },
        };
        Ok(CpuSet {
            names,
            cpu,
            scheduler,
            running,
            members: PiMutex::new(Vec::new()),
            changes: PiMutex::new(()),
        })
    }

    pub(crate) fn has_members(&self) -> bool {
        self.members.with(|members| !members.is_empty()).unwrap_or(true)
    }

    /// Makes the calling thread a task of the set; returns at its first release. The caller
    /// [removes](CpuSet::remove) the member once the task has ended. Of `share`'s changes from its
    /// call on, those of the priority are to be [passed on](crate::ClassicSets::change_priority).
    ///
    /// # Errors
    /// It does not fit; what the machine does not permit.
    pub fn attach(
        &self,
        id: MemberId,
        name: &str,
        share: impl FnOnce() -> TaskShare,
    ) -> Result<Attached, Error> {
        self.join(id, share, |set, share| {
            // Names of these tasks need not differ.
            let names = [name.to_owned(), format!("{name}-{}", sched::thread_id())];
            set.with_unused_name(names, share, |draft| {
                // Before it is added: a thread that a more important task keeps from executing
                // could not be given another priority, nor give up a lock.
                draft.attach_prepared(|handle| set.keep(id, MemberHandle::Thread(handle)))
            })
        })
    }

    /// Makes a running process, with all its threads, a task of the set, in the group. It stands
    /// still until its first release. The caller [removes](CpuSet::remove) the member once the
    /// process has ended.
    ///
    /// # Errors
    /// As of [`CpuSet::attach`]; there is no such process.
    pub fn adopt(&self, id: MemberId, name: &str, priority: i64, pid: i32) -> Result<(), Error> {
        self.join(
            id,
            || TaskShare::Group { priority },
            |set, share| {
                let names = [name.to_owned(), format!("{name}-{pid}")];
                let handle = set.with_unused_name(names, share, |draft| draft.pid(pid))?;
                set.keep(id, MemberHandle::Process(handle));
                Ok(())
            },
        )
    }

    /// Counts a member, if it fits beside the others, and makes it one.
    fn join<T>(
        &self,
        id: MemberId,
        share: impl FnOnce() -> TaskShare,
        make: impl FnOnce(&Self, TaskShare) -> Result<T, Error>,
    ) -> Result<T, Error> {
        let joined = self.members.with(|members| {
            // With the lock: a change is in it, or finds the member.
            let share = share();
            if self.scheduler == Scheduler::Own {
                let shares = members.iter().map(|member| member.share).chain([share]);
                self.admit(shares)?;
            }
            members.push(SetMember { id, share, handle: None });
            Ok(share)
        });
        let share = joined.unwrap_or_else(|| Err(in_handler()))?;
        make(self, share).inspect_err(|_| self.remove(id))
    }

    /// Calls `f` with a member; `None`: there is none.
    fn with_member<R>(&self, id: MemberId, f: impl FnOnce(&mut SetMember) -> R) -> Option<R> {
        self.members.with(|members| members.iter_mut().find(|one| one.id == id).map(f)).flatten()
    }

    fn keep(&self, id: MemberId, handle: MemberHandle) {
        let handle = Some(Arc::new(handle));
        self.with_member(id, |member| member.handle = handle);
    }

    /// Completes a draft by the first of these names that no other task has.
    fn with_unused_name<'a, T>(
        &'a self,
        names: [String; 2],
        share: TaskShare,
        complete: impl Fn(TaskDraft<&'a Running>) -> Result<T, Error>,
    ) -> Result<T, Error> {
        let mut last = None;
        for name in names {
            match complete(self.draft(&name, share)?) {
                Err(error) if error.errno == Some(libc::EEXIST) => last = Some(error),
                completed => return completed,
            }
        }
        Err(last.unwrap_or_else(|| Error::usage("the name is in use", "use another one")))
    }

    fn draft(&self, name: &str, share: TaskShare) -> Result<TaskDraft<&Running>, Error> {
        let draft = self.running.task(name);
        Ok(match share {
            TaskShare::Budget { period, budget, start } => {
                let draft = draft.period(Duration::from_nanos(period));
                let draft = draft.budget(Duration::from_nanos(budget));
                let draft = draft.start(Duration::from_nanos(start.saturating_sub(LEAD)));
                match budget_signal_is_handled() {
                    true => draft.overrun(Overrun::Signal),
                    false => draft,
                }
            }
            TaskShare::Group { priority } => {
                let draft = draft.period(GROUP_PERIOD);
                match self.scheduler {
                    Scheduler::Own => {
                        // The group's budget alone ends its jobs: with one of its own, a task could
                        // use that up first, and leave some of the group's to less important ones.
                        let draft = draft.budget(GROUP_PERIOD);
                        draft.group(self.names.group).priority(priority)
                    }
                    Scheduler::Service => draft.budget(self.names.task_budget()?),
                }
            }
        })
    }

    /// The task is a member no more.
    pub fn remove(&self, id: MemberId) {
        self.members.with(|members| members.retain(|member| member.id != id));
    }

    pub(crate) fn change_priority(&self, id: MemberId, priority: i64) {
        let share = TaskShare::Group { priority };
        let is_changed = self.with_member(id, |member| {
            let is_of_group = matches!(member.share, TaskShare::Group { .. });
            is_of_group && std::mem::replace(&mut member.share, share) != share
        });
        if is_changed == Some(true) && self.scheduler == Scheduler::Own {
            self.apply_priority(id);
        }
    }

    /// Has the dispatcher order the member by its priority. Waits until the member is a task, or is
    /// none after all: what makes it one is an ordinary thread until then.
    fn apply_priority(&self, id: MemberId) {
        let end = Instant::now() + PATIENCE;
        let apply = || {
            let member = self.with_member(id, |member| (member.share, member.handle.clone()));
            let Some((TaskShare::Group { priority }, handle)) = member else { return true };
            let Some(handle) = handle.filter(|handle| handle.is_added()) else { return false };
            // A task that ends just now has no use for it.
            let _ = handle.change(&Parameters::new().priority(priority));
            true
        };
        while Instant::now() < end && self.changes.with(|()| apply()) == Some(false) {
            thread::sleep(LOOK_AGAIN);
        }
    }

    /// Whether the CPU can keep these promises: budgets, and the group as one task, if one is in
    /// it.
    ///
    /// # Errors
    /// It cannot, or a value is out of its range.
    fn admit(&self, shares: impl Iterator<Item = TaskShare>) -> Result<(), Error> {
        let mut set = Punctual::on_cpu(self.cpu);
        let mut group = false;
        for (n, share) in shares.enumerate() {
            match share {
                TaskShare::Group { .. } => group = true,
                TaskShare::Budget { period, budget, .. } => {
                    set = set
                        .task(format!("task-{n}"))
                        .period(Duration::from_nanos(period))
                        .budget(Duration::from_nanos(budget))
                        .spawn(|_| ());
                }
            }
        }
        if group {
            let share = self.names.group_budget()?;
            set = set.task(self.names.group).period(GROUP_PERIOD).budget(share).spawn(|_| ());
        }
        set.admit().map(drop)
    }
}

/// A handler of a signal has interrupted a call for the same sets.
pub(crate) fn in_handler() -> Error {
    Error::usage("a handler of a signal cannot change the tasks", "have a thread do it")
}

/// Whether the program has a handler of SIGXCPU, by which budgets that are used up are signalled.
#[must_use]
pub fn budget_signal_is_handled() -> bool {
    // SAFETY: reads only; a zeroed sigaction is a valid place for the answer.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        let read = libc::sigaction(libc::SIGXCPU, std::ptr::null(), &mut action) == 0;
        read && ![libc::SIG_DFL, libc::SIG_IGN].contains(&action.sa_sigaction)
    }
}
