//! One task in the making, wherever it is to go.

use std::cell::Cell;
use std::ffi::{c_void, OsString};
use std::sync::Arc;
use std::time::Duration;

use punctual_host_user::{call_overrun_handlers, OverrunHandler};
use punctual_session::{Execution, ThreadBody};
use punctual_taskset::{Body, DomainId, Overrun, TaskSet, TaskSpec};
use punctual_trace::TaskEnd;
use punctual_wait_page::SealedPage;

use crate::group::{find_budget_group, find_group, placed};
use crate::handle::{Completion, Link, OfProgram, Slot, TaskHandle};
use crate::{Error, Policy, Running, Task, Time};

/// Stack of a task's thread where nothing is said, bytes: as the standard library's threads.
const STACK: usize = 2 << 20;
/// Durations are below this, ns.
const LIMIT: u64 = punctual_taskset::DURATION_LIMIT;

/// A task that is being declared. [`spawn`](TaskDraft::spawn), [`command`](TaskDraft::command) or
/// [`pid`](TaskDraft::pid) completes it with what it executes.
///
/// `period` and `budget` are required, all else has a default. A value out of its range is an error
/// of [`Punctual::admit`](crate::Punctual::admit), or of the call that completes a draft of a
/// [`Running`](crate::Running).
#[must_use = "nothing runs before spawn, command or pid says what to execute"]
pub struct TaskDraft<P: DraftTarget> {
    place: P,
    name: String,
    period: Option<Duration>,
    budget: Option<Duration>,
    deadline: Option<Duration>,
    start: Duration,
    first_release: Option<u64>,
    priority: Option<i64>,
    overrun: Overrun,
    overrun_handler: Option<OverrunHandler>,
    group: Option<String>,
    budget_group: Option<String>,
    cpu: Option<u32>,
    stack: usize,
}

/// What takes a completed draft: a set that is being declared, or one that runs. It cannot be
/// implemented outside of this crate.
pub trait DraftTarget: Sized {
    /// The result of completing a draft whose task returns a `T`.
    type Output<T: Send + 'static>;
    #[doc(hidden)]
    fn context(&self) -> DraftContext<'_>;
    #[doc(hidden)]
    fn put<T: Send + 'static>(
        self,
        task: Result<Declared, Error>,
        handle: TaskHandle<T>,
    ) -> Self::Output<T>;
}

/// What a draft's completion takes from the set.
pub struct DraftContext<'a> {
    /// Without its tasks.
    pub(crate) set: &'a TaskSet,
    pub(crate) link: &'a Link,
}

/// A task that has passed the checks which it can pass alone.
pub struct Declared {
    pub(crate) spec: TaskSpec,
    pub(crate) execution: Execution,
    pub(crate) completion: Arc<dyn Completion>,
    /// Its thread is to call a handler after overruns.
    pub(crate) handles_overruns: bool,
    /// CLOCK_MONOTONIC, ns; `None`: soon.
    pub(crate) first_release: Option<u64>,
}

impl<P: DraftTarget> TaskDraft<P> {
    pub(crate) fn new(place: P, name: String) -> TaskDraft<P> {
        TaskDraft {
            place,
            name,
            period: None,
            budget: None,
            deadline: None,
            start: Duration::ZERO,
            first_release: None,
            priority: None,
            overrun: Overrun::default(),
            overrun_handler: None,
            group: None,
            budget_group: None,
            cpu: None,
            stack: STACK,
        }
    }

    /// Time between releases, at least 100 us, less than 2^62 ns.
    pub fn period(mut self, period: Duration) -> Self {
        self.period = Some(period);
        self
    }

    /// Execution time guaranteed and allowed in each period: 1 ns to the deadline. Budgets of less
    /// than some 50 us are mostly granularity and switching.
    pub fn budget(mut self, budget: Duration) -> Self {
        self.budget = Some(budget);
        self
    }

    /// Relative deadline: `budget` to `period`; defaults to `period`. A job that is not done by
    /// then has overrun.
    pub fn deadline(mut self, deadline: Duration) -> Self {
        self.deadline = Some(deadline);
        self
    }

    /// Time of the first release after the run's start (in a [`Running`](crate::Running): from
    /// now); defaults to 0.
    pub fn start(mut self, offset: Duration) -> Self {
        self.start = offset;
        self
    }

