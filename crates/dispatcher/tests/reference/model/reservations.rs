//! Periodic reservations: the dispatcher's own allocator.

use punctual_dispatcher::{
    End, For, Job, OverrunPolicy, Refusal, Reservation, TaskId, Wait, INFINITE,
};

use super::{Model, ModelEvent, ModelJob, ModelReservation};

/// RTAI's "reasonable limit", where we saturate.
const MOST_DELAYED: u32 = 30_000;

fn task_of(serves: For) -> u32 {
    match serves {
        For::Task(task) => task.0,
        _ => TaskId::NONE.0,
    }
}

fn times_are_valid(r: &Reservation) -> bool {
    0 < r.budget && r.budget <= r.deadline && r.deadline <= r.period && r.period < 1 << 62
}

/// What a release settles of the enforcement error before it (docs/model.md, "Enforcement error").
fn settled(budget: u64, error: i128) -> i128 {
    let budget = i128::from(budget);
    let at_once = (error.abs() - budget / 10).max(0);
    let small = error.abs() - at_once;
    let slowly = ((small + 1) / 2).min((budget / 25).max(1));
    error.signum() * (at_once + slowly)
}

impl Model {
    pub(super) fn reservation_of(&self, task: u32) -> Option<usize> {
        let serves = For::Task(TaskId(task));
        self.reservations.iter().position(|r| r.as_ref().is_some_and(|r| r.attr.serves == serves))
    }

    pub(super) fn reservation(&mut self, r: usize) -> &mut ModelReservation {
        self.reservations[r].as_mut().expect("it is there")
    }

    /// Executed too much (+) or too little (-), at most one budget either way.
    pub(super) fn carry_error(&mut self, r: usize, by: i128) {
        let v = self.reservation(r);
        let most = i128::from(v.attr.budget);
        v.error = (v.error + by.clamp(-most, most)).clamp(-most, most);
    }

    /// `number` is what the real dispatcher chose.
    pub fn add_reservation(
        &mut self,
        attr: &Reservation,
        number: Option<usize>,
    ) -> Result<usize, Refusal> {
        self.check_there(attr.serves, attr.budget_group)?;
        if matches!(attr.serves, For::Task(task) if self.reservation_of(task.0).is_some()) {
            return Err(Refusal::Busy);
        }
        if !times_are_valid(attr) {
            return Err(Refusal::Invalid);
        }
        self.check_ranges(attr.serves, attr.group)?;
        self.check_windows(attr.serves, attr.deadline, attr.wakeup_rule)?;
        self.check_tree(attr.serves, attr.group, attr.budget_group)?;
        if self.reservations.iter().all(Option::is_some) {
            return Err(Refusal::Full);
        }
        let number = number.expect("there is room");
        assert!(self.reservations[number].is_none(), "reservation {number} is there already");
        self.fix(attr.serves, attr.group, attr.budget_group);
        let rows = std::mem::take(&mut self.drafted);
        self.reservations[number] = Some(ModelReservation {
            attr: *attr,
            pending: None,
            rows,
            ahead: Vec::new(),
            left: 0,
            next_release: attr.start,
            latest_release: 0,
            number: 0,
            job: None,
            delayed: 0,
            lost: 0,
            error: 0,
            waits: false,
        });
        Ok(number)
    }

    pub fn change_reservation(&mut self, r: usize, to: &Reservation) -> Result<(), Refusal> {
        let v = self.reservations.get(r).and_then(Option::as_ref).ok_or(Refusal::Nothing)?;
        let (serves, budget_group) = (v.attr.serves, v.attr.budget_group);
        if !times_are_valid(to) {
            return Err(Refusal::Invalid);
        }
        self.check_ranges(serves, to.group)?;
        self.check_windows(serves, to.deadline, to.wakeup_rule)?;
        self.check_tree(serves, to.group, budget_group)?;
        let rows = std::mem::take(&mut self.drafted);
        self.reservation(r).pending = Some((Reservation { serves, budget_group, ..*to }, rows));
        Ok(())
    }

