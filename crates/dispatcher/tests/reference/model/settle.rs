//! The last step of every public call: which jobs are ready now.

use punctual_dispatcher::{For, Standing};

use super::{Model, ModelEvent, ModelJob};

impl Model {
    fn sleeps(&self, job: &ModelJob) -> bool {
        job.task().is_some_and(|t| self.tasks[t as usize].as_ref().expect("it has a job").blocked)
    }

    fn is_throttled(&self, job: &ModelJob) -> bool {
        self.chain(job.attr.budget_group).into_iter().any(|node| self.is_dry(node))
    }

    /// What a job that has begun does, by the rules alone; the tree has no cycles, so this ends.
    fn standing_of(&self, job: &ModelJob) -> Standing {
        match job.attr.serves {
            For::Budget(_) => Standing::Open,
            _ if self.sleeps(job) => Standing::Blocked,
            _ if self.is_throttled(job) => Standing::Throttled,
            For::Group(group) if !self.has_ready_member(group) => Standing::Idle,
            _ => Standing::Ready,
        }
    }

    fn has_ready_member(&self, group: u32) -> bool {
        let is_member = |j: &&ModelJob| j.attr.group == group && j.standing != Standing::Waiting;
        self.jobs.iter().filter(is_member).any(|j| self.standing_of(j) == Standing::Ready)
    }

    pub(super) fn settle(&mut self, now: u64) {
        let waits = |j: &ModelJob| j.standing == Standing::Waiting;
        let standings: Vec<_> = self
            .jobs
            .iter()
            .map(|j| if waits(j) { j.standing } else { self.standing_of(j) })
            .collect();
        for (job, standing) in self.jobs.iter_mut().zip(standings) {
            if standing == Standing::Ready && job.standing != Standing::Ready {
                job.arrival = now;
            }
            job.standing = standing;
        }
        for group in 0..self.limits.groups {
            let active = self.has_ready_member(group);
            if active != self.groups[group as usize].announced {
                self.groups[group as usize].announced = active;
                self.report(if active {
                    ModelEvent::Active { at: now, group }
                } else {
                    ModelEvent::Idle { at: now, group }
                });
            }
        }
    }
}