    /// Importance under [`Policy::FixedPriority`], larger first; other policies ignore it.
    pub fn priority(mut self, priority: i64) -> Self {
        self.priority = Some(priority);
        self
    }

    /// What happens when the budget is used up, or the deadline reached, before the task is done;
    /// defaults to [`Overrun::Carry`].
    ///
    /// [`Overrun::Signal`] sends SIGXCPU to the task's thread; its handler runs on the next budget.
    /// Without a handler SIGXCPU ends the program, so a thread is refused then.
    pub fn overrun(mut self, overrun: Overrun) -> Self {
        self.overrun = overrun;
        self
    }

    /// Has the task's thread call `handler` with `argument` after each overrun, on the next budget,
    /// in the middle of what it executes; sets [`Overrun::Signal`]. From then on SIGXCPU calls the
    /// handlers of tasks in this program, and does nothing in other threads.
    ///
    /// It is refused for commands and processes, which handle SIGXCPU themselves, and in a program
    /// that has a handler of its own for SIGXCPU.
    ///
    /// # Safety
    /// `handler` is called by a handler of a signal, so it calls async-signal-safe functions alone
    /// (signal-safety(7)); it may use `argument` in the task's thread until the task ends.
    pub unsafe fn overrun_handler(
        mut self,
        handler: extern "C" fn(*mut c_void),
        argument: *mut c_void,
    ) -> Self {
        self.overrun = Overrun::Signal;
        // SAFETY: the caller's.
        self.overrun_handler = Some(unsafe { OverrunHandler::new(handler, argument) });
        self
    }

    /// The scheduling group in which it competes: one that the set was declared with
    /// ([`Punctual::group`](crate::Punctual::group)); else the top one.
    pub fn group(mut self, name: impl Into<String>) -> Self {
        self.group = Some(name.into());
        self
    }

    /// A budget group that limits it: one that the set was declared with
    /// ([`Punctual::budget_group`](crate::Punctual::budget_group)).
    pub fn budget_group(mut self, name: impl Into<String>) -> Self {
        self.budget_group = Some(name.into());
        self
    }

    /// The CPU of the set that it runs on; required only where the set has several, and it is in no
    /// group.
    pub fn cpu(mut self, cpu: u32) -> Self {
        self.cpu = Some(cpu);
        self
    }

    /// The stack of its thread, bytes; defaults to 2 MiB. Only touched pages take memory.
    pub fn stack(mut self, bytes: usize) -> Self {
        self.stack = bytes;
        self
    }

    /// A thread of this program: `body` is called at the first release, pinned to its CPU, and the
    /// task ends when it returns. It should call [`Task::wait_period`] at the end of each job; if
    /// it never does, it gets its budget in every period, and no more.
    ///
    /// A panic ends only this task (where panics unwind): the run continues, and reports it.
    pub fn spawn<T: Send + 'static>(
        self,
        body: impl FnOnce(&Task<'_>) -> T + Send + 'static,
    ) -> P::Output<T> {
        let slot = Slot::new();
        let value = slot.clone();
        let name = self.name.clone();
        let body: ThreadBody = Box::new(move |task| {
            value.set_value(body(&Task::new(&name, task, &Cell::new(false))));
        });
        self.finish_thread(body, slot)
    }

