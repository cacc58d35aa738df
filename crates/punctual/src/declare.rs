//! Declared, then admitted: a set of tasks before it runs.

use std::fmt;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use punctual_analysis::DomainLoad;
use punctual_program_jobs::ProgramGroups;
use punctual_session as session;
use punctual_session::{service_accepts, Execution, HostKind, Session};
use punctual_sys::sched;
use punctual_taskset::{fmt_ns, Loaded, Overrides, PolicySpec, TaskSet, TaskSpec};

use crate::draft::{Declared, DraftContext, DraftTarget};
use crate::handle::{Completion, OfProgram, Slot, TaskHandle};
use crate::observer::Observer;
use crate::settings::Settings;
use crate::supervisor::Handle;
use crate::{
    BudgetGroup, Error, Host, LoadedScheduler, Policy, RunEvent, Running, SchedulingGroup,
    TaskDraft,
};

/// Groups of the program of each kind.
const GROUP_LIMIT: u32 = 256;

/// A set of tasks that is being declared. Nothing is started or changed before [`Admitted::start`].
#[must_use = "nothing runs before admit and start"]
pub struct Punctual {
    settings: Settings,
    tasks: Vec<Declared>,
    observer: Option<Observer>,
    fault: Option<Error>,
}

/// A set of tasks that fits. See [`Admitted::start`].
#[must_use = "nothing runs before start"]
pub struct Admitted {
    settings: Settings,
    admitted: session::AdmittedSet,
    tasks: Vec<Declared>,
    observer: Option<Observer>,
}

impl Punctual {
    /// A set on one CPU, by EDF until [`policy`](Punctual::policy) is called. A CPU has one
    /// dispatcher on a machine at one time, whatever programs there are.
    pub fn on_cpu(cpu: u32) -> Punctual {
        Punctual::on_cpus([cpu])
    }

    /// A set on the last CPU that this program may use: the first ones have most interrupts.
    pub fn on_last_cpu() -> Punctual {
        Punctual::on_cpu(last_cpu().unwrap_or(0))
    }

    /// A set on several CPUs, each with a dispatcher of its own; every task then names the one on
    /// which it runs.
    pub fn on_cpus(cpus: impl IntoIterator<Item = u32>) -> Punctual {
        let mut cpus: Vec<u32> = cpus.into_iter().collect();
        let fault =
            cpus.is_empty().then(|| Error::usage("the set has no CPU", "name at least one"));
        let mut seen = std::collections::HashSet::new();
        cpus.retain(|&cpu| seen.insert(cpu));
        let set = TaskSet::without_tasks(cpus, PolicySpec::named(Policy::default().name()));
        Punctual { settings: Settings::new(set), tasks: Vec::new(), observer: None, fault }
    }

    /// A task set as a file describes it (docs/task-set.md): any policy, groups and budget groups.
    /// Tasks may be added, in the top group.
    pub fn from_set(mut set: TaskSet) -> Punctual {
        let tasks = std::mem::take(&mut set.tasks);
        let declared = |spec| {
            let completion: Arc<dyn Completion> = Arc::new(OfProgram(Slot::new()));
            let execution = Execution::AsDeclared;
            Declared { spec, execution, completion, handles_overruns: false, first_release: None }
        };
        let tasks = tasks.into_iter().map(declared).collect();
        Punctual { settings: Settings::new(set), tasks, observer: None, fault: None }
    }

    /// The task set of a file (TOML, docs/task-set.md).
    ///
    /// # Errors
    /// The file cannot be read, or is no task set: place, cause and help.
    pub fn from_file(path: impl AsRef<Path>) -> Result<Punctual, Error> {
        let overrides = Overrides { default_cpu: last_cpu(), ..Overrides::default() };
        Ok(Punctual::from_set(Loaded::load(path.as_ref(), &overrides)?.set))
    }

