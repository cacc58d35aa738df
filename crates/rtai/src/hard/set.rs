//! The sets of Punctual in which the threads of this program are tasks: one for each CPU that its
//! hard tasks may execute on, made when the first one needs it.
//!
//! By the service, where one listens, each task is a reservation of its own. Else this program has
//! a dispatcher, with a scheduling group for the hard tasks that have no budget: they share its
//! budget, and among them the smaller number is the more important priority, as in RTAI.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, Once, PoisonError};
use std::time::Duration;

use punctual::{
    Attached, Error, Host, Overrun, Parameters, Policy, Punctual, Running, SchedulingGroup,
    TaskHandle,
};
use punctual_sys::sched;

use crate::arena::TaskIndex;

/// Period of the group of hard tasks without a budget, and of their reservations by the service.
const GROUP_PERIOD: Duration = Duration::from_millis(10);
const GROUP: &str = "rtai";
/// Between the call and the first release of a task, ns, at least (docs/library.md).
const LEAD: u64 = 20_000_000;

/// Percent of a CPU for the group.
const SHARE: Setting = Setting { name: "PUNCTUAL_RTAI_SHARE", default: 50 };
/// Percent of a CPU for each hard task without a budget, by the service.
const TASK_SHARE: Setting = Setting { name: "PUNCTUAL_RTAI_TASK_SHARE", default: 10 };
/// The CPU of tasks that may execute on all.
const CPU: &str = "PUNCTUAL_RTAI_CPU";
/// `user`, `service` or `none`; else what there is.
const HOST: &str = "PUNCTUAL_RTAI_HOST";
/// A file for the trace of the first set; `.cpuN` is appended for others.
const TRACE: &str = "PUNCTUAL_RTAI_TRACE";

struct Setting {
    name: &'static str,
    default: u32,
}

impl Setting {
    /// As that part of the period of the group.
    fn of_period(&self) -> Result<Duration, Error> {
        let percent = match std::env::var(self.name) {
            Err(_) => self.default,
            Ok(text) => text.parse().ok().filter(|n| (1..=90).contains(n)).ok_or_else(|| {
                let cause = format!("{}={text} is no share of a CPU", self.name);
                Error::usage(cause, "use 1 to 90 (percent)")
            })?,
        };
        Ok(GROUP_PERIOD * percent / 100)
    }
}

/// What a task is to have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TaskShare {
    /// This budget in each period, ns.
    Budget { period: u64, budget: u64 },
    /// A part of the group's, at RTAI's priority.
    Group { priority: i64 },
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
    cpu: u32,
    scheduler: Scheduler,
    running: Running,
    members: Mutex<Vec<SetMember>>,
}

struct SetMember {
    task: TaskIndex,
    share: TaskShare,
    handle: Option<TaskHandle<()>>,
}

/// Those of a process.
struct Sets {
    process: u32,
    by_cpu: BTreeMap<u32, Arc<CpuSet>>,
}

static SETS: Mutex<Sets> = Mutex::new(Sets { process: 0, by_cpu: BTreeMap::new() });

/// The sets of this process.
///
/// # Errors
/// It is the child of a process that had some.
fn sets() -> Result<MutexGuard<'static, Sets>, Error> {
    let mut sets = SETS.lock().unwrap_or_else(PoisonError::into_inner);
    let process = std::process::id();
    if sets.process != process {
        if sets.process != 0 {
            return Err(Error::usage(
                "this is the child of a process that had hard tasks",
                "fork before the first task is hard, or call exec in the child",
            ));
        }
        sets.process = process;
        static REGISTERED: Once = Once::new();
        // SAFETY: the handler neither unwinds nor returns to code that is gone: the library stays.
        REGISTERED.call_once(|| unsafe {
            libc::atexit(at_exit);
        });
    }
    Ok(sets)
}

extern "C" fn at_exit() {
    close_all();
}

