//! What was executed, charged along both trees.

use std::cmp::Ordering;

use punctual_dispatcher::{Refusal, Standing};

use super::{Model, ModelJob};

impl Model {
    /// True if the job itself is due.
    pub fn charge_job(&mut self, id: u64, ran: u64, now: u64) -> Result<bool, Refusal> {
        self.job(id).ok_or(Refusal::Nothing)?;
        let (path, _) = self.path(id);
        let segments: Vec<_> = self
            .nodes_above(&path)
            .into_iter()
            .filter_map(|node| self.current(node))
            .map(|s| s.id)
            .collect();
        for each in path.into_iter().chain(segments) {
            let granularity = self.granularity;
            let job = self.job_mut(each);
            job.used = job.used.saturating_add(ran);
            job.excess = job.excess.saturating_add(ran.saturating_sub(job.remaining));
            job.remaining = job.remaining.saturating_sub(ran);
            if job.remaining <= granularity && !self.due.contains(&each) {
                self.due.push(each);
            }
        }
        self.settle(now);
        Ok(self.due.contains(&id))
    }

    /// `Less` if selection would prefer `a` to `b`.
    fn prefer(&self, a: &ModelJob, b: &ModelJob) -> Ordering {
        let unready = |j: &ModelJob| j.standing != Standing::Ready;
        let ((path_a, reaches_a), (path_b, reaches_b)) = (self.path(a.id), self.path(b.id));
        unready(a).cmp(&unready(b)).then(reaches_b.cmp(&reaches_a)).then_with(|| {
            if !reaches_a {
                return a.arrived().cmp(&b.arrived());
            }
            let fork = path_a.iter().rev().zip(path_b.iter().rev()).find(|(x, y)| x != y);
            let Some((x, y)) = fork else { return Ordering::Equal };
            let (x, y) = (self.job(*x).expect("it is there"), self.job(*y).expect("it is there"));
            self.compare(x.attr.group, x, y)
        })
    }

    /// The job that a charge of a task goes to.
    pub fn job_of_task(&self, task: u32) -> Option<u64> {
        self.job_of_tasks(&self.tree(task))
    }

    /// Of the begun jobs of these tasks the one that selection would prefer.
    pub(super) fn job_of_tasks(&self, tasks: &[u32]) -> Option<u64> {
        let eligible = |j: &&ModelJob| {
            j.task().is_some_and(|t| tasks.contains(&t)) && j.standing != Standing::Waiting
        };
        self.jobs.iter().filter(eligible).min_by(|a, b| self.prefer(a, b)).map(|j| j.id)
    }

    pub fn charge_task(&mut self, task: u32, ran: u64, now: u64) -> Result<bool, Refusal> {
        self.task(task)?;
        if let Some(id) = self.job_of_task(task) {
            return self.charge_job(id, ran, now);
        }
        if let Some(r) = self.reservation_of(task) {
            self.carry_error(r, ran.into());
        }
        self.settle(now);
        Ok(false)
    }
}
