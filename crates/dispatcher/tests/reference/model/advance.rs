//! Everything that is due at one instant, and when something is next.

use punctual_dispatcher::{End, For, Standing, INFINITE};

use super::{Model, ModelEvent, ModelJob};

fn is_segment(job: &ModelJob) -> bool {
    matches!(job.attr.serves, For::Budget(_))
}

impl Model {
    fn end_due(&mut self, segments: bool, now: u64) {
        while let Some(id) = self
            .due
            .iter()
            .rev()
            .copied()
            .find(|id| is_segment(self.job(*id).expect("it is due")) == segments)
        {
            self.end(id, End::Exhausted, now);
        }
    }

    fn end_expired(&mut self, segments: bool, now: u64) {
        let horizon = now.saturating_add(self.granularity);
        let over = |j: &&ModelJob| {
            is_segment(j) == segments && j.attr.finish <= horizon && j.attr.finish != INFINITE
        };
        while let Some(id) =
            self.jobs.iter().filter(over).min_by_key(|j| (j.attr.finish, j.id)).map(|j| j.id)
        {
            self.end(id, End::Expired, now);
        }
    }

    fn begin_due(&mut self, now: u64) {
        let begins = |j: &&ModelJob| j.standing == Standing::Waiting && j.attr.start <= now;
        while let Some(id) =
            self.jobs.iter().filter(begins).min_by_key(|j| (j.attr.start, j.id)).map(|j| j.id)
        {
            self.begin(id, now);
        }
    }

    fn fire_timers(&mut self, now: u64) {
        while let Some(timer) =
            self.timers.iter().filter(|t| t.at <= now).min_by_key(|t| (t.at, t.id)).cloned()
        {
            self.timers.retain(|t| t.id != timer.id);
            self.report(ModelEvent::Timer {
                at: now,
                timer: timer.id,
                cookie: timer.cookie,
                due: timer.at,
            });
        }
    }

    pub fn advance(&mut self, now: u64) {
        self.end_due(false, now);
        self.end_expired(false, now);
        self.end_due(true, now);
        self.end_expired(true, now);
        self.begin_due(now);
        self.fire_timers(now);
        self.release_due(now);
        self.settle(now);
    }

    /// When something next happens by itself, if the first `ranks` jobs may run until then.
    pub fn timer(&self, ranks: usize, now: u64) -> u64 {
        let finishes = self.jobs.iter().map(|j| j.attr.finish);
        let starts =
            self.jobs.iter().filter(|j| j.standing == Standing::Waiting).map(|j| j.attr.start);
        let timers = self.timers.iter().map(|t| t.at);
        let releases = self.next_release().into_iter().map(|(at, _)| at);
        let budgets = self.ranked(ranks).into_iter().map(|path| {
            let job = *path.last().expect("not empty");
            now.saturating_add(self.allowance(job))
        });
        finishes
            .chain(starts)
            .chain(timers)
            .chain(releases)
            .chain(budgets)
            .min()
            .unwrap_or(INFINITE)
    }
}
