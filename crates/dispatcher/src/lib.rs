//! The safe Rust face of the dispatcher, Punctual's scheduling mechanism in C.
//!
//! The dispatcher takes jobs with start, finish, budget and priority, and says which to run until
//! when. Every call brings the time, ns, which must not go back. At each instant a host calls, in
//! this order: the charges; what happened to tasks and jobs; [`Dispatcher::advance`];
//! [`Dispatcher::next_event`] until none is left; [`Dispatcher::select`]; [`Dispatcher::timer`].
//!
//! ```
//! use punctual_dispatcher::{Attribute, Dispatcher, Job, Limits, INFINITE};
//! let mut d = Dispatcher::new(Limits::for_tasks(2)).unwrap();
//! d.set_order(0, &[Attribute::Finish]).unwrap();
//! let (a, b) = (d.add_task(0).unwrap(), d.add_task(0).unwrap());
//! d.add_job(&Job { task: a, start: 0, finish: 9_000, budget: 500, priority: 0, cookie: 1 }, 0).unwrap();
//! let first = d
//!     .add_job(&Job { task: b, start: 0, finish: 4_000, budget: 700, priority: 0, cookie: 2 }, 0)
//!     .unwrap();
//! d.advance(0);
//! assert_eq!(d.select(0, 0), Some(first)); // the earlier finish
//! assert_eq!(d.timer(0, 1, 0), 700); // its budget ends first
//! # let _ = INFINITE;
//! ```

mod ffi;
mod types;

use std::alloc::{alloc_zeroed, dealloc, handle_alloc_error, Layout};
use std::ptr::NonNull;

pub use punctual_trace::Record;
pub use types::*;

/// One dispatcher: a domain's jobs, their order and their budgets.
///
/// All memory is taken at creation; no call allocates, locks or makes a system call, so that all
/// of them can be used by a real-time thread.
pub struct Dispatcher {
    raw: NonNull<ffi::Pd>,
    layout: Layout,
    limits: Limits,
}

// SAFETY: the C side keeps no thread-local state and no pointers outside its own block; exclusive
// access is what `&mut self` says.
unsafe impl Send for Dispatcher {}

fn checked(code: i32) -> Result<i32, Refusal> {
    if code < 0 {
        Err(refusal(code.into()))
    } else {
        Ok(code)
    }
}

impl Dispatcher {
    /// A dispatcher with these limits.
    ///
    /// # Errors
    /// [`Refusal::Invalid`] when a limit is outside its range.
    pub fn new(limits: Limits) -> Result<Dispatcher, Refusal> {
        let c_limits = limits.raw();
        // SAFETY: the limits are a plain value.
        let size = unsafe { ffi::pd_size(&c_limits) };
        if size == 0 {
            return Err(Refusal::Invalid);
        }
        let layout = Layout::from_size_align(size as usize, 64).map_err(|_| Refusal::Invalid)?;
        // SAFETY: the size is not zero.
        let memory = unsafe { alloc_zeroed(layout) };
        if memory.is_null() {
            handle_alloc_error(layout);
        }
        // SAFETY: zeroed, aligned memory of the size asked for.
        let raw = unsafe { ffi::pd_init(memory, &c_limits) };
        Ok(Dispatcher { raw: NonNull::new(raw).ok_or(Refusal::Invalid)?, layout, limits })
    }

    /// As given at creation.
    pub fn limits(&self) -> Limits {
        self.limits
    }

    fn raw(&mut self) -> *mut ffi::Pd {
        self.raw.as_ptr()
    }

    /// Timers nearer than this, ns (below 2^32), fire now; less remaining budget is none.
    ///
    /// # Errors
    /// [`Refusal::Invalid`] above the range.
    pub fn set_granularity(&mut self, ns: u64) -> Result<(), Refusal> {
        // SAFETY: `raw` is a live dispatcher; so in every call below.
        checked(unsafe { ffi::pd_set_granularity(self.raw(), ns) }).map(drop)
    }

    /// Orders a group's members: the first attribute decides, ties go to the next, then to
    /// arrival. Only while it has no ready member.
    ///
    /// # Errors
    /// None, more than four or repeated attributes, no such group, or members.
    pub fn set_order(&mut self, group: u32, by: &[Attribute]) -> Result<(), Refusal> {
        if by.len() > 4 {
            return Err(Refusal::Invalid);
        }
        let order = by.iter().rev().fold(0u32, |order, a| order << 8 | *a as u32);
        // SAFETY: as above.
        checked(unsafe { ffi::pd_group_set_order(self.raw(), group, order) }).map(drop)
    }

    /// A new task, ready.
    ///
    /// # Errors
    /// [`Refusal::Full`].
    pub fn add_task(&mut self, now: u64) -> Result<TaskId, Refusal> {
        // SAFETY: as above.
        let n = unsafe { ffi::pd_task_add(self.raw(), now) };
        u32::try_from(n).map(TaskId).map_err(|_| refusal(n))
    }

