//! The allocator interface over a dispatcher in the kernel: each call is an order, carried out by a BPF program on the
//! domain's CPU, where the calling thread is pinned.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use punctual_dispatcher::{raw, Attribute, Job, JobId, Refusal, Reservation, ReservationId, Standing, TaskId, TimerId};
use punctual_policies::Gsi;

use crate::abi::{self, Order, Plain, What};
use crate::diagnostics::OTHERS;
use crate::programs::Programs;
use punctual_diagnostic::Diagnostic;

/// One domain's dispatcher, as its allocators see it.
pub(crate) struct Orders<'a>(Rc<Desk<'a>>);

/// Where its orders are carried out; also for who listens to its allocators.
pub(crate) struct Desk<'a> {
    programs: &'a Programs,
    domain: u32,
    now: Cell<u64>,
    /// What the kernel, not the dispatcher, said no to; the first of it.
    broken: RefCell<Option<Diagnostic>>,
    last_job: Cell<u64>,
}

impl<'a> Orders<'a> {
    /// At `now`, ns. The calling thread is pinned to the domain's CPU.
    pub fn new(programs: &'a Programs, domain: u32, now: u64) -> Orders<'a> {
        let (now, broken, last_job) = (Cell::new(now), RefCell::new(None), Cell::new(0));
        Orders(Rc::new(Desk { programs, domain, now, broken, last_job }))
    }

    /// For orders beside an allocator's.
    pub fn desk(&self) -> Rc<Desk<'a>> {
        self.0.clone()
    }

    /// The time of the events that are told from here on, ns. Orders move it on.
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
        self.0.done(What::TaskAdd, Order::default()).map(|n| TaskId(n as u32))
    }

    /// A thread becomes a task's, with `flags` of [`abi`]; 0, or a refusal's number.
    pub fn join(&mut self, task: TaskId, thread: i32, flags: u64) -> i64 {
        self.0.ask(What::Join, Order { number: task.0, value: thread as u32, id: flags, ..Order::default() })
    }
}

impl Desk<'_> {
    /// The cookie of the job that was added last.
    pub fn last_job(&self) -> u64 {
        self.last_job.get()
    }

    /// A release that an allocator made is over, and not by its task's wait; `flags` of [`abi`]. How many waits are late
    /// now; 0 if this left none.
    pub fn over(&self, task: TaskId, flags: u64) -> i64 {
        self.ask(What::Over, Order { number: task.0, id: flags, ..Order::default() })
    }

    /// Carries an order out: the dispatcher's answer.
    fn ask(&self, what: What, mut order: Order) -> i64 {
        order.domain = self.domain;
        order.what = what as u32;
        let failed = match self.programs.run(abi::ORDER, order.bytes()) {
            Ok(_) if order.result == abi::WRONG_CPU => {
                let cause = format!("the allocators of domain {} are not on its CPU", self.domain);
                Some(Diagnostic::machine(cause, "leave the affinity of this program's threads as it is"))
            }
            Ok(_) => None,
            Err(e) => Some(Diagnostic::machine(e, OTHERS)),
        };
        if failed.is_some() {
            let mut broken = self.broken.borrow_mut();
            *broken = broken.take().or(failed);
            return -i64::from(libc::EINVAL);
        }
        self.now.set(order.now.max(self.now.get()));
        order.result
    }

    fn done(&self, what: What, order: Order) -> Result<i64, Refusal> {
        let result = self.ask(what, order);
        if result < 0 {
            return Err(Refusal::from_raw(result));
        }
        Ok(result)
    }
}

impl Gsi for Orders<'_> {
    fn now(&self) -> u64 {
        self.0.now.get()
    }
    fn add_job(&mut self, job: &Job) -> Result<JobId, Refusal> {
        let order = Order { attributes: job.into(), ..Order::default() };
        let id = self.0.done(What::JobAdd, order)?;
        self.0.last_job.set(job.cookie);
        Ok(JobId::from_u64(id as u64))
    }
    fn cancel_job(&mut self, job: JobId) -> Result<(), Refusal> {
        self.0.done(What::JobCancel, Order { id: job.as_u64(), ..Order::default() }).map(drop)
    }
    fn remaining(&self, job: JobId) -> u64 {
        self.0.ask(What::Remaining, Order { id: job.as_u64(), ..Order::default() }).max(0) as u64
    }
    fn used(&self, job: JobId) -> u64 {
        self.0.ask(What::Used, Order { id: job.as_u64(), ..Order::default() }).max(0) as u64
    }
    fn standing(&self, job: JobId) -> Option<Standing> {
        Standing::from_raw(self.0.ask(What::Standing, Order { id: job.as_u64(), ..Order::default() }))
    }
    fn set_order(&mut self, group: u32, by: &[Attribute]) -> Result<(), Refusal> {
        let value = raw::order(by)?;
        self.0.done(What::SetOrder, Order { number: group, value, ..Order::default() }).map(drop)
    }
    fn ask_timer(&mut self, at: u64, cookie: u64) -> Result<TimerId, Refusal> {
        let id = self.0.done(What::TimerAsk, Order { time: at, cookie, ..Order::default() })?;
        Ok(TimerId::from_u64(id as u64))
    }
    fn cancel_timer(&mut self, timer: TimerId) -> Result<(), Refusal> {
        self.0.done(What::TimerCancel, Order { id: timer.as_u64(), ..Order::default() }).map(drop)
    }
    fn draft_window(&mut self, start: u64, length: u64, begins: bool) -> Result<(), Refusal> {
        let order = Order { time: start, cookie: length, number: begins.into(), ..Order::default() };
        self.0.done(What::WindowAdd, order).map(drop)
    }
    fn drop_windows(&mut self) {
        self.0.ask(What::WindowDrop, Order::default());
    }
    fn add_reservation(&mut self, reservation: &Reservation) -> Result<ReservationId, Refusal> {
        let order = Order { attributes: reservation.into(), ..Order::default() };
        self.0.done(What::ReservationAdd, order).map(|n| ReservationId(n as u32))
    }
    fn change_reservation(&mut self, id: ReservationId, to: &Reservation) -> Result<(), Refusal> {
        let order = Order { number: id.0, attributes: to.into(), ..Order::default() };
        self.0.done(What::ReservationChange, order).map(drop)
    }
    fn remove_reservation(&mut self, id: ReservationId) -> Result<(), Refusal> {
        self.0.done(What::ReservationRemove, Order { number: id.0, ..Order::default() }).map(drop)
    }
    fn job_of(&self, id: ReservationId) -> Option<JobId> {
        let job = self.0.ask(What::JobOf, Order { number: id.0, ..Order::default() });
        (job > 0).then(|| JobId::from_u64(job as u64))
    }
    fn delayed(&self, id: ReservationId) -> u32 {
        self.0.ask(What::Delayed, Order { number: id.0, ..Order::default() }).max(0) as u32
    }
    fn enforcement_error(&self, id: ReservationId) -> i64 {
        let answer = self.0.ask(What::EnforcementError, Order { number: id.0, ..Order::default() });
        if answer < 0 {
            0
        } else {
            answer + abi::LEAST_ERROR
        }
    }
}
