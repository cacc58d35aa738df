//! The dispatcher again, as naively as it can be said: lists that are searched and sorted anew at
//! every step. Written from the design; nothing of the C source is in it. The numbers it gives
//! jobs are those that the interface promises only to be unique: it hands them out in the same way
//! so that two decisions can be compared by them.

use std::cmp::Ordering;
use std::collections::VecDeque;

use punctual_dispatcher::{Attribute, End, Event, For, Job, Overrun, Refusal, Reservation, Wait, INFINITE};

/// RTAI's "reasonable limit", where we saturate.
const MOST_DELAYED: u32 = 30_000;
/// How many jobs a search for the runners-up looks at behind the selected one.
const MOST_LOOKED_AT: usize = 19;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    Waiting,
    Ready,
    Blocked,
}

#[derive(Clone, Debug)]
pub struct ModelJob {
    pub id: u64,
    pub task: u32,
    pub start: u64,
    pub finish: u64,
    pub budget: u64,
    pub remaining: u64,
    pub priority: i64,
    pub cookie: u64,
    pub used: u64,
    pub excess: u64,
    pub state: State,
    /// When it became eligible, and the order of adding.
    pub arrival: (u64, u64),
    pub reservation: Option<usize>,
}

/// An event in plain numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Told {
    Ended { at: u64, end: End, job: u64, task: u32, cookie: u64, used: u64, remaining: u64 },
    Released { at: u64, job: u64, task: u32, number: u64, release: u64, budget: u64 },
    ReleasesLost { at: u64, task: u32, first: u64, count: u64 },
    Overrun { at: u64, task: u32, number: u64 },
    Background { at: u64, task: u32, number: u64 },
    Saturated { at: u64, task: u32 },
    Ready { at: u64, task: u32 },
    Blocked { at: u64, task: u32 },
    Active { at: u64, group: u32 },
    Idle { at: u64, group: u32 },
    Lost { at: u64, count: u64 },
}

impl Told {
    /// What the real one said.
    pub fn from(event: Event) -> Told {
        match event {
            Event::JobEnded { at, end, job, task, cookie, used, remaining } => {
                Told::Ended { at, end, job: job.as_u64(), task: task.0, cookie, used, remaining }
            }
            Event::Released { at, job, task, number, release, budget } => {
                Told::Released { at, job: job.as_u64(), task: task.0, number, release, budget }
            }
            Event::ReleasesLost { at, task, first, count } => Told::ReleasesLost { at, task: task.0, first, count },
            Event::Overrun { at, task, number } => Told::Overrun { at, task: task.0, number },
            Event::Background { at, task, number } => Told::Background { at, task: task.0, number },
            Event::DelayedSaturated { at, task } => Told::Saturated { at, task: task.0 },
            Event::SegmentEnded { .. } | Event::Timer { .. } => unreachable!("there are none"),
            Event::TaskReady { at, task } => Told::Ready { at, task: task.0 },
            Event::TaskBlocked { at, task } => Told::Blocked { at, task: task.0 },
            Event::GroupActive { at, group } => Told::Active { at, group },
            Event::GroupIdle { at, group } => Told::Idle { at, group },
            Event::Lost { at, count } => Told::Lost { at, count },
        }
    }
}

#[derive(Clone, Debug)]
struct ModelTask {
    blocked: bool,
    reservation: Option<usize>,
}

#[derive(Clone, Debug)]
pub struct ModelReservation {
    attr: Reservation,
    next_release: u64,
    latest_release: u64,
    number: u64,
    pub job: Option<u64>,
    pub delayed: u32,
    pub lost: u64,
    pub error: i128,
    waits: bool,
}

