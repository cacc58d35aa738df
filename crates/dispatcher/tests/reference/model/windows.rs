//! Windows of reservations: drafted, taken, and one job after the other.

use punctual_dispatcher::{End, For, Job, Refusal};

use super::{Model, ModelJob};

/// A row for each release, in turn; a window is its start after the release and its length.
pub type Rows = Vec<Vec<(u64, u64)>>;

impl Model {
    /// Windows in use: drafted, in force, or from the next release on.
    fn windows_taken(&self) -> usize {
        let held = self
            .reservations
            .iter()
            .flatten()
            .flat_map(|v| [Some(&v.rows), v.pending.as_ref().map(|p| &p.1)]);
        held.flatten().chain([&self.drafted]).flatten().map(Vec::len).sum()
    }

    pub fn draft_window(&mut self, start: u64, length: u64, begins: bool) -> Result<(), Refusal> {
        let too_much = 1 << 62;
        if length == 0 || start >= too_much || length >= too_much {
            return Err(Refusal::Invalid);
        }
        let row = self.drafted.last().filter(|_| !begins);
        if row.and_then(|row| row.last()).is_some_and(|before| start < before.0 + before.1) {
            return Err(Refusal::Invalid);
        }
        if self.windows_taken() == self.limits.windows as usize {
            return Err(Refusal::Full);
        }
        if begins || self.drafted.is_empty() {
            self.drafted.push(Vec::new());
        }
        self.drafted.last_mut().expect("a row").push((start, length));
        Ok(())
    }

    /// The latest end of what was drafted; 0 for nothing.
    pub fn drafted_end(&self) -> u64 {
        self.drafted.iter().flatten().map(|w| w.0 + w.1).max().unwrap_or(0)
    }

    /// The end of what was drafted last; 0 for nothing.
    pub fn drafted_last_end(&self) -> u64 {
        self.drafted.last().and_then(|row| row.last()).map_or(0, |w| w.0 + w.1)
    }

    pub fn drop_windows(&mut self) {
        self.drafted.clear();
    }

    /// Whether a reservation may have the windows that were drafted.
    pub(super) fn check_windows(
        &self,
        serves: For,
        deadline: u64,
        wakeup_rule: bool,
    ) -> Result<(), Refusal> {
        let fits = self.drafted.iter().flatten().all(|w| w.0 + w.1 <= deadline);
        if self.drafted.is_empty() || matches!(serves, For::Task(_)) && !wakeup_rule && fits {
            Ok(())
        } else {
            Err(Refusal::Invalid)
        }
    }

    /// Whether the release continues after this job's end.
    pub(super) fn goes_on(&self, r: usize, job: &ModelJob, end: End) -> bool {
        let v = self.reservations[r].as_ref().expect("it is there");
        matches!(end, End::Exhausted | End::Expired)
            && !v.ahead.is_empty()
            && v.left.saturating_sub(job.used) > self.granularity
    }

    /// What that job used is gone; the next one follows.
    pub(super) fn window_ended(&mut self, r: usize, job: &ModelJob) {
        let v = self.reservation(r);
        v.job = None;
        v.left -= job.used;
        self.going.push(r);
        self.went_on += 1;
    }

    /// Makes the next job of each release that continues, for as long as there is one.
    pub(super) fn continue_releases(&mut self, now: u64) {
        while !self.going.is_empty() {
            let r = self.going.remove(0);
            let v = self.reservation(r);
            let (from, length) = v.ahead.remove(0);
            let start = v.latest_release.saturating_add(from);
            let attr = Job {
                serves: v.attr.serves,
                start,
                finish: start.saturating_add(length),
                budget: v.left.min(length),
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
    }
}
