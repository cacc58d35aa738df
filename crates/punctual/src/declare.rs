//! Declared, then admitted: a set of tasks before it runs.

use std::fmt;

use punctual_analysis::{admit_within, CpuLoad};
use punctual_taskset::{fmt_ns, Domain, PolicySpec, TaskSet, TaskSpec};

use crate::draft::{Declared, Place};
use crate::keeper::{self, Settings};
use crate::report::{Observer, Report};
use crate::{Error, Policy, Running, TaskDraft};

/// Tasks at one time on each CPU, where nothing is said.
const TASK_LIMIT: u32 = 64;
/// Records kept in each CPU's trace ring, 32 bytes each.
const RECORDS: u32 = 1 << 12;

/// A set of tasks that is being declared. Nothing is started or changed before [`Admitted::start`].
#[must_use = "nothing runs before admit and start"]
pub struct Punctual {
    settings: Settings,
    tasks: Vec<Declared>,
    fault: Option<Error>,
}

/// A set of tasks that fits. See [`Admitted::start`].
#[must_use = "nothing runs before start"]
pub struct Admitted {
    settings: Settings,
    tasks: Vec<Declared>,
    loads: Vec<CpuLoad>,
}

impl Punctual {
    /// A set on one CPU, by EDF until [`policy`](Punctual::policy) says otherwise. A CPU has one dispatcher on a
    /// machine at one time, whatever programs there are.
    pub fn on_cpu(cpu: u32) -> Punctual {
        Punctual::on_cpus([cpu])
    }

    /// A set on several CPUs, each with a dispatcher of its own; every task then says on which one it runs.
    pub fn on_cpus(cpus: impl IntoIterator<Item = u32>) -> Punctual {
        let mut cpus: Vec<u32> = cpus.into_iter().collect();
        let fault = cpus.is_empty().then(|| Error::usage("the set has no CPU", "name at least one"));
        let mut seen = std::collections::HashSet::new();
        cpus.retain(|&cpu| seen.insert(cpu));
        let owner = std::env::args_os().map(|a| a.to_string_lossy().into_owned()).collect::<Vec<_>>().join(" ");
        let settings = Settings {
            cpus,
            policy: Policy::default(),
            overload: false,
            owner,
            task_limit: TASK_LIMIT,
            records: RECORDS,
            observer: None,
        };
        Punctual { settings, tasks: Vec::new(), fault }
    }

    /// Which of the ready tasks runs. To be said before the tasks, whose checks depend on it.
    pub fn policy(mut self, policy: Policy) -> Self {
        if !self.tasks.is_empty() && policy != self.settings.policy {
            self.blame(Error::usage("the policy is given after the first task", "give it before"));
        }
        self.settings.policy = policy;
        self
    }

    /// Admits the set, and whatever is added when it runs, even if it does not fit. Deadlines
    /// may then be missed and ordinary programs starve; the kernel's own real-time throttling is the only limit.
    pub fn overload(mut self) -> Self {
        self.settings.overload = true;
        self
    }

    /// What another dispatcher that wants one of our CPUs is told about us; else our command line.
    pub fn owner(mut self, owner: impl Into<String>) -> Self {
        self.settings.owner = owner.into();
        self
    }

    /// The most tasks that one CPU has at one time, 1 to 10,000; else 64. Memory for them is taken at the start.
    pub fn task_limit(mut self, limit: u32) -> Self {
        if !(1..=10_000).contains(&limit) {
            self.blame(Error::usage(format!("a task limit of {limit} is out of range"), "use 1 to 10,000"));
        }
        self.settings.task_limit = limit;
        self
    }

    /// Calls `observer` with every period, end and warning as it becomes known, in order, within some 25 ms, on a
    /// thread of its own class: it may allocate and print. Only one is kept. It must not wait for a method of
    /// [`Running`], which waits for it; to read a stream elsewhere, send the reports through a channel.
    pub fn observe(mut self, observer: impl FnMut(Report) + Send + 'static) -> Self {
        self.settings.observer = Some(Observer::new(observer));
        self
    }

    /// Begins a task: 1 to 64 printable characters, unlike the other tasks' names.
    pub fn task(self, name: impl Into<String>) -> TaskDraft<Punctual> {
        TaskDraft::new(self, name.into())
    }