    /// Which host runs it; else [`Host::User`]. Threads of this program are tasks on that and of
    /// [`Host::Service`], which needs no privileges; further processes and commands can be added on
    /// [`Host::Kernel`], too.
    ///
    /// [`Host::Auto`] is the service, if one listens and takes the set, else the user host; a
    /// [`RunEvent::Warning`] and the notes of the results have which and why.
    pub fn host(mut self, host: impl Into<Host>) -> Self {
        self.settings.host = host.into();
        self
    }

    /// Ends the run after this time; else it lasts until [`Running::stop`]. The simulator needs
    /// it.
    pub fn duration(mut self, duration: std::time::Duration) -> Self {
        match u64::try_from(duration.as_nanos())
            .ok()
            .filter(|ns| (1..punctual_taskset::DURATION_LIMIT).contains(ns))
        {
            Some(ns) => self.settings.set.duration = Some(ns),
            None => self
                .blame(Error::usage("the duration is out of range", "use 1 ns to some 146 years")),
        }
        self
    }

    /// Writes a trace (inputs, decisions, execution, periods: docs/traces.md) to this file; with
    /// several CPUs, `.cpuN` is appended.
    pub fn trace(mut self, path: impl Into<PathBuf>) -> Self {
        self.settings.trace = Some(path.into());
        self
    }

    /// Trace records of each CPU that may wait for their file on the user host, 32 bytes each; else
    /// 65,536. What finds no room is missing in the trace.
    pub fn trace_records(mut self, records: u32) -> Self {
        match (1..=1 << 26).contains(&records) {
            true => self.settings.records = records,
            false => self.blame(Error::usage(
                format!("{records} trace records are out of range"),
                "use 1 to 2^26",
            )),
        }
        self
    }

    /// Adds a scheduling group. Tasks are put into it by [`TaskDraft::group`], while the set runs
    /// too; the group itself is there from the start to the end. Call after
    /// [`policy`](Punctual::policy) and what the group names.
    pub fn group(mut self, group: SchedulingGroup) -> Self {
        match group.add_to(&self.settings.set) {
            Ok(set) => self.settings.set = set,
            Err(e) => self.blame(e),
        }
        self
    }

    /// Adds a budget group. Tasks are put into it by [`TaskDraft::budget_group`], groups by
    /// [`SchedulingGroup::budget_group`].
    pub fn budget_group(mut self, group: BudgetGroup) -> Self {
        match group.add_to(&self.settings.set) {
            Ok(set) => self.settings.set = set,
            Err(e) => self.blame(e),
        }
        self
    }

    /// Which of the ready tasks runs. Call before adding tasks and groups.
    pub fn policy(mut self, policy: Policy) -> Self {
        let begun = !self.tasks.is_empty() || !self.settings.set.groups.is_empty();
        if begun && policy.name() != self.settings.set.policy.name {
            self.blame(Error::usage(
                "the policy is given after the first task or group",
                "give it before",
            ));
        }
        if let Err(e) = policy.register() {
            self.blame(e);
        }
        policy.name().clone_into(&mut self.settings.set.policy.name);
        self
    }

    /// Admits the set, and whatever is added when it runs, even if it does not fit. Deadlines may
    /// then be missed and ordinary programs starve; the kernel's own real-time throttling is the
    /// only limit.
    pub fn overload(mut self) -> Self {
        self.settings.overload = true;
        self
    }

    /// Shown to another dispatcher that wants one of our CPUs; else our command line.
    pub fn owner(mut self, owner: impl Into<String>) -> Self {
        self.settings.owner = Some(owner.into());
        self
    }

    /// The most tasks that one CPU has at one time, 1 to 10,000; else 64. Memory for them is taken
    /// at the start.
    pub fn task_limit(mut self, limit: u32) -> Self {
        if !(1..=10_000).contains(&limit) {
            self.blame(Error::usage(
                format!("a task limit of {limit} is out of range"),
                "use 1 to 10,000",
            ));
        }
        self.settings.task_limit = limit;
        self
    }