pub struct Model {
    granularity: u64,
    order: Vec<Attribute>,
    /// In the order of adding.
    pub jobs: Vec<ModelJob>,
    tasks: Vec<Option<ModelTask>>,
    pub reservations: Vec<Option<ModelReservation>>,
    /// Jobs that used up their budgets, the latest first.
    due: VecDeque<u64>,
    free_slots: Vec<u32>,
    free_tasks: Vec<u32>,
    free_reservations: Vec<usize>,
    uses: Vec<u64>,
    added: u64,
    events: VecDeque<Told>,
    room: usize,
    lost: (u64, u64),
    /// Of all jobs that ended, for the conservation of time.
    pub used_by_ended: u128,
    pub ended: u64,
}

fn number(serves: For) -> u32 {
    match serves {
        For::Task(task) => task.0,
        _ => u32::MAX,
    }
}

impl Model {
    pub fn new(jobs: u32, tasks: u32, reservations: u32, events: u32) -> Model {
        Model {
            granularity: 0,
            order: vec![Attribute::Priority],
            jobs: Vec::new(),
            tasks: vec![None; tasks as usize],
            reservations: vec![None; reservations as usize],
            due: VecDeque::new(),
            free_slots: (0..=jobs).rev().collect(),
            free_tasks: (0..tasks).rev().collect(),
            free_reservations: (0..reservations as usize).rev().collect(),
            uses: vec![1; jobs as usize + 1],
            added: 0,
            events: VecDeque::new(),
            room: events as usize,
            lost: (0, 0),
            used_by_ended: 0,
            ended: 0,
        }
    }

    fn tell(&mut self, event: Told, at: u64) {
        if self.events.len() < self.room {
            self.events.push_back(event);
        } else {
            self.lost = (self.lost.0 + 1, at);
        }
    }

    pub fn next_event(&mut self) -> Option<Told> {
        let event = self.events.pop_front()?;
        if self.lost.0 > 0 {
            self.events.push_back(Told::Lost { at: self.lost.1, count: self.lost.0 });
            self.lost.0 = 0;
        }
        Some(event)
    }

    fn key(&self, job: &ModelJob, by: Attribute) -> i128 {
        match by {
            Attribute::Start => job.start.into(),
            Attribute::Finish => job.finish.into(),
            Attribute::Budget => job.remaining.into(),
            Attribute::Priority => -i128::from(job.priority),
        }
    }

    fn compare(&self, a: &ModelJob, b: &ModelJob) -> Ordering {
        self.order
            .iter()
            .map(|by| self.key(a, *by).cmp(&self.key(b, *by)))
            .find(|o| o.is_ne())
            .unwrap_or(a.arrival.cmp(&b.arrival))
    }

    /// The eligible jobs, best first.
    pub fn sorted(&self) -> Vec<&ModelJob> {
        let mut ready: Vec<_> = self.jobs.iter().filter(|j| j.state == State::Ready).collect();
        ready.sort_by(|a, b| self.compare(a, b));
        ready
    }

    /// The selected job and those that would follow it, one of each task.
    pub fn ranked(&self) -> Vec<u64> {
        let mut tasks = Vec::new();
        let mut ranked = Vec::new();
        for job in self.sorted().into_iter().take(1 + MOST_LOOKED_AT) {
            if !tasks.contains(&job.task) {
                tasks.push(job.task);
                ranked.push(job.id);
            }
        }
        ranked.truncate(16);
        ranked
    }

    pub fn job(&self, id: u64) -> Option<&ModelJob> {
        self.jobs.iter().find(|j| j.id == id)
    }

    fn job_mut(&mut self, id: u64) -> Option<&mut ModelJob> {
        self.jobs.iter_mut().find(|j| j.id == id)
    }

    fn task(&mut self, task: u32) -> Result<&mut ModelTask, Refusal> {
        self.tasks.get_mut(task as usize).and_then(Option::as_mut).ok_or(Refusal::Nothing)
    }

    pub fn set_granularity(&mut self, ns: u64) {
        self.granularity = ns;
    }

    pub fn set_order(&mut self, by: &[Attribute]) -> Result<(), Refusal> {
        if self.jobs.iter().any(|j| j.state == State::Ready) {
            return Err(Refusal::Busy);
        }
        self.order = by.to_vec();
        Ok(())
    }