    /// Whether each CPU can keep what the set promises, in exact integers: budgets at most 90 % of it, none below what the
    /// dispatcher can enforce, and every task done by its deadline even at the worst, with the dispatcher's own work, by
    /// response-time analysis under fixed priorities and by processor demand under EDF (docs/check.md).
    ///
    /// # Errors
    /// The first thing that was wrong with the declaration ([`ErrorKind::Usage`](crate::ErrorKind)), or every CPU that
    /// cannot, with the least change that would make it fit ([`ErrorKind::NotAdmitted`](crate::ErrorKind)).
    pub fn admit(self) -> Result<Admitted, Error> {
        let Punctual { settings, tasks, fault } = self;
        if let Some(fault) = fault {
            return Err(fault);
        }
        for (n, task) in tasks.iter().enumerate() {
            check_among(&task.spec, tasks[..n].iter().map(|t| &t.spec), &settings)?;
        }
        let loads = check_fit(&settings, tasks.iter().map(|t| t.spec.clone()).collect())?;
        Ok(Admitted { settings, tasks, loads })
    }

    /// Keeps the first fault for `admit`.
    fn blame(&mut self, error: Error) {
        self.fault.get_or_insert(error);
    }
}

impl Place for Punctual {
    type Output = Punctual;

    fn policy(&self) -> Policy {
        self.settings.policy
    }

    fn cpus(&self) -> &[u32] {
        &self.settings.cpus
    }

    fn put(mut self, task: Result<Declared, Error>) -> Punctual {
        match task {
            Ok(task) => self.tasks.push(task),
            Err(e) => self.blame(e),
        }
        self
    }
}

impl Admitted {
    /// How full each CPU is, in the order in which they were given.
    #[must_use]
    pub fn loads(&self) -> &[CpuLoad] {
        &self.loads
    }

    /// Takes the CPUs and starts everything: the first release is some 20 ms from now. Takes some 30 ms per CPU.
    ///
    /// The memory of the whole program is locked (what is touched stays in memory), and stays so. Needs root, or
    /// CAP_SYS_NICE and CAP_IPC_LOCK, or the limits `rtprio 99` and `memlock unlimited`.
    ///
    /// # Errors
    /// A CPU that is not there or that another dispatcher has (who, is said), missing privileges (which, and how to
    /// get them), a command or process that is not there. Nothing is left behind then, and no closure was called.
    pub fn start(self) -> Result<Running, Error> {
        keeper::start(self.settings, self.tasks).map(|(requests, settings)| Running::new(requests, settings))
    }
}

/// A task among those it is to stand beside.
pub(crate) fn check_among<'a>(
    task: &TaskSpec,
    others: impl Iterator<Item = &'a TaskSpec>,
    settings: &Settings,
) -> Result<(), Error> {
    let mut on_cpu = 0;
    for other in others {
        if other.name == task.name {
            return Err(Error::usage(format!("there are two tasks {:?}", task.name), "give one of them another name"));
        }
        on_cpu += u32::from(other.cpu == task.cpu);
    }
    if on_cpu >= settings.task_limit {
        return Err(Error::usage(
            format!("task {:?} is one more than the limit of {on_cpu} tasks on CPU {}", task.name, task.cpu),
            "raise it by .task_limit(), or use another CPU",
        ));
    }
    Ok(())
}

/// Whether these tasks fit together.
pub(crate) fn check_fit(settings: &Settings, tasks: Vec<TaskSpec>) -> Result<Vec<CpuLoad>, Error> {
    let set = task_set(settings, tasks);
    match admit_within(&set, &punctual_host_user::capacity(&set)) {
        Ok(verdict) => Ok(verdict.cpus),
        Err(refusal) if settings.overload => Ok(refusal.cpus),
        Err(refusal) => Err(Error::not_admitted(refusal.cause(), refusal.help())),
    }
}

/// What was declared, as a task set.
pub(crate) fn task_set(settings: &Settings, tasks: Vec<TaskSpec>) -> TaskSet {
    TaskSet {
        cpus: settings.cpus.clone(),
        domain: Domain::Partitioned,
        policy: PolicySpec { name: settings.policy.name().to_owned() },
        duration: None,
        tasks,
        groups: Vec::new(),
        budget_groups: Vec::new(),
    }
}

impl fmt::Debug for Punctual {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        debug(f, "Punctual", &self.settings, &self.tasks)
    }
}

impl fmt::Debug for Admitted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        debug(f, "Admitted", &self.settings, &self.tasks)
    }
}

fn debug(f: &mut fmt::Formatter<'_>, what: &str, settings: &Settings, tasks: &[Declared]) -> fmt::Result {
    let task = |t: &Declared| format!("{} {} of {}", t.spec.name, fmt_ns(t.spec.budget), fmt_ns(t.spec.period));
    f.debug_struct(what)
        .field("cpus", &settings.cpus)
        .field("policy", &settings.policy)
        .field("overload", &settings.overload)
        .field("tasks", &tasks.iter().map(task).collect::<Vec<_>>())
        .finish_non_exhaustive()
}
