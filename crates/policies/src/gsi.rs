//! The allocator interface ("GSI", RED-Linux IV-D): what a policy sees of a host.
//!
//! Jobs go in, events come out. A policy receives every event of its own jobs, timers and group,
//! in order, each once; what it does in return takes effect at the same instant. It knows no host
//! and no clock but [`Gsi::now`].

use punctual_dispatcher::{
    Attribute, Dispatcher, Job, JobId, Refusal, Reservation, ReservationId, Standing, TimerId,
};

/// The calls of an allocator to the dispatcher.
pub trait Gsi {
    /// The time of this instant, ns.
    fn now(&self) -> u64;
    /// Adds a job: a task's, a server job (replenishes a group), or a segment (replenishes a node).
    fn add_job(&mut self, job: &Job) -> Result<JobId, Refusal>;
    /// Takes a job back; it ends as cancelled.
    fn cancel_job(&mut self, job: JobId) -> Result<(), Refusal>;
    /// The remaining budget of a job, ns; 0 when it has ended.
    fn remaining(&self, job: JobId) -> u64;
    /// What a job has executed, ns; 0 when it has ended.
    fn used(&self, job: JobId) -> u64;
    /// What a job does; `None` when it has ended.
    fn standing(&self, job: JobId) -> Option<Standing>;
    /// Orders a group's members, from now on.
    fn set_order(&mut self, group: u32, by: &[Attribute]) -> Result<(), Refusal>;
    /// Requests a timer event.
    fn ask_timer(&mut self, at: u64, cookie: u64) -> Result<TimerId, Refusal>;
    /// Takes a timer back.
    fn cancel_timer(&mut self, timer: TimerId) -> Result<(), Refusal>;
    /// Drafts a window for the next reservation that is added or changed, which takes all that were
    /// drafted: `start` and `length` ns after its releases; `begins` the row of another release.
    fn draft_window(&mut self, start: u64, length: u64, begins: bool) -> Result<(), Refusal> {
        let _ = (start, length, begins);
        Err(Refusal::Full)
    }
    /// Takes back the windows that were drafted.
    fn drop_windows(&mut self) {}
    /// Has the dispatcher itself release a job each period.
    fn add_reservation(&mut self, reservation: &Reservation) -> Result<ReservationId, Refusal>;
    /// Changes a reservation from its next release on.
    fn change_reservation(&mut self, id: ReservationId, to: &Reservation) -> Result<(), Refusal>;
    /// Ends a reservation, and its job as cancelled.
    fn remove_reservation(&mut self, id: ReservationId) -> Result<(), Refusal>;
    /// The current job of a reservation; `None` between two.
    fn job_of(&self, id: ReservationId) -> Option<JobId>;
    /// Waits that a reservation's task is due from releases gone by.
    fn delayed(&self, id: ReservationId) -> u32;
    /// Enforcement error that a reservation has still to settle, ns: positive when too much was
    /// executed.
    fn enforcement_error(&self, id: ReservationId) -> i64;
}

/// A dispatcher in this process, at one instant: what the simulator and the user host hand to
/// policies.
pub struct LocalDispatcher<'a> {
    dispatcher: &'a mut Dispatcher,
    now: u64,
}

impl<'a> LocalDispatcher<'a> {
    /// The dispatcher at `now`, ns.
    pub fn new(dispatcher: &'a mut Dispatcher, now: u64) -> LocalDispatcher<'a> {
        LocalDispatcher { dispatcher, now }
    }
}

impl Gsi for LocalDispatcher<'_> {
    fn now(&self) -> u64 {
        self.now
    }
    fn add_job(&mut self, job: &Job) -> Result<JobId, Refusal> {
        self.dispatcher.add_job(job, self.now)
    }
    fn cancel_job(&mut self, job: JobId) -> Result<(), Refusal> {
        self.dispatcher.cancel_job(job, self.now)
    }
    fn remaining(&self, job: JobId) -> u64 {
        self.dispatcher.remaining(job)
    }
    fn used(&self, job: JobId) -> u64 {
        self.dispatcher.used(job)
    }
    fn standing(&self, job: JobId) -> Option<Standing> {
        self.dispatcher.standing(job)
    }
    fn set_order(&mut self, group: u32, by: &[Attribute]) -> Result<(), Refusal> {
        self.dispatcher.set_order(group, by)
    }
    fn ask_timer(&mut self, at: u64, cookie: u64) -> Result<TimerId, Refusal> {
        self.dispatcher.ask_timer(at, cookie, self.now)
    }
    fn cancel_timer(&mut self, timer: TimerId) -> Result<(), Refusal> {
        self.dispatcher.cancel_timer(timer, self.now)
    }
    fn draft_window(&mut self, start: u64, length: u64, begins: bool) -> Result<(), Refusal> {
        self.dispatcher.draft_window(start, length, begins, self.now)
    }
    fn drop_windows(&mut self) {
        self.dispatcher.drop_windows(self.now);
    }
    fn add_reservation(&mut self, reservation: &Reservation) -> Result<ReservationId, Refusal> {
        self.dispatcher.add_reservation(reservation, self.now)
    }
    fn change_reservation(&mut self, id: ReservationId, to: &Reservation) -> Result<(), Refusal> {
        self.dispatcher.change_reservation(id, to, self.now)
    }
    fn remove_reservation(&mut self, id: ReservationId) -> Result<(), Refusal> {
        self.dispatcher.remove_reservation(id, self.now)
    }
    fn job_of(&self, id: ReservationId) -> Option<JobId> {
        self.dispatcher.job_of(id)
    }
    fn delayed(&self, id: ReservationId) -> u32 {
        self.dispatcher.delayed(id)
    }
    fn enforcement_error(&self, id: ReservationId) -> i64 {
        self.dispatcher.enforcement_error(id)
    }
}