    fn set_ready(&mut self, id: u64, now: u64) {
        if !self.jobs.iter().any(|j| j.state == State::Ready) {
            self.tell(Told::Active { at: now, group: 0 }, now);
        }
        self.job_mut(id).expect("it is there").state = State::Ready;
    }

    fn set_not_ready(&mut self, id: u64, state: State, now: u64) {
        self.job_mut(id).expect("it is there").state = state;
        if !self.jobs.iter().any(|j| j.state == State::Ready) {
            self.tell(Told::Idle { at: now, group: 0 }, now);
        }
    }

    fn begin(&mut self, id: u64, now: u64) {
        let job = self.job_mut(id).expect("it is there");
        job.arrival.0 = now;
        let task = job.task;
        if self.task(task).expect("its task is there").blocked {
            self.job_mut(id).expect("it is there").state = State::Blocked;
        } else {
            self.set_ready(id, now);
        }
    }

    fn make(&mut self, attr: &Job, reservation: Option<usize>, now: u64) -> u64 {
        let slot = self.free_slots.pop().expect("there is always one to draft");
        let id = self.uses[slot as usize] << 32 | u64::from(slot);
        self.jobs.push(ModelJob {
            id,
            task: number(attr.serves),
            start: attr.start,
            finish: attr.finish,
            budget: attr.budget,
            remaining: attr.budget,
            priority: attr.priority,
            cookie: attr.cookie,
            used: 0,
            excess: 0,
            state: State::Waiting,
            arrival: (INFINITE, self.added),
            reservation,
        });
        self.added += 1;
        if attr.start <= now {
            self.begin(id, now);
        }
        if attr.budget == 0 {
            self.end(id, End::Exhausted, now);
        } else if attr.finish <= now {
            self.end(id, End::Expired, now);
        }
        id
    }

    fn end(&mut self, id: u64, end: End, now: u64) {
        if self.job(id).expect("it is there").state == State::Ready {
            self.set_not_ready(id, State::Blocked, now);
        }
        let at = self.jobs.iter().position(|j| j.id == id).expect("it is there");
        let job = self.jobs.remove(at);
        self.due.retain(|d| *d != id);
        assert_eq!(
            u128::from(job.used) + u128::from(job.remaining),
            u128::from(job.budget) + u128::from(job.excess),
            "used + remaining = budget + excess"
        );
        self.used_by_ended += u128::from(job.used);
        self.ended += 1;
        self.tell(
            Told::Ended {
                at: now,
                end,
                job: id,
                task: job.task,
                cookie: job.cookie,
                used: job.used,
                remaining: job.remaining,
            },
            now,
        );
        if let Some(r) = job.reservation {
            self.reservation_ended(r, &job, end, now);
        }
        let slot = id as u32;
        self.uses[slot as usize] += 1;
        self.free_slots.push(slot);
    }

    pub fn add_job(&mut self, attr: &Job, now: u64) -> Result<u64, Refusal> {
        self.task(number(attr.serves))?;
        if self.free_slots.len() == 1 {
            return Err(Refusal::Full);
        }
        Ok(self.make(attr, None, now))
    }

    pub fn end_job(&mut self, id: u64, end: End, now: u64) -> Result<(), Refusal> {
        self.job(id).ok_or(Refusal::Nothing)?;
        self.end(id, end, now);
        Ok(())
    }

    pub fn charge_job(&mut self, id: u64, ran: u64) -> Result<bool, Refusal> {
        let granularity = self.granularity;
        let job = self.job_mut(id).ok_or(Refusal::Nothing)?;
        job.used += ran;
        job.excess += ran.saturating_sub(job.remaining);
        job.remaining = job.remaining.saturating_sub(ran);
        if job.remaining > granularity {
            return Ok(false);
        }
        if !self.due.contains(&id) {
            self.due.push_front(id);
        }
        Ok(true)
    }

