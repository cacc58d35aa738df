//! The allocator interface over a dispatcher in the kernel: each call is a command, executed by a
//! BPF program on the domain's CPU, to which the calling thread is pinned.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use punctual_dispatcher::{
    raw, Attribute, Job, JobId, Refusal, Reservation, ReservationId, Standing, TaskId, TimerId,
};
use punctual_policies::Gsi;

use crate::abi::{Call, Command, WRONG_CPU};
use crate::diagnostics::OTHERS;
use crate::programs::Programs;
use punctual_diagnostic::Diagnostic;

/// One domain's dispatcher, as its allocators see it.
pub(crate) struct KernelGsi<'a>(Rc<CommandChannel<'a>>);

/// Sends commands to one domain's dispatcher; also for what is not an allocator's business.
pub(crate) struct CommandChannel<'a> {
    programs: &'a Programs,
    domain: u32,
    now: Cell<u64>,
    /// The first failure of the kernel; refusals of the dispatcher are results.
    broken: RefCell<Option<Diagnostic>>,
    last_job: Cell<u64>,
}

impl<'a> KernelGsi<'a> {
    /// At `now`, ns. The calling thread is pinned to the domain's CPU.
    pub fn new(programs: &'a Programs, domain: u32, now: u64) -> KernelGsi<'a> {
        let (now, broken, last_job) = (Cell::new(now), RefCell::new(None), Cell::new(0));
        KernelGsi(Rc::new(CommandChannel { programs, domain, now, broken, last_job }))
    }

    /// For commands beside an allocator's.
    pub fn channel(&self) -> Rc<CommandChannel<'a>> {
        self.0.clone()
    }

    /// The time of the events that are handled from here on, ns. Commands move it on.
    pub fn at(&mut self, now: u64) {
        self.0.now.set(now.max(self.0.now.get()));
    }

    /// What went wrong below the dispatcher.
    ///
    /// # Errors
    /// The first of it.
    pub fn check(&self) -> Result<(), Diagnostic> {
        self.0.broken.take().map_or(Ok(()), Err)
    }

    /// A new task, asleep until a thread of it is runnable.
    ///
    /// # Errors
    /// [`Refusal::Full`].
    pub fn add_task(&mut self) -> Result<TaskId, Refusal> {
        self.0.try_send(Command::TaskAdd).map(|n| TaskId(n as u32))
    }

    /// All threads of a task are best-effort ones from here on; the dispatcher removes it with the
    /// next command, as one whose last thread has left.
    ///
    /// # Errors
    /// [`Refusal::Nothing`]: it has removed it already.
    pub fn retire(&mut self, task: TaskId) -> Result<(), Refusal> {
        self.0.try_send(Command::TaskRetire { task: task.0 }).map(drop)
    }

    /// A thread becomes a task's, with `flags` of [`abi`](crate::abi); 0, or a negative error.
    pub fn join(&mut self, task: TaskId, thread: i32, flags: u32) -> i64 {
        self.0.send(Command::TaskJoin { task: task.0, thread: thread as u32, flags })
    }
}

impl CommandChannel<'_> {
    /// The cookie of the job that was added last.
    pub fn last_job(&self) -> u64 {
        self.last_job.get()
    }

    /// Ends a release that an allocator made, without its task's wait; `flags` of
    /// [`abi`](crate::abi). How many waits are late now; 0 if this added none.
    pub fn end_release(&self, task: TaskId, flags: u32) -> i64 {
        self.send(Command::ReleaseEnd { task: task.0, flags })
    }

    /// Has the jobs of `task` execute `to` in its place and be charged for it, until another call;
    /// `None`: no longer.
    pub fn lend(&self, task: TaskId, to: Option<TaskId>) -> Result<(), Refusal> {
        let to = to.unwrap_or(TaskId::NONE).0;
        self.try_send(Command::TaskLend { task: task.0, to }).map(drop)
    }

    /// Keeps a task from being ready, whatever its threads do, or no longer. Its releases end as
    /// cancelled meanwhile, the one in flight too, and its threads execute in the background.
    /// Whether the one in flight has not begun: its thread still waits for it.
    ///
    /// # Errors
    /// [`Refusal::Nothing`]: there is no such task.
    pub fn suspend(&self, task: TaskId, on: bool) -> Result<bool, Refusal> {
        let unseen = self.try_send(Command::TaskSuspend { task: task.0, on: on.into() })?;
        Ok(unseen > 0)
    }

    /// Has the kernel execute a command; the call with its results.
    fn call(&self, command: Command) -> Call {
        let mut call = Call::new(self.domain, command);
        let failed = match self.programs.run(&mut call) {
            Ok(_) if call.result == WRONG_CPU => {
                let cause = format!("the allocators of domain {} are not on its CPU", self.domain);
                let help = "leave the affinity of this program's threads as it is";
                Some(Diagnostic::machine(cause, help))
            }
            Ok(_) => None,
            Err(e) => Some(Diagnostic::machine(e, OTHERS)),
        };
        if failed.is_some() {
            let mut broken = self.broken.borrow_mut();
            *broken = broken.take().or(failed);
            call.result = -i64::from(libc::EINVAL);
        } else {
            self.now.set(call.now.max(self.now.get()));
        }
        call
    }

    fn send(&self, command: Command) -> i64 {
        self.call(command).result
    }

    /// Where the job stands, as a number, what it used, and what remains of its budget, ns.
    fn job_state(&self, job: JobId) -> (i64, u64, u64) {
        let call = self.call(Command::JobState { used: 0, remaining: 0, job: job.as_u64() });
        match call.command {
            Command::JobState { used, remaining, .. } => (call.result, used, remaining),
            _ => (call.result, 0, 0),
        }
    }

    fn try_send(&self, command: Command) -> Result<i64, Refusal> {
        let result = self.send(command);
        if result < 0 {
            return Err(Refusal::from_raw(result));
        }
        Ok(result)
    }
}