    /// Groups of each CPU that the program replenishes by its own jobs, at most 256 of each kind
    /// ([`Running::group_jobs`]). They are no groups of the set, and results do not have them.
    /// On the user host only, where a group is under [`Policy::Jobs`].
    pub fn program_groups(mut self, groups: ProgramGroups) -> Self {
        if groups.scheduling > GROUP_LIMIT || groups.budget > GROUP_LIMIT {
            self.blame(Error::usage(
                format!("more than {GROUP_LIMIT} groups of the program"),
                "use fewer",
            ));
        }
        self.settings.program_groups = groups;
        self
    }

    /// Does not trust the users of adopted processes: the processes move to a cgroup that only the
    /// user of this program can take them out of. Limits of the cgroup that they come from do not
    /// hold meanwhile. Needs cgroup v2.
    pub fn confine_processes(mut self) -> Self {
        self.settings.confine = true;
        self
    }

    /// On [`Host::Kernel`] the run starts with this scheduler, which is loaded already: some 100 ms
    /// sooner.
    pub fn loaded_scheduler(mut self, scheduler: LoadedScheduler) -> Self {
        self.settings.loaded = Some(scheduler);
        self
    }

    /// Drops the figures of a task at its end: for a program that adds tasks without end, whose
    /// results else grow by some kilobytes with each.
    pub fn forget_ended(mut self) -> Self {
        self.settings.forget_ended = true;
        self
    }

    /// Calls `observer` with every period, end and warning as it becomes known, in order, within
    /// some 25 ms, on a thread of its own class: it may allocate and print. Only one is kept. It
    /// must not wait for a method of [`Running`], which waits for it; to read a stream elsewhere,
    /// send the events through a channel.
    pub fn observe(mut self, observer: impl FnMut(RunEvent) + Send + 'static) -> Self {
        self.observer = Some(Observer::new(observer));
        self
    }

    /// Begins a task: 1 to 64 printable characters, unlike the other tasks' names.
    pub fn task(self, name: impl Into<String>) -> TaskDraft<Punctual> {
        TaskDraft::new(self, name.into())
    }

    /// As [`task`](Punctual::task), for a handle of the task: what ends the draft returns it.
    pub fn add(&mut self, name: impl Into<String>) -> TaskDraft<&mut Punctual> {
        TaskDraft::new(self, name.into())
    }

    /// Whether each CPU can keep what the set promises, in exact integers: budgets at most 90 % of
    /// it, none below what the dispatcher can enforce, and every task done by its deadline even at
    /// the worst, with the dispatcher's own work, by response-time analysis under fixed priorities
    /// and by processor demand under EDF (docs/check.md).
    ///
    /// # Errors
    /// The first thing that was wrong with the declaration
    /// ([`ErrorKind::Usage`](crate::ErrorKind)), or every CPU that cannot, with the least change
    /// that would make it fit ([`ErrorKind::NotAdmitted`](crate::ErrorKind)).
    pub fn admit(self) -> Result<Admitted, Error> {
        let Punctual { mut settings, tasks, observer, fault } = self;
        if let Some(fault) = fault {
            return Err(fault);
        }
        settings.accept_jobs()?;
        for (n, task) in tasks.iter().enumerate() {
            check_among(&task.spec, tasks[..n].iter().map(|t| &t.spec), &settings)?;
        }
        let specs = tasks.iter().map(|t| t.spec.clone()).collect();
        let set = TaskSet { tasks: specs, ..settings.set.clone() };
        let host = settings.choose_host(&set, &tasks);
        if host == HostKind::Service {
            service_accepts(settings.overload, settings.trace.is_some())?;
        }
        settings.accept_overrun_handlers(tasks.iter())?;
        let admitted = Session::new(set, host)?.admit(settings.overload)?;
        Ok(Admitted { settings, admitted, tasks, observer })
    }

    fn declare(&mut self, task: Result<Declared, Error>) {
        match task {
            Ok(task) => self.tasks.push(task),
            Err(e) => self.blame(e),
        }
    }

    /// Keeps the first fault for `admit`.
    fn blame(&mut self, error: Error) {
        self.fault.get_or_insert(error);
    }
}

impl DraftTarget for Punctual {
    /// The set, for the next call; [`Punctual::add`] returns handles.
    type Output<T: Send + 'static> = Punctual;