    /// The task's best job that has begun.
    fn best_of(&self, task: u32) -> Option<u64> {
        self.jobs
            .iter()
            .filter(|j| j.task == task && j.state != State::Waiting)
            .min_by(|a, b| self.compare(a, b))
            .map(|j| j.id)
    }

    /// Also says whether a job was charged.
    pub fn charge_task(&mut self, task: u32, ran: u64) -> Result<(bool, bool), Refusal> {
        let reservation = self.task(task)?.reservation;
        if let Some(id) = self.best_of(task) {
            return Ok((self.charge_job(id, ran)?, true));
        }
        if let Some(r) = reservation {
            self.settle_later(r, ran.into());
        }
        Ok((false, false))
    }

    pub fn add_task(&mut self) -> Result<u32, Refusal> {
        let number = self.free_tasks.pop().ok_or(Refusal::Full)?;
        self.tasks[number as usize] = Some(ModelTask { blocked: false, reservation: None });
        Ok(number)
    }

    fn jobs_of(&self, task: u32) -> Vec<u64> {
        // The latest added first.
        self.jobs.iter().rev().filter(|j| j.task == task).map(|j| j.id).collect()
    }

    pub fn task_blocked(&mut self, task: u32, now: u64) -> Result<(), Refusal> {
        let t = self.task(task)?;
        if t.blocked {
            return Ok(());
        }
        t.blocked = true;
        for id in self.jobs_of(task) {
            if self.job(id).expect("it is there").state == State::Ready {
                self.set_not_ready(id, State::Blocked, now);
            }
        }
        self.tell(Told::Blocked { at: now, task }, now);
        Ok(())
    }

    pub fn task_ready(&mut self, task: u32, now: u64) -> Result<(), Refusal> {
        let t = self.task(task)?;
        if !t.blocked {
            return Ok(());
        }
        t.blocked = false;
        let reservation = t.reservation;
        self.tell(Told::Ready { at: now, task }, now);
        for id in self.jobs_of(task) {
            if self.job(id).expect("it is there").state == State::Blocked {
                self.job_mut(id).expect("it is there").arrival.0 = now;
                self.set_ready(id, now);
            }
        }
        if let Some(r) = reservation {
            self.reservation_woke(r, now);
        }
        Ok(())
    }

    pub fn task_gone(&mut self, task: u32, now: u64) -> Result<(), Refusal> {
        if let Some(r) = self.task(task)?.reservation {
            self.drop_reservation(r);
        }
        for id in self.jobs_of(task) {
            self.end(id, End::TaskGone, now);
        }
        self.tasks[task as usize] = None;
        self.free_tasks.push(task);
        Ok(())
    }

    pub fn task_done(&mut self, task: u32, now: u64) -> Result<Wait, Refusal> {
        if let Some(r) = self.task(task)?.reservation {
            return Ok(self.wait_period(r, now));
        }
        if let Some(id) = self.best_of(task) {
            self.end(id, End::Completed, now);
        }
        Ok(Wait::UntilRelease)
    }

    /// The earliest finish, and whose it is: of equal ones those that no queue orders by it first.
    fn next_finish(&self) -> Option<&ModelJob> {
        let queue_serves = self.order[0] == Attribute::Finish;
        self.jobs.iter().filter(|j| j.finish != INFINITE).min_by(|a, b| {
            let queued = |j: &ModelJob| queue_serves && j.state == State::Ready;
            a.finish.cmp(&b.finish).then(queued(a).cmp(&queued(b))).then_with(|| {
                if queued(a) {
                    self.compare(a, b)
                } else {
                    a.arrival.1.cmp(&b.arrival.1)
                }
            })
        })
    }