    pub(super) fn drop_reservation(&mut self, r: usize) {
        let v = self.reservations[r].take().expect("it is there");
        if let Some(id) = v.job {
            self.job_mut(id).reservation = None;
        }
    }

    pub fn remove_reservation(&mut self, r: usize, now: u64) -> Result<(), Refusal> {
        let job = self.reservations.get(r).and_then(Option::as_ref).ok_or(Refusal::Nothing)?.job;
        self.drop_reservation(r);
        if let Some(id) = job {
            self.end(id, End::Cancelled, now);
        }
        self.settle(now);
        Ok(())
    }

    /// The earliest release to come, and whose it is.
    pub(super) fn next_release(&self) -> Option<(u64, usize)> {
        let all = self.reservations.iter().enumerate();
        all.filter_map(|(r, v)| v.as_ref().map(|v| (v.next_release, r))).min()
    }

    pub(super) fn release_due(&mut self, now: u64) {
        self.continue_releases(now);
        while let Some((_, r)) = self.next_release().filter(|(at, _)| *at <= now) {
            self.release(r, now);
            self.continue_releases(now);
        }
    }

    /// A job of the latest release.
    fn put(&mut self, r: usize, budget: u64, now: u64) {
        let v = self.reservation(r);
        let attr = Job {
            serves: v.attr.serves,
            start: v.latest_release,
            finish: v.latest_release.saturating_add(v.attr.deadline),
            budget,
            priority: v.attr.priority,
            cookie: v.attr.cookie.unwrap_or(v.number - 1),
            group: v.attr.group,
            budget_group: v.attr.budget_group,
        };
        let id = self.make(&attr, Some(r), now);
        if self.job(id).is_some() {
            self.reservation(r).job = Some(id);
        }
    }

    fn lose(&mut self, r: usize, count: u64, now: u64) {
        let v = self.reservation(r);
        let event = ModelEvent::ReleasesLost {
            at: now,
            task: task_of(v.attr.serves),
            first: v.number,
            count,
        };
        v.number += count;
        v.next_release = v.next_release.saturating_add(count.saturating_mul(v.attr.period));
        v.lost += count;
        self.report(event);
    }

    fn release(&mut self, r: usize, now: u64) {
        if let Some((attr, rows)) = self.reservation(r).pending.take() {
            self.reservation(r).attr = attr;
            self.reservation(r).rows = rows;
            self.carry_error(r, 0);
        }
        let v = self.reservation(r);
        let missed = (now - v.next_release) / v.attr.period;
        if missed > 0 {
            self.lose(r, missed, now);
        }
        if self.is_full() {
            return self.lose(r, 1, now);
        }
        let job = self.added + 1;
        let v = self.reservation(r);
        let settled = settled(v.attr.budget, v.error);
        let budget = (i128::from(v.attr.budget) - settled) as u64;
        v.error -= settled;
        v.latest_release = v.next_release;
        v.next_release = v.next_release.saturating_add(v.attr.period);
        v.number += 1;
        let (task, number, release) = (task_of(v.attr.serves), v.number - 1, v.latest_release);
        self.report(ModelEvent::Released { at: now, job, task, number, release, budget });
        let v = self.reservation(r);
        if v.rows.is_empty() {
            v.ahead.clear();
            return self.put(r, budget, now);
        }
        v.ahead = v.rows[(number % v.rows.len() as u64) as usize].clone();
        v.left = budget;
        self.going.push(r);
    }