impl Gsi for KernelGsi<'_> {
    fn now(&self) -> u64 {
        self.0.now.get()
    }
    fn add_job(&mut self, job: &Job) -> Result<JobId, Refusal> {
        let id = self.0.try_send(Command::JobAdd(job.into()))?;
        self.0.last_job.set(job.cookie);
        Ok(JobId::from_u64(id as u64))
    }
    fn cancel_job(&mut self, job: JobId) -> Result<(), Refusal> {
        self.0.try_send(Command::JobCancel { job: job.as_u64() }).map(drop)
    }
    fn remaining(&self, job: JobId) -> u64 {
        self.0.job_state(job).2
    }
    fn used(&self, job: JobId) -> u64 {
        self.0.job_state(job).1
    }
    fn standing(&self, job: JobId) -> Option<Standing> {
        Standing::from_raw(self.0.job_state(job).0)
    }
    fn set_order(&mut self, group: u32, by: &[Attribute]) -> Result<(), Refusal> {
        self.0.try_send(Command::GroupOrder { group, order: raw::order(by)? }).map(drop)
    }
    fn ask_timer(&mut self, at: u64, cookie: u64) -> Result<TimerId, Refusal> {
        self.0.try_send(Command::TimerAdd { at, cookie }).map(|id| TimerId::from_u64(id as u64))
    }
    fn cancel_timer(&mut self, timer: TimerId) -> Result<(), Refusal> {
        self.0.try_send(Command::TimerCancel { timer: timer.as_u64() }).map(drop)
    }
    fn draft_window(&mut self, start: u64, length: u64, begins: bool) -> Result<(), Refusal> {
        self.0.try_send(Command::WindowAdd { start, length, begins: begins.into() }).map(drop)
    }
    fn drop_windows(&mut self) {
        self.0.send(Command::WindowDrop);
    }
    fn add_reservation(&mut self, reservation: &Reservation) -> Result<ReservationId, Refusal> {
        let command = Command::ReservationAdd(reservation.into());
        self.0.try_send(command).map(|n| ReservationId(n as u32))
    }
    fn change_reservation(&mut self, id: ReservationId, to: &Reservation) -> Result<(), Refusal> {
        let command = Command::ReservationChange { to: to.into(), reservation: id.0 };
        self.0.try_send(command).map(drop)
    }
    fn remove_reservation(&mut self, id: ReservationId) -> Result<(), Refusal> {
        self.0.try_send(Command::ReservationRemove { reservation: id.0 }).map(drop)
    }
    fn job_of(&self, id: ReservationId) -> Option<JobId> {
        let job = self.0.send(Command::ReservationJob { reservation: id.0 });
        (job > 0).then(|| JobId::from_u64(job as u64))
    }
    fn delayed(&self, id: ReservationId) -> u32 {
        self.0.send(Command::ReservationDelayed { reservation: id.0 }).max(0) as u32
    }
    fn enforcement_error(&self, id: ReservationId) -> i64 {
        let call = self.0.call(Command::ReservationError { error: 0, reservation: id.0 });
        match call.command {
            Command::ReservationError { error, .. } => error,
            _ => 0,
        }
    }
}