    pub fn advance(&mut self, now: u64) {
        while let Some(id) = self.due.front().copied() {
            self.end(id, End::Exhausted, now);
        }
        let horizon = now.saturating_add(self.granularity);
        while let Some(id) = self.next_finish().filter(|j| j.finish <= horizon).map(|j| j.id) {
            self.end(id, End::Expired, now);
        }
        while let Some(id) = self
            .jobs
            .iter()
            .filter(|j| j.state == State::Waiting && j.start <= now)
            .min_by_key(|j| (j.start, j.arrival.1))
            .map(|j| j.id)
        {
            self.begin(id, now);
        }
        while let Some(r) = self.next_reservation().filter(|r| self.next_release(*r) <= now) {
            self.release(r, now);
        }
    }

    fn next_release(&self, r: usize) -> u64 {
        self.reservations[r].as_ref().map_or(INFINITE, |v| v.next_release)
    }

    fn next_reservation(&self) -> Option<usize> {
        (0..self.reservations.len())
            .filter(|r| self.reservations[*r].is_some())
            .min_by_key(|r| (self.next_release(*r), *r))
    }

    pub fn timer(&self, ranks: usize, now: u64) -> u64 {
        let finish = self.next_finish().map_or(INFINITE, |j| j.finish);
        let start = self.jobs.iter().filter(|j| j.state == State::Waiting).map(|j| j.start).min();
        let release = self.next_reservation().map_or(INFINITE, |r| self.next_release(r));
        let budgets = self
            .ranked()
            .into_iter()
            .take(ranks)
            .map(|id| now.saturating_add(self.job(id).expect("it is ranked").remaining))
            .min();
        [finish, release, start.unwrap_or(INFINITE), budgets.unwrap_or(INFINITE)].into_iter().min().expect("four")
    }

    // Reservations.

    fn reservation(&mut self, r: usize) -> &mut ModelReservation {
        self.reservations[r].as_mut().expect("it is there")
    }

    /// Executed too much (+) or too little (-), at most one budget either way.
    fn settle_later(&mut self, r: usize, by: i128) {
        let v = self.reservation(r);
        let most = i128::from(v.attr.budget);
        v.error = (v.error + by.clamp(-most, most)).clamp(-most, most);
    }

    pub fn add_reservation(&mut self, attr: &Reservation, now: u64) -> Result<usize, Refusal> {
        let _ = now;
        if self.task(number(attr.serves))?.reservation.is_some() {
            return Err(Refusal::Busy);
        }
        if attr.budget == 0 || attr.budget > attr.deadline || attr.deadline > attr.period || attr.period >= 1 << 62 {
            return Err(Refusal::Invalid);
        }
        let r = self.free_reservations.pop().ok_or(Refusal::Full)?;
        self.task(number(attr.serves))?.reservation = Some(r);
        self.reservations[r] = Some(ModelReservation {
            attr: *attr,
            next_release: attr.start,
            latest_release: 0,
            number: 0,
            job: None,
            delayed: 0,
            lost: 0,
            error: 0,
            waits: false,
        });
        Ok(r)
    }

    fn drop_reservation(&mut self, r: usize) {
        let v = self.reservations[r].take().expect("it is there");
        if let Some(job) = v.job.and_then(|id| self.job_mut(id)) {
            job.reservation = None;
        }
        self.task(number(v.attr.serves)).expect("its task is there").reservation = None;
        self.free_reservations.push(r);
    }

    pub fn remove_reservation(&mut self, r: usize, now: u64) -> Result<(), Refusal> {
        let job = self.reservations.get(r).and_then(Option::as_ref).ok_or(Refusal::Nothing)?.job;
        self.drop_reservation(r);
        if let Some(id) = job {
            self.end(id, End::Cancelled, now);
        }
        Ok(())
    }

    fn put(&mut self, r: usize, budget: u64, now: u64) {
        let v = self.reservation(r);
        let attr = Job {
            serves: v.attr.serves,
            start: v.latest_release,
            finish: v.latest_release.saturating_add(v.attr.deadline),
            budget,
            priority: v.attr.priority,
            cookie: v.number - 1,
            group: 0,
            budget_group: 0,
        };
        let id = self.make(&attr, Some(r), now);
        if self.job(id).is_some() {
            self.reservation(r).job = Some(id);
        }
    }

