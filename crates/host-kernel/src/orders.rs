//! What the allocators ask for at the start, kept to be carried out in the kernel, and how it stands in `bpf/orders.h`.

use punctual_dispatcher::{
    Attribute, End, Event, For, Job, JobId, Limits, Refusal, Reservation, ReservationId, Standing, TaskId, TimerId,
};
use punctual_policies::Gsi;

/// As `struct pd_limits`.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct RawLimits([u32; 12]);

impl RawLimits {
    pub fn of(l: &Limits) -> RawLimits {
        let Limits { jobs, tasks, reservations, groups, budget_groups, timers, depth, events, records, windows } = *l;
        RawLimits([jobs, tasks, reservations, groups, budget_groups, timers, depth, events, records, 1, windows, 0])
    }
}

/// As `struct pd_order_call`.
#[repr(C)]
#[derive(Clone, Copy, Default)]
pub(crate) struct OrderCall {
    pub value: i64,
    pub order: u64,
    pub records: u64,
    pub events: u64,
    pub record_count: u64,
    pub event_head: u64,
    pub event_tail: u64,
    pub event_lost: u64,
    pub exit_kind: u64,
    pub throttled: u64,
}

/// As `struct pd_reserve_call`.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct ReserveCall {
    pub result: i64,
    start: u64,
    period: u64,
    budget: u64,
    deadline: u64,
    priority: i64,
    cookie: u64,
    task: u32,
    group: u32,
    overrun: u32,
    wakeup_rule: u32,
    server: u32,
    budget_group: u32,
    budget_server: u32,
    own_cookie: u32,
}

impl ReserveCall {
    pub fn of(r: &Reservation) -> ReserveCall {
        let (task, server, budget_server) = match r.serves {
            For::Task(task) => (task.0, 0, 0),
            For::Group(group) => (u32::MAX, group, 0),
            For::Budget(node) => (u32::MAX, 0, node),
        };
        ReserveCall {
            result: 0,
            start: r.start,
            period: r.period,
            budget: r.budget,
            deadline: r.deadline,
            priority: r.priority,
            cookie: r.cookie.unwrap_or(0),
            task,
            group: r.group,
            overrun: r.overrun as u32,
            wakeup_rule: r.wakeup_rule.into(),
            server,
            budget_group: r.budget_group,
            budget_server,
            own_cookie: r.cookie.is_some().into(),
        }
    }
}

/// As `struct pd_event`.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct RawEvent {
    time: u64,
    kind: u32,
    task: u32,
    job: u64,
    cookie: u64,
    used: u64,
    remaining: u64,
}

impl RawEvent {
    /// `None` for a kind that reservations do not make.
    pub fn event(&self) -> Option<Event> {
        let RawEvent { time: at, kind, task, job, cookie, used, remaining } = *self;
        let (job, node, task) = (JobId::from_u64(job), task, TaskId(task));
        let ended = |end| Event::JobEnded { at, end, job, task, cookie, used, remaining };
        let segment = |end| Event::SegmentEnded { at, end, job, node, cookie, used, remaining };
        Some(match kind {
            1 => ended(End::Completed),
            2 => ended(End::Exhausted),
            3 => ended(End::Expired),
            4 => ended(End::Cancelled),
            5 => ended(End::TaskGone),
            6 => Event::TaskReady { at, task },
            7 => Event::TaskBlocked { at, task },
            8 => Event::GroupActive { at, group: node },
            9 => Event::GroupIdle { at, group: node },
            10 => segment(End::Exhausted),
            12 => Event::Lost { at, count: used },
            13 => Event::Released { at, job, task, number: cookie, release: used, budget: remaining },
            14 => Event::ReleasesLost { at, task, first: cookie, count: used },
            17 => Event::DelayedSaturated { at, task },
            18 => segment(End::Expired),
            _ => return None,
        })
    }
}

/// One thing to be done in the kernel.
pub(crate) enum Order {
    Group(u32, u64),
    Reserve(Reservation),
}

/// Keeps what is asked for; what no reservation can do is refused.
pub(crate) struct Recorder {
    pub now: u64,
    pub orders: Vec<Order>,
    /// Somebody wanted to be asked at each job.
    pub needs_policy: bool,
    reservations: u32,
}

impl Recorder {
    pub fn new(now: u64) -> Recorder {
        Recorder { now, orders: Vec::new(), needs_policy: false, reservations: 0 }
    }

    fn refuse<T>(&mut self) -> Result<T, Refusal> {
        self.needs_policy = true;
        Err(Refusal::Invalid)
    }
}

impl Gsi for Recorder {
    fn now(&self) -> u64 {
        self.now
    }
    fn add_job(&mut self, _: &Job) -> Result<JobId, Refusal> {
        self.refuse()
    }
    fn cancel_job(&mut self, _: JobId) -> Result<(), Refusal> {
        self.refuse()
    }
    fn remaining(&self, _: JobId) -> u64 {
        0
    }
    fn used(&self, _: JobId) -> u64 {
        0
    }
    fn standing(&self, _: JobId) -> Option<Standing> {
        None
    }
    fn set_order(&mut self, group: u32, by: &[Attribute]) -> Result<(), Refusal> {
        if by.len() > 4 {
            return Err(Refusal::Invalid);
        }
        let order = by.iter().rev().fold(0, |all, &a| all << 8 | a as u64);
        self.orders.push(Order::Group(group, order));
        Ok(())
    }
    fn ask_timer(&mut self, _: u64, _: u64) -> Result<TimerId, Refusal> {
        self.refuse()
    }
    fn cancel_timer(&mut self, _: TimerId) -> Result<(), Refusal> {
        Ok(())
    }
    fn add_reservation(&mut self, reservation: &Reservation) -> Result<ReservationId, Refusal> {
        self.orders.push(Order::Reserve(*reservation));
        self.reservations += 1;
        // The dispatcher gives them out in this order, and is asked whether it did.
        Ok(ReservationId(self.reservations - 1))
    }
    fn change_reservation(&mut self, _: ReservationId, _: &Reservation) -> Result<(), Refusal> {
        self.refuse()
    }
    fn remove_reservation(&mut self, _: ReservationId) -> Result<(), Refusal> {
        Ok(())
    }
    fn job_of(&self, _: ReservationId) -> Option<JobId> {
        None
    }
    fn delayed(&self, _: ReservationId) -> u32 {
        0
    }
}