    /// The task woke.
    ///
    /// # Errors
    /// [`Refusal::Nothing`]; so in all calls that name a task, job or reservation.
    pub fn task_ready(&mut self, task: TaskId, now: u64) -> Result<(), Refusal> {
        // SAFETY: as above.
        checked(unsafe { ffi::pd_task_ready(self.raw(), task.0, now) }).map(drop)
    }

    /// The task fell asleep: its jobs are not selected until it wakes.
    pub fn task_blocked(&mut self, task: TaskId, now: u64) -> Result<(), Refusal> {
        // SAFETY: as above.
        checked(unsafe { ffi::pd_task_blocked(self.raw(), task.0, now) }).map(drop)
    }

    /// The task is no more: its jobs end, its number is given out again.
    pub fn task_gone(&mut self, task: TaskId, now: u64) -> Result<(), Refusal> {
        // SAFETY: as above.
        checked(unsafe { ffi::pd_task_gone(self.raw(), task.0, now) }).map(drop)
    }

    /// The task called `wait_period`, or said that its job is done.
    pub fn task_done(&mut self, task: TaskId, now: u64) -> Result<Wait, Refusal> {
        // SAFETY: as above.
        checked(unsafe { ffi::pd_task_done(self.raw(), task.0, now) }).map(|code| {
            if code == 1 {
                Wait::Ignored
            } else {
                Wait::UntilRelease
            }
        })
    }

    /// Adds a job; one without budget, or with its finish past, ends at once.
    pub fn add_job(&mut self, job: &Job, now: u64) -> Result<JobId, Refusal> {
        // SAFETY: the draft is valid until the next call, and nobody else has it.
        unsafe {
            *ffi::pd_job_draft(self.raw()) = ffi::JobAttr {
                start: job.start,
                finish: job.finish,
                budget: job.budget,
                priority: job.priority,
                cookie: job.cookie,
                task: job.task.0,
                group: 0,
                server: 0,
                budget_group: 0,
                budget_server: 0,
                reserved: 0,
            };
            let id = ffi::pd_job_add(self.raw(), now);
            u64::try_from(id).map(JobId).map_err(|_| refusal(id))
        }
    }

    /// Takes a job back.
    pub fn cancel_job(&mut self, job: JobId, now: u64) -> Result<(), Refusal> {
        // SAFETY: as above.
        checked(unsafe { ffi::pd_job_cancel(self.raw(), job.0, now) }).map(drop)
    }

    /// Ends a job as completed.
    pub fn complete_job(&mut self, job: JobId, now: u64) -> Result<(), Refusal> {
        // SAFETY: as above.
        checked(unsafe { ffi::pd_job_complete(self.raw(), job.0, now) }).map(drop)
    }

    /// What is left of a job's budget, ns; 0 when it has ended.
    pub fn remaining(&self, job: JobId) -> u64 {
        // SAFETY: as above; this one only reads.
        unsafe { ffi::pd_job_remaining(self.raw.as_ptr(), job.0) }
    }

    /// Whom a job runs; `None` when it has ended.
    pub fn task_of(&self, job: JobId) -> Option<TaskId> {
        // SAFETY: as above; this one only reads.
        let task = unsafe { ffi::pd_job_task(self.raw.as_ptr(), job.0) };
        (task != u32::MAX).then_some(TaskId(task))
    }

    /// Charges what a task executed, ns: to its best job, or, without one, to its reservation as
    /// enforcement error. True when the job's budget is used up.
    pub fn charge_task(&mut self, task: TaskId, ran: u64, now: u64) -> Result<bool, Refusal> {
        // SAFETY: as above.
        checked(unsafe { ffi::pd_charge_task(self.raw(), task.0, ran, now) }).map(|code| code == 1)
    }

    /// Charges a job, ns. True when its budget is used up.
    pub fn charge_job(&mut self, job: JobId, ran: u64, now: u64) -> Result<bool, Refusal> {
        // SAFETY: as above.
        checked(unsafe { ffi::pd_charge(self.raw(), job.0, ran, now) }).map(|code| code == 1)
    }

    /// Does all that is due: exhausted budgets, finishes, starts, releases.
    pub fn advance(&mut self, now: u64) {
        // SAFETY: as above.
        unsafe { ffi::pd_advance(self.raw(), now) };
    }

    /// The job that this CPU is to run.
    pub fn select(&mut self, cpu: u32, now: u64) -> Option<JobId> {
        // SAFETY: as above.
        let id = unsafe { ffi::pd_select(self.raw(), cpu, now) };
        (id != 0).then_some(JobId(id))
    }

