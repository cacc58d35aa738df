//! The safe Rust face of the dispatcher, Punctual's scheduling mechanism in C.
//!
//! The dispatcher takes jobs with start, finish, budget and priority, and says which to run until
//! when. Every call brings the time, ns, which must not go back. At each instant a host calls, in
//! this order: the charges; what happened to tasks and jobs; [`Dispatcher::advance`];
//! [`Dispatcher::next_event`] until none is left; [`Dispatcher::select`]; [`Dispatcher::timer`].
//!
//! ```
//! use punctual_dispatcher::{Attribute, Dispatcher, For, Job, Limits};
//! let mut d = Dispatcher::new(Limits::for_tasks(2)).unwrap();
//! d.set_order(0, &[Attribute::Finish]).unwrap();
//! let (a, b) = (d.add_task(0).unwrap(), d.add_task(0).unwrap());
//! d.add_job(&Job { finish: 9_000, ..Job::new(For::Task(a), 500) }, 0).unwrap();
//! let first = d.add_job(&Job { finish: 4_000, ..Job::new(For::Task(b), 700) }, 0).unwrap();
//! d.advance(0);
//! assert_eq!(d.select(0, 0), Some(first)); // the earlier finish
//! assert_eq!(d.timer(0, 1, 0), 700); // its budget ends first
//! ```

mod event;
mod ffi;
mod ids;
mod job;
mod jobs;
pub mod late_waits;
pub mod raw;
mod refusal;
mod reservation;
mod reservations;
mod windows;

use std::alloc::{alloc_zeroed, dealloc, handle_alloc_error, Layout};
use std::ptr::NonNull;

pub use event::{End, Event};
pub use ids::{JobId, ReservationId, TaskId, TimerId, INFINITE};
pub use job::{Attribute, For, Job, Standing, TaskCeiling, MOST_ATTRIBUTES};
pub use punctual_trace::{Limits, Record};
pub use refusal::Refusal;
pub use reservation::{OverrunPolicy, Reservation, Wait};
pub use reservations::error_settled;

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
        Err(Refusal::from_raw(code.into()))
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
        let c_limits = raw::Limits::from(&limits);
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
    /// arrival. Members are sorted by the new ordering.
    ///
    /// # Errors
    /// None, more than four or repeated attributes; no such group.
    pub fn set_order(&mut self, group: u32, by: &[Attribute]) -> Result<(), Refusal> {
        let order = raw::order(by)?;
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
        u32::try_from(n).map(TaskId).map_err(|_| Refusal::from_raw(n))
    }

    /// The task woke.
    ///
    /// # Errors
    /// [`Refusal::Nothing`]; so in all calls that name a task, job or reservation.
    pub fn task_ready(&mut self, task: TaskId, now: u64) -> Result<(), Refusal> {
        // SAFETY: as above.
        checked(unsafe { ffi::pd_task_ready(self.raw(), task.0, now) }).map(drop)
    }

    /// The task fell asleep: unless it lends, its jobs are not selected until it wakes.
    pub fn task_blocked(&mut self, task: TaskId, now: u64) -> Result<(), Refusal> {
        // SAFETY: as above.
        checked(unsafe { ffi::pd_task_blocked(self.raw(), task.0, now) }).map(drop)
    }

    /// Has the jobs of a task, those to come too, execute `to` in its place and be charged for it,
    /// as where it waits for a lock that `to` holds (bandwidth inheritance: Lipari, Lamastra and
    /// Abeni 2004); `None`: no longer. They are ready while what they execute is, whether the task
    /// itself sleeps or not.
    ///
    /// # Errors
    /// [`Refusal::Tree`]: `to` is the task itself, or lends to it, directly or through others.
    pub fn lend(&mut self, task: TaskId, to: Option<TaskId>, now: u64) -> Result<(), Refusal> {
        let to = to.unwrap_or(TaskId::NONE).0;
        // SAFETY: as above.
        checked(unsafe { ffi::pd_task_lend(self.raw(), task.0, to, now) }).map(drop)
    }

    /// Raises the task to a ceiling, as while it holds a lock (docs/model.md, "Ceilings"): in each
    /// group that is ordered by this attribute first, its jobs, those to come too, are placed as if
    /// they had at least this value. Their attributes and budgets stay as they are. Another
    /// ceiling replaces it; `None` ends it.
    pub fn raise(
        &mut self,
        task: TaskId,
        ceiling: Option<TaskCeiling>,
        now: u64,
    ) -> Result<(), Refusal> {
        let (attribute, ceiling) = raw::ceiling(ceiling);
        // SAFETY: as above.
        checked(unsafe { ffi::pd_task_raise(self.raw(), task.0, attribute, ceiling, now) })
            .map(drop)
    }

    /// One of the tasks that lend to this one.
    pub fn lender_of(&self, task: TaskId) -> Option<TaskId> {
        // SAFETY: as above; this one only reads.
        let lender = unsafe { ffi::pd_task_lender(self.raw.as_ptr(), task.0) };
        Some(TaskId(lender)).filter(|&lender| lender != TaskId::NONE)
    }

    /// The task is no more: what is lent to it is not, its jobs end, its number is given out again.
    pub fn task_gone(&mut self, task: TaskId, now: u64) -> Result<(), Refusal> {
        while let Some(lender) = self.lender_of(task) {
            self.lend(lender, None, now)?;
        }
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

    /// Asks for [`Event::Timer`] at a time, ns; when it has passed, the next
    /// [`Dispatcher::advance`] tells it.
    ///
    /// # Errors
    /// [`Refusal::Full`].
    pub fn ask_timer(&mut self, at: u64, cookie: u64, now: u64) -> Result<TimerId, Refusal> {
        // SAFETY: as above.
        let id = unsafe { ffi::pd_timer_ask(self.raw(), at, cookie, now) };
        u64::try_from(id).map(TimerId).map_err(|_| Refusal::from_raw(id))
    }

    /// Takes a timer back that has not come.
    pub fn cancel_timer(&mut self, timer: TimerId, now: u64) -> Result<(), Refusal> {
        // SAFETY: as above.
        checked(unsafe { ffi::pd_timer_cancel(self.raw(), timer.0, now) }).map(drop)
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
                (*raw).decode()
            };
            // SAFETY: as above.
            unsafe { ffi::pd_event_pop(self.raw()) };
            if event.is_some() {
                return event;
            }
        }
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
