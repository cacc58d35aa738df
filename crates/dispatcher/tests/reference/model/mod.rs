//! The dispatcher again, as naively as possible: lists that are searched and sorted at every step.
//! Written from docs/model.md; nothing of the C source is in it. Jobs and timers are
//! named by the order of adding, from 1; tasks and reservations have the numbers that the real
//! dispatcher gave them.

mod advance;
mod budget;
mod charge;
mod event;
mod groups;
mod jobs;
mod lending;
mod order;
mod reservations;
mod settle;
mod tasks;
mod windows;

use punctual_dispatcher::{Attribute, Job, Limits, Refusal, Reservation, Standing, TaskCeiling};

pub use event::ModelEvent;
use windows::Rows;

/// A job, server job or segment.
#[derive(Clone, Debug)]
pub struct ModelJob {
    /// The order of adding.
    pub id: u64,
    pub attr: Job,
    pub remaining: u64,
    pub used: u64,
    /// Executed beyond its budget.
    pub excess: u64,
    /// As last settled.
    pub standing: Standing,
    /// When it last became ready (its start, if it never was).
    pub arrival: u64,
    pub reservation: Option<usize>,
}

#[derive(Clone, Debug)]
pub struct ModelTask {
    pub sleeps: bool,
    /// What executes on its jobs sleeps, as last reported.
    pub blocked: bool,
    pub lends_to: Option<u32>,
    /// The tasks that lend to it, the latest first.
    pub lenders: Vec<u32>,
    pub ceiling: Option<TaskCeiling>,
}

#[derive(Clone, Debug)]
pub struct ModelReservation {
    pub attr: Reservation,
    /// What it is from the next release on.
    pending: Option<(Reservation, Rows)>,
    /// Its windows; none for one job each release.
    pub rows: Rows,
    /// Windows of the release in flight that no job was made for yet.
    ahead: Vec<(u64, u64)>,
    /// With windows: what the release may execute, the present job's part among it.
    left: u64,
    next_release: u64,
    latest_release: u64,
    /// Of the next release.
    number: u64,
    pub job: Option<u64>,
    pub delayed: u32,
    lost: u64,
    pub error: i128,
    waits: bool,
}

#[derive(Clone, Debug)]
pub struct ModelTimer {
    pub id: u64,
    at: u64,
    cookie: u64,
}

#[derive(Clone, Debug)]
pub struct ModelGroup {
    order: Vec<Attribute>,
    pub parent: Option<u32>,
    announced: bool,
}

#[derive(Clone)]
pub struct Model {
    pub limits: Limits,
    pub granularity: u64,
    pub groups: Vec<ModelGroup>,
    /// The parents of the nodes that are made; entry 0 stands for "no node".
    nodes: Vec<Option<u32>>,
    /// In the order of adding.
    pub jobs: Vec<ModelJob>,
    pub tasks: Vec<Option<ModelTask>>,
    pub reservations: Vec<Option<ModelReservation>>,
    pub timers: Vec<ModelTimer>,
    /// Windows for the next reservation.
    drafted: Rows,
    /// Reservations whose releases are to have another job at this instant.
    going: Vec<usize>,
    /// How often a release continued in another window, so far.
    pub went_on: u64,
    /// Jobs and segments whose budgets are used up, in the order in which that happened.
    due: Vec<u64>,
    /// Jobs so far, and timers so far.
    added: u64,
    asked: u64,
    /// Events since the last comparison, which drains them.
    pub events: Vec<ModelEvent>,
}

impl Model {
    pub fn new(limits: Limits) -> Model {
        let group = ModelGroup { order: vec![Attribute::Priority], parent: None, announced: false };
        Model {
            limits,
            granularity: 0,
            groups: vec![group; limits.groups as usize],
            nodes: vec![None; limits.budget_groups as usize + 1],
            jobs: Vec::new(),
            tasks: vec![None; limits.tasks as usize],
            reservations: vec![None; limits.reservations as usize],
            timers: Vec::new(),
            drafted: Rows::new(),
            going: Vec::new(),
            went_on: 0,
            due: Vec::new(),
            added: 0,
            asked: 0,
            events: Vec::new(),
        }
    }

    pub fn jobs_so_far(&self) -> u64 {
        self.added
    }

    pub fn job(&self, id: u64) -> Option<&ModelJob> {
        self.jobs.iter().find(|j| j.id == id)
    }

    fn job_mut(&mut self, id: u64) -> &mut ModelJob {
        self.jobs.iter_mut().find(|j| j.id == id).expect("it is there")
    }

    fn report(&mut self, event: ModelEvent) {
        self.events.push(event);
    }

    fn is_full(&self) -> bool {
        self.jobs.len() == self.limits.jobs as usize
    }

    pub fn ask_timer(&mut self, at: u64, cookie: u64) -> Result<u64, Refusal> {
        if self.timers.len() == self.limits.timers as usize {
            return Err(Refusal::Full);
        }
        self.asked += 1;
        self.timers.push(ModelTimer { id: self.asked, at, cookie });
        Ok(self.asked)
    }

    pub fn cancel_timer(&mut self, id: u64) -> Result<(), Refusal> {
        let at = self.timers.iter().position(|t| t.id == id).ok_or(Refusal::Nothing)?;
        self.timers.remove(at);
        Ok(())
    }
}