    fn context(&self) -> DraftContext<'_> {
        self.settings.context()
    }

    fn put<T: Send + 'static>(
        mut self,
        task: Result<Declared, Error>,
        _: TaskHandle<T>,
    ) -> Punctual {
        self.declare(task);
        self
    }
}

impl DraftTarget for &mut Punctual {
    type Output<T: Send + 'static> = TaskHandle<T>;

    fn context(&self) -> DraftContext<'_> {
        self.settings.context()
    }

    fn put<T: Send + 'static>(
        self,
        task: Result<Declared, Error>,
        handle: TaskHandle<T>,
    ) -> TaskHandle<T> {
        self.declare(task);
        handle
    }
}

impl Admitted {
    /// How full each domain is, in the order in which their CPUs were given.
    #[must_use]
    pub fn loads(&self) -> &[DomainLoad] {
        self.admitted.loads()
    }

    /// Takes the CPUs and starts everything: the first release is some 20 ms from now. Takes some
    /// 30 ms per CPU.
    ///
    /// The memory of the whole program is locked (what is touched stays in memory), and stays so.
    /// Needs root, or CAP_SYS_NICE and CAP_IPC_LOCK, or the limits `rtprio 99` and `memlock
    /// unlimited`.
    ///
    /// # Errors
    /// A CPU that does not exist or that another dispatcher uses (the error names it), missing
    /// privileges (which, and how to get them), a command or process that is not there. Nothing is
    /// left behind then, and no closure was called.
    pub fn start(self) -> Result<Running, Error> {
        let Admitted { settings, admitted, tasks, observer } = self;
        let (set, link) = (settings.set.clone(), settings.link.clone());
        Ok(Running::new(Handle::start(admitted, settings, tasks, observer)?, link, set))
    }
}

/// The last CPU that this program may use.
fn last_cpu() -> Option<u32> {
    sched::affinity(0).ok().and_then(|mask| sched::cpus(&mask).max())
}

/// A task among those it is to stand beside.
pub(crate) fn check_among<'a>(
    task: &TaskSpec,
    others: impl Iterator<Item = &'a TaskSpec>,
    settings: &Settings,
) -> Result<(), Error> {
    let mut beside = 0;
    for other in others {
        if other.name == task.name {
            return Err(Error::usage(
                format!("there are two tasks {:?}", task.name),
                "give one of them another name",
            )
            .with_errno(libc::EEXIST));
        }
        beside += u32::from(other.domain == task.domain);
    }
    if beside >= settings.task_limit {
        let (name, cpus) = (&task.name, settings.set.domain(task.domain));
        return Err(Error::usage(
            format!("task {name:?} is one more than the limit of {beside} tasks on {cpus}"),
            "raise it by .task_limit(), or use another CPU",
        )
        .with_errno(libc::ENOSPC));
    }
    Ok(())
}

/// These tasks on a host that runs some of them already.
pub(crate) fn session_of_running(
    settings: &Settings,
    tasks: Vec<TaskSpec>,
    host: HostKind,
) -> Result<Session, Error> {
    Session::of_running(TaskSet { tasks, ..settings.set.clone() }, host)
}

impl fmt::Debug for Punctual {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        debug(f, "Punctual", &self.settings, self.tasks.iter().map(|t| &t.spec))
    }
}

impl fmt::Debug for Admitted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        debug(f, "Admitted", &self.settings, self.admitted.set().tasks.iter())
    }
}

fn debug<'a>(
    f: &mut fmt::Formatter<'_>,
    what: &str,
    settings: &Settings,
    tasks: impl Iterator<Item = &'a TaskSpec>,
) -> fmt::Result {
    let task = |t: &TaskSpec| format!("{} {} of {}", t.name, fmt_ns(t.budget), fmt_ns(t.period));
    f.debug_struct(what)
        .field("host", &settings.host)
        .field("cpus", &settings.set.cpus())
        .field("policy", &settings.set.policy.name)
        .field("overload", &settings.overload)
        .field("tasks", &tasks.map(task).collect::<Vec<_>>())
        .finish_non_exhaustive()
}