/// Ends all sets without tasks, and completes their traces. Others end with the process.
pub fn close_all() {
    let Ok(mut sets) = SETS.try_lock() else { return };
    if sets.process == std::process::id() {
        let idle = |set: &CpuSet| set.members().is_empty() || std::env::var_os(TRACE).is_some();
        sets.by_cpu.retain(|_, set| !idle(set));
    }
}

/// A task of this process has another priority.
pub fn change_priority(task: TaskIndex, priority: i64) {
    let Ok(sets) = sets() else { return };
    for set in sets.by_cpu.values() {
        set.change_priority(task, priority);
    }
}

impl CpuSet {
    /// The set for a task that may execute on these CPUs, a bit for each.
    ///
    /// # Errors
    /// None of them is to be had; what the machine does not permit.
    pub fn of(cpus: u64) -> Result<Arc<CpuSet>, Error> {
        let cpu = choose_cpu(cpus)?;
        let mut sets = sets()?;
        if let Some(set) = sets.by_cpu.get(&cpu) {
            return Ok(set.clone());
        }
        let trace = std::env::var_os(TRACE).map(|path| match sets.by_cpu.is_empty() {
            true => PathBuf::from(path),
            false => {
                let mut path = path;
                path.push(format!(".cpu{cpu}"));
                path.into()
            }
        });
        let set = Arc::new(CpuSet::start(cpu, trace)?);
        sets.by_cpu.insert(cpu, set.clone());
        Ok(set)
    }

    fn start(cpu: u32, trace: Option<PathBuf>) -> Result<CpuSet, Error> {
        let by_service = || Punctual::on_cpu(cpu).host(Host::Service).admit()?.start();
        let own = || {
            let group = SchedulingGroup::new(GROUP, GROUP_PERIOD, SHARE.of_period()?);
            // Admission is asked before each task (`admit`): the group's tasks have its whole
            // budget each, which no test admits.
            let set = Punctual::on_cpu(cpu).host(Host::User).overload();
            let set = set.group(group.policy(Policy::FixedPriority));
            let set = trace.into_iter().fold(set, Punctual::trace);
            set.task_limit(crate::arena::TASKS as u32).admit()?.start()
        };
        let (scheduler, running) = match std::env::var(HOST).as_deref() {
            Ok("user") => (Scheduler::Own, own()?),
            Ok("service") => (Scheduler::Service, by_service()?),
            Ok("none") => {
                return Err(Error::usage(
                    format!("{HOST}=none"),
                    "use user, service, or leave it out",
                ))
            }
            Ok(other) => {
                return Err(Error::usage(
                    format!("there is no host {HOST}={other}"),
                    "use user, service or none",
                ))
            }
            Err(_) => match by_service() {
                Ok(running) => (Scheduler::Service, running),
                Err(_) => (Scheduler::Own, own()?),
            },
        };
        Ok(CpuSet { cpu, scheduler, running, members: Mutex::default() })
    }

    fn members(&self) -> MutexGuard<'_, Vec<SetMember>> {
        self.members.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes the calling thread a task of the set, at the first release after `start` ns.
    ///
    /// # Errors
    /// It does not fit; what the machine does not permit.
    pub fn attach(
        self: &Arc<Self>,
        task: TaskIndex,
        name: &str,
        share: TaskShare,
        start: u64,
    ) -> Result<Attached, Error> {
        self.add(task, share)?;
        // Names of RTAI's tasks need not differ when they are printed.
        let tid = sched::thread_id();
        let names = [name.to_owned(), format!("{name}-{tid}")];
        let mut last = None;
        for name in names {
            match self.attach_as(&name, task, share, start) {
                Err(error) if error.errno == Some(libc::EEXIST) => last = Some(error),
                Err(error) => {
                    self.remove(task);
                    return Err(error);
                }
                Ok(attached) => return Ok(attached),
            }
        }
        self.remove(task);
        Err(last.unwrap_or_else(|| Error::usage("the name is in use", "use another one")))
    }