    /// What the end of its job means to a reservation.
    pub(super) fn reservation_ended(&mut self, r: usize, job: &ModelJob, end: End, now: u64) {
        let v = self.reservation(r);
        v.job = None;
        // With windows, the release's own: a job of it may have had less than that.
        let (excess, left) = if v.rows.is_empty() {
            (job.excess, job.remaining)
        } else {
            (job.used.saturating_sub(v.left), v.left.saturating_sub(job.used))
        };
        self.carry_error(r, excess.into());
        if end == End::Exhausted {
            self.carry_error(r, -i128::from(left));
        }
        let For::Task(TaskId(task)) = job.attr.serves else { return };
        if !matches!(end, End::Exhausted | End::Expired) {
            return;
        }
        let v = self.reservation(r);
        let (number, overrun) = (v.number - 1, v.attr.overrun);
        if v.waits && v.delayed < MOST_DELAYED {
            v.delayed += 1;
            if v.delayed == MOST_DELAYED {
                self.report(ModelEvent::Saturated { at: now, task });
            }
        }
        match overrun {
            OverrunPolicy::Signal => self.report(ModelEvent::Overrun { at: now, task, number }),
            OverrunPolicy::Background => {
                self.report(ModelEvent::Background { at: now, task, number })
            }
            OverrunPolicy::Carry | OverrunPolicy::Skip => {}
        }
    }

    pub(super) fn wait_period(&mut self, r: usize, now: u64) -> Wait {
        let v = self.reservation(r);
        v.waits = true;
        // The latest release may have overrun; its own wait is then not a delayed one.
        let owed = if v.job.is_none() { v.delayed.saturating_sub(1) } else { v.delayed };
        if owed > 0 && v.attr.overrun != OverrunPolicy::Skip {
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

    /// The revised CBS wake-up rule, in exact arithmetic: what a job may still execute, if that is
    /// less than what it has left.
    fn wakeup_allows(&self, job: &ModelJob, now: u64) -> Option<u64> {
        let v = self.reservations[job.reservation?].as_ref().expect("it has a job");
        if !v.attr.wakeup_rule || job.attr.finish <= now || job.attr.finish == INFINITE {
            return None;
        }
        let left = u128::from(job.attr.finish - now);
        let allowed = left * u128::from(v.attr.budget) / u128::from(v.attr.deadline);
        Some(allowed as u64).filter(|allowed| job.remaining > *allowed)
    }

    /// The same for a server job. In a served group it is left at most what it would have if it
    /// had executed since its release.
    fn server_allows(&self, job: &ModelJob, now: u64) -> Option<u64> {
        let v = self.reservations[job.reservation?].as_ref().expect("it has a job");
        let by_bandwidth = self.wakeup_allows(job, now);
        if !v.attr.wakeup_rule || job.attr.group == 0 || job.attr.finish <= now {
            return by_bandwidth;
        }
        let released = job.attr.finish.saturating_sub(v.attr.deadline);
        let since_release = v.attr.budget.saturating_sub(now.saturating_sub(released));
        let allowed = by_bandwidth.unwrap_or(job.remaining).min(since_release);
        Some(allowed).filter(|allowed| job.remaining > *allowed)
    }

    /// For a task that woke in mid-job.
    pub(super) fn reservation_woke(&mut self, r: usize, now: u64) {
        let Some(id) = self.reservation(r).job else { return };
        let allowed = self.wakeup_allows(self.job(id).expect("it is its reservation's"), now);
        if let Some(allowed) = allowed {
            self.end(id, End::Cancelled, now);
            self.put(r, allowed, now);
        }
    }

    /// For a server job whose group becomes active. What is cut off is no part of its budget.
    pub(super) fn cut_to_bandwidth(&mut self, id: u64, now: u64) {
        let job = self.job(id).expect("it is there");
        let Some(allowed) = self.server_allows(job, now) else { return };
        let left = if allowed > self.granularity { allowed } else { 0 };
        let job = self.job_mut(id);
        job.attr.budget -= job.remaining - left;
        job.remaining = left;
    }

    pub fn take_lost(&mut self, r: usize) -> u32 {
        let lost = self
            .reservations
            .get_mut(r)
            .and_then(Option::as_mut)
            .map_or(0, |v| std::mem::take(&mut v.lost));
        lost.min(u32::MAX.into()) as u32
    }
}
