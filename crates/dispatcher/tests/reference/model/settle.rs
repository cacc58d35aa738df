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
            // One without budget does not become ready.
            For::Group(_) if job.remaining == 0 && job.standing != Standing::Ready => {
                Standing::Idle
            }
            _ => Standing::Ready,
        }
    }

    fn has_ready_member(&self, group: u32) -> bool {
        let is_member = |j: &&ModelJob| j.attr.group == group && j.standing != Standing::Waiting;
        self.jobs.iter().filter(is_member).any(|j| self.standing_of(j) == Standing::Ready)
    }

    /// A group that becomes active, is not among `seen`, and has no child of which both hold.
    fn lowest_active(&self, seen: &[bool]) -> Option<u32> {
        let becomes_active = |group: &u32| {
            let g = *group as usize;
            !seen[g] && !self.groups[g].announced && self.has_ready_member(*group)
        };
        let all: Vec<u32> = (1..self.limits.groups).filter(becomes_active).collect();
        let is_above =
            |group: u32| all.iter().any(|c| self.groups[*c as usize].parent == Some(group));
        all.iter().copied().find(|group| !is_above(*group))
    }

    /// The wake-up rule for the server jobs of groups that become active. What is cut there may
    /// keep the groups above from becoming active, so the lowest are first.
    fn cut_servers(&mut self, now: u64) {
        let mut seen = vec![false; self.limits.groups as usize];
        while let Some(group) = self.lowest_active(&seen) {
            seen[group as usize] = true;
            let is_idle = |j: &&ModelJob| {
                j.attr.serves == For::Group(group)
                    && !matches!(j.standing, Standing::Waiting | Standing::Ready)
                    && !self.is_throttled(j)
            };
            let idle: Vec<u64> = self.jobs.iter().filter(is_idle).map(|j| j.id).collect();
            idle.into_iter().for_each(|id| self.cut_to_bandwidth(id, now));
        }
    }

    pub(super) fn settle(&mut self, now: u64) {
        self.cut_servers(now);
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