    fn attach_as(
        &self,
        name: &str,
        task: TaskIndex,
        share: TaskShare,
        start: u64,
    ) -> Result<Attached, Error> {
        let draft = self.running.task(name);
        let draft = match share {
            TaskShare::Budget { period, budget } => {
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
                        let draft = draft.budget(SHARE.of_period()?).group(GROUP);
                        draft.priority(-priority)
                    }
                    Scheduler::Service => draft.budget(TASK_SHARE.of_period()?),
                }
            }
        };
        draft.attach_with(|handle| {
            let mut members = self.members();
            if let Some(member) = members.iter_mut().find(|member| member.task == task) {
                member.handle = Some(handle);
            }
        })
    }

    /// Counts a task, if it fits beside the others.
    fn add(&self, task: TaskIndex, share: TaskShare) -> Result<(), Error> {
        let mut members = self.members();
        if self.scheduler == Scheduler::Own {
            let shares = members.iter().map(|member| member.share).chain([share]);
            admit(self.cpu, shares)?;
        }
        members.push(SetMember { task, share, handle: None });
        Ok(())
    }

    /// The task is a member no more.
    pub fn remove(&self, task: TaskIndex) {
        self.members().retain(|member| member.task != task);
    }

    fn change_priority(&self, task: TaskIndex, priority: i64) {
        let mut members = self.members();
        let Some(member) = members.iter_mut().find(|member| member.task == task) else { return };
        let TaskShare::Group { priority: current } = &mut member.share else { return };
        *current = priority;
        let parameters = Parameters::new().priority(-priority);
        if let Some(handle) = member.handle.as_ref().filter(|_| self.scheduler == Scheduler::Own) {
            // A task that ends just now has no use for it.
            let _ = handle.change(&parameters);
        }
    }
}

/// Whether a CPU can keep these promises: budgets, and the group as one task, if one is in it.
///
/// # Errors
/// It cannot, or a value is out of its range.
fn admit(cpu: u32, shares: impl Iterator<Item = TaskShare>) -> Result<(), Error> {
    let mut set = Punctual::on_cpu(cpu);
    let mut group = false;
    for (n, share) in shares.enumerate() {
        match share {
            TaskShare::Group { .. } => group = true,
            TaskShare::Budget { period, budget } => {
                set = set
                    .task(format!("task-{n}"))
                    .period(Duration::from_nanos(period))
                    .budget(Duration::from_nanos(budget))
                    .spawn(|_| ());
            }
        }
    }
    if group {
        let share = SHARE.of_period()?;
        set = set.task(GROUP).period(GROUP_PERIOD).budget(share).spawn(|_| ());
    }
    set.admit().map(drop)
}

/// The CPU for a task that may execute on these.
fn choose_cpu(cpus: u64) -> Result<u32, Error> {
    let may = sched::affinity(0).map_err(|e| {
        Error::refused("the CPUs of this thread cannot be read", e, "see punctual doctor")
    })?;
    let may: Vec<u32> = sched::cpus(&may).collect();
    let asked = |cpu: &u32| 1u64.checked_shl(*cpu).is_some_and(|bit| cpus & bit != 0);
    let chosen: Vec<u32> = may.iter().copied().filter(asked).collect();
    // All of them, or none that is there: the program does not care.
    let is_open = chosen.is_empty() || chosen.len() == may.len();
    if let (true, Ok(text)) = (is_open, std::env::var(CPU)) {
        let cpu = text.parse().ok().filter(|cpu| may.contains(cpu));
        return cpu.ok_or_else(|| {
            Error::usage(format!("{CPU}={text} is no CPU of this program"), "see taskset(1)")
        });
    }
    let from = if chosen.is_empty() { may } else { chosen };
    // The first ones have most interrupts.
    from.into_iter().max().ok_or_else(|| Error::machine("there is no CPU", "see taskset(1)"))
}

/// The program has a handler of SIGBUDGET.
pub fn budget_signal_is_handled() -> bool {
    // SAFETY: reads only; a zeroed sigaction is a valid place for the answer.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        let read = libc::sigaction(libc::SIGXCPU, std::ptr::null(), &mut action) == 0;
        read && ![libc::SIG_DFL, libc::SIG_IGN].contains(&action.sa_sigaction)
    }
}