    /// The job that would be selected if the `rank` better ones slept (at most 15); to be asked
    /// right after [`Dispatcher::select`].
    pub fn runner_up(&mut self, cpu: u32, rank: u32) -> Option<JobId> {
        // SAFETY: as above.
        let id = unsafe { ffi::pd_runner_up(self.raw(), cpu, rank) };
        (id != 0).then_some(JobId(id))
    }

    /// The jobs from group 0 down to the selected one: the server jobs, then the job.
    pub fn path(&self, cpu: u32) -> impl Iterator<Item = JobId> + '_ {
        (0..).map_while(move |depth| {
            // SAFETY: as above; this one only reads.
            let id = unsafe { ffi::pd_path(self.raw.as_ptr(), cpu, depth) };
            (id != 0).then_some(JobId(id))
        })
    }

    /// When something next happens by itself, if the first `ranks` jobs of this CPU may run until
    /// then; [`INFINITE`] when nothing will.
    pub fn timer(&mut self, cpu: u32, ranks: u32, now: u64) -> u64 {
        // SAFETY: as above.
        unsafe { ffi::pd_timer(self.raw(), cpu, ranks, now) }
    }

    /// The oldest event not yet taken.
    pub fn next_event(&mut self) -> Option<Event> {
        loop {
            // SAFETY: the event is copied before it is popped.
            let event = unsafe {
                let raw = ffi::pd_event_peek(self.raw());
                if raw.is_null() {
                    return None;
                }
                Event::from_raw(&*raw)
            };
            // SAFETY: as above.
            unsafe { ffi::pd_event_pop(self.raw()) };
            if event.is_some() {
                return event;
            }
        }
    }

    /// A periodic reservation, from its first release on.
    ///
    /// # Errors
    /// [`Refusal::Invalid`] unless 0 < budget <= deadline <= period < 2^62; [`Refusal::Busy`]
    /// when the task has one.
    pub fn add_reservation(&mut self, r: &Reservation, now: u64) -> Result<ReservationId, Refusal> {
        // SAFETY: the draft is valid until the next call, and nobody else has it.
        let n = unsafe {
            *ffi::pd_reservation_draft(self.raw()) = ffi::ReservationAttr {
                start: r.start,
                period: r.period,
                budget: r.budget,
                deadline: r.deadline,
                priority: r.priority,
                task: r.task.0,
                group: 0,
                overrun: r.overrun as u32,
                wakeup_rule: r.wakeup_rule.into(),
            };
            ffi::pd_reservation_add(self.raw(), now)
        };
        u32::try_from(n).map(ReservationId).map_err(|_| refusal(n))
    }

    /// Ends a reservation, and its current job as cancelled.
    pub fn remove_reservation(&mut self, r: ReservationId, now: u64) -> Result<(), Refusal> {
        // SAFETY: as above.
        checked(unsafe { ffi::pd_reservation_remove(self.raw(), r.0, now) }).map(drop)
    }

    /// Releases that the task's last `wait_period` missed; asking resets it.
    pub fn take_lost(&mut self, r: ReservationId) -> u32 {
        // SAFETY: as above.
        unsafe { ffi::pd_reservation_take_lost(self.raw(), r.0) }
    }

    /// The reservation's current job; `None` between two.
    pub fn job_of(&self, r: ReservationId) -> Option<JobId> {
        // SAFETY: as above; this one only reads.
        let id = unsafe { ffi::pd_reservation_job(self.raw.as_ptr(), r.0) };
        (id != 0).then_some(JobId(id))
    }

    /// Waits that are due from releases gone by.
    pub fn delayed(&self, r: ReservationId) -> u32 {
        // SAFETY: as above; this one only reads.
        unsafe { ffi::pd_reservation_delayed(self.raw.as_ptr(), r.0) }
    }

    /// Enforcement error, ns, that the next job's budget settles: positive when the task executed
    /// too much. Never more than one budget either way.
    pub fn enforcement_error(&self, r: ReservationId) -> i64 {
        // SAFETY: as above; this one only reads.
        unsafe { ffi::pd_reservation_error(self.raw.as_ptr(), r.0) }
    }

    /// How many trace records were ever written.
    pub fn record_count(&self) -> u64 {
        // SAFETY: as above; this one only reads.
        unsafe { ffi::pd_record_count(self.raw.as_ptr()) }
    }

    /// A trace record by its number, from 0; `None` when it is overwritten or still to come.
    pub fn record(&self, number: u64) -> Option<Record> {
        // SAFETY: as above; the record is copied.
        unsafe { ffi::pd_record_at(self.raw.as_ptr(), number).as_ref().copied() }
    }
}

impl Drop for Dispatcher {
    fn drop(&mut self) {
        // SAFETY: allocated with this layout in `new`; the block begins with the dispatcher.
        unsafe { dealloc(self.raw.as_ptr().cast(), self.layout) };
    }
}