    pub(crate) fn finish_thread<T: Send + 'static>(
        self,
        body: ThreadBody,
        slot: Arc<Slot<T>>,
    ) -> P::Output<T> {
        let body: ThreadBody = match self.overrun_handler {
            None => body,
            Some(handler) => Box::new(move |task| {
                task.handle_overruns(handler);
                body(task);
            }),
        };
        let execution = Execution::Thread { stack: self.stack, body };
        self.finish(this_process(), execution, slot.clone(), slot)
    }

    /// A program (looked up in PATH) and its arguments, not through a shell; it needs no support
    /// for this library. Started when the set starts, it executes nothing before its first release.
    /// All its processes and threads, later ones too, share the budget. Its standard input is
    /// empty, and its output goes to this program's. It is killed when the run ends.
    pub fn command(
        self,
        argv: impl IntoIterator<Item = impl Into<OsString>>,
    ) -> P::Output<TaskEnd> {
        let argv: Vec<OsString> = argv.into_iter().map(Into::into).collect();
        let words: Option<Vec<String>> =
            argv.iter().map(|a| a.to_str().map(str::to_owned)).collect();
        match words {
            Some(words) => self.finish_program(Body::Command(words), Execution::AsDeclared),
            None => {
                let lossy = argv.iter().map(|a| a.to_string_lossy().into_owned()).collect();
                self.finish_program(Body::Command(lossy), Execution::Command(argv))
            }
        }
    }

    /// A running process with its children, whose policy, affinity and cgroup are restored when the
    /// run ends. They execute nothing from the set's start until their first release.
    pub fn pid(self, pid: i32) -> P::Output<TaskEnd> {
        self.finish_program(Body::Pid(pid), Execution::AsDeclared)
    }

    /// One thread of a running process; the process and its other threads stay what they are. Its
    /// policy, affinity and those of what it creates meanwhile are restored when the task or the
    /// run ends. From now until its first release, and beyond its budgets, it executes only where
    /// its CPU has nothing else to do (SCHED_IDLE); with [`Overrun::Background`] in the ordinary
    /// class.
    pub fn thread_of(self, pid: i32, tid: i32) -> P::Output<TaskEnd> {
        self.finish_program(Body::Pid(pid), Execution::AdoptedThread { pid, tid, page: None })
    }

    /// The same for a thread that waits for its releases by `page`.
    pub fn thread_with_page(self, (pid, tid): (i32, i32), page: &SealedPage) -> P::Output<TaskEnd> {
        let page = Some(page.clone());
        self.finish_program(Body::Pid(pid), Execution::AdoptedThread { pid, tid, page })
    }

    pub(crate) fn finish_program(self, body: Body, execution: Execution) -> P::Output<TaskEnd> {
        let slot = Slot::new();
        self.finish(body, execution, Arc::new(OfProgram(slot.clone())), slot)
    }

    fn finish<T: Send + 'static>(
        self,
        body: Body,
        execution: Execution,
        completion: Arc<dyn Completion>,
        slot: Arc<Slot<T>>,
    ) -> P::Output<T> {
        let handles_overruns = self.overrun_handler.is_some();
        let first_release = self.first_release;
        let task = self.check(body, &execution);
        let declared =
            |spec| Declared { spec, execution, completion, handles_overruns, first_release };
        let task = task.map(declared);
        let handle = TaskHandle::new(&self.name, slot, self.place.context().link.clone());
        self.place.put(task, handle)
    }

    pub(crate) fn first_release_ns(&self) -> Option<u64> {
        self.first_release
    }

    pub(crate) fn handler(&self) -> Option<OverrunHandler> {
        self.overrun_handler
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    pub(crate) fn place(&self) -> &P {
        &self.place
    }

    pub(crate) fn check(&self, body: Body, execution: &Execution) -> Result<TaskSpec, Error> {
        let task =
            |cause: &str, help: &str| Error::usage(format!("task {:?}: {cause}", self.name), help);
        let ns = |key: &str, given: Option<Duration>| -> Result<Option<u64>, Error> {
            let exact = |d: Duration| u64::try_from(d.as_nanos()).ok().filter(|&ns| ns < LIMIT);
            match given.map(exact) {
                None => Ok(None),
                Some(Some(ns)) => Ok(Some(ns)),
                Some(None) => Err(task(
                    &format!("the {key} is too long"),
                    "make it less than 2^62 ns, some 146 years",
                )),
            }
        };
        let Some(period) = ns("period", self.period)? else {
            return Err(task("it lacks a period", "add .period(Duration::from_millis(20)), say"));
        };
        let Some(budget) = ns("budget", self.budget)? else {
            return Err(task("it lacks a budget", "add .budget(Duration::from_millis(5)), say"));
        };
        let (deadline, start) = (ns("deadline", self.deadline)?, ns("start", Some(self.start))?);
        ns("time to its first release", self.first_release.map(Duration::from_nanos))?;
        let DraftContext { set, .. } = self.place.context();
        let placed = self.placed(set).map_err(|e| e.of_task(&self.name))?;
        let policy = &set.policy_of(placed.group).name;
        if set.policy_of(placed.group).takes_weights() {
            return Err(task(
                "its group's policy takes weights",
                "describe the set in a file, and use Punctual::from_file",
            ));
        }
        if policy == Policy::FixedPriority.name() && self.priority.is_none() {
            return Err(task(
                "fixed priority needs its priority",
                "add .priority(1) (larger is more important), or use another policy",
            ));
        }
        if self.overrun_handler.is_some() {
            self.install_overrun_handler(execution).map_err(|e| e.of_task(&self.name))?;
        }
        if self.overrun == Overrun::Signal
            && matches!(execution, Execution::Thread { .. })
            && !overrun_signal_is_handled()
        {
            return Err(task(
                "its overrun signal would end this program: SIGXCPU has no handler",
                "install one first (sigaction, or the crate signal-hook), or use another overrun \
                 policy",
            ));
        }
        // The checks that files and the command line pass too.
        let mut single = TaskSet::single(period, budget, body)
            .name(&self.name)
            .cpu(set.domain(placed.domain).cpus[0])
            .overrun(self.overrun)
            .policy(policy);
        if let Some(deadline) = deadline {
            single = single.deadline(deadline);
        }
        let set = single.build().map_err(|e| task(&e.cause, &e.help))?;
        let Some(spec) = set.tasks.into_iter().next() else {
            return Err(task("it came to nothing", "report it"));
        };
        let (start, priority) = (start.unwrap_or(0), self.priority.unwrap_or(0));
        let Placed { domain, group, budget_group } = placed;
        Ok(TaskSpec { domain, group, budget_group, offset: start, priority, ..spec })
    }

    fn install_overrun_handler(&self, execution: &Execution) -> Result<(), Error> {
        if !matches!(execution, Execution::Thread { .. }) {
            let help = "install a handler of SIGXCPU in the command";
            return Err(Error::usage("only threads of this program have overrun handlers", help));
        }
        if self.overrun != Overrun::Signal {
            let cause = "its overrun handler needs the overrun policy signal";
            return Err(Error::usage(cause, "leave the overrun policy out"));
        }
        call_overrun_handlers().map_err(|e| {
            let cause = format!("its overrun handler cannot be called: {e}");
            Error::usage(cause, "leave SIGXCPU to the library, or use Overrun::Signal alone")
        })
    }

    fn placed(&self, set: &TaskSet) -> Result<Placed, Error> {
        let group = self.group.as_ref().map(|name| find_group(set, name)).transpose()?;
        let node = self.budget_group.as_ref().map(|name| find_budget_group(set, name));
        let budget_group = node.transpose()?;
        let of_group = group.map(|group| set.groups[group].domain);
        let of_node = budget_group.map(|node| set.budget_groups[node].domain);
        let domain = placed(set, self.cpu, of_group.or(of_node))?;
        let other = of_group.into_iter().chain(of_node).find(|other| *other != domain);
        match other {
            None => Ok(Placed { domain, group, budget_group }),
            Some(other) => Err(Error::usage(
                format!("it is on {}, and its group on {}", set.domain(domain), set.domain(other)),
                "use groups and CPU of one dispatcher",
            )),
        }
    }
}

impl TaskDraft<&Running> {
    /// Time of the first release, from which [`start`](TaskDraft::start) counts too; if it has
    /// passed, the first release is whole periods later. Without it, it is some 20 ms from the call
    /// that completes the draft. Tasks of several programs are released at the same times with it.
    ///
    /// The service ([`Host::Service`](crate::Host::Service)) refuses it.
    pub fn first_release(mut self, at: Time) -> Self {
        self.first_release = Some(at.as_nanos());
        self
    }
}

/// Where a task stands in its set.
struct Placed {
    domain: DomainId,
    group: Option<usize>,
    budget_group: Option<usize>,
}

/// In a set's terms, a thread of this program is a process that runs already.
pub(crate) fn this_process() -> Body {
    Body::Pid(std::process::id() as i32)
}

fn overrun_signal_is_handled() -> bool {
    // SAFETY: reads only; a zeroed sigaction is a valid place for the answer.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        libc::sigaction(libc::SIGXCPU, std::ptr::null(), &mut action) == 0
            && action.sa_sigaction != libc::SIG_DFL
    }
}
