//! Jobs: added, begun, ended.

use punctual_dispatcher::{End, For, Job, Refusal, Standing, TaskId, INFINITE};

use super::{Model, ModelEvent, ModelJob};

impl ModelJob {
    pub fn task(&self) -> Option<u32> {
        match self.attr.serves {
            For::Task(task) => Some(task.0),
            _ => None,
        }
    }
}

impl Model {
    /// Whether a job's task, and the node above it, are there. A node that is to be above itself is
    /// a question of the tree.
    pub(super) fn check_there(&self, serves: For, budget_group: u32) -> Result<(), Refusal> {
        let above_itself = serves == For::Budget(budget_group);
        match serves {
            For::Task(task) => drop(self.task(task.0)?),
            For::Group(0) | For::Budget(0) => return Err(Refusal::Nothing),
            _ => {}
        }
        if budget_group == 0 || above_itself || self.is_made(budget_group) {
            Ok(())
        } else {
            Err(Refusal::Nothing)
        }
    }

    /// Values outside their ranges, and mixtures of kinds.
    pub(super) fn check_ranges(&self, serves: For, group: u32) -> Result<(), Refusal> {
        let valid = match serves {
            For::Task(_) => group < self.limits.groups,
            For::Group(served) => group < self.limits.groups && served < self.limits.groups,
            For::Budget(node) => group == 0 && node <= self.limits.budget_groups,
        };
        if valid {
            Ok(())
        } else {
            Err(Refusal::Invalid)
        }
    }

    pub(super) fn check_tree(
        &self,
        serves: For,
        group: u32,
        budget_group: u32,
    ) -> Result<(), Refusal> {
        match serves {
            For::Task(_) => Ok(()),
            For::Group(served) => self.check_parent(served, group),
            For::Budget(node) => self.check_node(node, budget_group),
        }
    }

    /// The first server job or segment fixes the parent of what it serves.
    pub(super) fn fix(&mut self, serves: For, group: u32, budget_group: u32) {
        match serves {
            For::Task(_) => {}
            For::Group(served) => self.groups[served as usize].parent = Some(group),
            For::Budget(node) => self.make_node(node, budget_group),
        }
    }

    pub fn add_job(&mut self, attr: &Job, now: u64) -> Result<u64, Refusal> {
        self.check_there(attr.serves, attr.budget_group)?;
        self.check_ranges(attr.serves, attr.group)?;
        self.check_tree(attr.serves, attr.group, attr.budget_group)?;
        if self.is_full() {
            return Err(Refusal::Full);
        }
        self.fix(attr.serves, attr.group, attr.budget_group);
        let id = self.make(attr, None, now);
        self.settle(now);
        Ok(id)
    }

    pub(super) fn make(&mut self, attr: &Job, reservation: Option<usize>, now: u64) -> u64 {
        self.added += 1;
        let id = self.added;
        self.jobs.push(ModelJob {
            id,
            attr: *attr,
            remaining: attr.budget,
            used: 0,
            excess: 0,
            standing: Standing::Waiting,
            arrival: INFINITE,
            reservation,
        });
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

    /// Its start is reached. What it does is settled at the end of the call; until then anything
    /// but ready and waiting will do.
    pub(super) fn begin(&mut self, id: u64, now: u64) {
        let job = self.job_mut(id);
        job.arrival = now;
        job.standing = if matches!(job.attr.serves, For::Budget(_)) {
            Standing::Open
        } else {
            Standing::Blocked
        };
    }

    pub(super) fn end(&mut self, id: u64, end: End, now: u64) {
        let at = self.jobs.iter().position(|j| j.id == id).expect("it is there");
        let job = self.jobs.remove(at);
        self.due.retain(|d| *d != id);
        assert_eq!(
            u128::from(job.used) + u128::from(job.remaining),
            u128::from(job.attr.budget) + u128::from(job.excess),
            "used + remaining = budget + excess"
        );
        let (cookie, used, remaining) = (job.attr.cookie, job.used, job.remaining);
        let goes_on = job.reservation.is_some_and(|r| self.goes_on(r, &job, end));
        let by_itself = matches!(end, End::Exhausted | End::Expired);
        self.report(match job.attr.serves {
            For::Budget(node) if by_itself => ModelEvent::SegmentEnded {
                at: now,
                end: end.into(),
                job: id,
                node,
                cookie,
                used,
                remaining,
            },
            _ => {
                let task = job.task().unwrap_or(TaskId::NONE.0);
                if goes_on {
                    ModelEvent::WindowEnded {
                        at: now,
                        end: end.into(),
                        job: id,
                        task,
                        cookie,
                        used,
                        remaining,
                    }
                } else {
                    ModelEvent::Ended {
                        at: now,
                        end: end.into(),
                        job: id,
                        task,
                        cookie,
                        used,
                        remaining,
                    }
                }
            }
        });
        match job.reservation {
            Some(r) if goes_on => self.window_ended(r, &job),
            Some(r) => self.reservation_ended(r, &job, end, now),
            None => {}
        }
    }

    /// Completed or cancelled from outside.
    pub fn end_job(&mut self, id: u64, end: End, now: u64) -> Result<(), Refusal> {
        self.job(id).ok_or(Refusal::Nothing)?;
        self.end(id, end, now);
        self.settle(now);
        Ok(())
    }
}