    fn lose(&mut self, r: usize, count: u64, now: u64) {
        let v = self.reservation(r);
        let event = Told::ReleasesLost { at: now, task: number(v.attr.serves), first: v.number, count };
        v.number += count;
        v.next_release += count * v.attr.period;
        v.lost += count;
        self.tell(event, now);
    }

    fn release(&mut self, r: usize, now: u64) {
        let full = self.free_slots.len() == 1;
        let v = self.reservation(r);
        let missed = (now - v.next_release) / v.attr.period;
        if missed > 0 {
            self.lose(r, missed, now);
        }
        if full {
            return self.lose(r, 1, now);
        }
        let slot = *self.free_slots.last().expect("not full");
        let job = self.uses[slot as usize] << 32 | u64::from(slot);
        let v = self.reservation(r);
        let budget = (i128::from(v.attr.budget) - v.error) as u64;
        v.error = 0;
        v.latest_release = v.next_release;
        v.next_release = v.next_release.saturating_add(v.attr.period);
        v.number += 1;
        let event = Told::Released {
            at: now,
            job,
            task: number(v.attr.serves),
            number: v.number - 1,
            release: v.latest_release,
            budget,
        };
        self.tell(event, now);
        self.put(r, budget, now);
    }

    fn reservation_ended(&mut self, r: usize, job: &ModelJob, end: End, now: u64) {
        self.reservation(r).job = None;
        self.settle_later(r, job.excess.into());
        let overran = matches!(end, End::Exhausted | End::Expired);
        if end == End::Exhausted {
            self.settle_later(r, -i128::from(job.remaining));
        }
        if !overran {
            return;
        }
        let v = self.reservation(r);
        let (task, number, overrun) = (number(v.attr.serves), v.number - 1, v.attr.overrun);
        if v.waits && v.delayed < MOST_DELAYED {
            v.delayed += 1;
            if v.delayed == MOST_DELAYED {
                self.tell(Told::Saturated { at: now, task }, now);
            }
        }
        match overrun {
            Overrun::Signal => self.tell(Told::Overrun { at: now, task, number }, now),
            Overrun::Background => self.tell(Told::Background { at: now, task, number }, now),
            Overrun::Carry | Overrun::Skip => {}
        }
    }

    fn wait_period(&mut self, r: usize, now: u64) -> Wait {
        let v = self.reservation(r);
        v.waits = true;
        // The latest release may have overrun; its own wait is then not a delayed one.
        let owed = if v.job.is_none() { v.delayed.saturating_sub(1) } else { v.delayed };
        if owed > 0 && v.attr.overrun != Overrun::Skip {
            v.delayed -= 1;
            return Wait::Ignored;
        }
        v.lost += u64::from(owed);
        v.delayed = 0;
        if let Some(id) = v.job {
            self.end(id, End::Completed, now);
        }
        Wait::UntilRelease
    }

    /// The revised CBS wake-up rule, in exact arithmetic.
    fn reservation_woke(&mut self, r: usize, now: u64) {
        let v = self.reservation(r);
        if !v.attr.wakeup_rule {
            return;
        }
        let (budget, deadline) = (v.attr.budget, v.attr.deadline);
        let Some(job) = v.job.and_then(|id| self.job(id)) else { return };
        if job.finish <= now {
            return;
        }
        let left = u128::from(job.finish - now);
        let allowed = (left * u128::from(budget) / u128::from(deadline)) as u64;
        if job.remaining > allowed {
            let id = job.id;
            self.end(id, End::Cancelled, now);
            self.put(r, allowed, now);
        }
    }

    pub fn take_lost(&mut self, r: usize) -> u32 {
        self.reservations
            .get_mut(r)
            .and_then(Option::as_mut)
            .map_or(0, |v| std::mem::take(&mut v.lost))
            .min(u32::MAX.into()) as u32
    }
}
